"""What took long within a step: where it was read, where in the job it is, and what more is known of it."""

from __future__ import annotations

from tuimon.model import Model
from tuimon.model.about import About
from tuimon.model.steps.parts import LongRow

READ_FROM = {
    "data": "the loader's next(), timed",
    "gc": "gc.callbacks",
    "communication": "the process group's calls, timed",
    "profiler": "the profiler's calls, timed",
    "engine": "the autograd engine, timed",
    "optimizer": "the optimizer's step(), timed",
    "compile": "torch's compilation metrics",
    "boundary": "between two timed regions",
    "look": "looks at the thread's stack, at most every 20 ms",
    "forward": "the compiled call, timed",
    "backward": "the compiled call, timed",
}
"""Role of a row -> where its time was read."""


def site(model: Model, row: LongRow) -> tuple[str, int] | None:
    """Where a long call was made from; for a boundary, its line in the user's program."""
    if row.site is not None:
        code = model.code(row.site.code)
        if code is not None:
            return code.file, row.site.line
        if row.site.stack:
            return row.site.stack[-1][0], row.site.stack[-1][1]
    boundary = model.boundaries.get(row.boundary or "")
    if boundary is not None:
        return boundary.user_file or boundary.file, boundary.user_line or boundary.line
    if row.role in ("compile", "forward", "backward") and row.file and row.line:
        return row.file, row.line
    return None


def leads_to(model: Model, row: LongRow) -> About | None:
    """The boundary, the compilation or the region that it is; None where it is none of these, or no longer known."""
    if row.boundary is not None and row.boundary in model.boundaries:
        return About("boundary", row.boundary)
    if row.role == "compile":
        made = next((one for one in reversed(model.compilations) if one.compile_id == row.compile_id), None)
        return About("compilation", made.key) if made is not None else None
    if row.role in ("forward", "backward"):
        named = [one for one in model.regions.values() if (one.compile_id, one.direction) == (row.compile_id, row.role)]
        return About("region", named[-1].key) if named else None
    return None
