"""The report's part about the compiler: frames, recompiles, compilations, the warm-up."""

from __future__ import annotations

from collections import Counter
from typing import Any

from tuimon.model import Model
from tuimon.model.parts import Compilation, Frame
from tuimon.model.phases import PARTS, parts
from tuimon.report.gaps import Gaps

CACHES = ("fx_graph", "aot_autograd", "triton")
RESULTS = ("hit", "miss", "bypass")


def frames(model: Model, gaps: Gaps) -> list[dict[str, Any]]:
    """`frames[]`, oldest first."""
    skipped = {b.frame: b for b in model.boundaries.values() if b.skipped_frame and b.frame is not None}
    if model.frames:
        gaps.add("frames.eager_calls", "calls that found no cache entry and ran in eager are not counted in this version")
        gaps.add("frames.calls", "calls in eager are not counted, so only compiled_calls is known")
    return [_frame(frame, skipped.get(frame.key) is not None) for frame in model.frames.values()]


def _frame(frame: Frame, is_skipped: bool) -> dict[str, Any]:
    limit_hit = frame.refused_compile_id is not None
    fell_back = why = None
    if limit_hit:
        fell_back = "limit"
        why = f"{frame.refused_compile_id} was refused: inputs that fit none of the {len(frame.entries)} entries run in eager"
    elif is_skipped:
        fell_back = "skipped"
        why = "a graph break that cannot be resumed: Dynamo leaves the whole function to eager"
    return {
        "key": frame.key,
        "function": frame.function,
        "file": frame.file,
        "line": frame.line,
        "display": frame.display,
        "entries": len(frame.entries),
        "entry_ids": list(frame.entries),
        "limit": frame.limit,
        "limit_hit": limit_hit,
        "refused_compile_id": frame.refused_compile_id,
        "calls": None,
        "compiled_calls": frame.compiled_calls,
        "eager_calls": None,
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
    for recompile in model.recompiles:
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
                "reason": recompile.reason,
                "failed": [{"entry": entry, "guard": guard} for entry, guard in recompile.failed],
                "compile_s": seconds,
                "cache": dict(compilation.cache),
                "refused": compilation.refused,
                "before_attach": compilation.before_attach,
            }
        )
    return found


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
            "cache": dict(compilation.cache),
            "failed": compilation.failed,
            "before_attach": compilation.before_attach,
        }
        for compilation in model.compilations
    ]


def warmup(model: Model, gaps: Gaps) -> dict[str, Any]:
    """`warmup`: what all compilations took together, and what the artifact caches gave."""
    sums: dict[str, float | None] = dict.fromkeys(("total", *PARTS, "other"))
    for compilation in model.compilations:
        for name, value in parts(compilation).items():
            if value is not None:
                sums[name] = (sums[name] or 0.0) + value
    counted: dict[str, Counter[str]] = {name: Counter() for name in CACHES}
    for compilation in model.compilations:
        for cache, result in compilation.cache.items():
            counted.setdefault(cache, Counter())[result] += 1
    if not model.compilations:
        gaps.add("warmup.compile_s", "no compilation has been seen")
    gaps.add("warmup.caches.triton", "torch writes no record of Triton's own cache")
    gaps.add("warmup.memory", "growth of the memory pools is not followed in this version")
    seen = any(not compilation.before_attach for compilation in model.compilations) or not model.compilations
    if any(compilation.before_attach for compilation in model.compilations):
        gaps.add("warmup.caches", "Dynamo keeps no record of the lookups of compilations from before the attach")
    caches: dict[str, Any] = {
        name: {result: counts[result] for result in RESULTS} if counts or (seen and name != "triton") else None
        for name, counts in counted.items()
    }
    return {"compile_s": sums, "caches": caches, "memory": None}
