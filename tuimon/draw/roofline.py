"""A roofline in text: ceilings, their ridge, and points with what is known of them, on log-log axes.

A pure function from what is to be shown to lines of (text, role); the one who shows them turns roles into colours. Nothing
is told by colour alone: what a number is worth is the shape of its glyph, the selected roof is solid and the others dashed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from tuimon.draw.glyphs import GlyphSet
from tuimon.draw.roofline_plot import BELOW, MARGIN, Plot
from tuimon.draw.roofline_points import Points, places_of
from tuimon.draw.roofline_view import Axes, choose_view, extent_alone, extent_of, narrow
from tuimon.draw.roofline_words import (
    CeilingLike,
    PointLike,
    ceiling_note,
    legend,
    point_key,
    points_state,
    tight_note,
)
from tuimon.draw.text import Line, wrap

__all__ = ["LEAST_HEIGHT", "LEAST_WIDTH", "ROLES", "Axes", "CeilingLike", "PointLike", "legend", "point_key", "roofline_lines"]

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


def roofline_lines(
    width: int,
    height: int,
    ceilings: Sequence[CeilingLike],
    selected: int,
    points: Sequence[PointLike],
    cursor: int | None,
    glyphs: GlyphSet,
    *,
    trails: bool = True,
    now_roof: CeilingLike | None = None,
    now_why: str = "",
    axes: Axes | None = None,
    now_ns: int = 0,
    no_roof: str = "no ceiling selected",
) -> list[Line]:
    """The roofline as `height` lines of runs (text, role), each line exactly `width` cells.

    `selected` and `cursor` are places in `ceilings` and `points`; one that is out of range selects none. A point whose
    bytes are those across another boundary than the selected ceiling's is counted, not drawn, as is one without operations or
    bytes; one over its roof is drawn where it is and marked OVER; one out of view becomes an arrow at the edge. Of the other
    ceilings those over the same memory are drawn, dashed (another peak, for another data type): those of other machines say
    nothing here. `now_roof` is the selected one at the clock of now, and `now_why` why that is lower. `axes` keeps them from
    jumping between one drawing and the next, at `now_ns`. Where no ceiling is selected there are the points alone, with
    `no_roof` in the corner.
    """
    width, height = max(width, 0), max(height, 0)
    ceiling = ceilings[selected] if 0 <= selected < len(ceilings) else None
    boundary = ceiling.boundary if ceiling is not None else ""
    places = places_of(points, boundary)
    placed = [place for place in places if place is not None]
    if width < LEAST_WIDTH or height < LEAST_HEIGHT or (ceiling is None and not placed):
        facts = [f"{ceiling.name} ({ceiling.how})", tight_note(ceiling)] if ceiling is not None else [no_roof]
        return _words(width, height, [*facts, points_state(points, 0, 0, 0, boundary)], glyphs)
    columns, rows = width - MARGIN, height - BELOW
    note = ceiling_note(ceiling, columns - 1, glyphs) if ceiling is not None else [narrow(no_roof, glyphs, columns - 2)]
    of = (ceiling.name, ceiling.peak_flops, ceiling.bandwidth_bytes_s) if ceiling is not None else None
    extent = extent_of(ceiling.peak_flops, ceiling.bandwidth_bytes_s, placed) if ceiling is not None else extent_alone(placed)
    if axes is not None:
        extent = axes.settle(of, extent, now_ns)
    foot = 0 if placed else 1  # the words that say why there are no points
    plot = Plot(width, height, choose_view(extent, columns, rows, len(note), foot), note, glyphs)
    plot.draw_axes()
    others: list[CeilingLike] = []
    if ceiling is not None:
        others = [other for index, other in enumerate(ceilings) if index != selected and _same_memory(other, ceiling)]
        for other in others:
            plot.draw_roof(other, "roof")
        if now_roof is not None:
            plot.draw_roof(now_roof, "roof")
        plot.draw_roof(ceiling, "roof-selected")
        plot.draw_ridge(ceiling)
    plot.draw_note()
    drawn = Points(plot, ceiling, points, places)
    drawn.draw(cursor, trails)
    if ceiling is not None and now_roof is not None:
        plot.name_roof(now_roof, f"now ({now_why})" if now_why else "now")
    for other in others:
        plot.name_roof(other)
    drawn.draw_state()
    return plot.lines()


def _words(width: int, height: int, facts: list[str], glyphs: GlyphSet) -> list[Line]:
    """The facts as plain text, on as many lines as there are."""
    wrapped = [line for fact in facts for line in wrap(narrow(fact, glyphs, len(fact)), max(width, 1))]
    lines: list[Line] = [[(line.ljust(width)[:width], "note")] for line in wrapped[:height]]
    return lines + [[(" " * width, "grid")] for _ in range(height - len(lines))]


def _same_memory(one: CeilingLike, other: CeilingLike) -> bool:
    """The same boundary and, but for rounding in a datasheet, the same bandwidth."""
    return one.boundary == other.boundary and math.isclose(one.bandwidth_bytes_s, other.bandwidth_bytes_s, rel_tol=0.01)
