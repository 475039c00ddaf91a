"""What runs in eager without a word: frames skipped whole, frames past their limit, jobs of which nothing is compiled."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from tuimon.model.about import About
from tuimon.model.compiler import RAISED
from tuimon.model.eager import compiled_calls, eager_calls
from tuimon.model.findings.finding import Finding, many, place, shown, where
from tuimon.model.identity import is_library
from tuimon.model.parts import Boundary, Frame
from tuimon.model.reading import reading_of

if TYPE_CHECKING:
    from tuimon.model.model import Model

ENOUGH_STEPS = 2
"""After so many steps without a region, nothing is going to be compiled."""
QUIET_S = 10.0
"""So long after the last compilation nothing more is expected of a job whose steps are not seen."""
MOST_EVIDENCE = 6
UNTOLD_ADVICE = (
    "under fullgraph=True the job got this as an error, which names the line; else it runs in eager: compile it with "
    "fullgraph=True to see the line"
)
"""For a frame that a log says was given up, without saying for whom."""


def find(model: Model) -> list[Finding]:
    """Frames past their limit; and either that nothing was compiled at all, or each frame that is skipped whole."""
    limits = [_limit(model, frame) for frame in model.frames.values() if frame.refused_compile_id is not None]
    nothing = _compiled_nothing(model)
    if nothing is not None:
        return [nothing, *_raised(model), *limits]
    broken = _broken(model)
    skipped = [frame for frame in model.frames.values() if _counts(model, frame, broken.get(frame.key, []))]
    return [*_raised(model), *(_skipped(model, frame, broken.get(frame.key, [])) for frame in skipped), *limits]


def _raised(model: Model) -> list[Finding]:
    """Of a log: compilations that failed with an error which the job got; whether it went on, no log tells."""
    if not model.recorded.missing("calls") or any(name == "suppress_errors" for name, _ in model.target.options):
        return []
    failed = [one for one in model.compilations if one.failed is not None and not one.refused]
    return [
        Finding(
            kind="failed compilation",
            title=f"{shown(one.function)} was not compiled, and the job got the error: {one.failed}",
            where=f"{one.file}:{one.line}" if one.file else "",
            cost_s=None,
            evidence=(f"[{one.compile_id}] {one.direction}: {one.failed}", "whether the job went on is not in this file"),
            next_step="TORCHDYNAMO_VERBOSE=1 shows the whole traceback; backend='eager' tells whether the backend is at fault",
            about=About("compilation", one.key),
        )
        for one in failed
        if (one.failed or "").startswith(RAISED)
    ][:MOST_EVIDENCE]


# ------------------------------------------------------------------------------------------------- skipped frames


def _broken(model: Model) -> dict[str, list[Boundary]]:
    """Frame key -> where that frame is broken without being resumed."""
    found: dict[str, list[Boundary]] = {}
    for boundary in model.boundaries.values():
        if boundary.skipped_frame:
            for key in boundary.frames or ([boundary.frame] if boundary.frame else []):
                found.setdefault(key, []).append(boundary)
    return found


def _wanted(boundary: Boundary) -> bool:
    """Whether somebody wants the frame to run in eager: who asks for a break in a loop has asked for the break alone."""
    return boundary.accepted is not None or (boundary.requested and "skip_frame" in boundary.kind)


def _counts(model: Model, frame: Frame, broken: list[Boundary]) -> bool:
    """Whether it is a silent one: skipped, called, and nobody asked for it or accepted it."""
    if not frame.skipped or frame.refused_compile_id is not None:
        return False
    if frame.entries and not eager_calls(model, frame)[0]:
        return False  # its entries serve, as far as is known
    if eager_calls(model, frame)[0] == 0 and frame.before_attach:
        return False  # it was skipped once, and has not been called since
    if is_library(frame.file) and not frame.owners and not frame.user_file:
        return False  # a library's own affair: what the user compiles below it is looked at by itself
    return not (broken and all(_wanted(one) for one in broken))


def _skipped(model: Model, frame: Frame, broken: list[Boundary]) -> Finding:
    name = shown(frame.name)
    first = broken[0] if broken else None
    why = (first.kind if first else frame.skipped_why) or "Dynamo gave it up"
    at = f" at {place(first.user_file or first.file, first.user_line or first.line)}" if first else ""
    calls, why_not = eager_calls(model, frame)
    ran = "every call" if calls is None else ("its one call" if calls == 1 else f"all {calls:,} calls")
    title = f"{name} runs in eager whole, {ran}: {why}{at}"
    if frame.entries:  # it was compiled for some calls before it was given up
        compiled, _ = compiled_calls(model, frame)
        of = "" if compiled is None or calls is None else f" of {compiled + calls:,}"
        title = f"{calls:,}{of} calls of {name} ran in eager, since Dynamo gave it up: {why}{at}"
    untold = first is None and model.recorded.missing("calls") != ""
    if untold:  # under fullgraph=True nothing ran at all: no log tells which it was
        title = f"{name} was not compiled: {why}"
    return Finding(
        kind="skipped frame",
        title=title,
        where=_place_of(first) if first else where(frame),
        cost_s=None,
        evidence=tuple(_skip_evidence(frame, broken, calls, why_not)),
        next_step=UNTOLD_ADVICE if untold else _skip_advice(first),
        calls=calls,
        about=About("boundary", first.key) if first else About("frame", frame.key),
    )


def _place_of(boundary: Boundary) -> str:
    return f"{boundary.user_file or boundary.file}:{boundary.user_line or boundary.line}"


def _skip_evidence(frame: Frame, broken: list[Boundary], calls: int | None, why_not: str) -> list[str]:
    evidence = [f"{shown(frame.name)} at {frame.file}:{frame.line}: {frame.skipped_why or 'skipped by Dynamo'}"]
    if calls is None:
        evidence.append(f"calls are not counted: {why_not}")
    else:
        which = "in eager, once it was given up" if frame.entries else "all in eager"
        evidence.append(f"{many(calls, 'call')}{' since the attach' if frame.before_attach else ''}, {which}")
    for boundary in broken[: MOST_EVIDENCE - 2]:
        crossed = "crossings not counted" if boundary.crossings is None else many(boundary.crossings, "crossing")
        also = f", then {boundary.also}" if boundary.also else ""
        evidence.append(f"{_place_of(boundary)}: {boundary.kind or boundary.reason}{also}; {crossed}")
    return evidence


def _skip_advice(boundary: Boundary | None) -> str:
    if boundary is None:
        return "compile the function with fullgraph=True: the error names the line"
    if "loop" in boundary.also.lower() or "loop" in boundary.reason.lower():
        return "move the line out of the loop, or the loop's body into a function: Dynamo cannot resume within a loop"
    if "context manager" in boundary.kind.lower():
        return "enter the context manager outside the compiled function"
    if boundary.hints:
        return boundary.hints[0]
    return "take that line out of the compiled function, or put it into a function of its own under torch.compiler.disable"


# ------------------------------------------------------------------------------------------------- nothing compiled


def _compiled_nothing(model: Model) -> Finding | None:
    steps, target = model.steps, model.target
    if model.regions or model.running or "regions" in model.coverage.not_available:
        return None
    if steps.n < ENOUGH_STEPS and target.ended is None and not _has_run(model):
        return None
    looked = [frame for frame in model.frames.values() if frame.skipped or frame.without_graph or frame.refused_compile_id]
    with_graph = any(set(frame.entries) - set(frame.without_graph) for frame in model.frames.values())
    if with_graph or not (looked or model.boundaries):
        return None
    broken = [one for one in model.boundaries.values() if not (_wanted(one) if one.skipped_frame else one.requested)]
    if model.boundaries and not broken:
        return None
    evidence = [
        f"{many(len(model.frames), 'frame')} looked at, {many(len(model.boundaries), 'graph break')}, no graph",
        *(text for frame in looked for text in _frame_evidence(model, frame)),
        *(f"{_place_of(boundary)}: {boundary.kind or boundary.reason}" for boundary in broken),
    ]
    own = next((frame for frame in looked if not is_library(frame.file)), looked[0] if looked else None)
    first = next((boundary for boundary in broken if not is_library(boundary.file)), broken[0] if broken else None)
    why = (
        f": {first.kind or first.reason} at {place(first.user_file or first.file, first.user_line or first.line)}"
        if first
        else ""
    )
    counted = [calls for calls, _ in (eager_calls(model, frame) for frame in looked) if calls is not None]
    return Finding(
        kind="compiled nothing",
        title=f"nothing is compiled, the whole job runs in eager{why}",
        where=_place_of(first) if first else (where(own) if own else ""),
        cost_s=None,
        evidence=tuple(dict.fromkeys(evidence))[:MOST_EVIDENCE],
        next_step=_nothing_advice(model, first),
        calls=max(counted) if counted else None,
        about=About("boundary", first.key) if first else About("frame", own.key if own else ""),
    )


def _has_run(model: Model) -> bool:
    """Whether a job without steps has had its time to compile: nothing did for a while."""
    last = max((one.ended_ns for one in model.compilations), default=None)
    return last is not None and model.now_ns - last > QUIET_S * 1e9


def _frame_evidence(model: Model, frame: Frame) -> list[str]:
    name = f"{shown(frame.name)} at {frame.file}:{frame.line}"
    if frame.skipped:
        calls, _ = eager_calls(model, frame)
        return [f"{name}: skipped, {'calls not counted' if calls is None else many(calls, 'call')} in eager"]
    if frame.without_graph:
        empty, entries = len(frame.without_graph), len(frame.entries)
        which = f"{empty} of its {entries} entries hold" if empty < entries else f"none of its {entries} entries holds"
        return [f"{name}: {'its one entry holds' if entries == 1 else which} {'a' if empty == entries > 1 else 'no'} graph"]
    return []


def _nothing_advice(model: Model, first: Boundary | None) -> str:
    files = {boundary.file for boundary in model.boundaries.values()} | {frame.file for frame in model.frames.values()}
    if any(f"{os.sep}parallel{os.sep}distributed.py" in file for file in files):
        return "compile the module before it is wrapped, DDP(torch.compile(module)): a library's module is not compiled alone"
    if first is not None:
        return _skip_advice(first)
    return "compile the function with fullgraph=True: the error names the line"


# ------------------------------------------------------------------------------------------------- the limit


def _limit(model: Model, frame: Frame) -> Finding:
    name, entries = shown(frame.name), len(frame.entries)
    serving = f"its {entries} entries go on serving the others" if entries else "it has no entry"
    eager, why_not = eager_calls(model, frame)
    compiled, _ = compiled_calls(model, frame)
    limit = f"limit of {frame.limit} entries" if frame.limit is not None else "recompile limit"
    if eager is None:
        title = f"{name} is at its {limit}: calls that fit none of them run in eager"
    elif compiled is None:
        title = f"{many(eager, 'call')} of {name} ran in eager, past its {limit}; {serving}"
    else:
        title = f"{eager:,} of {many(compiled + eager, 'call')} of {name} ran in eager, past its {limit}; {serving}"
    mine = [one for one in model.recompiles if one.compilation.frame == frame.key]
    happened = [one for one in mine if not one.compilation.refused]
    times = [one.compilation.total_s for one in happened if one.compilation.total_s is not None]
    refused = next((one for one in reversed(mine) if one.compilation.refused), mine[-1] if mine else None)
    last = reading_of(model, refused) if refused is not None else None
    evidence = [f"[{frame.refused_compile_id}] was refused ({frame.refused_limit or 'recompile_limit'})"]
    if last is not None:
        evidence.append(f"what kept changing: {last.sentence}{f' ({last.why})' if last.why else ''}")
    if times:
        evidence.append(f"{many(len(happened), 'recompile')} before that took {sum(times):.2f} s")
    if eager is None:
        evidence.append(f"calls in eager are not counted: {why_not}")
    if frame.before_attach and eager is not None:
        evidence.append("calls are counted since the attach")
    evidence.append("what it calls is not compiled anew either while it runs in eager")
    advice = last.advice if last is not None and last.advice else "see its recompiles for the guard that keeps failing"
    return Finding("limit", title, where(frame), None, tuple(evidence), advice, eager, About("frame", frame.key))
