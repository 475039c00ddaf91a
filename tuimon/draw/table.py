"""Tables as lines: numbers at the right of their column, names in what room is left, widths that do not jump.

The fast-changing numbers come first and the names last: a terminal repaints a line up to its last change, so a row whose
counters move sends its left half only.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from tuimon.draw.text import Line, cells, cut, exactly, pad

GAPS = (2, 1)
"""Cells between columns: as it should be, and where it is tight."""

UNBOUNDED = 1 << 20


@dataclass(frozen=True, slots=True)
class Column:
    """One column. A fixed one is as wide as its widest cell so far; a flexible one shares what room is left."""

    name: str
    title: str
    width: int
    """Fixed: the width to begin with. Flexible: the least that makes sense."""
    right: bool = False
    flex: int = 0
    """0: fixed. Otherwise its part of the room that is left."""
    rank: int = 0
    """Where there is no room, the column of the highest rank is left out first; rank 0 always stays."""
    most: int = 0
    """Flexible: no wider than this (0: no bound)."""
    snug: bool = False
    """Flexible: no wider than its widest cell so far, so that what it does not need goes to the others."""
    wish: int = 0
    """Flexible: before it gets less than this (or than its widest cell so far), columns that can be spared are left out."""
    spare: bool = False
    """Can be spared: a detail, such as a spread, that is worth less than another column's name in full."""


Cell = tuple[str, str] | Callable[[int], tuple[str, str]]
"""(text, role), or a function from the width to them, for names that are shortened by meaning."""

Cells = Mapping[str, Cell]


@dataclass(slots=True)
class Widths:
    """How wide each fixed column has been: it only grows, so that nothing jumps while a job runs."""

    seen: dict[str, int] = field(default_factory=dict)

    def see(self, name: str, width: int) -> None:
        """A cell of this width has been in the column."""
        if width > self.seen.get(name, 0):
            self.seen[name] = width


@dataclass(frozen=True, slots=True)
class Placed:
    """The columns that there is room for."""

    columns: tuple[tuple[Column, int], ...]
    """(column, its width), left to right."""
    gap: int
    """Cells between two of them."""

    def has(self, name: str | None) -> bool:
        """Whether this column is there."""
        return any(column.name == name for column, _ in self.columns)


def layout(columns: Sequence[Column], width: int, widths: Widths) -> Placed:
    """The columns that fit in `width` cells, with their widths. They move closer together before one is left out."""
    kept = list(columns)
    while kept:
        spared: Column | None = None
        least = [_least(column, widths) for column in kept]
        for gap in GAPS:
            room = width - sum(least) - gap * (len(kept) - 1)
            if room < 0:
                continue
            placed = _share(kept, least, room, widths)
            spared = _spared(placed, widths)
            if spared is None:
                return Placed(tuple(placed), gap)
        droppable = [column for column in kept if column.rank > 0]
        if spared is None and not droppable:
            return Placed(tuple(_squeeze(kept, least, -room)), GAPS[-1])
        kept.remove(spared or max(droppable, key=lambda column: column.rank))
    return Placed((), GAPS[-1])


def _least(column: Column, widths: Widths) -> int:
    seen = widths.seen.get(column.name, 0)
    if column.flex:  # a snug one needs no more than it has, but for its title and the mark of a sort
        return min(column.width, max(seen, len(column.title) + 1)) if column.snug and seen else column.width
    return max(column.width, seen)


def _spared(placed: list[tuple[Column, int]], widths: Widths) -> Column | None:
    """The column to leave out because another one would get less than it wishes for; None where all is well."""
    spare = [column for column, _ in placed if column.spare and column.rank > 0]
    short = (given < min(column.wish, widths.seen.get(column.name, 0)) for column, given in placed if column.wish)
    return max(spare, key=lambda column: column.rank) if spare and any(short) else None


def _share(columns: list[Column], least: list[int], room: int, widths: Widths) -> list[tuple[Column, int]]:
    """Hand the room out: first as far as the cells so far need it, then by the parts alone."""
    given = list(least)
    bounds = [_bound(column, widths) for column in columns]
    seen = [max(size, widths.seen.get(column.name, 0)) for column, size in zip(columns, least, strict=True)]
    room = _fill(columns, given, [min(one, other) for one, other in zip(bounds, seen, strict=True)], room)
    _fill(columns, given, bounds, room)
    return list(zip(columns, given, strict=True))


def _fill(columns: list[Column], given: list[int], bounds: list[int], room: int) -> int:
    """Share room out by parts, up to these bounds. Gives what is left."""
    while room > 0:
        open_ends = [at for at, column in enumerate(columns) if column.flex and given[at] < bounds[at]]
        if not open_ends:
            break
        parts = sum(columns[at].flex for at in open_ends)
        handed = 0
        for at in open_ends:
            more = min(max(1, room * columns[at].flex // parts), bounds[at] - given[at], room - handed)
            given[at] += more
            handed += more
        room -= handed
    return room


def _bound(column: Column, widths: Widths) -> int:
    bound = column.most or UNBOUNDED
    return min(bound, max(_least(column, widths), widths.seen.get(column.name, 0))) if column.snug else bound


def _squeeze(columns: list[Column], least: list[int], missing: int) -> list[tuple[Column, int]]:
    """Too narrow even for what must stay: the rightmost columns give way."""
    given = list(least)
    for at in range(len(given) - 1, -1, -1):
        give = min(given[at], missing)
        given[at] -= give
        missing -= give
    return [(column, width) for column, width in zip(columns, given, strict=True) if width > 0]


def head_line(placed: Placed, width: int, sorted_by: str | None, mark: str, ellipsis: str) -> Line:
    """The titles; the column that the rows are sorted by carries a mark. What is between them is no head: only words are
    underlined where a theme underlines heads."""
    line: Line = []
    blank = 0
    for column, size in placed.columns:
        title = cut(column.title + mark if column.name == sorted_by else column.title, size, ellipsis)
        room = size - cells(title)
        before, after = (room, 0) if column.right else (0, room)
        blank += before
        if title:
            line += [(" " * blank, "text")] if blank else []
            line.append((title, "head"))
            blank = 0
        blank += after + placed.gap
    return exactly(line, width)


def heads(text: str) -> Line:
    """Column heads that stand in one text, two spaces or more apart."""
    parts = re.split(r"(^ +| {2,}| +$)", text)
    return [(part, "text" if not part.strip() else "head") for part in parts if part]


def row_line(placed: Placed, row: Cells, width: int, ellipsis: str, role: str | None = None) -> Line:
    """One row. `role` overrides those of the cells: a selected row is of one look."""
    line: Line = []
    for column, size in placed.columns:
        if line:
            line.append((" " * placed.gap, role or "text"))
        cell = row.get(column.name, ("", "text"))
        text, cell_role = cell(size) if callable(cell) else cell
        line.append((pad(cut(text, size, ellipsis), size, column.right), role or cell_role))
    return exactly(line, width, role or "text")


def note_widths(columns: Sequence[Column], rows: Sequence[Cells], widths: Widths) -> None:
    """Let the columns that go by their cells (fixed and snug ones) grow to what these rows need."""
    for column in columns:
        if column.flex and not column.snug and not column.wish:
            continue
        for row in rows:
            cell = row.get(column.name)
            if cell is not None:
                text, _ = cell(column.most or UNBOUNDED) if callable(cell) else cell
                widths.see(column.name, cells(text))


def window(count: int, at: int, top: int, height: int) -> int:
    """The first row to show of `count`, so that row `at` is visible in `height` rows, moving as little as can be."""
    if height <= 0 or count <= height:
        return 0
    top = min(max(0, top), count - height)
    if at < top:
        return at
    if at >= top + height:
        return at - height + 1
    return top
