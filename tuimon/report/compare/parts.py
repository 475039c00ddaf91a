"""What of two runs belongs together: regions by the function that they are compiled from, boundaries by their line.

Never by compile id: one graph break less, and every id behind it is another one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from tuimon.model.hosts import reads_host
from tuimon.model.identity import plain_function
from tuimon.model.parts import Boundary, Region
from tuimon.model.statistics import WINDOW, Durations
from tuimon.report.compare.interval import Difference, Part, difference, median, seconds_of
from tuimon.report.compare.side import Side, tail
from tuimon.report.runtime import SYNC_NOT_LOOKED_AT, reason, sync

MOST_INTERVALS = 24
"""So many regions, and boundaries, are given an interval: the most costly ones. Those of the others are None."""

Row = dict[str, Any]


def pair(a: Any, b: Any) -> Row:
    """What each side has."""
    return {"a": a, "b": b}


def spread(found: Difference | None) -> Row:
    """A difference and its interval, as plain values."""
    if found is None:
        return {"difference": None, "interval": None}
    return {"difference": found.value, "interval": None if found.interval is None else list(found.interval)}


# ------------------------------------------------------------------------------------------------- regions


@dataclass
class _Group:
    """All regions of one function and direction: its graphs, its cache entries."""

    side: Side
    regions: list[Region]

    def parts(self, of: Callable[[Region], Durations]) -> list[Part] | None:
        """Time a step by one population: its median times its calls a step. None where calls a step are not known."""
        found: list[Part] = []
        for region in self.regions:
            calls = self.side.calls_per_step(region)
            if calls is None:
                return None
            values = of(region).latest(WINDOW)
            if calls and values:
                found.append((values, calls))
        return found

    def initial(self) -> float:
        return sum(region.initial.total_ns for region in self.regions) / 1e9

    def calls(self) -> float | None:
        known = [self.side.calls_per_step(region) for region in self.regions]
        return sum(one for one in known if one is not None) if any(one is not None for one in known) else None


def regions(a: Side, b: Side, seed: int, *, comparable: bool) -> list[Row]:
    """`regions[]`, most time first. Times are seconds a step, but the initial calls' in all."""
    first, second = _groups(a), _groups(b)
    rows = [_region(key, first.get(key), second.get(key)) for key in dict.fromkeys([*first, *second])]
    rows.sort(key=lambda row: -max(row["steady"]["a"] or 0.0, row["steady"]["b"] or 0.0))
    for at, row in enumerate(rows):
        groups = row.pop("groups")
        told = None
        if comparable and at < MOST_INTERVALS and None not in (row["steady"]["a"], row["steady"]["b"]):
            before, now = ([] if one is None else one.parts(_steady) or [] for one in groups)
            told = difference(before, now, f"region {row['function']} {row['file']} {row['direction']}", seed)
        row["steady"] |= spread(told)
        told, after = None, row["after_guard_change"]
        if comparable and at < MOST_INTERVALS and after["a"] and after["b"]:
            before, now = ([] if one is None else one.parts(_after) or [] for one in groups)
            told = difference(before, now, f"changed {row['function']} {row['file']} {row['direction']}", seed)
        row["after_guard_change"] |= spread(told)
    return rows


def _steady(region: Region) -> Durations:
    return region.steady


def _after(region: Region) -> Durations:
    return region.after_guard_change


def _groups(side: Side) -> dict[tuple[str, str, str], _Group]:
    found: dict[tuple[str, str, str], _Group] = {}
    for region in side.model.regions.values():
        key = plain_function(region.function), tail(region.file), region.direction
        found.setdefault(key, _Group(side, [])).regions.append(region)
    return found


def _region(key: tuple[str, str, str], a: _Group | None, b: _Group | None) -> Row:
    one = a or b
    assert one is not None
    return {
        "function": key[0],
        "file": one.regions[0].file,
        "line": one.regions[0].line,
        "direction": key[2],
        "in": _in(a, b),
        "graphs": pair(*(0 if one is None else len(one.regions) for one in (a, b))),
        "calls": pair(*(0.0 if one is None else one.calls() for one in (a, b))),
        "initial": pair(*(0.0 if one is None else one.initial() for one in (a, b))),
        "steady": pair(*(_a_step(one, _steady) for one in (a, b))),
        "after_guard_change": pair(*(_a_step(one, _after) for one in (a, b))),
        "groups": (a, b),
    }


def _a_step(group: _Group | None, of: Callable[[Region], Durations]) -> float | None:
    if group is None:
        return 0.0
    parts = group.parts(of)
    return None if parts is None else seconds_of(parts)


def _in(a: Any, b: Any) -> str:
    return "both" if a is not None and b is not None else "a" if b is None else "b"


# ------------------------------------------------------------------------------------------------- boundaries


Place = tuple[Boundary, ...]
"""All boundaries of a run at one line for one reason: where the code is compiled anew (`torch._dynamo.reset()`, a copy of a
module), each time has one of its own."""


@dataclass
class Met:
    """A boundary, on the sides on which it is."""

    a: Place | None
    b: Place | None
    row: Row
    cost: Difference | None
    """Of its host time a step."""


def boundaries(a: Side, b: Side) -> list[Met]:
    """Most costly first. One that is in both stands at the same line, or in the same function for the same reason, where lines
    were put in above it."""
    pairs = _pairs(_places(a), _places(b))
    found = [_boundary(a, b, first, second) for first, second in pairs]
    return sorted(found, key=lambda one: -max(one.row["host_per_step"]["a"] or 0.0, one.row["host_per_step"]["b"] or 0.0))


def add_costs(met: Sequence[Met], a: Side, b: Side, seed: int, *, comparable: bool) -> None:
    """Fill in the differences of host time: of the most costly ones, and only of runs that are comparable."""
    for at, one in enumerate(met):
        told = one.row["host_per_step"]
        if comparable and at < MOST_INTERVALS and None not in (told["a"], told["b"]):
            before, now = host_parts(a, one.a) or [], host_parts(b, one.b) or []
            one.cost = difference(before, now, f"boundary {one.row['file']} {one.row['line']} {one.row['reason']}", seed)
        told |= spread(one.cost)


def _places(side: Side) -> list[Place]:
    found: dict[Any, list[Boundary]] = defaultdict(list)
    for one in side.model.boundaries.values():
        found[_by_line(one), plain_function(one.function)].append(one)
    return [tuple(one) for one in found.values()]


def _pairs(first: Sequence[Place], second: Sequence[Place]) -> list[tuple[Place | None, Place | None]]:
    found: list[tuple[Place | None, Place | None]] = []
    left_a, left_b = list(first), list(second)
    for key in (_by_line, _by_function):
        waiting: dict[Any, list[Place]] = defaultdict(list)
        for one in left_b:
            waiting[key(one[0])].append(one)
        still = []
        for one in left_a:
            same = waiting[key(one[0])]
            if same:
                found.append((one, same.pop(0)))
            else:
                still.append(one)
        left_a, left_b = still, [one for rest in waiting.values() for one in rest]
    return [*found, *((one, None) for one in left_a), *((None, one) for one in left_b)]


def _by_line(one: Boundary) -> tuple[Any, ...]:
    return tail(one.user_file or one.file), one.user_line or one.line, one.kind or one.reason, one.skipped_frame


def _by_function(one: Boundary) -> tuple[Any, ...]:
    return tail(one.user_file or one.file), plain_function(one.function), one.kind or one.reason, one.skipped_frame


def host_parts(side: Side, place: Place | None) -> list[Part] | None:
    """Host time a step at a boundary: the median of a crossing times the crossings a step. None where it is not known."""
    found: list[Part] = []
    for one in place or ():
        crossings = side.crossings_per_step(one)
        if crossings is None:
            return None
        if crossings:
            values = one.host.latest(WINDOW)
            if not values:
                return None
            found.append((values, crossings))
    return found


def _crossings(side: Side, place: Place | None) -> float | None:
    """Crossings a step; None where they are not known."""
    each = [side.crossings_per_step(one) for one in place or ()]
    known = [one for one in each if one is not None]
    return sum(known, 0.0) if len(known) == len(each) else None


def _host(place: Place | None) -> float | None:
    """The median of a crossing, seconds."""
    if place is None or len(place) == 1:
        return None if place is None else place[0].host.summary.median
    values = [value for one in place for value in one.host.latest(WINDOW)]
    return median(values) / 1e9 if values else None


def _sync(place: Place | None) -> str:
    told = [sync(one) for one in place or ()]
    return next((one for one in told if one != SYNC_NOT_LOOKED_AT), SYNC_NOT_LOOKED_AT)


def host_per_step(side: Side, one: Place | None) -> float | None:
    """The same in seconds."""
    parts = host_parts(side, one)
    return None if parts is None else seconds_of(parts)


def _boundary(a: Side, b: Side, first: Place | None, second: Place | None) -> Met:
    one = (first or second or ())[0]
    sides = ((a, first), (b, second))
    row = {
        "function": plain_function(one.function),
        "file": one.user_file or one.file,
        "line": one.user_line or one.line,
        "reason": one.kind or reason(one),
        "in": _in(first, second),
        "skipped_frame": one.skipped_frame,
        "reads_host": reads_host(one.kind, one.explanation),
        "per_step": pair(*(_crossings(side, it) for side, it in sides)),
        "host": pair(*(_host(it) for _, it in sides)),
        "host_per_step": pair(*(host_per_step(side, it) for side, it in sides)),
        "sync": pair(*(_sync(it) for _, it in sides)),
    }
    return Met(first, second, row, None)
