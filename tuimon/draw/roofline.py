"""A roofline in text: ceilings, their ridge, and points with what is known of them, on log-log axes.

A pure function from what is to be shown to lines of (text, role); the one who shows them turns roles into colours. Nothing
is told by colour alone: what a number is worth is the shape of its glyph, the selected roof is solid and the others dashed.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from tuimon.draw.format import si
from tuimon.draw.glyphs import GlyphSet
from tuimon.draw.roofline_view import View, choose_view, narrow, tick_label, ticks
from tuimon.draw.roofline_words import (
    CeilingLike,
    PointLike,
    ceiling_note,
    legend,
    place_of,
    point_glyph,
    point_key,
    points_state,
    tight_note,
)
from tuimon.draw.text import Line, wrap

__all__ = ["LEAST_HEIGHT", "LEAST_WIDTH", "ROLES", "CeilingLike", "PointLike", "legend", "point_key", "roofline_lines"]

ROLES = (
    "axis",
    "grid",
    "roof",
    "roof-selected",
    "ridge",
    "point-1",
    "point-2",
    "point-3",
    "label",
    "note",
    "cursor",
    "dim",
)
"""Every role that a run may have. Points: 1 from a fifth of the time on, 2 from a twentieth on, 3 the rest."""

LEAST_WIDTH, LEAST_HEIGHT = 20, 7
"""Below this there is no plot, only the facts in words."""

_MARGIN = 5  # the widest tick label, "100T", and the axis
_BELOW = 2  # the axis and its labels


def roofline_lines(
    width: int,
    height: int,
    ceilings: Sequence[CeilingLike],
    selected: int,
    points: Sequence[PointLike],
    cursor: int | None,
    glyphs: GlyphSet,
) -> list[Line]:
    """The roofline as `height` lines of runs (text, role), each line exactly `width` cells.

    `selected` and `cursor` are places in `ceilings` and `points`; one that is out of range selects none. Intensities of all
    points must be at the selected ceiling's boundary. A point without operations or bytes is counted, not drawn; one over
    the roof is drawn where it is and marked OVER; one out of view becomes an arrow at the edge. Of the other ceilings those
    over the same memory are drawn, dashed (another peak, for another data type): those of other machines say nothing here.
    """
    width, height = max(width, 0), max(height, 0)
    if not 0 <= selected < len(ceilings):
        return _words(width, height, ["no ceiling selected"], glyphs)
    ceiling = ceilings[selected]
    if width < LEAST_WIDTH or height < LEAST_HEIGHT:
        facts = [f"{ceiling.name} ({ceiling.how})", tight_note(ceiling), points_state(points, 0, 0, 0)]
        return _words(width, height, facts, glyphs)
    plot = _Plot(width, height, ceiling, points, glyphs)
    plot.draw_axes()
    others = [other for index, other in enumerate(ceilings) if index != selected and _same_memory(other, ceiling)]
    for other in others:
        plot.draw_roof(other, "roof")
    plot.draw_roof(ceiling, "roof-selected")
    plot.draw_ridge()
    plot.draw_note()
    plot.draw_points(cursor)
    for other in others:
        plot.name_roof(other)
    plot.draw_state()
    return [_runs(text, role) for text, role in zip(plot.text, plot.role, strict=True)]


def _words(width: int, height: int, facts: list[str], glyphs: GlyphSet) -> list[Line]:
    """The facts as plain text, on as many lines as there are."""
    wrapped = [line for fact in facts for line in wrap(narrow(fact, glyphs, len(fact)), max(width, 1))]
    lines: list[Line] = [[(line.ljust(width)[:width], "note")] for line in wrapped[:height]]
    return lines + [[(" " * width, "grid")] for _ in range(height - len(lines))]


def _runs(text: list[str], role: list[str]) -> Line:
    """Cells to runs: neighbours of one role become one."""
    runs: Line = []
    start = 0
    for end in range(1, len(text) + 1):
        if end == len(text) or role[end] != role[start]:
            runs.append(("".join(text[start:end]), role[start]))
            start = end
    return runs


def _same_memory(one: CeilingLike, other: CeilingLike) -> bool:
    """The same boundary and, but for rounding in a datasheet, the same bandwidth."""
    return one.boundary == other.boundary and math.isclose(one.bandwidth_bytes_s, other.bandwidth_bytes_s, rel_tol=0.01)


class _Plot:
    """The cells of one drawing. Later strokes go over earlier ones only where their order says so."""

    def __init__(self, width: int, height: int, ceiling: CeilingLike, points: Sequence[PointLike], glyphs: GlyphSet) -> None:
        self.glyphs = glyphs
        self.width, self.height = width, height
        self.ceiling = ceiling
        self.points = points
        self.columns, self.rows = width - _MARGIN, height - _BELOW
        self.text = [[" "] * width for _ in range(height)]
        self.role = [["grid"] * width for _ in range(height)]
        self.dots = [[0] * self.columns for _ in range(self.rows)]
        self.note = ceiling_note(ceiling, self.columns - 1, glyphs)
        self.places = [place_of(point) for point in points]
        placed = [place for place in self.places if place is not None]
        foot = 0 if placed else 1  # the words that say why there are no points
        self.view: View = choose_view(
            ceiling.peak_flops, ceiling.bandwidth_bytes_s, placed, self.columns, self.rows, len(self.note), foot
        )
        self.over = self.outside = self.unnamed = 0

    # ------------------------------------------------------------------------------------------------ cells

    def put(self, column: int, row: int, text: str, role: str) -> None:
        """Write over whatever is there; (0, 0) is the plot's upper left cell, and the margin has negative columns."""
        start = column + _MARGIN
        line, roles = self.text[row], self.role[row]
        for offset, character in enumerate(text):
            if 0 <= start + offset < self.width:
                line[start + offset] = character
                roles[start + offset] = role

    def free(self, column: int, row: int, length: int) -> bool:
        """Nothing but grid in a stretch of cells, all of which lie inside the plot."""
        if not (0 <= row < self.rows and column >= 0 and column + length <= self.columns):
            return False
        start = column + _MARGIN
        return self.role[row][start : start + length].count("grid") == length

    # ------------------------------------------------------------------------------------------------ the frame

    def draw_axes(self) -> None:
        view, glyphs = self.view, self.glyphs
        for row in range(self.rows):
            self.put(-1, row, glyphs.vertical, "axis")
        self.put(-1, self.rows, glyphs.corner + glyphs.horizontal * self.columns, "axis")
        dotted = (glyphs.grid_horizontal + " ") * (self.columns // 2 + 1)
        for power in ticks(view.y0, view.y1, self.rows / 2):
            row = view.row(power)
            if not 0 <= row < self.rows:
                continue
            label = tick_label(power)
            self.put(-1 - len(label), row, label, "axis")
            self.put(-1, row, glyphs.tick_left, "axis")
            self.put(0, row, dotted[: self.columns], "grid")
        if self.text[0][:3] == [" "] * 3:
            self.put(-_MARGIN, 0, "F/s", "axis")
        self.put(-_MARGIN, self.rows + 1, "F/B", "axis")
        used = 0
        for power in ticks(view.x0, view.x1, self.columns / 6):
            column = min(view.column(power), self.columns - 1)
            self.put(column, self.rows, glyphs.tick_bottom, "axis")
            # the ends are the frame's own: a grid line there would only thicken it
            if 0 < column < self.columns - 1:
                for row in range(self.rows):
                    self.put(column, row, glyphs.grid_vertical, "grid")
            label = tick_label(power)
            start = min(max(column - len(label) // 2, -1), self.columns - len(label))
            if start > used or used == 0:
                self.put(start, self.rows + 1, label, "axis")
                used = start + len(label)

    # ------------------------------------------------------------------------------------------------ roofs

    def _heights(self, ceiling: CeilingLike) -> Iterator[tuple[int, int, int]]:
        """For each column of dots, the first and the last row of dots that the roof covers, joined to its neighbour's."""
        view, across, down = self.view, self.glyphs.columns, self.glyphs.rows
        peak, bandwidth = math.log10(ceiling.peak_flops), math.log10(ceiling.bandwidth_bytes_s)
        before: int | None = None
        for column in range(self.columns * across):
            here = view.row(min(peak, view.x_at(column, across) + bandwidth), down)
            # where the line climbs by more than one row, the gap belongs to the right one of the two columns
            yield column, here, max(here, before - 1) if before is not None else here
            before = here

    def draw_roof(self, ceiling: CeilingLike, role: str) -> None:
        """The whole roof from edge to edge: solid if selected, else dashed. What is out of view is left out."""
        glyphs, across, down = self.glyphs, self.glyphs.columns, self.glyphs.rows
        solid = role == "roof-selected"
        flat_from = math.log10(ceiling.peak_flops) - math.log10(ceiling.bandwidth_bytes_s)
        limit = self.rows * down
        for column, top, bottom in self._heights(ceiling):
            if not solid and column // across % 2:
                continue
            cell = column // across
            for dot in range(max(top, 0), min(bottom + 1, limit)):
                row = dot // down
                if glyphs.roof_slope is not None:
                    flat = self.view.x_at(column, across) >= flat_from
                    mark = (glyphs.roof_flat if solid else glyphs.roof_flat_dim) if flat else glyphs.roof_slope
                    self.text[row][cell + _MARGIN] = mark or glyphs.roof_slope
                else:
                    self.dots[row][cell] |= 1 << (dot % down * across + column % across)
                    self.text[row][cell + _MARGIN] = glyphs.cells[self.dots[row][cell]]
                self.role[row][cell + _MARGIN] = role

    def draw_ridge(self) -> None:
        """A mark on the axis under the ridge, and its value beside or below."""
        ridge = self.ceiling.peak_flops / self.ceiling.bandwidth_bytes_s
        column = min(max(self.view.column(math.log10(ridge)), 0), self.columns - 1)
        self.put(column, self.rows, self.glyphs.ridge, "ridge")
        text = "ridge " + (f"{ridge:.3g}" if ridge < 999.5 else si(ridge, "").replace(" ", ""))
        start = min(max(column - len(text) // 2, 0), self.columns - len(text))
        below = self.text[self.rows + 1][max(start - 1, 0) + _MARGIN : start + len(text) + 1 + _MARGIN]
        if start >= 0 and all(character == " " for character in below):
            self.put(start, self.rows + 1, text, "ridge")
        elif column + len(text) + 2 <= self.columns:
            self.put(column + 1, self.rows, f" {text} ", "ridge")
        elif column >= len(text) + 2:
            self.put(column - len(text) - 2, self.rows, f" {text} ", "ridge")

    def draw_note(self) -> None:
        """The corner above the roof, where no honest point can be, says what the axes and the roof are."""
        for row, line in enumerate(self.note):
            self.put(0, row, f" {line} ", "note")

    def name_roof(self, ceiling: CeilingLike) -> None:
        """The name of a roof that is not selected, at its right end, if there is room."""
        row = self.view.row(math.log10(ceiling.peak_flops))
        text = narrow(f"{ceiling.name} {si(ceiling.peak_flops, '').replace(' ', '')}", self.glyphs, max(self.columns // 2, 8))
        column = self.columns - len(text) - 1
        for at in (row - 1, row + 1):
            if 0 <= row < self.rows and self.free(column, at, len(text)):
                self.put(column, at, text, "roof")
                return

    # ------------------------------------------------------------------------------------------------ points

    def draw_points(self, cursor: int | None) -> None:
        """Points, the largest share of the time on top, then their labels, the largest first and the cursor's before all."""
        spots: dict[int, tuple[int, int]] = {}
        drawn = [(index, place) for index, place in enumerate(self.places) if place is not None]
        drawn.sort(key=lambda item: (item[0] == cursor, self.points[item[0]].time_share))
        marks: dict[int, str] = {}
        for index, place in drawn:
            column, row, arrow = self._spot(*place)
            point = self.points[index]
            spots[index] = column, row
            marks[index] = arrow or point_glyph(point.how, point.bound, self.glyphs)
            self.outside += bool(arrow)
            if point.bound in ("upper", "lower") and not arrow:
                # a short whisker to the side on which the true point may be
                side = column - 1 if point.bound == "upper" else column + 1
                if self.free(side, row, 1):
                    self.put(side, row, self.glyphs.dash, "dim")
        for index, _ in drawn:
            share = self.points[index].time_share
            rank = "point-1" if share >= 0.2 else "point-2" if share >= 0.05 else "point-3"
            self.put(*spots[index], marks[index], "cursor" if index == cursor else rank)
        for index, _ in reversed(drawn):
            self._label(index, spots[index], index == cursor)

    def _spot(self, log_intensity: float, log_rate: float) -> tuple[int, int, str]:
        """The cell of a place and, if that is out of view, the arrow at the edge in its stead."""
        glyphs = self.glyphs
        column, row, arrow = self.view.column(log_intensity), self.view.row(log_rate), ""
        head = len(self.note)
        if row < head:
            row, arrow = head, glyphs.up
        elif row >= self.rows:
            row, arrow = self.rows - 1, glyphs.down
        if column < 0:
            column, arrow = 0, glyphs.left
        elif column >= self.columns:
            column, arrow = self.columns - 1, glyphs.right
        return column, row, arrow

    def _is_over(self, point: PointLike) -> bool:
        """The rate is more than the ceiling allows, whatever the true intensity within what is known of it."""
        intensity, rate = point.intensity or 0.0, point.rate or 0.0
        roof = self.ceiling.peak_flops
        if point.bound not in ("lower", "unknown"):
            roof = min(roof, intensity * self.ceiling.bandwidth_bytes_s)
        return rate > roof

    def _label(self, index: int, spot: tuple[int, int], is_cursor: bool) -> None:
        """Key, name under the cursor, and OVER, in the first of six places around the point where nothing is."""
        point = self.points[index]
        over = self._is_over(point)
        self.over += over
        key = point_key(index)
        words = [key, narrow(point.name, self.glyphs, max(self.columns // 3, 8))] if is_cursor else [key]
        text = " ".join(word for word in words if word) + (" OVER" if over else "")
        column, row = spot
        length = len(text)
        places = ((2, 0), (-length - 2, 0), (1, -1), (1, 1), (-length, -1), (-length, 1))
        for across, down in places if text else ():
            at = column + across
            # a cell of air on both sides, or two labels read as one
            if self.free(max(at - 1, 0), row + down, length + 1) and self.free(at, row + down, length):
                self.put(at, row + down, text, "note" if over else "label")
                return
        self.unnamed += 1

    def draw_state(self) -> None:
        """What is known of the points as a whole, in the lowest row that has room for it under the roof."""
        text = narrow(points_state(self.points, self.over, self.outside, self.unnamed), self.glyphs, self.columns - 1)
        for row in range(self.rows - 1, len(self.note), -1):
            if text and self.free(self.columns - len(text), row, len(text)):
                self.put(self.columns - len(text), row, text, "dim")
                return
