"""What all panels together answer: what the job does, whether anything is wrong, what costs most."""

from __future__ import annotations

from tuimon.app.panels.boundaries import ANSWER_PLACE, at_place, costliest, short_kind
from tuimon.app.panels.frame import plural
from tuimon.app.panels.looking import latest_findings
from tuimon.app.panels.pace import compile_answer, latest_compile, overdue
from tuimon.app.panels.ranks import holding
from tuimon.app.panels.standing import ended_line, standing
from tuimon.app.panels.surroundings import stands_out
from tuimon.app.scene import Scene
from tuimon.draw import format as fmt
from tuimon.draw.names import place
from tuimon.draw.text import Line, clean
from tuimon.model.findings import Finding, share_of_step
from tuimon.model.parts import Boundary

COSTLIEST = "costliest: "
COSTS = 0.001
"""Of a step: below it no boundary is called costly."""
COMPILES_S = 1.0
"""A compilation that has taken less may be over before it is read."""
FIRST = ("disabled", "stance", "compiled nothing", "skipped frame", "limit", "failed compilation", "gpu_lost", "gpu_ecc", "xid")
"""Kinds of findings that are told before what a boundary costs: what they cost is not measured, and may be all."""


def answer(scene: Scene) -> Line:
    """`step 260, 24.0 ms; costliest: 17.0% of a step at model.py:57: Tensor.item()`."""
    first = standing(scene)
    if first:
        return first
    over = ended_line(scene)
    if over:
        return [*over, *_behind(_cost(scene) or _slow(scene), "; ")]
    running = latest_compile(scene.model)
    if running is not None and (scene.model.steps.source is None or scene.now_ns - running.since_ns >= COMPILES_S * 1e9):
        return compile_answer(scene, running)
    pace = _pace(scene)
    cost = _cost(scene)
    if overdue(scene) is not None:  # the room is little then
        cost = holding(scene) or [run for run in cost if run[0] != COSTLIEST]
    if cost:
        return [*pace, *_behind(cost, "; ")] if pace else cost
    if scene.model.target.how == "file":
        return pace or [("read to its end; nothing stands out", "text")]
    if not pace:
        return [("running; nothing stands out so far", "text")]
    if not scene.model.steps.steady_n:
        return pace
    behind = stands_out(scene) or _slow(scene) or [("healthy: nothing stands out", "good")]
    return [*pace, *_behind(behind, "; ")]


def _slow(scene: Scene) -> Line:
    """`3 steps were slow, the worst step 200: 8.27 s, compile`: what is over costs nothing any more, but was not healthy."""
    steps = scene.model.steps
    if not steps.slow:
        return []
    worst = max(steps.slow, key=lambda one: one.account.took_ns)
    causes = " and ".join(one.cause for one in worst.causes)
    were = "steps were slow, the worst" if steps.slow_n > 1 else "step was slow:"
    took = fmt.duration(worst.account.took_ns / 1e9)
    return [(f"{fmt.count(steps.slow_n)} {were} step {worst.account.index}: {took}, {causes}".rstrip(", "), "text")]


def _behind(line: Line, between: str) -> Line:
    return [(between, "text"), *line] if line else []


def _pace(scene: Scene) -> Line:
    """The step that runs, and how long steps take."""
    steps = scene.model.steps
    late = overdue(scene)
    if late is not None:
        times = f", {fmt.count(late.medians)} times the usual" if late.medians is not None else ""
        return [(f"no step for {fmt.age(late.for_s)}{times}", "warn")]
    if steps.source is None:
        if any(region.calls for region in scene.model.regions.values()):
            return [("running, no step told apart so far", "text")]
        before = _before_attach(scene)
        if before:
            return [(f"from before the attach: {before}; no call seen since", "text")]
        if scene.replay is not None:
            return [(f"nothing compiled and no step so far at {fmt.age(scene.replay.at_s)} of the recording", "text")]
        return [] if scene.model.frames else [("running; nothing compiled and no step seen yet", "text")]
    took = steps.durations.summary.median
    each = f", {fmt.duration(took)}" if took is not None else ""
    return [(f"step {steps.n}{each}", "strong")]


def _before_attach(scene: Scene) -> str:
    """`2 breaks, 1 recompile (1.90 s)`: what Dynamo kept of what was before; "" for nothing."""
    model = scene.model
    breaks = sum(1 for one in model.boundaries.values() if one.before_attach)
    again = [one.compilation for one in model.recompiles if one.compilation.before_attach]
    frames = sum(1 for one in model.frames.values() if one.before_attach)
    took = sum(one.total_s or 0.0 for one in again)
    parts = [
        plural(frames, "frame") if frames else "",
        plural(breaks, "graph break") if breaks else "",
        plural(len(again), "recompile") + (f" ({fmt.duration(took)})" if took else "") if again else "",
    ]
    return ", ".join(part for part in parts if part)


def _cost(scene: Scene) -> Line:
    """What costs most: what voids the compilation, else the costliest boundary, else what else was found."""
    found = latest_findings(scene)
    first = found[0] if found else None
    if first is not None and first.kind in FIRST:
        return _finding(scene, first)
    worst = costliest(scene)
    share = share_of_step(scene.model, worst) if worst is not None else None
    if first is not None and first.kind != "boundary" and worst is not None and _costs_more(first, worst):
        return _finding(scene, first)
    if worst is not None and share is not None and share >= COSTS:
        return [
            (COSTLIEST, "text"),
            (f"{fmt.percent(share)} of a step at ", "text"),
            (at_place(scene, worst), "place"),
            (": ", "text"),
            (short_kind(worst), "break"),
        ]
    return _finding(scene, first) if first is not None else []


def _costs_more(finding: Finding, boundary: Boundary) -> bool:
    return finding.cost_s is not None and finding.cost_s > boundary.host.total_ns / 1e9


def _finding(scene: Scene, finding: Finding) -> Line:
    """A finding in few words, its place first: what is cut is the least of it."""
    at = where(scene, finding)
    words = clean(finding.title).partition(": ")[0]
    return [(f"{at}: ", "place"), (words, "warn")] if at else [(words, "warn")]


def where(scene: Scene, finding: Finding) -> str:
    """`model.py:12`; "" where it is about the whole process."""
    file, _, line = finding.where.rpartition(":")
    return place(file, int(line), ANSWER_PLACE, scene.glyphs.ellipsis) if file and line.isdecimal() else ""
