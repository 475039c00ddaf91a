"""What part of the log-log plane a roofline shows, where its ticks stand, and how its numbers are written.

The axes must not jitter: what a view has to hold is an `Extent` in coarse steps, and `Axes` remembers those of some seconds.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tuimon.draw.glyphs import GlyphSet
from tuimon.draw.text import REPLACEMENT, cells, clean, cut

REACH = 3.0
"""Decades by which points may widen the view. One absurd point must not squeeze the others into a corner: it is shown at
the edge instead."""

STEP = 0.25
"""Decades by which the room above and below the roof grows."""

SHRINKS_NS = 10_000_000_000
"""So long nothing must have needed a part of the view before it goes."""

MOST_HELD = 64

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


@dataclass(frozen=True, slots=True)
class Extent:
    """What has to be in view, in powers of ten: intensities from x0 to x1, rates from `low` to `high`."""

    x0: float
    x1: float
    low: float
    high: float

    def with_(self, other: Extent) -> Extent:
        """The least that holds both."""
        return Extent(min(self.x0, other.x0), max(self.x1, other.x1), min(self.low, other.low), max(self.high, other.high))


def extent_of(peak: float, bandwidth: float, points: Iterable[tuple[float, float]]) -> Extent:
    """What a ceiling (FLOP/s, B/s) and points (log10 intensity, log10 rate) need.

    The ridge is in it with one decade or more to both sides, both ends are whole decades, and the roof starts in the lower
    left corner. Beyond the roof it grows by steps, so that a point that trembles does not move the axes.
    """
    log_peak, log_bandwidth = math.log10(peak), math.log10(bandwidth)
    ridge = log_peak - log_bandwidth
    x0, x1 = math.floor(ridge - 1.5), math.ceil(ridge + 1.0)
    nearest = [(x, y) for x, y in points if x0 - REACH <= x <= x1 + REACH and abs(y - log_peak) <= 2 * REACH]
    if nearest:
        x0 = min(x0, math.floor(min(x for x, _ in nearest) - 0.1))
        x1 = max(x1, math.ceil(max(x for x, _ in nearest) + 0.1))
    low, high = x0 + log_bandwidth, log_peak
    if nearest:
        below, above = low - min(y for _, y in nearest) + 0.2, max(y for _, y in nearest) - high
        low -= max(0, math.ceil(below / STEP)) * STEP
        high += max(0, math.ceil(above / STEP)) * STEP
    return Extent(x0, x1, low, high)


def extent_alone(points: Sequence[tuple[float, float]]) -> Extent:
    """What points (log10 intensity, log10 rate; at least one) need where there is no roof: whole decades around the middle one
    and those that are near it."""
    x, y = sorted(x for x, _ in points)[len(points) // 2], sorted(y for _, y in points)[len(points) // 2]
    x0, x1, low, high = math.floor(x - 1.0), math.ceil(x + 1.0), math.floor(y - 0.5), math.ceil(y + 0.5)
    near = [(px, py) for px, py in points if abs(px - x) <= 2 * REACH and abs(py - y) <= 2 * REACH]
    x0, x1 = min(x0, math.floor(min(x for x, _ in near) - 0.1)), max(x1, math.ceil(max(x for x, _ in near) + 0.1))
    low, high = min(low, math.floor(min(y for _, y in near) - 0.1)), max(high, math.ceil(max(y for _, y in near)))
    return Extent(x0, x1, low, high)


class Axes:
    """The memory of one chart: its axes grow at once and shrink when what needed the room has been gone for a while."""

    def __init__(self) -> None:
        self._of: object = None
        self._needed: deque[tuple[int, Extent]] = deque()
        """Extents with the time when each was needed last, the latest behind."""

    def settle(self, of: object, extent: Extent, now_ns: int) -> Extent:
        """What to show when `extent` is needed at `now_ns`, of a chart of `of`: another ceiling begins anew."""
        if of != self._of or (self._needed and now_ns < self._needed[-1][0]):
            self._of = of
            self._needed.clear()
        if self._needed and self._needed[-1][1] == extent:
            self._needed.pop()
        self._needed.append((now_ns, extent))
        while now_ns - self._needed[0][0] > SHRINKS_NS or len(self._needed) > MOST_HELD:
            self._needed.popleft()
        for _, other in self._needed:
            extent = extent.with_(other)
        return extent


def choose_view(extent: Extent, columns: int, rows: int, head: int, foot: int) -> View:
    """The view of an extent. Above the highest roof or point `head` rows are left free, below everything `foot` rows."""
    decades_per_row = (extent.high - extent.low) / max(rows - head - foot - 0.4, 1.0)
    low, high = extent.low - foot * decades_per_row, extent.high + (head + 0.4) * decades_per_row
    return View(extent.x0, extent.x1, low, high, columns, rows)


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
