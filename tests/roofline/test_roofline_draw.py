"""The drawing: whole pictures against kept ones (TUIMON_UPDATE_GOLDEN=1 writes them anew), and what holds of any picture."""

from __future__ import annotations

import itertools
import math
import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tuimon.draw.glyphs import ASCII, BLOCK, BRAILLE, GLYPH_SETS, GlyphSet, glyphs_for
from tuimon.draw.roofline import LEAST_HEIGHT, LEAST_WIDTH, ROLES, legend, point_key, roofline_lines
from tuimon.draw.roofline_view import choose_view, extent_of, narrow, tick_label, ticks
from tuimon.draw.roofline_words import point_glyph
from tuimon.draw.text import line_cells
from tuimon.roofline.ceilings import Ceiling, load_ceilings
from tuimon.roofline.points import NOTHING_KNOWN, Point

GOLDEN = Path(__file__).parent / "golden"
CEILINGS = load_ceilings()
LAB = 0
H100 = next(index for index, ceiling in enumerate(CEILINGS) if ceiling.name == "H100 SXM bf16")

POINTS = [
    Point("mm 2048x2048", "kernel", 170, 62e12, 0.3, "modelled", "exact"),
    Point("flash_fwd", "kernel", 182, 44e12, 0.12, "counted", "exact"),
    Point("triton_fused_gelu", "kernel", 1.2, 2.5e12, 0.1, "modelled", "upper"),
    Point("too_good", "kernel", 10, 60e12, 0.04, "measured", "exact"),
    Point("index_select", "kernel", None, None, 0.2, "modelled", "exact"),
    Point("far_away", "kernel", 1e-9, 1e3, 0.01, "modelled", "unknown"),
    Point("plan", "region", 800, 400e12, 0.03, "declared", "exact"),
]


def picture(
    width: int,
    height: int,
    selected: int = LAB,
    points: list[Point] | None = None,
    cursor: int | None = None,
    glyphs: GlyphSet = BRAILLE,
) -> list[str]:
    lines = roofline_lines(width, height, CEILINGS, selected, points or [], cursor, glyphs)
    return ["".join(text for text, _ in line) for line in lines]


PICTURES: dict[str, tuple[int, int, int, list[Point], int | None, GlyphSet]] = {
    "live-80x24": (80, 24, LAB, [], None, BRAILLE),
    "live-40x10": (40, 10, LAB, [], None, BRAILLE),
    "live-30x8": (30, 8, LAB, [], None, BRAILLE),
    "live-18x6": (18, 6, LAB, [], None, BRAILLE),
    "live-40x10-ascii": (40, 10, LAB, [], None, ASCII),
    "points-80x24": (80, 24, H100, POINTS, 0, BRAILLE),
    "points-80x24-ascii": (80, 24, H100, POINTS, 0, ASCII),
    "points-40x10-block": (40, 10, H100, POINTS, 2, BLOCK),
    "points-120x40": (120, 40, H100, POINTS, 3, BRAILLE),
}


@pytest.mark.parametrize("name", PICTURES)
def test_pictures(name: str) -> None:
    path = GOLDEN / f"{name}.txt"
    # the bars at the right keep editors from eating the blanks, which are part of the picture
    drawn = "".join(f"{line}|\n" for line in picture(*PICTURES[name]))
    if os.environ.get("TUIMON_UPDATE_GOLDEN"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(drawn, encoding="utf-8")
    assert drawn == path.read_text(encoding="utf-8")


class TestWhatIsSaid:
    @pytest.mark.parametrize("glyphs", GLYPH_SETS.values(), ids=lambda glyphs: glyphs.name)
    @pytest.mark.parametrize(("width", "height"), [(80, 24), (40, 10), (30, 8), (120, 40)])
    def test_the_ceiling_its_boundary_and_that_nothing_is_known(self, glyphs: GlyphSet, width: int, height: int) -> None:
        text = "\n".join(picture(width, height, H100, glyphs=glyphs))
        for fact in ("H100 SXM bf16", "HBM", NOTHING_KNOWN, "ridge 295", "(data"):
            assert fact in text
        assert "989 TFLOP/s" in text or "989TFLOP/s" in text
        assert "3.35 TB/s" in text or "3.35TB/s" in text

    def test_a_point_over_the_roof_is_above_the_line_and_marked(self) -> None:
        lines = picture(80, 24, LAB, [Point("x", "kernel", 10, 5e12, 1, "measured", "exact")])
        (row,) = [number for number, line in enumerate(lines) if BRAILLE.point_measured in line]
        flat = [number for number, line in enumerate(lines) if line.endswith(("⠉" * 20, "⠒" * 20, "⠤" * 20, "⣀" * 20))]
        assert "OVER" in lines[row]
        assert flat and row < flat[0]
        assert any("1 OVER the roof" in line for line in lines)

    def test_a_point_is_over_only_if_it_is_whatever_its_true_intensity(self) -> None:
        def is_over(bound: str, rate: float) -> bool:
            point = Point("x", "kernel", 1, rate, 1, "modelled", bound)  # type: ignore[arg-type]
            return any("OVER" in line for line in picture(80, 24, LAB, [point]))

        assert is_over("exact", 200e9) and is_over("upper", 200e9)
        assert not is_over("lower", 200e9) and not is_over("unknown", 200e9)
        assert is_over("lower", 1100e9) and is_over("unknown", 1100e9)
        assert not is_over("exact", 79e9)

    def test_points_without_operations_are_counted_not_drawn(self) -> None:
        nowhere = Point("gather", "kernel", None, None, 0.5, "modelled", "exact")
        assert any("operations or bytes unknown for all 2" in line for line in picture(80, 24, LAB, [nowhere] * 2))
        assert any("1 without operations or bytes" in line for line in picture(80, 24, LAB, [POINTS[0], nowhere]))

    def test_labels_that_find_no_place_are_counted(self) -> None:
        crowd = [Point(f"k{n}", "kernel", 10, 100e9, 0.01, "modelled", "exact") for n in range(30)]
        text = "\n".join(picture(80, 24, LAB, crowd))
        assert "without a label" in text

    def test_provenance_is_a_shape(self) -> None:
        for glyphs in GLYPH_SETS.values():
            shapes = [glyph for glyph, _ in legend(glyphs)]
            assert len(set(shapes)) == len(shapes) == 7
        assert point_glyph("modelled", "upper", ASCII) == "{"
        assert point_glyph("declared", "upper", ASCII) == "?"  # what a person stated can never be read as achieved

    def test_other_machines_are_not_in_the_picture_but_other_peaks_are(self) -> None:
        text = "\n".join(picture(100, 30, H100))
        assert "H100 SXM fp32" in text
        assert "A100" not in text and "H200" not in text

    def test_a_selection_out_of_range_is_said(self) -> None:
        assert "no ceiling selected" in picture(30, 8, selected=99)[0]
        assert "no ceiling selected" in picture(30, 8, selected=-1)[0]

    def test_hostile_names_stay_in_their_cells(self) -> None:
        ceiling = Ceiling("屋根" * 9, 1e12, 1e10, "記憶", "declared")
        point = Point("a\x1b[31m\u202eb\u0301屋\n", "kernel", 1, 1e9, 1, "modelled", "exact")
        for glyphs in GLYPH_SETS.values():
            lines = roofline_lines(60, 12, [ceiling], 0, [point], 0, glyphs)
            assert [line_cells(line) for line in lines] == [60] * 12
            assert all(text.isprintable() for line in lines for text, _ in line)
            assert glyphs is not ASCII or all(text.isascii() for line in lines for text, _ in line)


numbers = st.one_of(st.none(), st.floats(1e-40, 1e40), st.sampled_from([0.0, -1.0, float("inf"), float("nan")]))
any_point = st.builds(
    Point,
    name=st.text(max_size=12),
    kind=st.just("kernel"),
    intensity=numbers,
    rate=numbers,
    time_share=st.floats(0, 2),
    how=st.sampled_from(["measured", "counted", "modelled", "declared"]),
    bound=st.sampled_from(["exact", "upper", "lower", "unknown"]),
)
any_ceiling = st.builds(
    Ceiling,
    name=st.sampled_from(["a", "the long name of a ceiling that does not fit anywhere"]),
    peak_flops=st.floats(1, 1e30),
    bandwidth_bytes_s=st.floats(1, 1e30),
    boundary=st.sampled_from(["HBM", "a boundary with a long name"]),
    how=st.just("declared"),
)


@settings(max_examples=150, deadline=None)
@given(
    st.integers(0, 130),
    st.integers(0, 45),
    st.lists(any_ceiling, min_size=1, max_size=3),
    st.lists(any_point, max_size=12),
    st.one_of(st.none(), st.integers(-1, 13)),
    st.sampled_from([BRAILLE, BLOCK, ASCII]),
)
def test_any_picture_fits_its_frame(
    width: int, height: int, ceilings: list[Ceiling], points: list[Point], cursor: int | None, glyphs: GlyphSet
) -> None:
    lines = roofline_lines(width, height, ceilings, 0, points, cursor, glyphs)
    assert len(lines) == height
    for line in lines:
        assert line_cells(line) == width
        assert all(role in ROLES for _, role in line)
        assert all(one != other for (_, one), (_, other) in itertools.pairwise(line))
    if width >= LEAST_WIDTH and height >= LEAST_HEIGHT:
        roles = {role for line in lines for _, role in line}
        assert {"axis", "note", "ridge", "roof-selected"} <= roles


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(st.floats(0.1, 1e3), st.floats(1e8, 1e13), st.floats(0, 1)), min_size=1, max_size=9))
def test_every_point_near_the_roof_is_drawn_in_the_picture(values: list[tuple[float, float, float]]) -> None:
    points = [Point("p", "kernel", i, p, share, "measured", "exact") for i, p, share in values]
    text = "\n".join(picture(100, 30, LAB, points))
    assert BRAILLE.point_measured in text
    assert "off scale" not in text


@given(st.floats(1, 1e30), st.floats(1, 1e30), st.integers(15, 120), st.integers(5, 40), st.integers(1, 2), st.integers(0, 1))
def test_the_whole_roof_is_in_the_view_below_the_note(
    peak: float, bandwidth: float, columns: int, rows: int, head: int, foot: int
) -> None:
    view = choose_view(extent_of(peak, bandwidth, []), columns, rows, head, foot)
    ridge = math.log10(peak) - math.log10(bandwidth)
    assert view.x0 + 1 < ridge < view.x1 - 0.9
    assert head <= view.row(math.log10(peak)) <= head + 1
    assert rows - foot - 1 <= view.row(view.x0 + math.log10(bandwidth) + 1e-9) <= rows - foot
    assert view.column(view.x0) == 0


def test_numbers_on_axes() -> None:
    assert [tick_label(power) for power in (-3, -2, -1, 0, 1, 2, 3, 10, 12, 14, 20, 21)] == (
        ["1e-3", "0.01", "0.1", "1", "10", "100", "1k", "10G", "1T", "100T", "100E", "1e21"]
    )
    assert ticks(-1.0, 4.0, 20) == [-1, 0, 1, 2, 3, 4]
    assert ticks(-1.0, 4.0, 3) == [0, 3]
    assert ticks(0.2, 0.8, 3) == []
    assert narrow("a long name", BRAILLE, 6) == "a lon…"
    assert narrow("a long name", ASCII, 0) == ""
    assert [point_key(index) for index in (0, 8, 9, 34, 35, -1)] == ["1", "9", "a", "z", "", ""]


def test_glyph_sets() -> None:
    for glyphs in GLYPH_SETS.values():
        assert len(set(glyphs.cells)) == 2 ** (glyphs.columns * glyphs.rows)
        assert glyphs.cells[0] == " "
    assert BRAILLE.cells[0b1000_0001] == "⢁"  # upper left and lower right
    assert BLOCK.cells[0b1001] == "▚"
    assert [glyphs_for(encoding) for encoding in ("utf-8", "latin-1", "no such", None)] == [BRAILLE, ASCII, ASCII, ASCII]
