"""The lab's roofline: one hypothetical roof, the chosen intensity, what was predicted and how far the trace has come."""

from __future__ import annotations

import math
from collections.abc import Sequence

from tuimon.draw.glyphs import GlyphSet
from tuimon.draw.roofline import LEAST_HEIGHT, LEAST_WIDTH
from tuimon.draw.roofline_plot import BELOW, MARGIN, Plot
from tuimon.draw.roofline_view import Extent, choose_view, extent_of, narrow
from tuimon.draw.roofline_words import CeilingLike
from tuimon.draw.text import Line

PREDICTED = "x"

AROUND = ((2, 0), (2, 1), (1, 2), (-2, 0), (-1, -1), (0, 1))
"""Where the words of a place may stand, as (across, down); negative or none across: they end there."""


def lab_lines(
    width: int,
    height: int,
    ceiling: CeilingLike,
    intensity: float | None,
    stations: Sequence[tuple[float, float]],
    at: int | None,
    glyphs: GlyphSet,
    *,
    note: str = "",
    label: str = "",
    prediction: float | None = None,
) -> list[Line]:
    """The roof as `height` lines of `width` cells; [] where there is no room for one.

    `stations` are the places (I, rate) of the trace, of which those up to `at` are drawn (None: none), the one at `at` with
    `label`. `note` stands in the corner above the roof. `prediction` (a rate at `intensity`) is drawn as a cross where it is
    given. All is hypothetical: each place has the shape of what is declared.
    """
    if width < LEAST_WIDTH or height < LEAST_HEIGHT:
        return []
    columns, rows = width - MARGIN, height - BELOW
    head = [narrow(note, glyphs, columns - 2)] if note else []
    view = choose_view(_extent(ceiling, stations), columns, rows, len(head), 0)
    plot = Plot(width, height, view, head, glyphs)
    plot.draw_axes()
    plot.draw_roof(ceiling, "roof-selected")
    plot.draw_ridge(ceiling)
    plot.draw_note()
    if intensity is not None:
        _draw_chosen(plot, intensity)
    if intensity is not None and prediction is not None:
        _draw_predicted(plot, intensity, prediction, min(ceiling.peak_flops, intensity * ceiling.bandwidth_bytes_s))
    if at is not None:
        _draw_trace(plot, stations[: at + 1], label)
    return plot.lines()


def _extent(ceiling: CeilingLike, stations: Sequence[tuple[float, float]]) -> Extent:
    """The ridge and every station, however far that is: here a person chose it."""
    extent = extent_of(ceiling.peak_flops, ceiling.bandwidth_bytes_s, ())
    if not stations:
        return extent
    first, last = math.log10(stations[0][0]), math.log10(stations[-1][0])
    x0, x1 = min(extent.x0, math.floor(first - 0.1)), max(extent.x1, math.ceil(last + 0.1))
    return Extent(x0, x1, x0 + math.log10(ceiling.bandwidth_bytes_s), extent.high)


def _draw_chosen(plot: Plot, intensity: float) -> None:
    """A line up from the axis at the chosen I, and an I on the axis."""
    column = plot.view.column(math.log10(intensity))
    if not 0 <= column < plot.columns:
        return
    for row in range(plot.rows):
        if plot.free(column, row, 1):
            plot.put(column, row, plot.glyphs.grid_vertical, "label")
    for row in (plot.rows, plot.rows + 1):  # on the axis, or below where the ridge has its words
        if plot.role[row][column + MARGIN] == ("axis" if row == plot.rows else "grid"):
            plot.put(column, row, "I", "strong")
            return


def _draw_predicted(plot: Plot, intensity: float, rate: float, roof: float) -> None:
    """A cross where the prediction lies, beside the roof if that has its cell; an arrow at the edge where it is out of view."""
    column, row, mark = plot.view.column(math.log10(intensity)), plot.view.row(math.log10(rate)), PREDICTED
    if not 0 <= column < plot.columns:
        return
    if row < len(plot.note):
        row, mark = len(plot.note), plot.glyphs.up
    elif row >= plot.rows:
        row, mark = plot.rows - 1, plot.glyphs.down
    if row == plot.view.row(math.log10(roof)) and rate != roof:
        row += 1 if rate < roof else -1
    if not len(plot.note) <= row < plot.rows:
        return  # the numbers say it, above the chart
    plot.put(column, row, mark, "warn")
    _name(plot, column, row, "predicted", "warn", ((2, 0), (-1, 0), (2, 1), (2, 2)))


def _draw_trace(plot: Plot, passed: Sequence[tuple[float, float]], label: str) -> None:
    """The stations so far, the latest as the cursor and with its numbers."""
    spots = []
    for x, y in passed:
        column = min(max(plot.view.column(math.log10(x)), 0), plot.columns - 1)
        row = min(max(plot.view.row(math.log10(y)), 0), plot.rows - 1)
        spots.append((column, row))
        plot.put(column, row, plot.glyphs.point_declared, "point-2")
    if spots:
        plot.put(*spots[-1], plot.glyphs.point_declared, "cursor")
        _name(plot, *spots[-1], label, "strong")


def _name(plot: Plot, column: int, row: int, text: str, role: str, around: Sequence[tuple[int, int]] = AROUND) -> None:
    """Words beside a place, in the first stretch around it where nothing is; none where there is no room."""
    text = narrow(text, plot.glyphs, plot.columns)
    length = len(text)
    for across, down in around:
        at = column + across if across > 0 else column + across - length
        if _clear(plot, at - 1, row + down, length + 2):
            plot.put(at, row + down, text, role)
            return


def _clear(plot: Plot, column: int, row: int, length: int) -> bool:
    """Whether only the grid or the line at I is in a stretch of cells inside the plot."""
    if not (len(plot.note) <= row < plot.rows and column >= 0 and column + length <= plot.columns):
        return False
    start = column + MARGIN
    roles = plot.role[row][start : start + length]
    return all(role in ("grid", "label") for role in roles)
