"""By what a run is faster or slower than another: the parts that changed, by name, each with its own interval.

A mechanism is something that was timed: a boundary, a wait for data, a sync. Fewer graphs are none.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tuimon.draw.format import duration, per_step
from tuimon.draw.text import clean
from tuimon.model.identity import plain_function
from tuimon.report.compare.interval import Difference
from tuimon.report.compare.parts import Met, Row
from tuimon.report.compare.side import Side, tail
from tuimon.report.phrases import many

EXPLAINS = 0.2
"""Of the difference in the steps' medians a mechanism has at least so much."""
NOTICED = 0.005
"""Of a step: less than this, gained or lost at one boundary, is not told."""
OF_A_STEP = 0.02
"""The same of a category."""
PACE = "pace"
"""The same compiled code, faster or slower: what it is asked for is the same, so that it is no mechanism."""
COMPILED = ("forward regions", "backward regions")
LOAD = "other load"
BESIDE = (PACE, LOAD, "recompiles")
UNNAMED = ("compile", "boundary", "other python", "profiler", "gc")
"""No mechanisms by themselves: compilations are not in these steps, boundaries are told one by one, the rest is a remainder."""
LOAD_EXPLAINS = 0.5
"""Of the difference in the steps' medians: where the load of the machine makes as much, nothing is told of the code."""
FEWER_SYNCS = 0.5


@dataclass(frozen=True)
class Steps:
    """The steps of both: their medians in seconds, and the difference."""

    a: float | None
    b: float | None
    found: Difference | None

    @property
    def longer(self) -> float:
        """The longer median; 0 where there is none."""
        return max(self.a or 0.0, self.b or 0.0)


def mechanisms(a: Side, b: Side, steps: Steps, met: Sequence[Met], breakdown: Sequence[Row], *, alike: bool) -> list[Row]:
    """`mechanisms[]`: those that explain the difference first, the largest first. `alike`: the compiled code of both makes as
    many operations a step."""
    found = [*_boundaries(steps, met), *_categories(steps, breakdown, alike), *_syncs(a, b, steps)]
    found += [*_waits(a, b, steps), *_fallen(a, b), *_recompiles(a, b)]
    for row in found:
        share = None
        if steps.found is not None and steps.found.seen and row["seconds_per_step"] is not None and row["kind"] != "recompiles":
            share = row["seconds_per_step"] / steps.found.value
        row["share"] = share
        row["explains"] = share is not None and share >= EXPLAINS and row["kind"] != PACE
    found.sort(key=lambda row: (not row["explains"], row["kind"] in BESIDE, -abs(row["seconds_per_step"] or 0.0)))
    return found


def _row(kind: str, sentence: str, where: str | None, value: float | None, interval: Any) -> Row:
    return {
        "kind": kind,
        "sentence": clean(sentence),
        "where": where,
        "seconds_per_step": value,
        "interval": None if interval is None else list(interval),
    }


def _boundaries(steps: Steps, met: Sequence[Met]) -> list[Row]:
    found = []
    for one in met:
        change = _change(one, steps)
        if change:
            value, interval = (None, None) if one.cost is None else (one.cost.value, one.cost.interval)
            where = f"{one.row['file']}:{one.row['line']}"
            found.append(_row(f"boundary {change}", _sentence(one, change), where, value, interval))
    return found


def _change(one: Met, steps: Steps) -> str:
    """What became of a boundary: "gone", "new", "changed", or empty where nothing that counts did."""
    before, now = one.row["per_step"]["a"], one.row["per_step"]["b"]
    if before and now == 0:
        return "gone"
    if now and before == 0:
        return "new"
    if one.cost is None or not one.cost.seen or abs(one.cost.value) < NOTICED * steps.longer:
        return ""
    return "changed"


def _sentence(one: Met, change: str) -> str:
    row = one.row
    place = f"{os.path.basename(row['file'])}:{row['line']}"
    before, now = row["per_step"]["a"], row["per_step"]["b"]
    if row["skipped_frame"] and change != "changed":
        how = "no longer runs in eager as a whole" if change == "gone" else "runs in eager as a whole"
        return f"the graph break at {place} is {change} ({row['reason']}): {row['function']} {how}; its own time is not told"
    cost = f"; {_cost(one)}"
    if change == "changed":
        crossed = f"{per_step(before)} crossings a step in A and {per_step(now)} in B"
        return f"the boundary at {place} ({row['reason']}): {crossed}{cost}"
    trips, more = (before, "less") if change == "gone" else (now, "more")
    told = "one host round trip" if trips == 1 else f"{per_step(trips)} host round trips"
    return f"the boundary at {place} is {change} ({row['reason']}): {told} {more} per step{cost}"


def _cost(one: Met) -> str:
    before, now = one.row["host_per_step"]["a"], one.row["host_per_step"]["b"]
    if before is None or now is None:
        return "its host time is not known"
    interval = None if one.cost is None else one.cost.interval
    told = "" if interval is None else f" [{signed(interval[0])} to {signed(interval[1])}]"
    return f"host time {duration(abs(now - before))} {'more' if now > before else 'less'} a step{told}"


def signed(seconds: float) -> str:
    """`+1.20 ms`, `-312 us`."""
    return f"{'+' if seconds > 0 else ''}{duration(seconds)}"


def _categories(steps: Steps, breakdown: Sequence[Row], alike: bool) -> list[Row]:
    found = []
    for row in breakdown:
        name, value, interval = row["category"], row["difference"], row["interval"]
        if name in UNNAMED or value is None or interval is None or not (interval[0] > 0 or interval[1] < 0):
            continue
        part_of = max(steps.longer, 1e-12)
        explains = steps.found is not None and steps.found.seen and value / steps.found.value >= EXPLAINS
        if not explains and abs(value) < OF_A_STEP * part_of:
            continue
        change = "less" if value < 0 else "more"
        told = (
            f"{name}: {duration(abs(value))} {change} a step, {duration(row['a'])} in A and {duration(row['b'])} in B"
            f" [{signed(interval[0])} to {signed(interval[1])}]"
        )
        kind = PACE if name in COMPILED and alike else "data wait" if name == "data wait" else "category"
        if kind == PACE:
            told += "; it is asked for the same, and runs at another pace: other load, clocks, threads, or other kernels"
        found.append(_row(kind, told, None, value, interval))
    return found


def _waits(a: Side, b: Side, steps: Steps) -> list[Row]:
    """Time a step for which its thread had no core: the machine's other programs. A share of the steps, without an interval."""
    if a.waited is None or b.waited is None or steps.a is None or steps.b is None:
        return []
    before, now = a.waited * steps.a, b.waited * steps.b
    if abs(now - before) < OF_A_STEP * steps.longer:
        return []
    told = (
        f"waiting for a core, while other programs ran: {duration(before)} of a step in A and {duration(now)} in B "
        f"({a.waited:.0%} and {b.waited:.0%} of the time)"
    )
    return [_row(LOAD, told, None, now - before, None)]


def other_load(found: Sequence[Row]) -> Row | None:
    """That the machine was busier in one of the runs, where that makes the most of the difference."""
    return next((row for row in found if row["kind"] == LOAD and (row["share"] or 0.0) >= LOAD_EXPLAINS), None)


def _syncs(a: Side, b: Side, steps: Steps) -> list[Row]:
    """Waits for the device that a trace names, a step; its sums have no interval."""
    first, second = _syncs_of(a), _syncs_of(b)
    if first is None or second is None:
        return []
    found = []
    for name in dict.fromkeys([*first, *second]):
        (before, took), (now, takes) = first.get(name, (0.0, 0.0)), second.get(name, (0.0, 0.0))
        if max(before, now) < 0.5 or min(before, now) > FEWER_SYNCS * max(before, now):
            continue
        if abs(takes - took) < NOTICED * steps.longer:
            continue
        kind = "sync gone" if now < before else "sync new"
        told = f"{name}: {per_step(before)} a step in A and {per_step(now)} in B, {signed(takes - took)} a step"
        found.append(_row(kind, told, None, takes - took, None))
    return found


def _syncs_of(side: Side) -> dict[str, tuple[float, float]] | None:
    spans = side.model.recorded.spans.get(0)
    n = len(side.model.steps.accounts)
    if spans is None or not n:
        return None
    found: dict[str, tuple[float, float]] = {}
    for kind, name, _, times, ns, _, _ in spans.spans:
        if kind == "sync":
            before, took = found.get(name, (0.0, 0.0))
            found[name] = before + times / n, took + ns / n / 1e9
    return found


def _fallen(a: Side, b: Side) -> list[Row]:
    first, second = _fallen_of(a), _fallen_of(b)
    found = []
    for key in dict.fromkeys([*first, *second]):
        if (key in first) == (key in second):
            continue
        function, file, line, why = (first | second)[key]
        how = "runs in eager" if key in second else "no longer runs in eager"
        told = (
            f"{function} {os.path.basename(file)}:{line} {how} past the limit of recompiles ({why}); its own time is not told"
        )
        found.append(_row("fell back", told, f"{file}:{line}", None, None))
    return found


def _fallen_of(side: Side) -> dict[tuple[str, str], tuple[str, str, int, str]]:
    """Frames past their limit. Those that are skipped whole are boundaries."""
    return {
        (plain_function(frame.function), tail(frame.file)): (frame.name, frame.file, frame.line, frame.refused_compile_id)
        for frame in side.model.frames.values()
        if frame.refused_compile_id
    }


def _recompiles(a: Side, b: Side) -> list[Row]:
    (before, took), (now, takes) = recompiles_of(a), recompiles_of(b)
    if before == now or not a.n or not b.n:
        return []
    per = takes / b.n - took / a.n
    told = (
        f"{many(before, 'recompile')} ({duration(took)}) in A and {now} ({duration(takes)}) in B; "
        "these steps have none in them, so that they do not tell it"
    )
    return [_row("recompiles", told, None, per, None)]


def recompiles_of(side: Side) -> tuple[int, float]:
    """How many were watched, and what they took, seconds."""
    again = {id(one.compilation) for one in side.model.recompiles if not one.compilation.refused}
    found = [one for one in side.compilations if id(one) in again]
    return len(found), sum(one.total_s or 0.0 for one in found)
