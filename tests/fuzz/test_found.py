"""What was found once stays mended; and each target is tried with some inputs, the same in every run."""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fuzz import __main__ as fuzz
from tests.fuzz import targets, worker
from tests.fuzz.made import inputs, shortest
from tests.fuzz.targets import TARGETS, Target

FOUND = Path(__file__).parent / "found"
WITHOUT_TORCH = {"commands", "ordered"}


@pytest.mark.parametrize("name", sorted(path.name for path in FOUND.iterdir()))
def test_what_was_found(name: str) -> None:
    data = (FOUND / name).read_bytes()
    TARGETS[name.partition("-")[0]].run(data, True)


@pytest.mark.parametrize("name", TARGETS)
def test_made_up_inputs(name: str) -> None:
    target = TARGETS[name]
    if name in WITHOUT_TORCH and "torch" in sys.modules:  # of another test: here the hook would look at this very process
        again = f"{__file__}::test_made_up_inputs[{name}]"
        assert (
            subprocess.run([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", again], check=False).returncode == 0
        )
        return
    for number, data in enumerate(itertools.islice(inputs(target.seeds(), name), target.quick)):
        target.run(data, number % 8 == 0)


def test_what_is_found_is_kept_as_short_as_can_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fails(data: bytes, _: bool) -> None:
        if b"a" in data and data.endswith(b"z"):
            raise KeyError(data)

    monkeypatch.setitem(targets.TARGETS, "typed", Target(fails, "", lambda: [b"xxaxxaxxz"]))
    monkeypatch.setattr(worker, "find_spec", lambda _: None)
    worker.main("typed", 0.3, tmp_path)
    told = json.loads(capsys.readouterr().out)
    assert told["runs"] > 1 and len(told["found"]) == 1
    assert (tmp_path / "found" / told["found"][0]).read_bytes() == b"az"
    assert "KeyError" in (tmp_path / "found" / f"{told['found'][0]}.why").read_text()


def test_a_target_that_ends_by_itself_is_no_success(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ended = {"typed": {"runs": 5, "edges": 0, "found": []}, "texts": {"runs": 0, "edges": 0, "found": [], "trouble": "-9"}}
    monkeypatch.setattr(fuzz, "_one", lambda name, _seconds, _folder: ended[name])
    monkeypatch.setattr(sys, "argv", ["fuzz", "--out", str(tmp_path), "typed"])
    assert fuzz.main() == 0
    monkeypatch.setattr(sys, "argv", ["fuzz", "--out", str(tmp_path), "typed", "texts"])
    assert fuzz.main() == 1 and "5 runs, 0 found, 1 ended too early" in capsys.readouterr().out


def test_inputs_are_the_same_for_the_same_seed() -> None:
    seeds = [b"one", b"two"]
    first, second, other = (list(itertools.islice(inputs(seeds, seed), 50)) for seed in ("a", "a", "b"))
    assert first == second != other and first[:2] == seeds
    assert shortest(b"xxxxyxxx", lambda data: b"y" in data) == b"y"
