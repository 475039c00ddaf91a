"""torch's structured trace records as events. The same records come live from the hook and lie in TORCH_TRACE logs.

The kinds and fields read here are those that torch 2.9 to 2.14 write (`torch._logging.trace_structured`); a record of another
kind, or with a field missing, gives no event rather than a wrong one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from tuimon import events as ev
from tuimon.sources import break_texts
from tuimon.sources.carried import LONGEST_ID

Stack = tuple[tuple[str, int, str], ...]

MOST_REASONS = 256
"""Entries in a list of recompile reasons that are kept; torch's own limit over all entries of a frame is 256."""

MOST_NOW = 8
"""Values of the call that failed that are kept."""

_ENTRY = re.compile(r"^(?P<entry>!?[\d/]{0,40}\d{1,9}/\d{1,9}): (?P<guard>.*)$", re.DOTALL)
_LIMIT = re.compile(r"Limit type: (?P<exact>\w{1,60})|\b(?P<named>(?:accumulated_)?(?:recompile|cache_size)_limit)\b")

_CACHES: dict[str, Literal["fx_graph", "aot_autograd"]] = {"fx_graph_cache": "fx_graph", "aotautograd_cache": "aot_autograd"}
_RESULTS: dict[str, Literal["hit", "miss", "bypass"]] = {"hit": "hit", "miss": "miss", "bypass": "bypass"}
_COUNTED = tuple(
    (cache, result, f"{prefix}_local_cache_{result}_count")
    for cache, prefix in (("fx_graph", "inductor_fx"), ("aot_autograd", "aotautograd"))
    for result in ("hit", "miss")
)


def record_events(
    t_ns: int, thread: str, record: Mapping[str, Any], payload: str | None, seen: Mapping[str, Any] | None = None
) -> list[ev.Event]:
    """One record (its metadata and its payload) as the events it stands for, most often one or none.

    `t_ns` is when it was written, on the clock of the other events; `thread` the name of the thread that compiled. `seen` is
    what the hook saw of the compilation while the record was written, and no log has: "code" (number of the frame's code
    object), "owner", "at" ({"code", "offset"} of the instruction that broke), "now" ({expression: value}).
    """
    seen = seen or {}
    compile_id = id_of(record)
    if "phase" in record:
        return _phase(t_ns, thread, record, compile_id)
    if "dynamo_start" in record and compile_id is not None:
        stack = _stack_of(record["dynamo_start"].get("stack") or ())
        file, line, function = stack[-1] if stack else ("", 0, "?")
        attempt = int(record.get("attempt") or 0)
        return [
            ev.CompileStarted(
                t_ns, compile_id, attempt, function, file, line, thread, stack=stack, code=seen.get("code"), owner=_owner(seen)
            )
        ]
    if "artifact" in record:
        return _artifact(t_ns, thread, record, payload, compile_id, seen)
    if "compilation_metrics" in record:
        raised = seen.get("raised")
        return [
            finished(
                t_ns,
                thread,
                record["compilation_metrics"],
                "forward",
                compile_id=compile_id,
                code=seen.get("code"),
                raised=raised if isinstance(raised, bool) else None,
            )
        ]
    if "bwd_compilation_metrics" in record:
        return [finished(t_ns, thread, record["bwd_compilation_metrics"], "backward", compile_id=compile_id)]
    return []


def id_of(record: Mapping[str, Any]) -> str | None:
    """The compile id in a record's metadata, without the attempt; None where there is none, or what stands there is none."""
    frame, entry = record.get("frame_id"), record.get("frame_compile_id")
    if frame is None or entry is None:
        return None
    autograd = record.get("compiled_autograd_id")
    found = f"{frame}/{entry}" if autograd is None else f"!{autograd}/{frame}/{entry}"
    return found if len(found) <= LONGEST_ID else None


def finished(
    t_ns: int,
    thread: str,
    metrics: Mapping[str, Any],
    direction: Literal["forward", "backward"],
    *,
    began_ns: int | None = None,
    before_attach: bool = False,
    compile_id: str | None = None,
    code: int | None = None,
    raised: bool | None = None,
) -> ev.CompileFinished:
    """torch's compilation metrics as an event. `began_ns` is given where `t_ns` is not the end of the compilation,
    `compile_id` for metrics that do not bear it (those of an older torch)."""
    total = _seconds(metrics.get("duration_us"))
    if total is None:
        total = metrics.get("entire_frame_compile_time_s")
    failed = metrics.get("fail_type")
    reason = str(metrics.get("fail_reason") or "")
    refused = failed is not None and _is_limit(str(failed), reason)
    guards, ops = metrics.get("guard_count"), metrics.get("graph_op_count")
    restarts = _reasons(metrics.get("restart_reasons"))
    return ev.CompileFinished(
        t_ns=t_ns,
        compile_id=str(metrics.get("compile_id") or compile_id or "?"),
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
        guard_count=guards,
        ops=ops,
        entries_before=metrics.get("cache_size"),
        failed=None if failed is None or refused else f"{failed}: {_first_line(reason)}".rstrip(": "),
        refused=refused,
        restarts=len(restarts),
        before_attach=before_attach,
        code=code,
        restart_reasons=tuple(_first_line(str(one)) for one in restarts),
        fail_file=metrics.get("fail_user_frame_filename"),
        fail_line=metrics.get("fail_user_frame_lineno"),
        breaks=metrics.get("num_graph_breaks"),
        caches=tuple((cache, result, int(metrics[name])) for cache, result, name in _COUNTED if metrics.get(name)),
        gc_s=_seconds(metrics.get("gc_time_us")),
        autotune_s=_seconds(metrics.get("compile_time_autotune_time_us")),
        limit=_limit(reason) if refused else "",
        raised=None if failed is None else raised,
        # of a frame that it compiles Dynamo counts guards and operations, and be it none
        empty=failed is None and metrics.get("cache_size") is not None and guards is None and ops is None,
    )


def failed_break(t_ns: int, metrics: Mapping[str, Any]) -> ev.GraphBroke | None:
    """The break behind a compilation that failed before the attach, from its metrics: of a frame that is skipped whole Dynamo
    keeps no other record. None where they tell of none."""
    failed, reason = metrics.get("fail_type"), str(metrics.get("fail_reason") or "")
    file, line = metrics.get("fail_user_frame_filename"), metrics.get("fail_user_frame_lineno")
    if failed is None or file is None or line is None or _is_limit(str(failed), reason):
        return None
    if metrics.get("headline"):  # what Dynamo logs before it
        reason = f"Graph Break Reason: {metrics['headline']}\n\n{reason}"
    stack = ((str(file), int(line), ""),)
    compile_id = str(metrics.get("compile_id"))
    return break_texts.graph_broke(t_ns, compile_id, 0, reason, stack, before_attach=True, skipped=True)


def failed_guards(payload: object, compile_id: str) -> tuple[tuple[str, str], ...]:
    """The list (or the single text) of recompile reasons as (entry, guard) pairs, in torch's order: newest entry first."""
    texts = payload if isinstance(payload, list) else [payload]
    pairs = []
    for text in texts[:MOST_REASONS]:
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


def _artifact(
    t_ns: int, thread: str, record: Mapping[str, Any], payload: str | None, compile_id: str | None, seen: Mapping[str, Any]
) -> list[ev.Event]:
    name = str(record["artifact"].get("name"))
    payload = None if payload is None else payload[: break_texts.LONGEST]
    if name == "dynamo_graph_break_reason":
        at = seen.get("at") or {}
        where = (at.get("code"), at.get("offset"))
        attempt = int(record.get("attempt") or 0)
        return [break_texts.graph_broke(t_ns, compile_id, attempt, payload or "", at=where)]
    if name == "recompile_reasons" and payload is not None and compile_id is not None:
        try:
            reasons = json.loads(payload)
        except (ValueError, RecursionError):
            reasons = payload
        now = tuple((str(expression), str(value)) for expression, value in list((seen.get("now") or {}).items())[:MOST_NOW])
        return [ev.GuardsFailed(t_ns, compile_id, failed_guards(reasons, compile_id), now=now, owner=_owner(seen))]
    prefix, _, result = name.rpartition("_")
    if prefix in _CACHES and result in _RESULTS:
        return [ev.CacheLooked(t_ns, compile_id, _CACHES[prefix], _RESULTS[result], thread)]
    return []


def _owner(seen: Mapping[str, Any]) -> str:
    return str(seen.get("owner") or "")


def _reasons(told: Any) -> Sequence[Any]:
    """Reasons for restarts: a record has a list, Dynamo's own list of the past one text of them all, which has no seams."""
    if isinstance(told, str):
        return [] if told in ("", "[]", "set()") else [told.strip("[{'\"")]
    return told or ()


def _first_line(text: str) -> str:
    return next((line.strip() for line in text[:10_000].splitlines() if line.strip()), "")


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
    if "RecompileLimitExceeded" in failed or "FailOnRecompileLimitHit" in failed:
        return True
    return "recompile_limit" in reason or "cache_size_limit" in reason


def _limit(reason: str) -> str:
    """Which limit a refusal's text names."""
    match = _LIMIT.search(reason)
    return "" if match is None else match["exact"] or match["named"]


def _seconds(microseconds: Any) -> float | None:
    return None if microseconds is None else float(microseconds) / 1e6
