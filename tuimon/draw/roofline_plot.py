"""The grid of cells that a roofline is drawn into: its axes, its roofs and the ridge."""

from __future__ import annotations

import math
from collections.abc import Iterator

from tuimon.draw.format import si
from tuimon.draw.glyphs import GlyphSet
from tuimon.draw.roofline_view import View, narrow, tick_label, ticks
from tuimon.draw.roofline_words import CeilingLike
from tuimon.draw.text import Line

MARGIN = 5
"""The widest tick label, "100T", and the axis."""

BELOW = 2
"""The axis and its labels."""


class Plot:
    """The cells of one drawing. Later strokes go over earlier ones only where their order says so."""

    def __init__(self, width: int, height: int, view: View, note: list[str], glyphs: GlyphSet) -> None:
        """`view` is of width - MARGIN columns and height - BELOW rows; `note` is what stands in the corner above the roof."""
        self.glyphs = glyphs
        self.width, self.height = width, height
        self.view, self.note = view, note
        self.columns, self.rows = view.columns, view.rows
        self.text = [[" "] * width for _ in range(height)]
        self.role = [["grid"] * width for _ in range(height)]
        self.dots = [[0] * self.columns for _ in range(self.rows)]

    def lines(self) -> list[Line]:
        """The cells as lines of runs."""
        return [_runs(text, role) for text, role in zip(self.text, self.role, strict=True)]

    # ------------------------------------------------------------------------------------------------ cells

    def put(self, column: int, row: int, text: str, role: str) -> None:
        """Write over whatever is there; (0, 0) is the plot's upper left cell, and the margin has negative columns."""
        start = column + MARGIN
        line, roles = self.text[row], self.role[row]
        for offset, character in enumerate(text):
            if 0 <= start + offset < self.width:
                line[start + offset] = character
                roles[start + offset] = role

    def free(self, column: int, row: int, length: int) -> bool:
        """Nothing but grid in a stretch of cells, all of which lie inside the plot."""
        if not (0 <= row < self.rows and column >= 0 and column + length <= self.columns):
            return False
        start = column + MARGIN
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
            self.put(-MARGIN, 0, "F/s", "axis")
        self.put(-MARGIN, self.rows + 1, "F/B", "axis")
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
                    self.text[row][cell + MARGIN] = mark or glyphs.roof_slope
                else:
                    self.dots[row][cell] |= 1 << (dot % down * across + column % across)
                    self.text[row][cell + MARGIN] = glyphs.cells[self.dots[row][cell]]
                self.role[row][cell + MARGIN] = role

    def draw_ridge(self, ceiling: CeilingLike) -> None:
        """A mark on the axis under the ridge, and its value beside or below."""
        ridge = ceiling.peak_flops / ceiling.bandwidth_bytes_s
        column = min(max(self.view.column(math.log10(ridge)), 0), self.columns - 1)
        self.put(column, self.rows, self.glyphs.ridge, "ridge")
        text = "ridge " + (f"{ridge:.3g}" if ridge < 999.5 else si(ridge, "").replace(" ", ""))
        start = min(max(column - len(text) // 2, 0), self.columns - len(text))
        below = self.text[self.rows + 1][max(start - 1, 0) + MARGIN : start + len(text) + 1 + MARGIN]
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

    def name_roof(self, ceiling: CeilingLike, name: str = "") -> None:
        """The name of a roof that is not selected, at its right end, if there is room."""
        row = self.view.row(math.log10(ceiling.peak_flops))
        peak = si(ceiling.peak_flops, "").replace(" ", "")
        text = narrow(f"{name or ceiling.name} {peak}", self.glyphs, max(self.columns // 2, 8))
        column = self.columns - len(text) - 1
        if not 0 <= row < self.rows or column < 0:
            return
        for at in (row - 1, row + 1):
            if self.free(column, at, len(text)):
                self.put(column, at, text, "roof")
                return
        # no room beside it: in its own line
        here = self.role[row][column + MARGIN : column + MARGIN + len(text)]
        if all(role in ("grid", "roof") for role in here):
            self.put(column, row, text, "roof")


def _runs(text: list[str], role: list[str]) -> Line:
    """Cells to runs: neighbours of one role become one."""
    runs: Line = []
    start = 0
    for end in range(1, len(text) + 1):
        if end == len(text) or role[end] != role[start]:
            runs.append(("".join(text[start:end]), role[start]))
            start = end
    return runs
