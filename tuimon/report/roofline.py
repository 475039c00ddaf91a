"""The report's roofline: what was computed per byte and per second, under which ceilings, and how far that can be trusted."""

from __future__ import annotations

from typing import Any

from tuimon.draw.format import percent, si, three
from tuimon.draw.text import clean
from tuimon.model import Model
from tuimon.model.parts import Region
from tuimon.report.gaps import Gaps
from tuimon.roofline.ceilings import Ceiling
from tuimon.roofline.inforce import Known
from tuimon.roofline.live import edge_of, roofline
from tuimon.roofline.points import NOTHING_KNOWN, RULE, Point, Roofline

Facts = dict[str, Any]

_OPPOSITE = {"upper": "lower", "lower": "upper"}
"""Bytes that are at least so many make an intensity of at most so much."""


def seen(model: Model, known: Known | None, *, here: bool = True) -> Roofline:
    """The roofline over all that ran since the attach."""
    return roofline(model, known, window_s=None, here=here)


def part(found: Roofline, model: Model, chosen: Ceiling | None, gaps: Gaps) -> Facts:
    """`roofline`: the ceilings, the rule and the points. `chosen`: the ceiling that a person asked for, if any."""
    ceiling = chosen or _own_ceiling(found)
    if ceiling is None:
        gaps.add("roofline.ceiling", _why_no_ceiling(found))
    if not found.points:
        gaps.add("roofline.points", NOTHING_KNOWN)
    if found.flop_known_for is None:
        gaps.add("roofline.flop_known_for", "no compiled graph was called again after its first call, and no window was opened")
    for point in found.points:
        if point.why_not and point.kind != "kernel":
            gaps.add(f"roofline.points[{point.key}]", point.why_not)
    kernels = [point for point in found.points if point.kind == "kernel" and point.intensity is None]
    if kernels:
        gaps.add("roofline.points.kernels", f"{len(kernels)} have no place on the roofline: each has its reason in why_not")
    if any(point.of_roof is None and point.intensity is not None for point in found.points):
        gaps.add("roofline.points.of_roof", "where the bytes may be wrong either way, or no ceiling is known, no share is told")
    return {
        "ceiling": None if ceiling is None else _ceiling(ceiling),
        "ceilings": [_ceiling(one) for one in _belonging(found)],
        "now": None if found.now_roof is None else {**_ceiling(found.now_roof), "why": found.now_why},
        "rule": RULE,
        "points": [_point(point) for point in found.points],
        "process": None if found.process is None else _point(found.process),
        "flop_known_for": found.flop_known_for,
        "unknown": [{"operator": name, "share": share} for name, share in found.unknown],
        "notes": list(found.notes),
        "windows": [
            {
                "state": window.state,
                "why": window.why,
                "steps": window.steps,
                "job_s": window.job_s,
                "slower": window.slower,
            }
            for window in model.windows
        ],
    }


def per_region(found: Roofline, model: Model, gaps: Gaps) -> dict[str, tuple[Facts | None, Facts | None]]:
    """`regions[].flop` and `.bytes`, of one call, by the region's key."""
    points = {point.key: point for point in found.points}
    told = {key: _of_region(region, points.get(f"region {key}")) for key, region in model.regions.items()}
    for at, name in enumerate(("flop", "bytes")):
        lacking = [key for key, one in told.items() if one[at] is None]
        if lacking and model.recorded.missing("graphs"):
            gaps.add(f"regions.{name}", model.recorded.missing("graphs"))
        elif lacking and len(lacking) == len(told):
            gaps.add(f"regions.{name}", _why_no_graph(model, points))
        else:
            for key in lacking:
                point = points.get(f"region {key}")
                gaps.add(f"regions[{key}].{name}", point.why_not if point and point.why_not else edge_of(model.regions[key])[2])
    return told


def _why_no_graph(model: Model, points: dict[str, Point]) -> str:
    """Of regions none of which has operations: the reason that most of them have."""
    whys = []
    for key, region in model.regions.items():
        point = points.get(f"region {key}")
        whys.append(point.why_not if point and point.why_not else edge_of(region)[2])
    return max(whys, key=whys.count) if whys else NOTHING_KNOWN


def _of_region(region: Region, point: Point | None) -> tuple[Facts | None, Facts | None]:
    flop: float | None
    flop, moved, _ = edge_of(region)
    how, bound, boundary = "compulsory", "lower", None
    if point is not None and point.calls and point.operations is not None:
        flop = point.operations / point.calls
    if point is not None and point.calls and point.bytes is not None:
        moved = point.bytes / point.calls
        how, bound, boundary = point.bytes_how, _OPPOSITE.get(point.bound, point.bound), point.boundary or None
    return (
        None if flop is None else {"value": flop, "how": "formula", "bound": "exact", "boundary": None},
        None if moved is None else {"value": moved, "how": how, "bound": bound, "boundary": boundary},
    )


def _belonging(found: Roofline) -> list[Ceiling]:
    """The ceilings of this job's machine, or that a person declared: those of other machines are no part of a report."""
    names = {point.ceiling for point in (*found.points, *((found.process,) if found.process else ())) if point.ceiling}
    return list(found.ceilings) if names else []


def _own_ceiling(found: Roofline) -> Ceiling | None:
    belonging = _belonging(found)
    return belonging[found.selected] if 0 <= found.selected < len(belonging) else None


def _why_no_ceiling(found: Roofline) -> str:
    return next(iter(found.notes), "no ceiling was chosen, and none of this machine has been measured")


def _ceiling(ceiling: Ceiling) -> Facts:
    return {
        "name": ceiling.name,
        "peak": ceiling.peak_flops,
        "bandwidth": ceiling.bandwidth_bytes_s,
        "boundary": ceiling.boundary,
        "how": ceiling.how,
    }


def _point(point: Point) -> Facts:
    return {
        "name": point.name,
        "kind": point.kind,
        "intensity": point.intensity,
        "rate": point.rate,
        "time_share": point.time_share,
        "how": point.how,
        "bound": point.bound,
        "of_roof": point.of_roof,
        "of_peak": point.of_peak,
        "key": point.key,
        "operations": point.operations,
        "operations_how": point.operations_how,
        "bytes": point.bytes,
        "bytes_how": point.bytes_how,
        "boundary": point.boundary or None,
        "ceiling": point.ceiling or None,
        "seconds": point.seconds,
        "calls": point.calls,
        "slowest": point.slowest,
        "fastest": point.fastest,
        "over": list(point.over),
        "why_not": point.why_not or None,
    }


# ------------------------------------------------------------------------------------------------- words

TITLES = ("share", "FLOP/B", "FLOP/s", "of peak", "of roof", "bytes", "what")
MOST_POINTS = 20


def cells(point: Facts) -> list[str]:
    """What stands under TITLES for a point."""
    sign = {"upper": "<=", "lower": ">=", "unknown": "?"}.get(point["bound"], "")
    at_least = "<=" if point["operations_how"] == "pipe use" else ">=" if point["bound"] == "upper" else ""
    over = " OVER" if point["over"] else ""
    how = {"compulsory": "least", "inductor model": "model", "operands": "operands", "measured": "measured"}[point["bytes_how"]]
    boundary = f"{how} {point['boundary'] or ''}".rstrip()
    return [
        percent(point["time_share"]),
        "-" if point["intensity"] is None else f"{sign}{_number(point['intensity'])}",
        si(point["rate"], "").replace(" ", "") if point["rate"] else "-",
        percent(point["of_peak"]),
        "-" if point["of_roof"] is None else f"{at_least}{percent(point['of_roof'])}",
        boundary if point["bytes"] is not None or point["bytes_how"] == "measured" else "-",
        clean(point["name"]) + over,
    ]


def _number(value: float) -> str:
    return three(value) if 0.005 <= value < 999.5 else f"{value:.3g}"


def lines_before(found: Facts) -> list[str]:
    """The rule, what the roofs are, and of how much of the time the operations are known."""
    lines = [clean(found["rule"])]
    for ceiling in found["ceilings"]:
        lines.append(
            clean(
                f"{ceiling['name']} ({ceiling['how']}): {si(ceiling['peak'], 'FLOP/s')}, {si(ceiling['bandwidth'], 'B/s')} at "
                f"{ceiling['boundary']}"
            )
        )
    if found["now"] is not None:
        why = f": {found['now']['why']}" if found["now"]["why"] else ""
        lines.append(clean(f"at the present clock {si(found['now']['peak'], 'FLOP/s')}{why}"))
    if found["flop_known_for"] is not None:
        regions = any(point["kind"] == "region" for point in found["points"])
        of = "the compiled time" if regions else "the kernels' time"
        lines.append(f"operations known for {percent(found['flop_known_for'])} of {of}")
    return lines


def lines_behind(found: Facts) -> list[str]:
    """What is above its roof and why, what has no place and why, and what must be said with it."""
    points = found["points"]
    lines = [clean(f"OVER: {point['name']}: {'; '.join(point['over'])}") for point in points if point["over"]]
    if found["unknown"]:
        told = ", ".join(f"{one['operator']} ({percent(one['share'])} of the time)" for one in found["unknown"][:5])
        lines.append(clean(f"no formula for: {told}"))
    by_why: dict[str, list[str]] = {}
    for point in points:
        if point["why_not"]:
            by_why.setdefault(point["why_not"], []).append(point["name"])
    for why, names in list(by_why.items())[:8]:
        more = f" and {len(names) - 2} more" if len(names) > 2 else ""
        lines.append(clean(f"{', '.join(names[:2])}{more}: {why}"))
    for window in found["windows"]:
        if window["state"] == "closed" and window["job_s"] is not None:
            slower = f", its steps {three(window['slower'])} times as long" if window["slower"] else ""
            lines.append(f"a window of {window['steps']} steps: the job stood still for {window['job_s'] * 1e3:.0f} ms{slower}")
    return lines + [clean(note) for note in found["notes"]]
