"""Points of compiled regions: operations from their graphs, time from their calls."""

from __future__ import annotations

import math
from collections import Counter, defaultdict, deque
from collections.abc import Mapping
from dataclasses import dataclass, field

from tuimon.model import Model
from tuimon.model.laps import UNKNOWN_SIZES
from tuimon.model.parts import Lap, Region, Sizes
from tuimon.roofline.counts.counted import NO_SIZES, Class, Counted, Memo, together
from tuimon.roofline.making import Sums
from tuimon.roofline.roofs import Roofs

MOST_TRAIL = 8

DISPATCH = "its host time is that of the dispatch, and none of its calls has been timed on the device yet"
NOT_TOLD = "its graph has not been told"
BEFORE = "it was compiled before the attach and its graph was not found: a profiler window may tell"


@dataclass(slots=True)
class Slice:
    """A region's calls of one window."""

    calls: int = 0
    ns: int = 0
    by_sizes: dict[Sizes, tuple[int, int]] = field(default_factory=dict)
    """Sizes -> (calls, ns)."""

    def add(self, sizes: Sizes, more_calls: int, more_ns: int) -> None:
        """Take calls of these sizes in."""
        self.calls += more_calls
        self.ns += more_ns
        calls, ns = self.by_sizes.get(sizes, (0, 0))
        self.by_sizes[sizes] = calls + more_calls, ns + more_ns


@dataclass(slots=True)
class RegionSums:
    """A region in the window, and which part of its time has known operations."""

    region: Region
    sums: Sums
    ns: int
    """Its time in the window, measured or estimated from a share of its calls."""
    known_ns: float
    unknown: tuple[str, ...]


def slices(laps: Mapping[Sizes, deque[Lap]], anchor_ns: int, window_ns: int | None, most: int = MOST_TRAIL) -> dict[int, Slice]:
    """The calls by window: 0 is the one that ends at the anchor, 1 that before it, and so on to `most`, as far as a trail goes.

    `window_ns` None: one window for all there is.
    """
    found: dict[int, Slice] = defaultdict(Slice)
    for sizes, few in laps.items():
        at = calls = ns = 0
        for lap in reversed(few):
            here = 0 if window_ns is None else (anchor_ns - lap.end_ns) // window_ns
            if here > at:  # laps of threads that overlap may be out of order by a little: those stay where they are met
                if calls:
                    found[at].add(sizes, calls, ns)
                at, calls, ns = here, 0, 0
                if at > most:
                    break
            calls += lap.calls
            ns += lap.ns
        if calls:
            found[at].add(sizes, calls, ns)
    return found


def region_sums(model: Model, roofs: Roofs, memo: Memo, window_ns: int | None) -> list[RegionSums]:
    """All regions that were called in the window, in the model's order.

    A trace tells no graphs, but the kernels: there they alone are points.
    """
    ends = (few[-1].end_ns for region in model.regions.values() for few in region.laps.values() if few)
    anchor = max(ends, default=model.now_ns)
    found = []
    kernels_instead = model.target.how == "file" and bool(model.kernels)
    for region in model.regions.values():
        if kernels_instead and not region.graphs:
            continue
        one = _region(region, roofs, memo, anchor, window_ns)
        if one is not None:
            found.append(one)
    total = sum(one.ns for one in found)
    for one in found:
        one.sums.share = one.ns / total if total else 0.0
    return found


def _region(region: Region, roofs: Roofs, memo: Memo, anchor: int, window_ns: int | None) -> RegionSums | None:
    most = MOST_TRAIL if region.graphs else 0  # without its operations a region has no trail
    host = slices(region.laps, anchor, window_ns, most)
    now = host.get(0)
    if now is None or not now.calls:
        return None
    timed, ns = now, now.ns
    past = host
    why = ""
    if roofs.on_gpu:
        past = slices(region.device_laps, anchor, window_ns, most)
        timed = past.get(0, Slice())
        if timed.calls:
            ns = timed.ns * now.calls // timed.calls  # a share of its calls is timed there
        else:
            why = DISPATCH
    sums = Sums(
        key=f"region {region.key}",
        name=f"{region.function} [{region.compile_id}] {region.direction}",
        kind="region",
        seconds=timed.ns / 1e9,
        calls=timed.calls or now.calls,
    )
    if why or not region.graphs:
        sums.why_not = why or (BEFORE if region.before_attach else NOT_TOLD)
        return RegionSums(region, sums, ns, 0.0, ())
    counted = _sum_up(region, timed, memo, sums)
    unknown = tuple(dict.fromkeys(name for one in counted.values() for name in one.unknown))
    known_ns = sum(took for sizes, (_, took) in timed.by_sizes.items() if counted[sizes].by_class is not None)
    sums.trail = _trail(region, past, memo)
    if len(counted) == 1 and sums.by_class:
        _spread(region, sums, roofs)
    return RegionSums(region, sums, ns, ns * known_ns / timed.ns if timed.ns else 0.0, unknown)


def _sum_up(region: Region, part: Slice, memo: Memo, sums: Sums) -> dict[Sizes, Counted]:
    """Fill the sums from the calls of one window; gives what a call does by sizes."""
    counted = {sizes: of_call(region, sizes, memo) for sizes in part.by_sizes}
    by_class: Counter[Class] = Counter()
    moved, modelled, known_ns, known_calls = 0.0, 0.0, 0, 0
    least = math.inf
    all_bytes = all_modelled = True
    for sizes, (calls, ns) in part.by_sizes.items():
        one = counted[sizes]
        sums.masked = sums.masked or one.masked
        if one.by_class is None:
            sums.why_not = sums.why_not or one.why_not
            continue
        known_ns += ns
        known_calls += calls
        for of, number in one.by_class.items():
            by_class[of] += number * calls
        if one.bytes is None:
            all_bytes = False
        else:
            moved += one.bytes * calls
            least = min(least, one.bytes)
        if one.model_bytes is None:
            all_modelled = False
        else:
            modelled += one.model_bytes * calls
    if not known_calls:
        sums.by_class = None
        return counted
    if known_calls < part.calls:
        sums.why_not = f"of {part.calls} calls {part.calls - known_calls} are left out: {sums.why_not or NO_SIZES}"
        sums.seconds, sums.calls = known_ns / 1e9, known_calls
    sums.by_class = by_class
    if all_bytes:
        sums.bytes, sums.footprint = moved, least  # the smallest of its calls may find its data in a cache
        sums.model_bytes = modelled if all_modelled and modelled > moved else None
    return counted


def of_call(region: Region, sizes: Sizes, memo: Memo) -> Counted:
    """What one call of a region with these sizes does."""
    if len(region.graphs) == 1:
        return memo.counted(region.graphs[0], sizes)
    return together([memo.counted(graph, sizes) for graph in region.graphs])


def _trail(region: Region, past: dict[int, Slice], memo: Memo) -> tuple[tuple[float, float], ...]:
    """(intensity, rate) of the windows before, oldest first."""
    found = []
    for at in range(MOST_TRAIL, 0, -1):
        part = past.get(at)
        if part is None:
            continue
        operations = moved = 0.0
        known_ns = 0
        for sizes, (calls, ns) in part.by_sizes.items():
            one = of_call(region, sizes, memo)
            if one.total is not None and one.bytes is not None:
                operations += one.total * calls
                moved += one.bytes * calls
                known_ns += ns
        if operations and moved and known_ns:
            found.append((operations / moved, operations * 1e9 / known_ns))
    return tuple(found)


def _spread(region: Region, sums: Sums, roofs: Roofs) -> None:
    """Rates of its slow and its fast calls, where all calls do the same."""
    durations = region.device if roofs.on_gpu else region.steady if region.steady.n else region.after_guard_change
    summary = durations.summary
    assert sums.by_class is not None
    each = sums.by_class.total() / sums.calls if sums.calls else 0.0
    if each and summary.n > 1 and summary.p10 and summary.p90:
        sums.slowest, sums.fastest = each / summary.p90, each / summary.p10


def usual_sizes(region: Region) -> Sizes:
    """The sizes that most of its calls had."""
    calls = {sizes: sum(lap.calls for lap in few) for sizes, few in region.laps.items()}
    return max(calls, key=lambda sizes: calls[sizes], default=UNKNOWN_SIZES)
