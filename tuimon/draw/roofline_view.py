"""What part of the log-log plane a roofline shows, where its ticks stand, and how its numbers are written."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from tuimon.draw.glyphs import GlyphSet
from tuimon.draw.text import REPLACEMENT, cells, clean, cut

REACH = 3.0
"""Decades by which points may widen the view. One absurd point must not squeeze the others into a corner: it is shown at
the edge instead."""

_PREFIXES = "kMGTPE"


def tick_label(power: int) -> str:
    """A power of ten on an axis, in at most four cells from 10^-9 on: 0.01, 1, 10, 1k, 100T, 1e21."""
    if power < -2 or power >= 3 * (len(_PREFIXES) + 1):
        return f"1e{power}"
    if power < 0:
        return f"{10.0**power:.{-power}f}"
    thousands, rest = divmod(power, 3)
    return f"{10**rest}{_PREFIXES[thousands - 1] if thousands else ''}"


def narrow(text: str, glyphs: GlyphSet, width: int) -> str:
    """`text` for a grid of single cells: at most `width` of them, cut with an ellipsis; a character of two cells, or one that
    the glyph set's terminals may not have, becomes "?"."""
    plain = clean(text)
    if not plain.isascii():
        plain = "".join(
            character if cells(character) == 1 and (character.isascii() or glyphs.name != "ascii") else REPLACEMENT
            for character in plain
        )
    return cut(plain, width, glyphs.ellipsis)


@dataclass(frozen=True, slots=True)
class View:
    """A rectangle of the plane, in powers of ten, over a grid of `columns` x `rows` cells."""

    x0: float
    x1: float
    y0: float
    y1: float
    columns: int
    rows: int

    def column(self, log_intensity: float, dots: int = 1) -> int:
        """The column (of `dots` to a cell) at log10 of an intensity; outside 0 .. columns * dots - 1 it is out of view."""
        return math.floor((log_intensity - self.x0) / (self.x1 - self.x0) * self.columns * dots)

    def row(self, log_rate: float, dots: int = 1) -> int:
        """The row (of `dots` to a cell, 0 at the top) at log10 of a rate."""
        return math.floor((self.y1 - log_rate) / (self.y1 - self.y0) * self.rows * dots)

    def x_at(self, column: int, dots: int) -> float:
        """log10 of the intensity in the middle of a column of dots."""
        return self.x0 + (column + 0.5) / (self.columns * dots) * (self.x1 - self.x0)


def choose_view(
    peak: float,
    bandwidth: float,
    points: Iterable[tuple[float, float]],
    columns: int,
    rows: int,
    head: int,
    foot: int,
) -> View:
    """The view for a ceiling (FLOP/s, B/s) and points (log10 intensity, log10 rate).

    The ridge is in it with one decade or more to both sides, both ends are whole decades, and the roof starts in the lower
    left corner. Above the highest roof or point `head` rows are left free, below everything `foot` rows.
    """
    log_peak, log_bandwidth = math.log10(peak), math.log10(bandwidth)
    ridge = log_peak - log_bandwidth
    x0, x1 = math.floor(ridge - 1.5), math.ceil(ridge + 1.0)
    nearest = [(x, y) for x, y in points if x0 - REACH <= x <= x1 + REACH and abs(y - log_peak) <= 2 * REACH]
    for x, _ in nearest:
        x0, x1 = min(x0, math.floor(x - 0.1)), max(x1, math.ceil(x + 0.1))
    low, high = x0 + log_bandwidth, log_peak
    for _, y in nearest:
        low, high = min(low, y - 0.2), max(high, y)
    decades_per_row = (high - low) / max(rows - head - foot - 0.4, 1.0)
    return View(x0, x1, low - foot * decades_per_row, high + (head + 0.4) * decades_per_row, columns, rows)


def ticks(start: float, end: float, room: float) -> list[int]:
    """The powers of ten to label between two, evenly, `room` being how many labels fit: every one, every third, ..

    The steps are 1, then multiples of 3, which is where the SI prefixes change.
    """
    first, last = math.ceil(start - 1e-9), math.floor(end + 1e-9)
    step = next((step for step in (1, 3, 6, 9, 12) if (last - first) / step + 1 <= max(room, 1)), 24)
    if step > 1:
        aligned = [power for power in range(first, last + 1) if power % step == 0]
        if aligned:
            return aligned
    return list(range(first, last + 1, step))
