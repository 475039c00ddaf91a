"""Small charts: what a bar's height says, in all three sets of glyphs."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tuimon.draw.glyphs import ASCII, BLOCK, BRAILLE, GLYPH_SETS
from tuimon.draw.spark import aligned, chart, marks, nice_top


def test_braille_has_two_values_a_column() -> None:
    assert chart([0, 1, 2, 3, 4, 4], 3, 1, 4, BRAILLE) == ["⣀⣴⣿"]


def test_blocks_have_one() -> None:
    assert chart([1, 4, 8], 4, 1, 8, BLOCK) == [" ▁▄█"]
    assert chart([1, 4, 8], 4, 1, 8, ASCII) == [" _=@"]


def test_two_rows() -> None:
    assert chart([4, 8, 16], 3, 2, 16, BLOCK) == ["  █", "▄██"]


def test_what_is_not_known_leaves_a_gap_and_little_is_not_nothing() -> None:
    assert chart([None, 0.0001], 2, 1, 8, BLOCK) == [" ▁"]


def test_beyond_the_scale_is_full() -> None:
    assert chart([99], 1, 1, 8, BLOCK) == ["█"]


def test_marks_stand_below_their_columns() -> None:
    assert marks([False, True, False, False], 2, "^", BRAILLE) == "^ "
    assert marks([False, True], 4, "^", BLOCK) == "   ^"


def test_a_chart_moves_by_whole_columns() -> None:
    before = chart(aligned([1, 2, 3, 4], 3, BRAILLE), 4, 1, 4, BRAILLE)[0]
    after = chart(aligned([1, 2, 3, 4, 4], 4, BRAILLE), 4, 1, 4, BRAILLE)[0]
    assert after[2] == before[3]


@pytest.mark.parametrize(("largest", "top"), [(0, 1), (0.9, 1), (1, 1), (1.1, 2), (29.8, 30), (31, 50), (0.0021, 0.003)])
def test_scales_end_at_round_numbers(largest: float, top: float) -> None:
    assert nice_top(largest) == pytest.approx(top)


@given(
    st.lists(st.one_of(st.none(), st.floats(0, 1e9)), max_size=50),
    st.integers(0, 20),
    st.integers(0, 5),
    st.sampled_from(sorted(GLYPH_SETS)),
)
def test_a_chart_is_as_large_as_asked_for(values: list[float | None], width: int, height: int, name: str) -> None:
    rows = chart(values, width, height, 100.0, GLYPH_SETS[name])
    assert len(rows) == height
    assert all(len(row) == width for row in rows)
