"""The roofline's points, trails, bars and axes, and the table beside it: anything draws, and what is drawn is true."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.points import BF16, CEILINGS, IN_L2, h100, point, points
from tuimon.draw.glyphs import ASCII, BRAILLE, GLYPH_SETS, GlyphSet
from tuimon.draw.roofline import ROLES, Axes, roofline_lines
from tuimon.draw.roofline_table import compact, intensity_text, legend_of, of_roof_text, table_lines
from tuimon.draw.roofline_view import SHRINKS_NS, Extent, extent_of
from tuimon.draw.roofline_words import is_over
from tuimon.draw.table import Widths
from tuimon.draw.text import Line, line_cells
from tuimon.roofline.ceilings import Ceiling
from tuimon.roofline.points import Point

S = 1_000_000_000
LAB = Ceiling("lab", 1e12, 80e9, "DRAM", "declared")


def text(lines: list[Line]) -> str:
    return "\n".join("".join(run for run, _ in line) for line in lines)


def chart(of: list[Point], width: int = 80, height: int = 24, glyphs: GlyphSet = BRAILLE, **more: object) -> str:
    return text(roofline_lines(width, height, [LAB], 0, of, None, glyphs, **more))  # type: ignore[arg-type]


def one(intensity: float = 10.0, rate: float = 1e11, **more: object) -> Point:
    return Point("mm", "kernel", intensity, rate, 0.5, "modelled", "exact", **more)  # type: ignore[arg-type]


class TestPoints:
    def test_a_bar_goes_from_slow_calls_to_fast_ones(self) -> None:
        # the axis of rates has bars of its own: every line begins with one
        def bars(drawn: str) -> int:
            return drawn.count(BRAILLE.vertical)

        alone = chart([one()])
        assert bars(chart([one(slowest=1e10, fastest=5e11)])) > bars(alone) + 3
        assert bars(chart([one(slowest=0.99e11, fastest=1.01e11)])) == bars(alone)

    @pytest.mark.parametrize("glyphs", GLYPH_SETS.values(), ids=lambda glyphs: glyphs.name)
    def test_a_trail_shows_where_it_was_unless_it_is_turned_off(self, glyphs: GlyphSet) -> None:
        moving = [one(trail=((3.0, 1e10), (5.0, 2e10), (8.0, 4e10)))]
        assert chart(moving, glyphs=glyphs).count(glyphs.trail) == 3
        assert chart(moving, glyphs=glyphs, trails=False).count(glyphs.trail) == 0
        assert chart([one(trail=((-1.0, 0.0), (float("nan"), 1e10), (1e40, 1e40)))], glyphs=glyphs).count(glyphs.trail) == 0

    def test_points_at_another_boundary_are_counted_not_drawn(self) -> None:
        here, there = one(boundary="DRAM"), one(boundary="LLC")
        drawn = chart([here, there, there])
        assert drawn.count(BRAILLE.point_modelled) == 1 and "2 at LLC (b)" in drawn

    def test_over_is_by_its_own_ceiling_not_by_the_one_that_is_drawn(self) -> None:
        other = one(rate=5e12, ceiling="tensor cores", of_roof=0.5)
        assert not is_over(other, LAB) and "OVER" not in chart([other])
        assert is_over(replace(other, of_roof=1.2, over=("tf32 is allowed",)), LAB)
        assert is_over(one(rate=5e12), LAB)

    def test_the_selected_point_is_named_and_has_its_key_at_least(self) -> None:
        crowd = [one() for _ in range(30)]
        named = text(roofline_lines(80, 24, [LAB], 0, [one()], 0, BRAILLE))
        assert "1 mm" in named
        assert "OVER" in text(roofline_lines(40, 10, [LAB], 0, [replace(crowd[0], rate=9e12)], 0, BRAILLE))

    def test_the_roof_at_the_clock_of_now_is_dashed_and_has_its_reason(self) -> None:
        now = Ceiling("lab now", 0.5e12, 80e9, "DRAM", "derived")
        drawn = chart([], now_roof=now, now_why="power cap")
        assert "now (power cap) 500G" in drawn


class TestAxes:
    def test_they_grow_at_once_and_shrink_when_nothing_has_needed_the_room_for_a_while(self) -> None:
        axes = Axes()
        small, large = extent_of(1e12, 8e10, []), extent_of(1e12, 8e10, [(-3.0, 7.0)])
        assert large.x0 < small.x0 and large.low < small.low
        assert axes.settle("a", small, 0) == small
        assert axes.settle("a", large, 1 * S) == large
        assert axes.settle("a", small, 2 * S) == large
        assert axes.settle("a", small, 1 * S + SHRINKS_NS) == large
        assert axes.settle("a", small, 2 * S + SHRINKS_NS) == small

    def test_another_ceiling_and_another_clock_begin_anew(self) -> None:
        axes = Axes()
        small, large = extent_of(1e12, 8e10, []), extent_of(1e12, 8e10, [(-3.0, 7.0)])
        axes.settle("a", large, 5 * S)
        assert axes.settle("b", small, 6 * S) == small
        axes.settle("b", large, 7 * S)
        assert axes.settle("b", small, 3 * S) == small

    @given(st.lists(st.floats(0.97, 1.03), min_size=2, max_size=20), st.floats(0.5, 3), st.floats(10.2, 11.5))
    def test_points_that_tremble_do_not_move_them(self, by: list[float], x: float, y: float) -> None:
        axes = Axes()
        axes.settle("a", extent_of(1e12, 8e10, [(x * 0.97, y * 0.97), (x * 1.03, y * 1.03)]), 0)
        seen = {axes.settle("a", extent_of(1e12, 8e10, [(x * part, y * part)]), at + 1) for at, part in enumerate(by)}
        assert len(seen) == 1

    def test_extents_are_coarse(self) -> None:
        extents = {extent_of(1e12, 8e10, [(0.5 + part / 1000, 10.5)]) for part in range(20)}
        assert len(extents) == 1
        assert Extent(0, 1, 2, 3).with_(Extent(-1, 0, 2.5, 4)) == Extent(-1, 1, 2, 4)


class TestTable:
    def lines(self, cursor: int | None = None, width: int = 100, height: int = 20, glyphs: GlyphSet = BRAILLE) -> list[str]:
        drawn, _, _ = table_lines(points(), cursor, width, height, 0, BF16, glyphs, Widths())
        return text(drawn).split("\n")

    def test_a_row_has_the_key_the_shape_and_the_bounds(self) -> None:
        rows = self.lines()
        assert rows[0].split()[:6] == ["point", "time", "F/B", "F/s", "%roof", "%peak"]
        row = next(row for row in rows if "8192x1024" in row)
        assert row.split()[:2] == ["2", BRAILLE.point_upper]
        assert "≤206" in row and "≥91%" in row and "63%" in row and "formula, compulsory" in self.lines(width=140)[2]
        assert "<=206" in next(row for row in self.lines(glyphs=ASCII) if "8192x1024" in row)

    def test_causes_stand_below_what_is_over(self) -> None:
        rows = self.lines()
        at = next(at for at, row in enumerate(rows) if "512x512" in row)
        assert "≥159%" in rows[at] and "OVER: tf32 is allowed" in rows[at + 1]

    def test_what_cannot_be_told_is_a_question_or_a_dash(self) -> None:
        rows = self.lines()
        assert next(row for row in rows if "layer_norm" in row).split()[6:8] == ["?", "4%"]
        assert next(row for row in rows if "_foobar" in row).split()[-6:].count("-") >= 4
        drawn, _, _ = table_lines(points(), 7, 100, 20, 0, BF16, BRAILLE, Widths())
        assert "no formula for aten::_foobar" in text(drawn)

    def test_the_selected_row_is_always_there(self) -> None:
        for height in range(2, 12):
            for cursor in range(len(points())):
                drawn, _, rows = table_lines(points(), cursor, 60, height, 0, BF16, BRAILLE, Widths())
                assert cursor in rows.values() and len(drawn) <= height

    def test_numbers_take_few_cells(self) -> None:
        assert [compact(value) for value in (None, 0.0, 0.00012, 0.25, 999.4, 1e3, 594e12, 3e24)] == (
            ["-", "0", "1e-4", "0.25", "999", "1.00k", "594T", "3e24"]
        )
        assert intensity_text(one(), BRAILLE) == "10.0"
        assert of_roof_text(replace(one(), bound="unknown"), BRAILLE) == "?"

    def test_the_legend_has_the_shapes_that_are_there(self) -> None:
        shapes = [glyph for glyph, _ in legend_of(points(), BRAILLE)]
        assert shapes == [BRAILLE.point_measured, BRAILLE.point_modelled, BRAILLE.point_upper, BRAILLE.point_unknown]


numbers = st.one_of(st.none(), st.floats(1e-40, 1e40), st.sampled_from([0.0, -1.0, float("inf"), float("nan")]))
places = st.tuples(st.floats(), st.floats())
any_point = st.builds(
    Point,
    name=st.text(max_size=12),
    kind=st.sampled_from(["kernel", "region", "device"]),
    intensity=numbers,
    rate=numbers,
    time_share=st.floats(0, 20),
    how=st.sampled_from(["measured", "counted", "modelled", "declared"]),
    bound=st.sampled_from(["exact", "upper", "lower", "unknown"]),
    of_roof=st.one_of(st.none(), st.floats(0, 1e6)),
    of_peak=st.one_of(st.none(), st.floats(0, 1e6)),
    bytes=st.one_of(st.none(), st.floats(0, 1e30)),
    seconds=st.floats(0, 1e6),
    calls=st.integers(0, 10**12),
    boundary=st.sampled_from(["", "HBM", "L2", "一\x1b"]),
    ceiling=st.sampled_from(["", BF16.name, "屋根"]),
    over=st.lists(st.text(max_size=60), max_size=2).map(tuple),
    slowest=numbers,
    fastest=numbers,
    trail=st.lists(places, max_size=3).map(tuple),
    why_not=st.text(max_size=40),
)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(any_point, max_size=5),
    st.integers(0, 130),
    st.integers(0, 45),
    st.one_of(st.none(), st.integers(-1, 9)),
    st.sampled_from(list(GLYPH_SETS.values())),
    st.booleans(),
    st.sampled_from([0, 3, -1]),
)
def test_anything_draws_at_any_size(
    of: list[Point], width: int, height: int, cursor: int | None, glyphs: GlyphSet, trails: bool, selected: int
) -> None:
    lines = roofline_lines(
        width,
        height,
        CEILINGS,
        selected,
        of,
        cursor,
        glyphs,
        trails=trails,
        now_roof=h100().now_roof,
        now_why="hot",
        axes=Axes(),
    )
    assert len(lines) == height
    chosen = cursor if cursor is not None and 0 <= cursor < len(of) else None
    table, _, rows = table_lines(of, chosen, width, height, 0, IN_L2, glyphs, Widths())
    assert len(table) <= height and set(rows) <= set(range(len(table)))
    for line in (*lines, *table):
        assert line_cells(line) == width
        for run, role in line:
            assert run.isprintable() and (line in table or role in ROLES)
            assert glyphs is not ASCII or line in table or run.isascii()


def test_what_is_made_up_is_sound() -> None:
    made = point("x", "kernel", 1e12, 1e10, 0.01, BF16)
    assert made.rate == 1e14 and made.intensity == 100 and made.of_peak == pytest.approx(0.101, rel=0.01)
