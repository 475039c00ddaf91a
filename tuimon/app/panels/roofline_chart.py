"""The roofline as drawn: the chart, the table of its points beside or below it, the selected point in sentences.

Loaded with the first roofline that is drawn: no first picture waits for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from tuimon.app.panels.frame import PanelLines, plural
from tuimon.app.panels.points import arranged, cursor, selected_point
from tuimon.app.panels.roofline import known_words, nothing_yet, paragraphs, summary
from tuimon.app.panels.standing import told
from tuimon.app.scene import PanelView, Scene
from tuimon.draw import format as fmt
from tuimon.draw.roofline import Axes, roofline_lines
from tuimon.draw.roofline_table import intensity_text, legend_of, of_roof_text, table_lines, traffic
from tuimon.draw.text import Line, clean, cut, exactly, two_ends
from tuimon.roofline.ceilings import Ceiling
from tuimon.roofline.points import RULE, Point, Roofline

BESIDE_WIDTH = 100
"""From so many columns on the table stands beside the chart."""

TABLE_PART = 0.46
"""Of the width, where the table is beside the chart."""

ROWS_BELOW = 4

SHORT_RULE = RULE.replace(" at the stated boundary", "")


NO_FORMULA = "there is no formula for them"


class Shown(NamedTuple):
    """What one drawing of the panel shows, wherever in it."""

    scene: Scene
    view: PanelView
    known: Roofline | None
    ceilings: Sequence[Ceiling]
    selected: int
    """Its index in `ceilings`; -1: none."""


def _none(scene: Scene, view: PanelView) -> str:
    if view.filter and scene.plane.points(scene.model):
        return "nothing matches the filter; esc takes it away"
    return nothing_yet(scene)


def copied(scene: Scene, key: str) -> str:
    """What is copied of the point of this key."""
    point = next((point for point in scene.plane.points(scene.model) if key in (point.key, point.name)), None)
    return "; ".join(text for text, _ in _facts(scene, point)) if point is not None else ""


def drawn(shown: Shown, width: int, height: int, high: bool) -> PanelLines:
    """What lies below the title; `high`: there is room for a table."""
    if width >= BESIDE_WIDTH and high:
        return _beside(shown, width, height)
    return _below(shown, width, height) if high else _chart(shown, width, height)


def _chart(shown: Shown, width: int, height: int) -> PanelLines:
    scene, view, known, ceilings, selected = shown
    points = arranged(scene, view)
    if scene.plane.axes is None:
        scene.plane.axes = Axes()
    return roofline_lines(
        width,
        height,
        ceilings,
        selected,
        points,
        cursor(points, view),
        scene.glyphs,
        trails=scene.plane.trails,
        now_roof=known.now_roof if known is not None else None,
        now_why=known.now_why if known is not None else "",
        axes=scene.plane.axes,
        now_ns=scene.now_ns,
        no_roof="no ceiling: no figures for this machine",
    )


def _table(scene: Scene, view: PanelView, ceiling: Ceiling | None, width: int, height: int, first: int) -> PanelLines:
    """The rows of the points; `first` is the line of the panel that the head stands on."""
    points = arranged(scene, view)
    at = cursor(points, view)
    view.page = max(1, height - 1)
    lines, view.top, rows = table_lines(points, at, width, height, view.top, ceiling, scene.glyphs, view.widths)
    for line, row in rows.items():
        scene.plane.rows[first + line] = points[row].key or points[row].name
    return lines


def _facts(scene: Scene, point: Point) -> list[tuple[str, str]]:
    """The selected point in sentences."""
    glyphs = scene.glyphs
    out = [(clean(point.name), "strong")]
    numbers = [
        f"{fmt.si(point.rate, 'FLOP/s')}" if point.rate is not None else "rate not known",
        f"{intensity_text(point, glyphs)} FLOP/byte",
        fmt.si(traffic(point), "B/s") if traffic(point) is not None else "",
        f"n {fmt.count(point.calls)}" if point.calls else "",
        f"{of_roof_text(point, glyphs)} of roof" if point.of_roof is not None else "",
        f"{point.of_peak * 100:.0f}% of peak" if point.of_peak is not None else "",
    ]
    out.append((", ".join(part for part in numbers if part), "number"))
    at = f", at {point.boundary}" if point.boundary else ""
    out.append((f"operations: {point.operations_how}; bytes: {point.bytes_how}{at}", "note"))
    if point.why_not:
        out.append((clean(point.why_not), "note"))
    return out


def _beside(shown: Shown, width: int, height: int) -> PanelLines:
    scene, view, known, ceilings, selected = shown
    right = max(46, int(width * TABLE_PART))
    left = width - right - 2
    body = height - 1
    chart = _chart(shown, left, body)
    glyphs = scene.glyphs
    points = arranged(scene, view)
    side: PanelLines = []
    if known is None or not points:
        side += paragraphs([("", "note"), (_none(scene, view), "note")], right, body, glyphs.ellipsis)
        if known is not None:
            side += paragraphs([("", "note"), *summary(scene, known)], right, body - len(side), glyphs.ellipsis)
    else:
        tail: list[tuple[str, str]] = []
        point = selected_point(scene, view)
        if point is not None:
            tail += [("", "text"), *_facts(scene, point)]
        tail += [("", "text"), *summary(scene, known), ("", "text")]
        tail += [(f"{glyph} {meaning}", "dim") for glyph, meaning in legend_of(points, glyphs)]
        below = paragraphs(tail, right, max(body // 2, body - len(points) - 1), glyphs.ellipsis)
        side += _table(scene, view, ceilings[selected] if selected >= 0 else None, right, body - len(below), 1)
        side += below
    lines: PanelLines = []
    for at in range(body):
        part: Line = side[at] if at < len(side) else []
        lines.append([*chart[at], ("  ", "text"), *exactly(part, right)])
    return [*lines, _rule_line(scene, width, RULE)]


def _below(shown: Shown, width: int, height: int) -> PanelLines:
    scene, view, known, ceilings, selected = shown
    points = arranged(scene, view)
    glyphs = scene.glyphs
    if known is None or not points:
        told = [(_none(scene, view), "note"), *(summary(scene, known) if known is not None else [])]
        words = paragraphs(told, width, 4, glyphs.ellipsis)
        chart = _chart(shown, width, height - len(words) - 1)
        return [*chart, *words, _rule_line(scene, width, RULE)]
    told = [(text, role) for text, role in summary(scene, known) if text != known_words(known)]  # the title has that
    words = paragraphs(told, width, 1 + (height > 24), glyphs.ellipsis)
    rows = min(len(points), ROWS_BELOW + max(0, (height - 24) // 3)) + 1
    chart = _chart(shown, width, height - rows - len(words) - 1)
    table = _table(scene, view, ceilings[selected] if selected >= 0 else None, width, rows, 1 + len(chart))
    return [*chart, *table, *words, _rule_line(scene, width, RULE)]


def _rule_line(scene: Scene, width: int, rule: str) -> Line:
    text = rule if len(rule) + 2 <= width else SHORT_RULE
    return two_ends([(" ", "text"), (cut(text, max(1, width - 2), scene.glyphs.ellipsis), "note")], [(" ", "text")], width)


def answer(scene: Scene, points: Sequence[Point]) -> Line:
    """How far below its roof what takes the most time is; else what is not known, and what would tell it."""
    most = next((point for point in points if point.of_roof is not None), None)
    if most is None:
        bare = next((point for point in points if point.rate is not None), None)
        if bare is None:
            return told(f"{plural(len(points), 'point')}, none with operations known: {clean(points[0].why_not) or NO_FORMULA}")
        ran = f"{fmt.si(bare.rate, 'FLOP/s')} in {fmt.percent(bare.time_share)} of the time"
        why = "no roof to compare with until tuimon calibrate has measured it"
        return [(clean(bare.name), "strong"), (f": {ran}; {why}", "text")]
    of = of_roof_text(most, scene.glyphs)
    at = f" of {clean(most.boundary)}'s roof" if most.boundary else " of its roof"
    share = f", in {fmt.percent(most.time_share)} of the time"
    rest = f"; {len(points) - 1} more" if len(points) > 1 else ""
    return [(clean(most.name), "strong"), (f" is at {of}{at}{share}{rest}", "text")]
