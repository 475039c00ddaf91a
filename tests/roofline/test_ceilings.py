from __future__ import annotations

import contextlib
import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tuimon.roofline.ceilings import Ceiling, CeilingError, load_ceilings, parse_ceilings

ENTRY = '[[ceiling]]\nname = "mine"\npeak_flops = 2e12\nbandwidth_bytes_s = 1e11\nboundary = "DRAM"\nhow = "calibrated"\n'


def test_the_pair_of_the_lab() -> None:
    lab = load_ceilings()[0]
    assert (lab.name, lab.peak_flops, lab.bandwidth_bytes_s) == ("lab", 1000e9, 80e9)
    assert (lab.boundary, lab.how) == ("hypothetical", "declared")
    assert lab.ridge == 12.5
    assert lab.roof(8) == 640e9
    assert lab.roof(12.5) == lab.roof(16) == lab.roof(1e6) == 1000e9


def test_every_packaged_ceiling_has_a_source_and_its_own_name() -> None:
    ceilings = load_ceilings()
    assert len({ceiling.name for ceiling in ceilings}) == len(ceilings) >= 4
    for ceiling in ceilings:
        assert ceiling.source
        assert ceiling.how in ("declared", "datasheet")  # nothing was measured where this file was written
        assert 1 < ceiling.ridge < 1000
    by_name = {ceiling.name: ceiling for ceiling in ceilings}
    assert (by_name["H100 SXM bf16"].peak_flops, by_name["H100 SXM bf16"].bandwidth_bytes_s) == (989e12, 3.35e12)
    assert (by_name["A100 80GB SXM bf16"].peak_flops, by_name["A100 80GB SXM bf16"].bandwidth_bytes_s) == (312e12, 2.039e12)


def test_a_users_file_adds_and_replaces(tmp_path: Path) -> None:
    path = tmp_path / "ceilings.toml"
    path.write_text(ENTRY + ENTRY.replace("mine", "lab"))
    packaged, ceilings = load_ceilings(), load_ceilings(path)
    assert [c.name for c in ceilings] == [*(c.name for c in packaged), "mine"]
    assert ceilings[0] == Ceiling("lab", 2e12, 1e11, "DRAM", "calibrated")
    assert load_ceilings() == packaged


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("name = ", "not TOML"),
        ("[ceiling]\nname = 'x'", "two brackets"),
        ("ceiling = [1]", "two brackets"),
        ("title = 'x'", "unknown 'title'"),
        (ENTRY.replace("how = ", "hwo = "), "ceiling 1 ('mine'): unknown 'hwo'"),
        (ENTRY.replace('boundary = "DRAM"\n', ""), "boundary missing"),
        ("[[ceiling]]", "name, peak_flops, bandwidth_bytes_s, boundary, how missing"),
        (ENTRY + ENTRY, "ceiling 2 ('mine'): there is one of this name"),
        (ENTRY.replace("calibrated", "guessed"), "declared, datasheet, derived, calibrated"),
        (ENTRY.replace('"DRAM"', '" "'), "boundary must be a text"),
        (ENTRY.replace('"mine"', "3"), "name must be a text"),
        (ENTRY.replace('"mine"', '"a\\u001b[31m"'), "control characters"),
        *(
            (ENTRY.replace("2e12", value), "peak_flops must be a number")
            for value in ("0", "-1.0", "nan", "inf", "true", "'2e12'", "[1]", "1" + "0" * 400)
        ),
    ],
)
def test_what_is_wrong_is_named(text: str, says: str) -> None:
    with pytest.raises(CeilingError) as caught:
        parse_ceilings(text.encode(), "here.toml")
    assert str(caught.value).startswith("here.toml: ")
    assert says in str(caught.value)


def test_bad_files_are_refused_by_name(tmp_path: Path) -> None:
    binary, large = tmp_path / "binary", tmp_path / "large"
    binary.write_bytes(b"\xff\xfe")
    large.write_bytes(b"#" * (2 << 20))
    for path, says in (
        (tmp_path / "nowhere", "no such file"),
        (tmp_path, "directory"),
        (binary, "UTF-8"),
        (large, "larger"),
    ):
        with pytest.raises(CeilingError, match=says) as caught:
            load_ceilings(path)
        assert str(path) in str(caught.value)


@given(st.binary(max_size=200))
def test_any_bytes_are_ceilings_or_a_ceiling_error(data: bytes) -> None:
    with contextlib.suppress(CeilingError):
        parse_ceilings(data, "x")


@given(st.floats(1, 1e30), st.floats(1, 1e30), st.floats(1e-12, 1e12))
def test_the_roof_is_the_lower_of_both_and_they_meet_at_the_ridge(peak: float, bandwidth: float, intensity: float) -> None:
    ceiling = Ceiling("x", peak, bandwidth, "DRAM", "declared")
    roof = ceiling.roof(intensity)
    assert 0 < roof <= peak
    assert roof <= intensity * bandwidth
    assert math.isclose(ceiling.roof(ceiling.ridge), peak)
