"""The report's part about the compiler: frames, recompiles, compilations, the warm-up."""

from __future__ import annotations

from collections import Counter
from typing import Any

from tuimon.model import Model
from tuimon.model.eager import compiled_calls, eager_calls
from tuimon.model.parts import Compilation, Frame
from tuimon.model.phases import PARTS, parts
from tuimon.model.reading import readings
from tuimon.model.warmup import warm
from tuimon.report.gaps import Gaps

CACHES = ("fx_graph", "aot_autograd", "triton")
RESULTS = ("hit", "miss", "bypass")


def frames(model: Model, gaps: Gaps) -> list[dict[str, Any]]:
    """`frames[]`, oldest first."""
    return [_frame(model, frame, gaps) for frame in model.frames.values()]


def _frame(model: Model, frame: Frame, gaps: Gaps) -> dict[str, Any]:
    eager, why_not = eager_calls(model, frame)
    compiled, compiled_why_not = compiled_calls(model, frame)
    calls = None if eager is None or compiled is None else compiled + eager
    if not model.recorded.missing("calls"):  # that is said of all frames together
        if eager is None:
            gaps.add(f"frames[{frame.key}].eager_calls", why_not)
        if compiled is None:
            gaps.add(f"frames[{frame.key}].compiled_calls", compiled_why_not)
        if calls is None:
            gaps.add(f"frames[{frame.key}].calls", why_not or compiled_why_not)
    limit_hit = frame.refused_compile_id is not None
    fell_back = why = None
    if limit_hit:
        fell_back = "limit"
        why = f"{frame.refused_compile_id} was refused: calls that fit none of the {len(frame.entries)} entries run in eager"
    elif frame.skipped:
        fell_back = "skipped"
        why = frame.skipped_why or "a graph break that cannot be resumed: Dynamo leaves the whole function to eager"
    return {
        "key": frame.key,
        "function": frame.function,
        "file": frame.file,
        "line": frame.line,
        "display": frame.display,
        "owners": list(frame.owners),
        "user_file": frame.user_file or frame.file,
        "user_line": frame.user_line or frame.line,
        "entries": len(frame.entries),
        "entry_ids": list(frame.entries),
        "without_graph": list(frame.without_graph),
        "limit": frame.limit,
        "limit_hit": limit_hit,
        "refused_compile_id": frame.refused_compile_id,
        "skipped": frame.skipped,
        "calls": calls,
        "compiled_calls": compiled,
        "eager_calls": eager,
        "eager_share": eager / calls if eager is not None and calls else None,
        "fell_back": fell_back,
        "why": why,
        "before_attach": frame.before_attach,
    }


def _names(model: Model, compilation: Compilation) -> dict[str, str | None]:
    """The code's own name, and the user's name for it where the code is a library's."""
    frame = model.frames.get(compilation.frame) if compilation.frame else None
    if frame is None:
        return {"function": compilation.function, "display": None}
    return {"function": frame.function, "display": frame.display}


def recompiles(model: Model) -> list[dict[str, Any]]:
    """`recompiles[]` in the order in which they happened, the attempt that the limit refused included."""
    found = []
    for recompile, told in zip(model.recompiles, readings(model), strict=True):
        compilation = recompile.compilation
        seconds = parts(compilation)
        seconds.pop("other")
        found.append(
            {
                "frame": compilation.frame,
                **_names(model, compilation),
                "file": compilation.file,
                "line": compilation.line,
                "compile_id": compilation.compile_id,
                "generation": compilation.generation,
                "step": compilation.step,
                "entry": _entry(model, compilation),
                "reason": recompile.reason,
                "failed": [{"entry": entry, "guard": guard} for entry, guard in recompile.failed],
                "kind": told.kind,
                "changed": told.sentence,
                "before": told.before,
                "now": told.now,
                "advice": told.advice,
                "expected": told.expected,
                "compile_s": seconds,
                "cache": dict(compilation.cache),
                "refused": compilation.refused,
                "before_attach": compilation.before_attach,
            }
        )
    return found


def _entry(model: Model, compilation: Compilation) -> int | None:
    """Which entry of its frame the recompile made, counted from 1; None where it made none, or that is not known."""
    frame = model.frames.get(compilation.frame) if compilation.frame else None
    if frame is None or compilation.refused or compilation.compile_id not in frame.entries:
        return None
    return frame.entries.index(compilation.compile_id) + 1


def compiles(model: Model, gaps: Gaps) -> list[dict[str, Any]]:
    """`compiles[]`: every compilation, backward ones and refused attempts included, in the order in which they ended."""
    offset = model.wall_offset_s
    if model.compilations and model.steps.source is None:
        gaps.add("compiles.step", "no step has been seen, so a compilation cannot be placed in one")
    return [
        {
            "compile_id": compilation.compile_id,
            "generation": compilation.generation,
            "direction": compilation.direction,
            **_names(model, compilation),
            "file": compilation.file,
            "line": compilation.line,
            "why": compilation.why,
            "at": None if offset is None else compilation.began_ns / 1e9 + offset,
            "step": compilation.step,
            "thread": "main" if compilation.thread == "MainThread" else compilation.thread,
            "compile_s": parts(compilation),
            "gc_s": compilation.gc_s,
            "autotune_s": compilation.autotune_s,
            "cache": dict(compilation.cache),
            "caches": {cache: dict(results) for cache, results in compilation.caches.items()},
            "restarts": compilation.restarts,
            "restart_reasons": list(compilation.restart_reasons),
            "owner": compilation.owner or None,
            "late": compilation.late,
            "steady_steps_before": compilation.steady_before,
            "failed": compilation.failed,
            "before_attach": compilation.before_attach,
        }
        for compilation in model.compilations
    ]


def warmup(model: Model, gaps: Gaps) -> dict[str, Any]:
    """`warmup`: what all compilations took together, what the artifact caches gave, and how memory grew meanwhile."""
    sums: dict[str, float | None] = dict.fromkeys(("total", *PARTS, "other"))
    counted: dict[str, Counter[str]] = {name: Counter() for name in CACHES}
    unknown = 0
    for compilation in model.compilations:
        for name, value in parts(compilation).items():
            if value is not None:
                sums[name] = (sums[name] or 0.0) + value
        for cache, results in compilation.caches.items():
            counted.setdefault(cache, Counter()).update(results)
        unknown += compilation.before_attach and not compilation.caches
    if not model.compilations:
        gaps.add("warmup.compile_s", "no compilation has been seen")
    gaps.add("warmup.caches.triton", "torch writes no record of Triton's own cache")
    if unknown:
        gaps.add("warmup.caches", f"the record of {unknown} compilations from before the attach tells no cache lookup")
    compiles = not model.recorded.missing("compiles")
    untold = "warmup.caches" in model.coverage.not_available  # a file that tells lookups without their results
    seen = compiles and (len(model.compilations) > unknown or not model.compilations)
    caches: dict[str, Any] = {
        name: {result: counts[result] for result in RESULTS} if counts or (seen and not untold and name != "triton") else None
        for name, counts in counted.items()
    }
    autotune = [compilation.autotune_s for compilation in model.compilations if compilation.autotune_s is not None]
    if not autotune:
        gaps.add("warmup.autotune_s", "no compilation told of timing kernel candidates")
    return {
        "compile_s": sums,
        "caches": caches,
        "autotune_s": sum(autotune) if autotune else None,
        "over": warm(model) if compiles else None,
        "steps": model.warmup.steps if compiles else None,
        "memory": _memory(model, gaps),
    }


def _memory(model: Model, gaps: Gaps) -> dict[str, Any] | None:
    """Resident memory of the job at the first reading, when the warm-up was over, and at the last."""
    warmup_, host = model.warmup, model.surroundings.host
    if warmup_.rss_first is None or host is None:
        gaps.add("warmup.memory", "the memory of the job was never read")
        return None
    if warmup_.rss_over is None:
        gaps.add("warmup.memory.over", "the warm-up was not over: there were not enough steps in a row without a compilation")
    return {"rss_first": warmup_.rss_first, "rss_over": warmup_.rss_over, "rss_last": host.rss_bytes}
