"""The page of steps and compilations, and that of one line of the log."""

from __future__ import annotations

from tuimon.app.details.page import fact, heading, populations, prose
from tuimon.app.details.paged import linked
from tuimon.app.details.step import how
from tuimon.app.panels.frame import NOT_IN_FILE, untold
from tuimon.app.panels.pace import step_rate
from tuimon.app.panels.timeline import letter
from tuimon.app.scene import Scene
from tuimon.draw import format as fmt
from tuimon.draw.names import frame_name
from tuimon.draw.text import Line
from tuimon.model.about import About
from tuimon.model.parts import LogLine
from tuimon.model.slow.naming import sentence

SHOWN_COMPILATIONS = 40
SHOWN_STEPS = 12
SHOWN_SLOW = 5


def now(scene: Scene, width: int) -> list[Line]:
    """Steps, what is watched and how, and the latest compilations."""
    model = scene.model
    target, steps, coverage = model.target, model.steps, model.coverage
    missing = untold(scene, "steps")
    out = heading("steps")
    out += fact("steps", missing, width, "note") if missing else _steps(scene, width)
    longest = sorted(steps.recent, key=lambda step: -step[1])[:SHOWN_STEPS]
    if longest:
        out += heading(f"the longest of the last {len(steps.recent)}")
        for index, took, compiled in longest:
            out += fact(f"step {index}", fmt.duration(took / 1e9) + (", with a compilation in it" if compiled else ""), width)
    out += heading("what is watched")
    out += fact("command", target.command, width)
    out += fact("pid", str(target.pid) if target.pid is not None else fmt.UNKNOWN, width)
    out += fact("how", target.how, width)
    no_torch = "not told" if target.how == "file" else "not imported"
    out += fact("torch, python", f"{target.torch or no_torch}, {target.python or fmt.UNKNOWN}", width)
    out += fact("devices", ", ".join(target.devices) or "none told", width)
    for name, value in target.options:
        out += fact(name, value, width)
    if target.ended is not None:
        out += fact("ended", target.ended_detail or target.ended, width, "ended")
    out += heading("what watching costs, and what it cannot see")
    if target.how == "file":
        out += fact("hook, samples", f"{NOT_IN_FILE}: no hook of tuimon ran in the job", width, "note")
    else:
        out += fact("time in the hook", fmt.duration(coverage.hook_s), width)
        out += fact("samples", fmt.count(coverage.samples), width)
        out += fact("dropped", fmt.count(coverage.dropped), width, "warn" if coverage.dropped else "number")
    for name, state in sorted(coverage.instruments.items()):
        if coverage.not_available.get(name) == state:
            continue  # below
        out += fact(name, state, width, "number" if state.startswith("on") else "warn")
    for what, why in sorted(coverage.not_available.items()):
        out += fact(what, why if why.startswith(NOT_IN_FILE) else f"not available: {why}", width, "note")
    for what in model.recorded.absent:
        out += fact(what, model.recorded.missing(what), width, "note")
    return out + _compilations(scene, width)


def _steps(scene: Scene, width: int) -> list[Line]:
    model = scene.model
    steps = model.steps
    out = fact("told", how(model), width, "text")
    out += fact("since the attach", fmt.count(steps.n), width)
    out += fact("before the attach", fmt.count(steps.before_attach), width)
    out += fact("rate", fmt.rate(step_rate(model)), width)
    out += populations(scene, [("all steps", "those with a compilation too", steps.durations)], width)
    return out + _slow(scene, width)


def _slow(scene: Scene, width: int) -> list[Line]:
    """The rule, and the latest slow steps in a sentence each."""
    steps = scene.model.steps
    fallen = f", the last {len(steps.slow)} kept" if steps.slow_n > len(steps.slow) else ""
    out = heading(f"slow steps ({fmt.count(steps.slow_n)}{fallen}; n and N select them, enter shows one)")
    for one in list(reversed(steps.slow))[:SHOWN_SLOW]:
        mark, role = letter(one)
        parts = prose(sentence(one), width, "text", indent=4)
        told: list[Line] = [[(f"  {mark} ", role), *parts[0][1:]], *parts[1:]]
        out += linked(told, About("step", str(one.account.index)))
    return out + prose(scene.model.slowness.rule, width, "note")


def _compilations(scene: Scene, width: int) -> list[Line]:
    if untold(scene, "compiles"):
        return []  # which is said above
    latest = list(reversed(scene.model.compilations[-SHOWN_COMPILATIONS:]))
    out = heading(f"the latest compilations ({len(scene.model.compilations)} known)")
    for one in latest:
        name = frame_name(one.function, one.file, one.line, max(10, width - 48), scene.glyphs.ellipsis)
        cost = "refused" if one.refused else fmt.duration(one.total_s)
        when = "before" if one.before_attach else (f"step {one.step}" if one.step is not None else "")
        when += " late" if one.late else ""
        line: Line = [
            (f"  {cost:>8}  ", "number"),
            (f"{'[' + one.compile_id + ']':<9}", "dim"),
            (f"{one.why:<10}", "compile"),
            (f"{when:<14}", "warn" if one.late else "dim"),
            (name, "frame"),
        ]
        out += linked([line], About("compilation", one.key))
    return out


def log_line(scene: Scene, line: LogLine, time: str, width: int) -> list[Line]:
    """One line of the log in full."""
    out = [*fact("time", time, width), *fact("kind", line.kind, width), [], *prose(line.text, width)]
    if line.about is not None:
        out += heading("more")
        out += linked(prose("all that is known of it", width, "label"), line.about)
    return out
