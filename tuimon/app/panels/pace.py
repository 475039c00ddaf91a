"""How fast the job goes: its rate of steps and what it is doing now, as facts for the panels."""

from __future__ import annotations

from dataclasses import dataclass

from tuimon.app.scene import Scene
from tuimon.draw import format as fmt
from tuimon.draw.names import frame_name, function_name, place
from tuimon.draw.text import Line, clean, cut_line, line_cells
from tuimon.model import Model
from tuimon.model.identity import entry_number
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
    compiling: bool = False
    """Whether something compiles, which is why."""


def overdue(scene: Scene) -> Overdue | None:
    """The running step, if it takes much longer than a step does.

    Measured up to the last time that events were taken in: a picture drawn in between knows of no step that ended since.
    """
    return late(scene.model, scene.now_ns if scene.beat_ns is None else scene.beat_ns)


def late(model: Model, until: int) -> Overdue | None:
    """The step that runs at the time `until` (ns on the job's clock), if it takes much longer than a step does."""
    if model.steps.last_end_ns is None or model.target.ended is not None:
        return None
    waited = (until - model.steps.last_end_ns) / 1e9
    if waited < 2.0:  # before the median is asked for, which has to be worked out
        return None
    median = model.steps.durations.summary.median
    if median is not None and waited < OVERDUE * median:
        return None
    return Overdue(waited, waited / median if median else None, bool(model.running))


def rate_then_or_now(scene: Scene) -> Line:
    """`9.30/s`, or `was 9.30/s` where no step has ended for long or the job is over."""
    rate = step_rate(scene.model)
    past = scene.model.target.ended is not None or overdue(scene) is not None
    if past and rate is not None:
        return [("was ", "label"), (fmt.rate(rate), "text")]
    return [(fmt.rate(rate), "strong")]


def latest_compile(model: Model) -> Running | None:
    """The compilation that began last of those going on; None if nothing compiles."""
    return max(model.running.values(), key=lambda running: running.since_ns) if model.running else None


PHASES = {
    "entire_frame_compile": "starting",
    "entire_backward_compile": "starting",
    "bytecode_tracing": "tracing the code",
    "backend_compile": "in the backend",
    "create_aot_dispatcher_function": "in AOTAutograd",
    "aot_trace_joint_graph": "tracing the backward",
    "inductor_compile": "optimising the graph",
    "GraphLowering.run": "lowering the graph",
    "code_gen": "generating code",
    "async_compile.wait": "building kernels",
    "build_guards": "building guards",
}
"""torch's names of phases, in words."""

LONG_FOR = 3.0
"""A compilation that takes so many times as long as the longest one before it is said to."""


def phase_words(phase: str) -> str:
    """What a compilation does in this phase."""
    return PHASES.get(phase) or clean(phase)


def running_for(scene: Scene, running: Running) -> str:
    """`3.2 s`, or `over 3.2 s` where it began before it was watched."""
    age = fmt.age((scene.now_ns - running.since_ns) / 1e9)
    return age if running.since_known else f"over {age}"


def comparison_line(scene: Scene, running: Running) -> Line:
    """How the compilation compares with this process's earlier ones of the same direction: is it slow, or does it hang?"""
    way = running.direction
    earlier = [
        one.total_s
        for one in scene.model.compilations
        if one.direction == way and one.total_s is not None and not one.refused and one.failed is None
    ]
    begun: Line = [] if running.since_known else [("since before the attach; ", "note")]
    phase: Line = []
    if running.phases:
        phase = [(f"; {fmt.age((scene.now_ns - running.phases[-1][1]) / 1e9)} in this phase", "note")]
    if not earlier:
        return [*begun, ("none earlier to compare with", "note"), *phase]
    low, high = min(earlier), max(earlier)
    ones = f"{len(earlier)} earlier {way} ones" if len(earlier) > 1 else f"the {way} one before"
    if (scene.now_ns - running.since_ns) / 1e9 > LONG_FOR * high:
        words = f"over {LONG_FOR:.0f} times the longest of {ones} ({fmt.duration(high)})"
        return [*begun, (words, "warn"), *phase]
    took = fmt.duration(high) if len(earlier) == 1 else f"{fmt.duration(low)} to {fmt.duration(high)}"
    return [*begun, (f"{ones} took {took}", "text"), *phase]


def compile_answer(scene: Scene, running: Running) -> Line:
    """`compiling for 3.2 s: forward model.py:12 [0/1], building kernels; over 3 times ..`: what is cut is the least of it."""
    ellipsis = scene.glyphs.ellipsis
    way = f" {running.direction}" if running.direction != "forward" else ""
    phase = f", {phase_words(running.phases[-1][0])}" if running.phases else ""
    line: Line = [
        ("compiling for ", "compile"),
        (running_for(scene, running), "strong"),
        (": ", "text"),
        (frame_name(running.function, running.file, running.line, ANSWER_NAME, ellipsis), "frame"),
        (f" [{clean(running.compile_id)}]{way}", "dim"),
        (phase, "compile"),
    ]
    others = len(scene.model.running) - 1
    return [*line, (f" and {others} more", "dim")] if others > 0 else line


ANSWER_NAME = 40
"""Cells of a frame's name in a first line."""
LEAST_NAME = 16
"""Cells of a frame's name below which something else of the line goes first."""


def compile_line(scene: Scene, running: Running, width: int) -> Line:
    """`compiling forward [0/1] model.py:12  inductor_compile  3.2 s` in at most `width` cells.

    How long it takes is kept to the last, the phase to the last but one; names are shortened by what they mean.
    """
    ellipsis = scene.glyphs.ellipsis
    verb: Line = [("compiling ", "compile")]
    way: Line = [(f"{running.direction} ", "text")] if running.direction != "forward" else []
    number: Line = [(f"[{clean(running.compile_id)}] ", "dim")]
    phase: Line = [("  ", "text"), (phase_words(running.phases[-1][0]), "compile")] if running.phases else []
    age: Line = [(f"  {running_for(scene, running)}", "strong")]
    others = len(scene.model.running) - 1
    more: Line = [(f"  and {others} more", "dim")] if others > 0 else []
    function = function_name(running.function)
    where = place(running.file, running.line, 28, ellipsis) if running.file else ""
    whole: Line = [*verb, (function + " ", "frame"), *number, *way, (where, "place"), *phase, *age, *more]
    if line_cells(whole) <= width:
        return whole
    parts: list[tuple[Line, Line]] = [
        ([*number, *way], [*phase, *age, *more]),
        ([*number, *way], [*phase, *age]),
        (way, [*phase, *age]),
        ([*number, *way], age),
    ]
    for before, after in parts:
        room = width - line_cells([*verb, *before, *after])
        if room >= LEAST_NAME:
            name = frame_name(running.function, running.file, running.line, room, ellipsis)
            return [*verb, *before, (name, "frame"), *after]
    room = width - line_cells([*verb, *age])
    if room >= 1:
        return [*verb, (frame_name(running.function, running.file, running.line, room, ellipsis), "frame"), *age]
    return cut_line([*verb, *age], width, ellipsis)


def compiling_words(model: Model) -> str | None:
    """`recompiling encode [0/1] now`, for sentences of panels that have nothing to show yet; None if nothing compiles."""
    running = latest_compile(model)
    if running is None:
        return None
    number = entry_number(running.compile_id)
    verb = "recompiling" if number and running.direction == "forward" else "compiling"
    of = "the backward of " if running.direction == "backward" else ""
    return f"{verb} {of}{function_name(running.function)} [{clean(running.compile_id)}] now"


def attaching_words(model: Model) -> str:
    """What happens before the first word from the hook: `attaching to 4711`, or what is waited for and since when."""
    target = model.target
    if target.attaching is None:
        return "waiting for the first word from the job: it comes when the job runs Python again"
    if target.attaching_since_s is None:
        return target.attaching
    return f"{target.attaching}, for {fmt.age(target.attaching_since_s)}; waiting, q cancels"


def stopped_words(silence: tuple[float, str | None] | None, pid: int | None, for_s: bool = True) -> str | None:
    """`stopped for 4 s (kill -CONT 4711)`; None where nothing is known of a stop."""
    if silence is None or not silence[1]:
        return None
    words = f"{silence[1]} for {fmt.age(silence[0])}" if for_s else silence[1]
    return f"{words} (kill -CONT {pid})" if silence[1] == "stopped" and pid is not None else words


def now_line(scene: Scene, width: int) -> Line:
    """What the job does at this moment, in one line of at most `width` cells."""
    target = scene.model.target
    stopped = stopped_words(scene.silence, target.pid) if target.ended is None and target.attached_ns is not None else None
    if stopped is not None:
        where = f" in step {scene.model.steps.n}" if scene.model.steps.source is not None else ""
        return cut_line([(stopped + where, "warn")], width, scene.glyphs.ellipsis)
    running = latest_compile(scene.model)
    if running is not None and scene.model.target.ended is None:
        return compile_line(scene, running, width)
    return cut_line(_now_words(scene), width, scene.glyphs.ellipsis)


def _now_words(scene: Scene) -> Line:
    model = scene.model
    target = model.target
    if target.ended == "refused":
        return [("cannot attach: ", "bad"), (clean(target.ended_detail), "text")]
    if target.how == "file" and target.ended == "detached":
        return [(clean(target.ended_detail), "text")]
    if target.ended is not None:
        where = f" in step {model.steps.n}" if model.steps.source is not None else ""
        how = {"lost": "not heard of any more", "detached": "no longer attached"}.get(target.ended, "ended")
        return [(f"{how}{where}: ", "ended"), (clean(target.ended_detail) or target.ended, "text")]
    if target.attached_ns is None:
        return [(clean(attaching_words(model)), "warn" if target.attaching_since_s is not None else "note")]
    if target.torch is None:
        return [("waiting for torch: the job has not imported it yet", "note")]
    if model.steps.source is None:
        if model.regions or model.compilations:
            return [("running", "text")]
        return [("running; nothing compiled and no step seen yet", "note")]
    line: Line = [("running step ", "text"), (str(model.steps.n), "strong")]
    if model.steps.before_attach:
        line.append((f" (+{fmt.count(model.steps.before_attach)} before the attach)", "dim"))
    late = overdue(scene)
    if late is not None:
        line.append((f"  for {fmt.age(late.for_s)}", "warn"))
        if late.medians is not None:
            line.append((f", {fmt.count(late.medians)} times the usual", "warn"))
    return line
