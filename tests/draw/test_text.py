"""Text that fits its cells, whatever a job calls its things."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tuimon.draw.text import (
    ascii_only,
    cells,
    clean,
    cut,
    cut_line,
    exactly,
    fill,
    head,
    line_cells,
    middle,
    pad,
    tail,
    two_ends,
    without_escapes,
    wrap,
)

ANYTHING = st.text(max_size=60)


@pytest.mark.parametrize(
    ("given_text", "cleaned"),
    [
        ("plain", "plain"),
        ("a\tb\nc\r", "a b c "),
        ("\x1b[31mred\x07", "?[31mred?"),
        ("abc\u202egnp.exe", "abcgnp.exe"),
        ("e\u0301", "\u00e9"),
        ("\u4e2d\u6587", "\u4e2d\u6587"),
        ("\ud800", "?"),
        ("\U0001f468\u200d\U0001f469", "\U0001f468\U0001f469"),
    ],
)
def test_untrusted_text_is_made_harmless(given_text: str, cleaned: str) -> None:
    assert clean(given_text) == cleaned


def test_a_very_long_text_is_cut_before_it_costs_anything() -> None:
    assert len(clean("x" * 1_000_000)) == 4000


@given(ANYTHING)
def test_our_widths_are_those_of_the_screen_library(text: str) -> None:
    from rich.cells import cell_len

    assert cells(clean(text)) == cell_len(clean(text))


@given(ANYTHING, st.integers(-2, 30))
def test_nothing_is_wider_than_asked_for(text: str, width: int) -> None:
    text = clean(text)
    room = max(0, width)
    assert cells(cut(text, width, "…")) <= room
    assert cells(middle(text, width, "…")) <= room
    assert cells(head(text, width)) <= room
    assert cells(tail(text, width)) <= room
    assert line_cells(exactly([(text, "a"), (text, "b")], width)) == room
    assert cells(pad(cut(text, room, "~"), room)) == room


@given(ANYTHING, st.integers(1, 30))
def test_wrapped_text_fits_and_loses_no_word(text: str, width: int) -> None:
    lines = wrap(clean(text), width)
    if width >= 2:  # a wide character cannot fit one cell
        assert all(cells(line) <= width for line in lines)
    assert "".join(lines).replace(" ", "") == clean(text).replace(" ", "")


def test_ascii_keeps_the_widths() -> None:
    assert ascii_only("a\u4e2db\u00e9") == "a??b?"


def test_the_middle_goes_first() -> None:
    assert middle("layers_forward_attention", 11, "…") == "layer…ntion"


def test_parts_of_the_highest_rank_go_first() -> None:
    parts = [(0, [("first", "a")]), (2, [("second", "a")]), (1, [("third", "a")])]
    assert "".join(text for text, _ in fill(parts, 40)) == "first  second  third"
    assert "".join(text for text, _ in fill(parts, 15)) == "first  third"
    assert "".join(text for text, _ in fill(parts, 3)) == "first"


def test_the_right_end_of_a_line_is_kept_whole() -> None:
    line = two_ends([("a long left end", "a")], [("right", "b")], 12)
    assert "".join(text for text, _ in line) == "a long right"


@given(st.lists(st.text(max_size=12).map(clean), max_size=4), st.integers(-2, 30))
def test_a_line_that_is_cut_says_so(texts: list[str], width: int) -> None:
    line = [(text, "text") for text in texts]
    shorter = cut_line(line, width, "…")
    assert line_cells(shorter) <= max(0, width)
    if line_cells(line) > width > 0:
        assert shorter[-1][0] == "…"
    elif line_cells(line) <= width:
        assert shorter == line


@pytest.mark.parametrize(
    ("given_text", "plain"),
    [
        ("\x1b[38;5;196mred\x1b[m", "red"),
        ("\x1b]0;title\x07text", "text"),
        ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x1b(Bplain\x1b7", "plain"),
        ("array[3] stays", "array[3] stays"),
        ("\x1b]0;never ended", "0;never ended"),
    ],
)
def test_escape_sequences_go_as_a_whole(given_text: str, plain: str) -> None:
    assert without_escapes(given_text) == plain
