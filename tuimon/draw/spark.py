"""Histories as small bar charts: text rows in whatever glyphs the terminal can show."""

from __future__ import annotations

from collections.abc import Sequence

from tuimon.draw.glyphs import GlyphSet


def per_column(glyphs: GlyphSet) -> int:
    """How many values share one column: two where the cells have dots four high, one where bars are drawn by level."""
    return 2 if glyphs.rows >= 4 else 1


def chart(values: Sequence[float | None], width: int, height: int, top: float, glyphs: GlyphSet) -> list[str]:
    """Bars from zero up to `top`, as `height` strings of `width` cells, the top one first.

    `values` is oldest first; the latest that fit are drawn, the newest at the right. A value that is not known (None)
    leaves a gap; one that is known is at least the smallest mark, so that little differs from none; one beyond `top` is
    drawn full.
    """
    if width <= 0 or height <= 0:
        return [""] * max(0, height)
    if per_column(glyphs) == 2:
        return _dots(values, width, height, top, glyphs)
    return _levels(values, width, height, top, glyphs)


def _level(value: float | None, top: float, levels: int) -> int:
    if value is None:
        return 0
    if top <= 0:
        return 1
    return max(1, min(levels, round(value / top * levels)))


def _dots(values: Sequence[float | None], width: int, height: int, top: float, glyphs: GlyphSet) -> list[str]:
    shown = [_level(value, top, height * 4) for value in values[-2 * width :]]
    shown = [0] * (2 * width - len(shown)) + shown
    rows = []
    for row in range(height):
        floor = (height - 1 - row) * 4
        text = []
        for at in range(0, 2 * width, 2):
            mask = 0
            for column in (0, 1):
                filled = min(4, max(0, shown[at + column] - floor))
                for dot in range(filled):
                    mask |= 1 << ((3 - dot) * 2 + column)
            text.append(glyphs.cells[mask])
        rows.append("".join(text))
    return rows


def _levels(values: Sequence[float | None], width: int, height: int, top: float, glyphs: GlyphSet) -> list[str]:
    steps = len(glyphs.spark)
    shown = [_level(value, top, height * steps) for value in values[-width:]]
    shown = [0] * (width - len(shown)) + shown
    rows = []
    for row in range(height):
        floor = (height - 1 - row) * steps
        rows.append("".join(" " if level <= floor else glyphs.spark[min(steps, level - floor) - 1] for level in shown))
    return rows


def marks(flags: Sequence[bool], width: int, mark: str, glyphs: GlyphSet) -> str:
    """A row under a chart: a mark below every column that holds a flagged value. Takes one flag a value, as `chart` does."""
    share = per_column(glyphs)
    shown = list(flags[-share * width :])
    shown = [False] * (share * width - len(shown)) + shown
    return "".join(mark if any(shown[at : at + share]) else " " for at in range(0, share * width, share))


def aligned(values: Sequence[float | None], last_index: int, glyphs: GlyphSet) -> list[float | None]:
    """The values with a gap behind where a column is only half full: a chart then moves by whole columns, and less often.

    `last_index` is the running number of the newest value.
    """
    share = per_column(glyphs)
    return [*values, *([None] * (share - 1 - last_index % share))]


def nice_top(largest: float) -> float:
    """The next of 1, 2, 3, 5, 10, .. at or above a value: the end of a scale that does not move with every sample."""
    if largest <= 0:
        return 1.0
    scale = 1.0
    while scale * 10 <= largest:
        scale *= 10
    while scale > largest:
        scale /= 10
    for step in (1.0, 2.0, 3.0, 5.0, 10.0):
        if largest <= step * scale * 1.000001:
            return step * scale
    return 10 * scale
