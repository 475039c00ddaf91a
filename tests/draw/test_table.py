"""Tables that do not jump."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tuimon.draw.table import Cells, Column, Widths, head_line, heads, layout, note_widths, row_line, window
from tuimon.draw.text import Line, line_cells

COLUMNS = (
    Column("share", "share", 6, right=True),
    Column("calls", "calls", 5, right=True, rank=2),
    Column("name", "name", 8, flex=1, snug=True, most=20),
    Column("why", "reason", 6, flex=2, rank=1),
)


def text(line: Line) -> str:
    return "".join(part for part, _ in line)


def test_golden() -> None:
    rows: list[Cells] = [
        {"share": ("12.1%", "number"), "calls": ("1284", "number"), "name": ("attention", "text"), "why": ("a reason", "text")},
        {"share": ("<0.1%", "number"), "calls": ("7", "number"), "name": lambda width: ("mlp", "text"), "why": ("-", "text")},
    ]
    widths = Widths()
    note_widths(COLUMNS, rows, widths)
    placed = layout(COLUMNS, 44, widths)
    lines = [text(head_line(placed, 44, "share", "v", "~"))] + [text(row_line(placed, row, 44, "~")) for row in rows]
    assert lines == [
        "sharev  calls  name       reason            ",
        " 12.1%   1284  attention  a reason          ",
        " <0.1%      7  mlp        -                 ",
    ]


def test_columns_go_by_rank_when_there_is_no_room() -> None:
    assert [column.name for column, _ in layout(COLUMNS, 44, Widths()).columns] == ["share", "calls", "name", "why"]
    assert [column.name for column, _ in layout(COLUMNS, 26, Widths()).columns] == ["share", "name", "why"]
    assert [column.name for column, _ in layout(COLUMNS, 17, Widths()).columns] == ["share", "name"]


def test_columns_move_closer_before_one_goes() -> None:
    assert layout(COLUMNS, 31, Widths()).gap == 2
    assert layout(COLUMNS, 30, Widths()).gap == 1
    assert len(layout(COLUMNS, 28, Widths()).columns) == 4
    assert len(layout(COLUMNS, 27, Widths()).columns) == 3


def test_a_width_grows_and_never_shrinks() -> None:
    widths = Widths()
    note_widths(COLUMNS, [{"calls": ("1234567", "number")}], widths)
    wide = {column.name: width for column, width in layout(COLUMNS, 60, widths).columns}
    note_widths(COLUMNS, [{"calls": ("1", "number")}], widths)
    assert {column.name: width for column, width in layout(COLUMNS, 60, widths).columns} == wide
    assert wide["calls"] == 7


@given(st.integers(0, 120), st.dictionaries(st.sampled_from(["share", "calls", "name"]), st.integers(0, 40)))
def test_columns_never_take_more_than_there_is(width: int, seen: dict[str, int]) -> None:
    placed = layout(COLUMNS, width, Widths(seen))
    gaps = placed.gap * max(0, len(placed.columns) - 1)
    assert sum(size for _, size in placed.columns) + gaps <= max(width, gaps)
    assert line_cells(row_line(placed, {"name": ("x" * 50, "text")}, width, "~")) == width


@given(st.integers(0, 50), st.integers(0, 49), st.integers(-5, 60), st.integers(0, 20))
def test_the_selected_row_is_in_the_window(count: int, at: int, top: int, height: int) -> None:
    first = window(count, min(at, max(0, count - 1)), top, height)
    assert 0 <= first <= max(0, count - height) or height == 0
    if count and height:
        assert first <= min(at, count - 1) < first + height


SPARING = (
    Column("share", "share", 6, right=True),
    Column("spread", "[p10-p90]", 14, right=True, rank=1, spare=True),
    Column("place", "place", 8, flex=1, snug=True, wish=20),
)


def test_a_spread_is_left_out_before_a_name_is_cut() -> None:
    def names(width: int, needs: int) -> list[str]:
        return [column.name for column, _ in layout(SPARING, width, Widths({"place": needs})).columns]

    assert names(42, 18) == ["share", "spread", "place"]
    assert names(39, 18) == ["share", "place"]
    assert names(39, 12) == ["share", "spread", "place"], "it needs no more"
    assert names(44, 60) == ["share", "spread", "place"], "it does not wish for all that it could need"
    assert names(20, 60) == ["share", "place"], "and where it cannot get it either way, it gets what there is"


def test_only_the_words_of_heads_are_heads() -> None:
    line = head_line(layout(COLUMNS, 44, Widths()), 44, "share", "v", "~")
    assert [part for part, role in line if role == "head"] == ["sharev", "calls", "name", "reason"]
    assert all(not part.strip() for part, role in line if role != "head")
    assert line_cells(line) == 44
    assert heads("  n   waits for  x ") == [
        ("  ", "text"), ("n", "head"), ("   ", "text"), ("waits for", "head"), ("  ", "text"), ("x", "head"), (" ", "text")
    ]  # fmt: skip
