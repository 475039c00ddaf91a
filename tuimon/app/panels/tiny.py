"""A terminal too small for panels: the step rate, what compiles, the worst boundary."""

from __future__ import annotations

from tuimon.app.panels.boundaries import TABLE, kind, share_of_step
from tuimon.app.panels.frame import PanelLines
from tuimon.app.panels.pace import latest_compile, now_line, overdue, step_rate
from tuimon.app.panels.tabular import arranged
from tuimon.app.scene import PanelView, Scene
from tuimon.draw import format as fmt
from tuimon.draw.names import frame_name, place
from tuimon.draw.text import Line, clean


def draw(scene: Scene, width: int, height: int) -> PanelLines:
    """As many of the useful lines as there is room for, the most useful first."""
    if width <= 0 or height <= 0:
        return []
    model = scene.model
    lines: list[Line] = [_pace(scene, width), _doing(scene, width)]
    worst = arranged(TABLE, scene, PanelView())
    if worst:
        share = share_of_step(scene, worst[0])
        cost = fmt.percent(share) if share is not None else fmt.duration(worst[0].host.summary.median)
        where = place(worst[0].user_file, worst[0].user_line, max(4, width - len(cost) - 1), scene.glyphs.ellipsis)
        lines.append([(cost + " ", "strong"), (where, "place"), (" " + kind(worst[0]), "break")])
    if model.recompiles:
        lines.append([(fmt.count(len(model.recompiles)), "strong"), (" recompiles", "recompile")])
    if model.coverage.dropped:
        lines.append([(f"dropped {fmt.count(model.coverage.dropped)}", "warn")])
    return lines[:height]


def _pace(scene: Scene, width: int) -> Line:
    model = scene.model
    if model.target.ended is not None:
        return [("ended: ", "ended"), (clean(model.target.ended_detail) or model.target.ended, "text")]
    late = overdue(scene)
    if late is not None:
        return [("no step ", "warn"), (fmt.age(late.for_s), "strong")]
    rate = step_rate(model)
    if rate is None:
        return now_line(scene)
    line: Line = [(fmt.rate(rate), "strong")]
    median = fmt.duration(model.steps.durations.summary.median)
    if width >= 12 + len(median):
        line += [("  ", "text"), (median, "number")]
    return line


def _doing(scene: Scene, width: int) -> Line:
    running = latest_compile(scene.model)
    if running is None:
        return [("step ", "label"), (fmt.count(scene.model.steps.n), "number")]
    since = fmt.age((scene.now_ns - running.since_ns) / 1e9)
    name = frame_name(running.function, running.file, running.line, max(4, width - len(since) - 9), scene.glyphs.ellipsis)
    return [("compile ", "compile"), (name, "frame"), (" " + since, "strong")]
