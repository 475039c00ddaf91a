"""torch's structured trace records as events. The same records come live from the hook and lie in TORCH_TRACE logs.

The kinds and fields read here are those that torch 2.9 to 2.14 write (`torch._logging.trace_structured`); a record of another
kind, or with a field missing, gives no event rather than a wrong one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Literal

from tuimon import events as ev

Stack = tuple[tuple[str, int, str], ...]

_PLACE = re.compile(r"^Graph [Bb]reak in user code at (?P<file>.+):(?P<line>\d+)\s*$", re.MULTILINE)
_REASON = re.compile(r"^(?:Graph Break )?Reason: (?P<reason>.*)$", re.MULTILINE)
_GB_ID = re.compile(r"/gb/gb(?P<number>\d+)\.html")
_STACK_LINE = re.compile(r'^\s*File "(?P<file>[^"]+)", line (?P<line>\d+), in (?P<function>.+?)\s*$', re.MULTILINE)
_ENTRY = re.compile(r"^(?P<entry>!?[\d/]*\d+/\d+): (?P<guard>.*)$", re.DOTALL)
_RESUME = re.compile(r"^torch_dynamo_resume_in_(?P<function>.+)_at_\d+$")

_CACHES: dict[str, Literal["fx_graph", "aot_autograd"]] = {"fx_graph_cache": "fx_graph", "aotautograd_cache": "aot_autograd"}
_RESULTS: dict[str, Literal["hit", "miss", "bypass"]] = {"hit": "hit", "miss": "miss", "bypass": "bypass"}

# reasons that the user's own code asked for; everything else is Dynamo's limitation
_REQUESTED = (
    "Skip calling `torch.compiler.disable()`d function",
    "Call to `torch._dynamo.graph_break()`",
    "Skip inlining `torch.compiler.disable()`d function",
)


def record_events(t_ns: int, thread: str, record: Mapping[str, Any], payload: str | None) -> list[ev.Event]:
    """One record (its metadata and its payload) as the events it stands for, most often one or none.

    `t_ns` is when it was written, on the clock of the other events; `thread` the name of the thread that compiled.
    """
    compile_id = id_of(record)
    if "phase" in record:
        return _phase(t_ns, thread, record, compile_id)
    if "dynamo_start" in record and compile_id is not None:
        stack = _stack_of(record["dynamo_start"].get("stack") or ())
        file, line, function = stack[-1] if stack else ("", 0, "?")
        attempt = int(record.get("attempt") or 0)
        return [ev.CompileStarted(t_ns, compile_id, attempt, function, file, line, thread, "forward", stack)]
    if "artifact" in record:
        return _artifact(t_ns, record, payload, compile_id)
    if "compilation_metrics" in record:
        return [finished(t_ns, thread, record["compilation_metrics"], "forward")]
    if "bwd_compilation_metrics" in record:
        return [finished(t_ns, thread, record["bwd_compilation_metrics"], "backward")]
    return []


def id_of(record: Mapping[str, Any]) -> str | None:
    """The compile id in a record's metadata, without the attempt; None where there is none."""
    frame, entry = record.get("frame_id"), record.get("frame_compile_id")
    if frame is None or entry is None:
        return None
    autograd = record.get("compiled_autograd_id")
    return f"{frame}/{entry}" if autograd is None else f"!{autograd}/{frame}/{entry}"


def finished(
    t_ns: int,
    thread: str,
    metrics: Mapping[str, Any],
    direction: Literal["forward", "backward"],
    *,
    began_ns: int | None = None,
    before_attach: bool = False,
) -> ev.CompileFinished:
    """torch's compilation metrics as an event. `began_ns` is given where `t_ns` is not the end of the compilation."""
    total = _seconds(metrics.get("duration_us"))
    if total is None:
        total = metrics.get("entire_frame_compile_time_s")
    failed = metrics.get("fail_type")
    reason = str(metrics.get("fail_reason") or "")
    refused = failed is not None and _is_limit(str(failed), reason)
    return ev.CompileFinished(
        t_ns=t_ns,
        compile_id=str(metrics.get("compile_id")),
        direction=direction,
        function=metrics.get("co_name"),
        file=metrics.get("co_filename"),
        line=metrics.get("co_firstlineno"),
        thread=thread,
        began_ns=t_ns - int((total or 0.0) * 1e9) if began_ns is None else began_ns,
        total_s=total,
        dynamo_s=_seconds(metrics.get("dynamo_cumulative_compile_time_us")),
        aot_s=_seconds(metrics.get("aot_autograd_cumulative_compile_time_us")),
        inductor_s=_seconds(metrics.get("inductor_cumulative_compile_time_us")),
        triton_s=_seconds(metrics.get("triton_compile_time_us")),
        backward_s=_seconds(metrics.get("backward_cumulative_compile_time_us")),
        guard_count=metrics.get("guard_count"),
        ops=metrics.get("graph_op_count"),
        entries_before=metrics.get("cache_size"),
        failed=None if failed is None or refused else f"{failed}: {reason.splitlines()[0] if reason else ''}".rstrip(": "),
        refused=refused,
        restarts=len(metrics.get("restart_reasons") or ()),
        before_attach=before_attach,
    )


def graph_broke(
    t_ns: int, compile_id: str | None, attempt: int, text: str, stack: Stack = (), *, before_attach: bool = False
) -> ev.GraphBroke:
    """Dynamo's text about a graph break as an event. `stack` is given where the text does not contain it."""
    lines = text.splitlines()
    stack = stack or tuple(
        (match["file"], int(match["line"]), match["function"]) for match in _STACK_LINE.finditer(_user_part(text))
    )
    place = _PLACE.search(text)
    file, line, function = stack[-1] if stack else ("", 0, "?")
    if place is not None:
        file, line = place["file"], int(place["line"])
        function = next((name for at, number, name in reversed(stack) if (at, number) == (file, line)), function)
    named = _RESUME.match(function)
    skipped = "results in a skip" in (lines[0] if lines else "") or "torch.compile will skip tracing the frame" in text
    kind = _kind(text, skipped)
    gb_id = _GB_ID.search(text)
    return ev.GraphBroke(
        t_ns=t_ns,
        compile_id=compile_id,
        attempt=attempt,
        reason=kind if not skipped else (lines[0] if lines else kind),
        kind=kind,
        gb_id=f"GB{gb_id['number']}" if gb_id else None,
        function=named["function"] if named else function,
        file=file,
        line=line,
        explanation=_field(text, "Explanation:"),
        hints=tuple(_fields(text, "Hint:")),
        requested=kind.startswith(_REQUESTED),
        skipped_frame=skipped,
        stack=stack,
        before_attach=before_attach,
    )


def failed_guards(payload: object, compile_id: str) -> tuple[tuple[str, str], ...]:
    """The list (or the single text) of recompile reasons as (entry, guard) pairs, in torch's order: newest entry first."""
    texts = payload if isinstance(payload, list) else [payload]
    pairs = []
    for text in texts:
        match = _ENTRY.match(str(text))
        pairs.append((match["entry"], match["guard"].strip()) if match else ("", str(text).strip()))
    return tuple(pairs)


# ------------------------------------------------------------------------------------------------- pieces


def _phase(t_ns: int, thread: str, record: Mapping[str, Any], compile_id: str | None) -> list[ev.Event]:
    if compile_id is None:
        return []
    phase = str(record["phase"])
    found: list[ev.Event] = []
    if record.get("begins"):
        if phase == "entire_backward_compile":
            found.append(ev.CompileStarted(t_ns, compile_id, 0, "", "", 0, thread, "backward"))
        found.append(ev.PhaseBegan(t_ns, compile_id, phase, thread))
    else:
        found.append(ev.PhaseEnded(t_ns, compile_id, phase, thread))
    return found


def _artifact(t_ns: int, record: Mapping[str, Any], payload: str | None, compile_id: str | None) -> list[ev.Event]:
    name = str(record["artifact"].get("name"))
    if name == "dynamo_graph_break_reason" and payload is not None:
        return [graph_broke(t_ns, compile_id, int(record.get("attempt") or 0), payload)]
    if name == "recompile_reasons" and payload is not None and compile_id is not None:
        try:
            reasons = json.loads(payload)
        except ValueError:
            reasons = payload
        return [ev.GuardsFailed(t_ns, compile_id, failed_guards(reasons, compile_id))]
    prefix, _, result = name.rpartition("_")
    if prefix in _CACHES and result in _RESULTS:
        return [ev.CacheLooked(t_ns, compile_id, _CACHES[prefix], _RESULTS[result])]
    return []


def _stack_of(frames: Any) -> Stack:
    stack = []
    for frame in frames:
        if isinstance(frame, Mapping):
            file, line, name = frame.get("filename"), frame.get("line"), frame.get("name")
        else:
            file, line, name = frame
        stack.append((str(file), int(line or 0), str(name)))
    return tuple(stack)


def _is_limit(failed: str, reason: str) -> bool:
    return "RecompileLimitExceeded" in failed or "recompile_limit" in reason or "cache_size_limit" in reason


def _seconds(microseconds: Any) -> float | None:
    return None if microseconds is None else float(microseconds) / 1e6


def _user_part(text: str) -> str:
    """The user's traceback: what lies between its heading and the traceback of Dynamo's own exception."""
    for heading in ("User code traceback:", "The graph break occurred in the following user code:"):
        _, found, rest = text.partition(heading)
        if found:
            return rest.split("Traceback (most recent call last)", 1)[0]
    return text.split("Traceback (most recent call last)", 1)[0]


def _kind(text: str, skipped: bool) -> str:
    """Dynamo's graph-break type: the line before "Explanation:"; where there is none, the reason in the first lines."""
    lines = [line.strip() for line in text.splitlines()]
    for number, line in enumerate(lines):
        if line.startswith("Explanation:"):
            for before in reversed(lines[:number]):
                if before:
                    return _REASON.sub(r"\g<reason>", before)
    found = _REASON.search(text)
    if found:
        return found["reason"].strip()
    if skipped:
        return "the frame cannot be resumed and is skipped"
    return next((line for line in lines if line), "unknown")


def _field(text: str, name: str) -> str:
    return next(iter(_fields(text, name)), "")


def _fields(text: str, name: str) -> list[str]:
    """The texts behind `name`, each with its continuation lines, up to the next field or an empty line."""
    found: list[str] = []
    taking = False
    for raw in text.splitlines():
        line = raw.strip()
        if line.startswith(name):
            found.append(line[len(name) :].strip())
            taking = True
        elif not line or line.startswith(("Explanation:", "Hint:", "Developer debug context:")):
            taking = False
        elif taking:
            found[-1] += " " + line
    return found
