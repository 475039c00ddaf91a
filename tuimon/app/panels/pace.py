"""How fast the job goes: its rate of steps and what it is doing now, as facts for the panels."""

from __future__ import annotations

from dataclasses import dataclass

from tuimon.app.scene import Scene
from tuimon.draw import format as fmt
from tuimon.draw.names import place
from tuimon.draw.text import Line, clean
from tuimon.model import Model
from tuimon.model.parts import Running

RATE_OVER_S = 5.0
"""The rate is taken over the latest steps that fill this time, or over the last one where it is longer."""

OVERDUE = 3.0
"""A step that takes this many medians is said to be overdue."""


def step_rate(model: Model) -> float | None:
    """Steps a second over the latest few seconds of steps; None before the first whole step."""
    total = 0
    count = 0
    for _, took_ns, _ in reversed(model.steps.recent):
        total += took_ns
        count += 1
        if total >= RATE_OVER_S * 1e9:
            break
    return count / (total / 1e9) if total > 0 else None


@dataclass(frozen=True, slots=True)
class Overdue:
    """A step that goes on for longer than steps do."""

    for_s: float
    medians: float | None
    """How many median steps that is; None where there is no median."""


def overdue(scene: Scene) -> Overdue | None:
    """The running step, if it takes much longer than a step does and nothing compiles."""
    model = scene.model
    if model.steps.last_end_ns is None or model.target.ended is not None or model.running:
        return None
    waited = (scene.now_ns - model.steps.last_end_ns) / 1e9
    median = model.steps.durations.summary.median
    if waited < 2.0 or (median is not None and waited < OVERDUE * median):
        return None
    return Overdue(waited, waited / median if median else None)


def latest_compile(model: Model) -> Running | None:
    """The compilation that began last of those going on; None if nothing compiles."""
    return max(model.running.values(), key=lambda running: running.since_ns) if model.running else None


def compile_line(scene: Scene, running: Running) -> Line:
    """`compiling forward [0/1] model.py:12  inductor_compile 3.2 s`."""
    where = place(running.file, running.line, 28, scene.glyphs.ellipsis) if running.file else ""
    line: Line = [
        ("compiling ", "compile"),
        (clean(running.function) + " ", "frame"),
        (f"[{running.compile_id}] ", "dim"),
    ]
    if running.direction != "forward":
        line.append((f"{running.direction} ", "text"))
    line.append((where, "place"))
    if running.phases:
        line += [("  ", "text"), (clean(running.phases[-1][0]), "compile")]
    line.append((f"  {fmt.age((scene.now_ns - running.since_ns) / 1e9)}", "strong"))
    others = len(scene.model.running) - 1
    if others > 0:
        line.append((f"  and {others} more", "dim"))
    return line


def now_line(scene: Scene) -> Line:
    """What the job does at this moment, in one line."""
    model = scene.model
    target = model.target
    if target.ended is not None:
        where = f" in step {model.steps.n}" if model.steps.source is not None else ""
        return [(f"ended{where}: ", "ended"), (clean(target.ended_detail) or target.ended, "text")]
    running = latest_compile(model)
    if running is not None:
        return compile_line(scene, running)
    if target.attached_ns is None:
        return [("waiting for the first word from the job", "note")]
    if target.torch is None:
        return [("waiting for torch: the job has not imported it yet", "note")]
    if model.steps.source is None:
        if model.regions or model.compilations:
            return [("running; no step has ended yet (a step is seen when an optimizer steps)", "note")]
        return [("running; nothing compiled and no step seen yet", "note")]
    line: Line = [("running step ", "text"), (str(model.steps.n), "strong")]
    if model.steps.before_attach:
        line.append((f" (+{fmt.count(model.steps.before_attach)} before the attach)", "dim"))
    late = overdue(scene)
    if late is not None:
        line.append((f"  for {fmt.age(late.for_s)}", "warn"))
        if late.medians is not None:
            line.append((f", {fmt.count(late.medians)} medians", "warn"))
    return line
