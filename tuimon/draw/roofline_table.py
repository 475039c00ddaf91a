"""The table beside a roofline: a row for each point, with the key that it has in the plot, and why one is OVER below it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

from tuimon.draw.format import count, percent, three
from tuimon.draw.glyphs import GlyphSet
from tuimon.draw.roofline_words import CeilingLike, PointLike, is_over, legend, point_glyph, point_key
from tuimon.draw.table import Cells, Column, Widths, head_line, layout, note_widths, row_line, window
from tuimon.draw.text import Line, clean, cut, exactly, middle, wrap


class RowLike(PointLike, Protocol):
    """What a row shows beyond what is drawn: calls, bytes (B) over seconds, and how both numbers were had."""

    @property
    def calls(self) -> int: ...
    @property
    def bytes(self) -> float | None: ...
    @property
    def seconds(self) -> float: ...
    @property
    def operations_how(self) -> str: ...
    @property
    def bytes_how(self) -> str: ...
    @property
    def why_not(self) -> str: ...


COLUMNS = (
    Column("key", "", 3),
    Column("name", "point", 17, flex=1),
    Column("share", "time", 5, right=True, rank=3),
    Column("intensity", "F/B", 6, right=True, rank=2),
    Column("rate", "F/s", 5, right=True, rank=1),
    Column("of_roof", "%roof", 6, right=True),
    Column("of_peak", "%peak", 5, right=True, rank=4),
    Column("traffic", "B/s", 5, right=True, rank=5),
    Column("calls", "n", 5, right=True, rank=6),
    Column("boundary", "at", 4, rank=7),
    Column("how", "operations, bytes", 17, rank=8),
)

WIDE_COLUMNS = tuple(replace(column, width=28) if column.name == "name" else column for column in COLUMNS)
"""Where there is room, it goes to the names before it goes to further columns."""

WIDE = 66

MOST_BELOW = 2
"""Lines below a row."""


def compact(value: float | None, digits: int = 3) -> str:
    """A quantity with an SI prefix in at most five cells: `594T`, `62.0G`, `0.25`, `1e-6`."""
    if value is None:
        return "-"
    if value < 0.01:
        return "0" if value == 0 else f"{value:.0e}".replace("e-0", "e-").replace("e+0", "e")
    if value < 999.5:
        return three(value)
    for scale, name in ((1e3, "k"), (1e6, "M"), (1e9, "G"), (1e12, "T"), (1e15, "P"), (1e18, "E")):
        if value < 999.5 * scale:
            return f"{three(value / scale)}{name}"
    return f"{value:.0e}".replace("e+", "e")


def sign(bound: str, glyphs: GlyphSet) -> str:
    """What stands before an intensity that is a bound: the true one is at most this, at least this, or anything."""
    known = {"upper": "<=", "lower": ">="} if glyphs.name == "ascii" else {"upper": "≤", "lower": "≥"}
    return known.get(bound, "?" if bound == "unknown" else "")


def intensity_text(point: PointLike, glyphs: GlyphSet) -> str:
    """FLOP/byte, with what is known of its bound."""
    return sign(point.bound, glyphs) + compact(point.intensity) if point.intensity is not None else "-"


def of_roof_text(point: RowLike, glyphs: GlyphSet) -> str:
    """Share of the roof: at least this where the intensity is an upper bound, "?" where nobody can tell; at most this where the
    operations are an upper bound."""
    if point.of_roof is None:
        return "?" if point.bound == "unknown" and point.intensity is not None else "-"
    if point.operations_how == "pipe use":
        return f"{sign('upper', glyphs)}{_percent(point.of_roof)}"
    at_least = sign("lower", glyphs) if point.bound == "upper" else ""
    return f"{at_least}{_percent(point.of_roof)}"


def how_text(point: RowLike) -> str:
    """How operations and bytes were had, in words."""
    return f"{point.operations_how}, {point.bytes_how}"


def traffic(point: RowLike) -> float | None:
    """Bytes a second; None where one of the two is not known."""
    return point.bytes / point.seconds if point.bytes is not None and point.seconds > 0 else None


def _percent(share: float | None) -> str:
    """A share in whole percents, and what is not nothing is not 0."""
    if share is None:
        return "-"
    value = share * 100
    return "<1%" if 0 < value < 1 else f"{value:.0f}%" if value < 9_999 else ">99x"


def _cells(index: int, point: RowLike, over: bool, glyphs: GlyphSet) -> Cells:
    name = clean(point.name).removeprefix("aten::")
    placed = point.intensity is not None and point.rate is not None
    return {
        "key": (f"{point_key(index) or ' '} {point_glyph(point.how, point.bound, glyphs) if placed else ' '}", rank(point)),
        "name": lambda width: (middle(name, width, glyphs.ellipsis), "text"),
        "share": (percent(point.time_share) if point.time_share < 10 else ">10x", "number"),
        "intensity": (intensity_text(point, glyphs), "number"),
        "rate": (compact(point.rate), "strong"),
        "of_roof": (of_roof_text(point, glyphs), "warn" if over else "number"),
        "of_peak": (_percent(point.of_peak), "number"),
        "traffic": (compact(traffic(point)), "number"),
        "calls": (count(point.calls), "number"),
        "boundary": (clean(point.boundary) or "-", "dim"),
        "how": (how_text(point), "dim"),
    }


def rank(point: PointLike) -> str:
    """The role of a point's mark: by its share of the time."""
    return "point-1" if point.time_share >= 0.2 else "point-2" if point.time_share >= 0.05 else "point-3"


def table_lines(
    points: Sequence[RowLike],
    cursor: int | None,
    width: int,
    height: int,
    top: int,
    ceiling: CeilingLike | None,
    glyphs: GlyphSet,
    widths: Widths,
) -> tuple[list[Line], int, dict[int, int]]:
    """The head and as many rows as there is room for; gives the lines, the first row shown, and line -> row.

    Below a row that is over its roof stand the likely causes; below one without a place why it has none.
    """
    if width <= 0 or height <= 0:
        return [], top, {}
    room = height - 1
    top = window(len(points), cursor if cursor is not None else top, top, room)
    shown = _blocks(points, cursor, top, width, room, ceiling, glyphs)
    while cursor is not None and shown and cursor > shown[-1][0]:
        top += 1  # causes below earlier rows have pushed the selected one out
        shown = _blocks(points, cursor, top, width, room, ceiling, glyphs)
    columns = WIDE_COLUMNS if width >= WIDE else COLUMNS
    note_widths(columns, [cells for _, cells, _ in shown], widths)
    placed = layout(columns, width - 1, widths)
    lines: list[Line] = [[(" ", "text"), *head_line(placed, width - 1, None, "", glyphs.ellipsis)]]
    rows: dict[int, int] = {}
    for index, cells, parts in shown:
        chosen = index == cursor
        role = "selected" if chosen else None
        rows[len(lines)] = index
        lines.append(
            [(glyphs.right if chosen else " ", role or "text"), *row_line(placed, cells, width - 1, glyphs.ellipsis, role)]
        )
        for part in parts:
            rows[len(lines)] = index
            lines.append(exactly([("    ", "text"), (cut(part, width - 4, glyphs.ellipsis), "warn")], width))
    return lines, top, rows


def _blocks(
    points: Sequence[RowLike],
    cursor: int | None,
    top: int,
    width: int,
    room: int,
    ceiling: CeilingLike | None,
    glyphs: GlyphSet,
) -> list[tuple[int, Cells, list[str]]]:
    """The rows from `top` on that fit: place of the point, its cells, and what stands below it."""
    shown: list[tuple[int, Cells, list[str]]] = []
    for index in range(top, len(points)):
        if room < 1:
            break
        point = points[index]
        over = is_over(point, ceiling)
        below = ""
        if over:
            below = "OVER: " + ("; ".join(point.over) or "cause not known: please report it")
        elif point.why_not and index == cursor:
            below = point.why_not
        parts = wrap(clean(below), max(8, width - 4)) if below else []
        if len(parts) > MOST_BELOW:
            parts = [*parts[: MOST_BELOW - 1], f"{parts[MOST_BELOW - 1]}{glyphs.ellipsis}"]
        shown.append((index, _cells(index, point, over, glyphs), parts[: room - 1]))
        room -= 1 + len(shown[-1][2])
    return shown


def legend_of(points: Sequence[PointLike], glyphs: GlyphSet) -> list[tuple[str, str]]:
    """The shapes that these points have, and their meanings."""
    used = {point_glyph(point.how, point.bound, glyphs) for point in points if point.intensity is not None}
    return [(glyph, meaning) for glyph, meaning in legend(glyphs) if glyph in used]
