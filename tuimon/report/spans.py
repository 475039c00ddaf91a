"""The report's part on what a trace or a profiler window tells of waits, of cache lookups and of gaps between regions."""

from __future__ import annotations

from typing import Any

from tuimon.draw.spans import RULE, gap_line, lookup_line, sync_line
from tuimon.model import Model
from tuimon.report.gaps import Gaps

Facts = dict[str, Any]

NONE_SEEN = "neither a trace nor a profiler window was seen: nothing else tells of single waits, lookups and gaps"
NO_KERNELS = "the trace holds no kernels, or not those of both regions: when the device was idle is not known"
MOST_LINES = 12


def part(model: Model, gaps: Gaps) -> Facts | None:
    """`spans`: of the latest window, or of the trace file; None where there is neither."""
    seen = next(reversed(model.recorded.spans.values()), None)
    if seen is None:
        gaps.add("spans", NONE_SEEN)
        return None
    if any(device is None for _, _, _, _, device, _ in seen.gaps):
        gaps.add("spans.gaps.device", NO_KERNELS)
    return {
        "window": seen.window or None,
        "rule": RULE,
        "lookups": [{"compile_id": region or None, "n": n, "total": ns / 1e9} for region, n, ns in seen.lookups],
        "syncs": [
            {"name": name, "region": region, "n": n, "total": ns / 1e9, "least": least / 1e9, "most": most / 1e9}
            for _, name, region, n, ns, least, most in seen.spans
        ],
        "gaps": [
            {
                "from": one,
                "to": other,
                "n": n,
                "host": host / 1e9,
                "device": None if device is None else device / 1e9,
                "syncs": syncs,
            }
            for one, other, n, host, device, syncs in seen.gaps
        ],
    }


def lines(found: Facts | None) -> list[str]:
    """The same in words, the largest of each kind."""
    if found is None:
        return []
    told = [sync_line(one["name"], one["region"], one["n"], one["total"]) for one in _largest(found["syncs"], "total")]
    told += [lookup_line(one["compile_id"], one["n"], one["total"]) for one in _largest(found["lookups"], "total")]
    told += [
        gap_line(one["from"], one["to"], one["n"], one["host"], one["device"], one["syncs"])
        for one in _largest(found["gaps"], "host")
    ]
    return [*told, RULE] if found["gaps"] else told


def _largest(rows: list[Facts], by: str) -> list[Facts]:
    return sorted(rows, key=lambda one: -one[by])[:MOST_LINES]
