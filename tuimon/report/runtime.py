"""The report's part about what runs: regions and boundaries."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tuimon.model import Model
from tuimon.model.findings import per_step, share_of_step
from tuimon.model.hosts import reads_host
from tuimon.model.parts import Boundary, Region
from tuimon.model.statistics import Durations
from tuimon.report.gaps import Gaps

SYNC_NOT_LOOKED_AT = "not looked at"
SYNC_SEEN = "seen"
SYNC_NONE_SEEN = "none seen"


def population(durations: Durations) -> dict[str, Any]:
    """A population of durations as {n, median, p10, p90, total}, in seconds; medians are None while it is empty."""
    summary = durations.summary
    return {"n": summary.n, "median": summary.median, "p10": summary.p10, "p90": summary.p90, "total": summary.total}


def untold() -> dict[str, Any]:
    """A population of which nothing is known, not even how many."""
    return dict.fromkeys(("n", "median", "p10", "p90", "total"))


Edge = tuple[dict[str, Any] | None, dict[str, Any] | None]
"""What one call of a region computes, and what it reads and writes."""


def regions(model: Model, gaps: Gaps, edges: Mapping[str, Edge]) -> list[dict[str, Any]]:
    """`regions[]`, most total time first. `edges`: flop and bytes of a call by the region's key."""
    if model.regions:
        if not any(region.device.n for region in model.regions.values()):
            gaps.add("regions.device", _why_no_device_time(model))
        if any(region.ops is None for region in model.regions.values()):
            gaps.add("regions.ops", "the number of operations in a graph was not told for every region")
    ordered = sorted(model.regions.values(), key=lambda region: -region.total_ns)
    return [_region(region, model, *edges.get(region.key, (None, None))) for region in ordered]


def _region(region: Region, model: Model, flop: dict[str, Any] | None, moved: dict[str, Any] | None) -> dict[str, Any]:
    known = not model.recorded.missing("calls")
    told = population if known else lambda _: untold()
    return {
        "compile_id": region.compile_id,
        "generation": region.generation,
        "direction": region.direction,
        "frame": region.frame,
        "function": region.function,
        "display": _display(model, region.frame),
        "file": region.file,
        "line": region.line,
        "backend": region.backend,
        "ops": region.ops,
        "calls": region.calls if known else None,
        "initial": untold() if model.recorded.missing("compiles") else told(region.initial),
        "steady": told(region.steady),
        "after_guard_change": told(region.after_guard_change),
        "share_of_step": region.share.ns / model.steps.steady_ns if model.steps.steady_ns else None,
        "device": population(region.device) if region.device.n else None,
        "flop": flop,
        "bytes": moved,
        "before_attach": region.before_attach,
    }


def _display(model: Model, frame: str | None) -> str | None:
    found = model.frames.get(frame) if frame else None
    return None if found is None else found.display


def _why_no_device_time(model: Model) -> str:
    if set(model.target.devices) <= {"cpu"}:
        return "on the CPU the host's time is the time to completion: a second clock would say the same"
    return "no call was timed on the device"


def boundaries(model: Model, gaps: Gaps) -> list[dict[str, Any]]:
    """`boundaries[]`, most costly first: by host time within steady steps, then by host time at all."""
    if model.boundaries:
        gaps.add("boundaries.device_gap", "boundaries are timed on the host alone")
        if all(boundary.sync_looked == 0 for boundary in model.boundaries.values()):
            gaps.add("boundaries.sync", _why_no_sync(model))
    ordered = sorted(model.boundaries.values(), key=lambda b: (-b.share.ns, -b.host.total_ns, -(b.crossings or 0)))
    for boundary in ordered if not model.recorded.missing("crossings") else ():  # that is said of all together
        if boundary.crossings is None:
            gaps.add(f"boundaries[{boundary.key}].crossings", _why_not_counted(model, boundary))
        elif boundary.skipped_frame:
            gaps.add(
                f"boundaries[{boundary.key}].host", "the whole function runs in eager: the stretch has no begin and no end"
            )
        elif boundary.share.untimed * 100 > boundary.share.count:
            why = "no graph runs before the break, so it is not known when the stretch begins"
            gaps.add(f"boundaries[{boundary.key}].host", f"{boundary.host.n} of {boundary.crossings} crossings timed: {why}")
    return [_boundary(boundary, model) for boundary in ordered]


def _why_no_sync(model: Model) -> str:
    if set(model.target.devices) <= {"cpu"}:
        return "the CPU has no queue to wait for: see reads_host for what would wait on a device"
    return "no crossing was looked at while the device had work"


def sync(boundary: Boundary) -> str:
    if boundary.sync_looked == 0:
        return SYNC_NOT_LOOKED_AT
    return SYNC_SEEN if boundary.sync_waited else SYNC_NONE_SEEN


def _boundary(boundary: Boundary, model: Model) -> dict[str, Any]:
    crossed = not model.recorded.missing("crossings")
    return {
        "key": boundary.key,
        "frame": boundary.frame,
        "frames": list(boundary.frames) or ([boundary.frame] if boundary.frame else []),
        "function": boundary.function,
        "file": boundary.file,
        "line": boundary.line,
        "user_file": boundary.user_file,
        "user_line": boundary.user_line,
        "reason": reason(boundary),
        "kind": boundary.kind,
        "headline": boundary.headline or None,
        "also": boundary.also or None,
        "reads_host": reads_host(boundary.kind, boundary.explanation),
        "by": boundary.asked_by,
        "gb_id": boundary.gb_id,
        "explanation": boundary.explanation,
        "hints": list(boundary.hints),
        "requested": boundary.requested,
        "skipped_frame": boundary.skipped_frame,
        "breaks": boundary.breaks,
        "crossings": boundary.crossings if crossed else None,
        "counted": boundary.counted or None,
        "per_step": per_step(model, boundary),
        "host": population(boundary.host) if crossed else untold(),
        "device_gap": None,
        "share_of_step": None if boundary.crossings is None else share_of_step(model, boundary),
        "sync": sync(boundary),
        "sync_looked": boundary.sync_looked,
        "sync_waited": boundary.sync_waited,
        "accepted": boundary.accepted,
        "before_attach": boundary.before_attach,
    }


def reason(boundary: Boundary) -> str:
    """Dynamo's words: of a frame that is skipped whole also the sentence in which it says so."""
    if boundary.skipped_frame and boundary.headline and boundary.headline not in boundary.reason:
        return f"{boundary.headline} {boundary.reason}"
    return boundary.reason


def _why_not_counted(model: Model, boundary: Boundary) -> str:
    if boundary.skipped_frame:
        return model.coverage.not_available.get("boundaries.crossings") or (
            "the function could not be resumed and runs in eager as a whole: there is no code behind the break to count"
        )
    if boundary.before_attach:
        return "the break is from before the attach and the code behind it was not found"
    return (
        "nothing was seen to run behind the break: the code there was not called, or there is none left, and no graph runs "
        "before the break either"
    )
