"""How many calls of a frame ran compiled and how many in eager; and why that cannot be said, where it cannot."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tuimon.model.parts import Frame

if TYPE_CHECKING:
    from tuimon.model.model import Model


def eager_calls(model: Model, frame: Frame) -> tuple[int | None, str]:
    """Calls since the attach that ran in eager, and, where they are not known, why.

    A frame that is neither at its limit nor skipped runs no call in eager, unless the job has told Dynamo to stand aside: a
    call that fits no entry is compiled.
    """
    missing = model.recorded.missing("calls")
    if missing:
        return None, missing
    gaps = model.coverage.not_available
    lost = frame.eager_why_not or (gaps.get("frames.limited_eager_calls", "") if frame.refused_compile_id is not None else "")
    if lost:
        return None, lost
    if frame.eager_calls is not None:
        return frame.eager_calls, ""
    if frame.refused_compile_id is not None or frame.skipped:
        return None, gaps.get("frames.eager_calls") or "calls in eager could not be watched in this frame"
    for name, value in model.target.options:
        if name in ("stance", "dynamo", "guards"):
            return None, f"{name}: {value}: calls may run in eager without a word of Dynamo's"
    return 0, ""


def compiled_calls(model: Model, frame: Frame) -> tuple[int | None, str]:
    """Calls since the attach that ran a graph of the frame, and, where they are not known, why."""
    missing = model.recorded.missing("calls")
    if missing:
        return None, missing
    if frame.without_graph:
        return None, f"{len(frame.without_graph)} of {len(frame.entries)} entries hold no graph, and their calls pass no timer"
    return frame.compiled_calls, ""
