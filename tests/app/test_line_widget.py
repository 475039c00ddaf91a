"""What of a line that has changed is sent again."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tuimon.app.widgets.line_widget import _changed_until
from tuimon.draw.text import Line, line_cells


def cells_of(line: Line) -> list[tuple[str, str]]:
    """(character with what joins it, role) of each cell; the second cell of a wide character has that character too."""
    found: list[tuple[str, str]] = []
    for text, role in line:
        for char in text:
            took = line_cells([(char, role)])
            if took == 0 and found:
                found[-1] = found[-1][0] + char, found[-1][1]
            found += [(char, role)] * took
    return found


def test_a_history_that_grows_at_its_begin_is_sent_up_to_there() -> None:
    before: Line = [("  0 ", "dim"), ("        ⣿⣿⣿⣿", "bar")]
    after: Line = [("  0 ", "dim"), ("       ⣿⣿⣿⣿⣿", "bar")]
    assert _changed_until(before, after, 16) == 12
    assert _changed_until([("ab", "text")], [("ab", "note")], 2) == 2


CHARACTERS = "ab -─⣿·中́‍😀"
RUNS = st.lists(st.tuples(st.text(st.sampled_from(CHARACTERS), max_size=6), st.sampled_from(["text", "note"])), max_size=4)


@given(before=RUNS, after=RUNS, alike=RUNS)
def test_nothing_that_differs_is_left_out(before: Line, after: Line, alike: Line) -> None:
    old, new = before + alike, after + alike
    width = max(line_cells(old), line_cells(new), 1)
    until = _changed_until(old, new, width)
    assert 1 <= until <= width
    if line_cells(old) == line_cells(new) == width:
        assert cells_of(old)[until:] == cells_of(new)[until:]
