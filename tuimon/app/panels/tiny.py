"""A terminal too small for panels: the step rate, what compiles, the worst boundary."""

from __future__ import annotations

import re

from tuimon.app.panels import recompiles
from tuimon.app.panels.boundaries import TABLE, kind
from tuimon.app.panels.frame import PanelLines, plural
from tuimon.app.panels.pace import latest_compile, now_line, overdue, rate_then_or_now, step_rate
from tuimon.app.panels.regions import TABLE as REGIONS
from tuimon.app.panels.tabular import arranged
from tuimon.app.panels.target import Status, end_in_short
from tuimon.app.scene import PanelView, Scene
from tuimon.draw import format as fmt
from tuimon.draw.names import frame_name, place
from tuimon.draw.table import UNBOUNDED
from tuimon.draw.text import Line, cells, clean, cut_line, fill, line_cells
from tuimon.model.findings import share_of_step
from tuimon.model.parts import Boundary, Recompile, Region, Running

WORTH_SAYING = 0.01
"""The share of a step from which on its costliest boundary is named in a single line."""
LEAST_PLACE = 8
"""Cells of a place that still says something."""
KEYS_FROM = 6
"""From so many lines on, the last one is for the keys."""


def draw(scene: Scene, width: int, height: int, status: Status | None = None, live: Scene | None = None) -> PanelLines:
    """As many of the useful lines as there is room for, the most useful first.

    `live` is what is known now, where `scene` is frozen: that the job is over is said whether or not the screen stands still.
    """
    if width <= 0 or height <= 0:
        return []
    bottom = [_keys_or_message(status, width)] if height >= KEYS_FROM else []
    room = height - len(bottom)
    lines: list[Line] = []
    if status is not None and status.frozen is not None:
        lines.append([("FROZEN", "frozen"), (f" +{fmt.count(status.frozen)}", "text")])
    lines += [_pace(scene, live or scene, width, room == 1), *_doing(scene, live or scene)]
    lines += _tables(scene, width, room - len(lines))
    lines = lines[:room]
    lines += [[] for _ in range(room - len(lines) if bottom else 0)]
    return [cut_line(line, width, scene.glyphs.ellipsis) for line in [*lines, *bottom]]


def _keys_or_message(status: Status | None, width: int) -> Line:
    if status is not None and status.message:
        return [(clean(status.message), "warn")]
    keys = ((0, "q", "quit"), (1, "?", "help"), (2, "1-7", "panel"), (3, "space", "freeze"))
    return fill([(rank, [(key, "key"), (f" {label}", "key-label")]) for rank, key, label in keys], width)


def _tables(scene: Scene, width: int, room: int) -> PanelLines:
    """The worst boundary, how many recompiles, what was dropped; where there is room, more rows of each table."""
    model = scene.model
    worst = arranged(TABLE, scene, PanelView())
    latest = arranged(recompiles.TABLE, scene, PanelView())
    regions = arranged(REGIONS, scene, PanelView())
    dropped: PanelLines = [[(f"dropped {fmt.count(model.coverage.dropped)}", "warn")]] if model.coverage.dropped else []
    count: PanelLines = [[(fmt.count(len(latest)), "strong"), (" recompiles", "recompile")]] if latest else []
    if len(latest) == 1:
        count = [[(plural(1, "recompile"), "recompile")]]
    left = room - len(worst[:1]) - len(count) - len(dropped)
    # a third each, and what one table does not need goes to those after it
    more = min(len(worst[1:]), max(0, left // 3))
    left -= more
    of_recompiles = min(len(latest), max(0, left // 2))
    left -= of_recompiles
    return [
        *(_boundary(scene, row, width) for row in worst[: 1 + more]),
        *count,
        *(_recompile(scene, row, width) for row in latest[:of_recompiles]),
        *dropped,
        *(_region(scene, row, width) for row in regions[: max(0, left)]),
    ]


def _boundary(scene: Scene, row: Boundary, width: int) -> Line:
    share = share_of_step(scene.model, row)
    cost = fmt.percent(share) if share is not None else fmt.duration(row.host.summary.median)
    where = place(row.user_file, row.user_line, max(4, width - len(cost) - 1), scene.glyphs.ellipsis)
    return [(cost + " ", "strong"), (where, "place"), (" " + kind(row), "break")]


def _recompile(scene: Scene, row: Recompile, width: int) -> Line:
    made = row.compilation
    cost = "refused" if made.refused else fmt.duration(made.total_s)
    name = frame_name(made.function, made.file, made.line, max(4, width - len(cost) - 1), scene.glyphs.ellipsis)
    return [(cost + " ", "bad" if made.refused else "number"), (name, "frame"), (" " + clean(row.guard), "recompile")]


def _region(scene: Scene, row: Region, width: int) -> Line:
    cost = fmt.duration(row.steady.summary.median)
    name = frame_name(row.function, row.file, row.line, max(4, width - len(cost) - 5), scene.glyphs.ellipsis)
    return [(cost + " ", "number"), ("bwd " if row.direction == "backward" else "", "dim"), (name, "region")]


def _pace(scene: Scene, live: Scene, width: int, alone: bool) -> Line:
    """What is the matter, else how fast it goes; `alone`: there is no other line, so what costs most stands in it too."""
    target = live.model.target
    if target.ended is not None:
        return _end(live, width)
    if live.silence is not None and live.silence[1] and target.attached_ns is not None:
        return [(clean(live.silence[1]) + " ", "warn"), (fmt.age(live.silence[0]), "strong")]
    model = scene.model
    running = latest_compile(model)
    if running is not None:
        return _compiling(scene, running, width)
    late = overdue(scene)
    if late is not None:
        line: Line = [("no step ", "warn"), (fmt.age(late.for_s), "strong")]
        medians = f", {fmt.count(late.medians)}x" if late.medians is not None else ""
        return [*line, (medians, "text")] if line_cells(line) + cells(medians) <= width else line
    if step_rate(model) is None:
        return _brief(now_line(scene, UNBOUNDED), width)
    line = rate_then_or_now(scene)
    if alone:
        worst = arranged(TABLE, scene, PanelView())[:1]
        share = share_of_step(model, worst[0]) if worst else None
        room = width - line_cells(line) - len(" 17% ")
        if share is not None and share >= WORTH_SAYING and room >= LEAST_PLACE:
            where = place(worst[0].user_file, worst[0].user_line, room, scene.glyphs.ellipsis)
            return [*line, (f" {share:.0%} ", "strong"), (where, "place")]
    median = fmt.duration(model.steps.durations.summary.median)
    if width >= 12 + len(median):
        line = [*line, ("  ", "text"), (median, "number")]
    return line


def _end(live: Scene, width: int) -> Line:
    target = live.model.target
    whole = clean(target.ended_detail) or target.ended or ""
    short = end_in_short(live) or target.ended or ""
    for before, words in (("ended: ", whole), ("", whole), ("ended: ", short)):
        if cells(before + words) <= width:
            break
    return [(before, "ended"), (words, "text" if before else "ended")] if before else [(words, "ended")]


def _brief(line: Line, width: int) -> Line:
    """The line; where it has no room, as much of it as is a sentence: up to a colon, a semicolon or a comma."""
    if line_cells(line) <= width:
        return line
    words = "".join(text for text, _ in line)
    ends = [found.start() for found in re.finditer("[:;,] ", words) if cells(words[: found.start()]) <= width]
    return [(words[: ends[-1]], line[0][1])] if ends else line


def _doing(scene: Scene, live: Scene) -> PanelLines:
    """The step that runs, where steps are known."""
    if scene.model.steps.source is None:
        return []
    steps = fmt.count(scene.model.steps.n)
    if live.model.target.ended is not None or latest_compile(scene.model) is None:
        return [[("step ", "label"), (steps, "number")]]
    late: Line = [(" late", "warn")] if overdue(scene) is not None else []
    return [[("in step ", "label"), (steps, "number"), *late]]


def _compiling(scene: Scene, running: Running, width: int) -> Line:
    since = fmt.age((scene.now_ns - running.since_ns) / 1e9)
    name = frame_name(running.function, running.file, running.line, max(4, width - len(since) - 9), scene.glyphs.ellipsis)
    return [("compile ", "compile"), (name, "frame"), (" " + since, "strong")]
