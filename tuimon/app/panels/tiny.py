"""A terminal too small for panels: the step rate, what compiles, the worst boundary."""

from __future__ import annotations

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
from tuimon.draw.text import Line, cells, clean, cut_line, fill
from tuimon.model.findings import share_of_step
from tuimon.model.parts import Boundary, Recompile, Region

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
    lines += [_pace(scene, live or scene, width), _doing(scene, width)]
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


def _pace(scene: Scene, live: Scene, width: int) -> Line:
    target = live.model.target
    if target.ended is not None:
        whole = clean(target.ended_detail) or target.ended
        short = end_in_short(live) or target.ended
        fits = target.status is not None or cells(whole) + len("ended: ") <= width
        return [("ended: ", "ended"), (whole if fits else short, "text")]
    model = scene.model
    late = overdue(scene)
    if late is not None:
        return [("no step ", "warn"), (fmt.age(late.for_s), "strong")]
    if step_rate(model) is None:
        return now_line(scene, width)
    line = rate_then_or_now(scene)
    median = fmt.duration(model.steps.durations.summary.median)
    if width >= 12 + len(median):
        line = [*line, ("  ", "text"), (median, "number")]
    return line


def _doing(scene: Scene, width: int) -> Line:
    running = latest_compile(scene.model)
    if running is None:
        return [("step ", "label"), (fmt.count(scene.model.steps.n), "number")]
    since = fmt.age((scene.now_ns - running.since_ns) / 1e9)
    name = frame_name(running.function, running.file, running.line, max(4, width - len(since) - 9), scene.glyphs.ellipsis)
    return [("compile ", "compile"), (name, "frame"), (" " + since, "strong")]
