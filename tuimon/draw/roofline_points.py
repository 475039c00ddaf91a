"""The points of a roofline: their marks, how far single calls spread, where they were before, and their labels."""

from __future__ import annotations

import math
from collections.abc import Sequence

from tuimon.draw.roofline_plot import MARGIN, Plot
from tuimon.draw.roofline_view import narrow
from tuimon.draw.roofline_words import (
    CeilingLike,
    PointLike,
    is_elsewhere,
    is_over,
    place_of,
    point_glyph,
    point_key,
    points_state,
)
from tuimon.draw.text import wrap

BARRED = 0.05
"""Share of the time from which on a point has a bar: those of all would be a fence."""

Places = Sequence[tuple[float, float] | None]


def places_of(points: Sequence[PointLike], boundary: str) -> Places:
    """log10 of intensity and rate of those that have a place in a drawing at this boundary, None for the others."""
    return [None if is_elsewhere(point, boundary) else place_of(point) for point in points]


class Points:
    """Points on their way into a plot."""

    def __init__(self, plot: Plot, ceiling: CeilingLike | None, points: Sequence[PointLike], places: Places) -> None:
        self.plot, self.ceiling, self.points, self.places = plot, ceiling, points, places
        self.outside = self.unnamed = 0
        self.over = sum(place is not None and is_over(point, ceiling) for point, place in zip(points, places, strict=True))
        self.spots: dict[int, tuple[int, int]] = {}
        self.inside: set[int] = set()

    def draw(self, cursor: int | None, trails: bool) -> None:
        """Marks, the largest share of the time on top, then labels, the largest first and the cursor's before all.

        What is left takes the trails, and the bars what these leave.
        """
        plot, points = self.plot, self.points
        drawn = [(index, place) for index, place in enumerate(self.places) if place is not None]
        drawn.sort(key=lambda item: (item[0] == cursor, points[item[0]].time_share))
        marks: dict[int, str] = {}
        for index, place in drawn:
            column, row, arrow = self._spot(*place)
            point = points[index]
            self.spots[index] = column, row
            marks[index] = arrow or point_glyph(point.how, point.bound, plot.glyphs)
            if arrow:
                self.outside += 1
                continue
            self.inside.add(index)
            if point.bound in ("upper", "lower"):
                # a short whisker to the side on which the true point may be
                side = column - 1 if point.bound == "upper" else column + 1
                if plot.free(side, row, 1):
                    plot.put(side, row, plot.glyphs.dash, "dim")
        for index, _ in drawn:
            share = points[index].time_share
            rank = "point-1" if share >= 0.2 else "point-2" if share >= 0.05 else "point-3"
            plot.put(*self.spots[index], marks[index], "cursor" if index == cursor else rank)
        for index, _ in reversed(drawn):
            self._label(index, index == cursor)
        if trails:
            self._trails()
        for index, _ in reversed(drawn):
            if index in self.inside and (points[index].time_share >= BARRED or index == cursor):
                self._bar(index)

    def _spot(self, log_intensity: float, log_rate: float) -> tuple[int, int, str]:
        """The cell of a place and, if that is out of view, the arrow at the edge in its stead."""
        plot = self.plot
        glyphs, head = plot.glyphs, len(plot.note)
        column, row, arrow = plot.view.column(log_intensity), plot.view.row(log_rate), ""
        if row < head:
            row, arrow = head, glyphs.up
        elif row >= plot.rows:
            row, arrow = plot.rows - 1, glyphs.down
        if column < 0:
            column, arrow = 0, glyphs.left
        elif column >= plot.columns:
            column, arrow = plot.columns - 1, glyphs.right
        return column, row, arrow

    def _bar(self, index: int) -> None:
        """From its slow calls to its fast ones, up and down from the point, in cells that nothing else has."""
        plot, point = self.plot, self.points[index]
        if not (point.slowest and point.fastest and 0 < point.slowest <= point.fastest < math.inf):
            return
        top = max(plot.view.row(math.log10(point.fastest)), len(plot.note))
        bottom = min(plot.view.row(math.log10(point.slowest)), plot.rows - 1)
        if top == bottom:
            return
        at = self.spots[index][0] + MARGIN
        for line in range(top, bottom + 1):
            if plot.role[line][at] == "grid":
                plot.text[line][at] = plot.glyphs.vertical
                plot.role[line][at] = "dim"

    def _label(self, index: int, is_cursor: bool) -> None:
        """Key, name under the cursor, and OVER, in the first of six places around the point where nothing is."""
        plot, point = self.plot, self.points[index]
        over = is_over(point, self.ceiling)
        key = point_key(index)
        tail = " OVER" if over else ""
        texts = [(key + tail).strip()]
        if is_cursor:
            name = narrow(point.name, plot.glyphs, max(plot.columns // 3, 8))
            texts = [f"{key} {name}{tail}".strip(), *texts]
        elif over:
            texts.append(key)
        column, row = self.spots[index]
        for text in texts:
            length = len(text)
            places = ((2, 0), (-length - 2, 0), (1, -1), (1, 1), (-length, -1), (-length, 1))
            for across, down in places if text else ():
                at = column + across
                # a cell of air on both sides, or two labels read as one
                if plot.free(max(at - 1, 0), row + down, length + 1) and plot.free(at, row + down, length):
                    plot.put(at, row + down, text, "note" if over else "label")
                    return
        self.unnamed += 1

    def _trails(self) -> None:
        """Where the points were, in cells that nothing else has: older places are dimmer."""
        plot = self.plot
        view, glyph = plot.view, plot.glyphs.trail
        across, up, x0, y1 = plot.columns / (view.x1 - view.x0), plot.rows / (view.y1 - view.y0), view.x0, view.y1
        head, rows, columns = len(plot.note), plot.rows, plot.columns
        log, floor = math.log10, math.floor
        for index in self.inside:
            trail = self.points[index].trail
            newer = len(trail) // 2
            for age, (intensity, rate) in enumerate(trail):
                try:
                    column, row = floor((log(intensity) - x0) * across), floor((y1 - log(rate)) * up)
                except (ValueError, OverflowError):  # no positive number
                    continue
                if head <= row < rows and 0 <= column < columns:
                    text, role = plot.text[row], plot.role[row]
                    at = column + MARGIN
                    if role[at] == "grid" or (role[at] == "dim" and text[at] == glyph):
                        text[at] = glyph
                        role[at] = "dim" if age >= newer else "grid"

    def draw_state(self) -> None:
        """What is known of the points as a whole, in the lowest rows that have room for it under the roof."""
        plot = self.plot
        boundary = self.ceiling.boundary if self.ceiling is not None else ""
        state = points_state(self.points, self.over, self.outside, self.unnamed, boundary)
        if not state:
            return
        for width in dict.fromkeys((plot.columns - 1, plot.columns // 2, plot.columns // 3)):
            lines = [narrow(line, plot.glyphs, width) for line in wrap(state, width)]
            most = max(len(line) for line in lines)
            for foot in range(plot.rows - 1, len(plot.note) + len(lines) - 1, -1):
                rows = range(foot - len(lines) + 1, foot + 1)
                if all(plot.free(plot.columns - most, row, most) for row in rows):
                    for row, line in zip(rows, lines, strict=True):
                        plot.put(plot.columns - len(line), row, line, "dim")
                    return
