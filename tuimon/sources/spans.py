"""What a trace tells of waits for the device, of lookups in Dynamo's cache, and of the gaps between compiled regions.

A gap lies between two calls of regions on one thread, within one step: the host's is from the end of the one to the begin of
the other, the device's the time in which it ran no kernel between the last that the one launched and the first of the other.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from itertools import pairwise

from tuimon import events as ev
from tuimon.sources.kineto_calls import Calls, step_of
from tuimon.sources.operators import LOOKUP, Operators, Ran

MOST = 400
ITEM, SCALAR = "aten::item", "aten::_local_scalar_dense"
_WAITS = re.compile(
    r"(?:cuda|cu|hip|ze|ur|mu|acl|aclrt)[A-Z]\w*Synchronize(?:_\w+)?$|(?:cuda|hip)Memcpy(?:_\w+)?$|ur(?:EventWait|QueueFinish)$"
)

Launched = Mapping[Ran, tuple[int, int, int]]
"""Call of a region -> (device, begin of the first kernel that it launched, end of the last)."""
Wait = tuple[Hashable, int, int, str]
"""(thread, begin, end, name)."""
Kernel = tuple[int, int, int, int, int]
"""(correlation, name, device, begin, ns)."""


def waits(name: str) -> bool:
    """Whether a call of the runtime or the driver waits for the device."""
    return _WAITS.match(name) is not None


def spans(
    operators: Operators,
    calls: Calls,
    waited: Sequence[Wait],
    launched: Launched,
    kernels: Sequence[Kernel],
    *,
    window: int,
    end_ns: int,
) -> ev.SpansSeen:
    """All of it; `launched` is what `launched()` gives."""
    waited = [one for one in waited if not (calls.steps and _of_the_profiler(calls, one))]
    where = _Where(calls.ran)
    found: dict[tuple[str, str | None], list[int]] = defaultdict(list)
    for thread, begin, end, name in [*waited, *_values(operators)]:
        found[name, where.region(thread, begin)].append(end - begin)
    told: list[ev.Span] = [
        ("sync", name[:300], region, len(every), sum(every), min(every), max(every)) for (name, region), every in found.items()
    ]
    told.sort(key=lambda one: -one[4])
    gaps = _gaps(calls, waited, launched, _Busy(kernels if calls.ran else ()), bool(kernels))
    return ev.SpansSeen(end_ns, window, tuple(told[:MOST]), gaps, _lookups(operators))


def _of_the_profiler(calls: Calls, wait: Wait) -> bool:
    return "DeviceSynchronize" in wait[3] and step_of(calls.steps, wait[1]) is None


def _values(operators: Operators) -> Iterable[Wait]:
    """Where a value was taken from a tensor: `item()`, and what else does what `item()` calls."""
    within: tuple[Hashable, int] = (None, 0)
    for thread, begin, end, name, _ in operators.named(lambda name: "value" if name in (ITEM, SCALAR) else ""):
        if name == ITEM:
            within = thread, end
        elif within[0] == thread and end <= within[1]:
            continue
        yield thread, begin, end, name


def _lookups(operators: Operators) -> tuple[ev.Lookup, ...]:
    found: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    began: dict[Hashable, list[Ran]] = defaultdict(list)
    for one in operators.ran():
        began[one.thread].append(one)
    starts = {thread: [one.begin for one in every] for thread, every in began.items()}
    every = [(thread, begin, end) for thread, begin, end, *_ in operators.named(lambda name: LOOKUP if name == LOOKUP else "")]
    for at, (thread, begin, end) in enumerate(every):
        following = every[at + 1] if at + 1 < len(every) and every[at + 1][0] == thread else None
        place = bisect_left(starts.get(thread, ()), end)
        region = began[thread][place] if place < len(starts.get(thread, ())) else None
        led = region is not None and (following is None or region.begin <= following[1])
        entry = found[region.region if led and region is not None else ""]
        entry[0] += 1
        entry[1] += end - begin
    told = [(region, n, ns) for region, (n, ns) in found.items()]
    return tuple(sorted(told, key=lambda one: -one[2])[:MOST])


class _Where:
    """In which region's call a moment lies."""

    def __init__(self, ran: Sequence[Ran]) -> None:
        self._ran: dict[Hashable, list[Ran]] = defaultdict(list)
        for one in ran:
            self._ran[one.thread].append(one)
        self._begins = {thread: [one.begin for one in every] for thread, every in self._ran.items()}

    def at(self, thread: Hashable, moment: int) -> Ran | None:
        begins = self._begins.get(thread)
        at = bisect_right(begins, moment) - 1 if begins else -1
        one = self._ran[thread][at] if at >= 0 else None
        return one if one is not None and moment < one.end else None

    def region(self, thread: Hashable, moment: int) -> str | None:
        one = self.at(thread, moment)
        return None if one is None else one.region


class _Busy:
    """When each device ran at least one kernel."""

    def __init__(self, kernels: Sequence[Kernel]) -> None:
        spans: dict[int, list[tuple[int, int]]] = defaultdict(list)
        for _, _, device, begin, ns in kernels:
            spans[device].append((begin, begin + ns))
        self._ends: dict[int, list[int]] = {}
        self._merged: dict[int, list[tuple[int, int]]] = {}
        for device, every in spans.items():
            every.sort()
            merged: list[tuple[int, int]] = []
            for begin, end in every:
                if merged and begin <= merged[-1][1]:
                    merged[-1] = merged[-1][0], max(merged[-1][1], end)
                else:
                    merged.append((begin, end))
            self._merged[device] = merged
            self._ends[device] = [end for _, end in merged]

    def idle(self, device: int, begin: int, end: int) -> int:
        """ns between the two times in which it ran none."""
        if end <= begin:
            return 0
        busy, merged = 0, self._merged.get(device, [])
        for low, high in merged[bisect_right(self._ends.get(device, []), begin) :]:
            if low >= end:
                break
            busy += min(high, end) - max(low, begin)
        return end - begin - busy


def launched(calls: Calls, runtime: Mapping[Hashable, Sequence[tuple[int, int, bool]]], kernels: Sequence[Kernel]) -> Launched:
    """Which kernels each call of a region launched. `runtime`: (time, correlation, ..) of the runtime's calls, by thread."""
    back = {ran: moved for moved, ran in calls.origin.items()}
    where = _Where([calls.origin.get(one, one) for one in calls.ran])
    if not calls.ran or not kernels:
        return {}
    of: dict[int, Ran] = {}
    for thread, every in runtime.items():
        for moment, correlation, _ in every:
            ran = where.at(thread, moment)
            if ran is not None:
                of[correlation] = back.get(ran, ran)
    found: dict[Ran, tuple[int, int, int]] = {}
    for correlation, _, device, begin, ns in kernels:
        ran = of.get(correlation)
        if ran is not None:
            known = found.get(ran, (device, begin, begin + ns))
            found[ran] = device, min(known[1], begin), max(known[2], begin + ns)
    return found


def _gaps(calls: Calls, waited: Sequence[Wait], launched: Launched, busy: _Busy, kernels: bool) -> tuple[ev.Gap, ...]:
    by_thread: dict[Hashable, list[Ran]] = defaultdict(list)
    for one in calls.ran:
        by_thread[one.thread].append(one)
    waits_at: dict[Hashable, list[int]] = defaultdict(list)
    for thread, begin, _, _ in waited:
        waits_at[thread].append(begin)
    for moments in waits_at.values():
        moments.sort()
    found: dict[tuple[str, str], list[int]] = defaultdict(lambda: [0, 0, 0, 0, 0])
    for thread, every in by_thread.items():
        moments = waits_at.get(thread, [])
        for one, other in pairwise(every):
            if calls.steps and step_of(calls.steps, one.begin) != step_of(calls.steps, other.begin):
                continue
            entry = found[one.region, other.region]
            entry[0] += 1
            entry[1] += max(0, other.begin - one.end)
            last, first = launched.get(one), launched.get(other)
            if last is not None and first is not None and last[0] == first[0]:
                entry[2] += busy.idle(last[0], last[2], first[1])
                entry[3] += 1
            at = bisect_left(moments, one.end)
            entry[4] += at < len(moments) and moments[at] < other.begin
    told: list[ev.Gap] = [
        (one, other, n, host, device if kernels and known == n else None, synced)
        for (one, other), (n, host, device, known, synced) in found.items()
    ]
    return tuple(sorted(told, key=lambda one: -one[3])[:MOST])
