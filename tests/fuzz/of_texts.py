"""Texts of any kind, as they are laid out for a terminal."""

from __future__ import annotations

import unicodedata

from tests.fuzz.draws import EVIL, Draw
from tests.fuzz.seen import harmless
from tuimon.draw import names
from tuimon.draw import text as of
from tuimon.draw.table import Column, Widths, head_line, layout, row_line
from tuimon.report.markup import plain, table_row
from tuimon.report.series import FORMULA
from tuimon.report.series import harmless as cell

WORDS = (
    "a b c", "漢字", "e\u0301", "👩‍🚀", "\t", "x" * 300, EVIL,
    "-" * 40, "/a/b/c.py", "__compiled_fn_1", "", " ", "\u3000", "\u200b",
)  # fmt: skip


def texts(data: bytes, thorough: bool) -> None:
    """Nothing is wider than it may be, and nothing acts on the terminal."""
    del thorough
    draw = Draw(data)
    width = draw.below(130)
    pieces = [draw.pick(WORDS) if draw.below(2) else draw.text() for _ in range(1 + draw.below(6))]
    text = draw.pick((" ", "", "\n", "/")).join(pieces)
    clean = of.clean(text)
    harmless(clean, "")
    for left, may in ((of.harmless_line(text), ""), (of.harmless(text), "\n\t")):  # these keep joiners, which nothing acts on
        assert not [one for one in left if unicodedata.category(one) in ("Cc", "Cs") and one not in may]
    for made in (of.cut(clean, width, "…"), of.middle(clean, width, "…"), of.head(clean, width), of.tail(clean, width)):
        assert of.cells(made) <= width, (made, width)
    for right in (False, True):
        assert of.cells(of.pad(clean, width, right)) >= width
    for piece in of.wrap(clean, max(2, width)):
        assert of.cells(piece) <= max(2, width), piece
    line = [(of.clean(piece), "text") for piece in pieces]
    assert of.line_cells(of.exactly(line, width)) == width
    assert of.line_cells(of.cut_line(line, width, "…")) <= width
    assert of.line_cells(of.two_ends(line, [(clean[:9], "x")], width)) <= width
    for named in (
        names.place(clean, draw.pick((None, 7, 10**12)), width, "…"),
        names.frame_name(clean, pieces[0], 3, width, "…"),
        names.command(clean, width, "…"),
    ):
        assert of.cells(of.clean(named)) <= width, (named, width)
    _table(draw, pieces, width)
    assert not cell(text).startswith(FORMULA)
    harmless(plain(clean), "")
    assert "\n" not in table_row(*map(of.clean, pieces))


def _table(draw: Draw, pieces: list[str], width: int) -> None:
    columns = []
    for at, _ in enumerate(pieces):
        title, cells = of.clean(draw.text()), 1 + draw.below(20)
        columns.append(Column(f"c{at}", title, cells, flex=draw.below(3), rank=draw.below(3)))
    placed = layout(columns, width, Widths())
    row = {column.name: (of.clean(piece), "text") for column, piece in zip(columns, pieces, strict=True)}
    assert of.line_cells(head_line(placed, width, None, "v", "…")) <= width
    assert of.line_cells(row_line(placed, row, width, "…")) <= width
