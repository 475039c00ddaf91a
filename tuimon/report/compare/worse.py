"""What got worse from one run to another, whether or not the steps got faster."""

from __future__ import annotations

import os
from collections.abc import Sequence

from tuimon.draw.format import duration, size
from tuimon.draw.text import clean
from tuimon.report.compare.checks import OTHER_LOAD
from tuimon.report.compare.interval import difference
from tuimon.report.compare.mechanisms import NOTICED, OF_A_STEP
from tuimon.report.compare.parts import Met, Row
from tuimon.report.compare.side import Side

MORE = 1.1
"""Times as much as before is worse."""
MORE_ONCE = 1.25
"""The same of what is timed once in a run, and has no interval."""
LEAST_COMPILE_S = 0.5
LEAST_INITIAL_S = 0.1
LEAST_BYTES = 32 << 20


def worse(
    a: Side, b: Side, steps: Row, breakdown: Sequence[Row], regions: Sequence[Row], met: Sequence[Met], totals: Row, seed: int
) -> list[Row]:
    """`worse[]`: what B has more of, by more than a little, and by more than its interval leaves open where it has one."""
    found: list[Row] = []
    busy = max(a.waited or 0.0, b.waited or 0.0) > OTHER_LOAD

    def note(what: str, before: float, now: float, told: str, *, timed: bool = False) -> None:
        told += "; other programs kept the machine busy" if timed and busy else ""
        found.append({"what": what, "a": before, "b": now, "sentence": clean(told)})

    compile_a, compile_b = totals["compile_s"]["a"], totals["compile_s"]["b"]
    if _once(compile_a, compile_b, LEAST_COMPILE_S):
        told = f"compile time: {duration(compile_a)} in A, {duration(compile_b)} in B"
        note("compile time", compile_a, compile_b, told, timed=True)
    for name, key in (("resident memory", "rss"), ("GPU memory", "gpu")):
        pair = totals["memory"][key]
        if pair is not None and pair["b"] - pair["a"] > max(LEAST_BYTES, pair["a"] * (MORE - 1)):
            note(name, pair["a"], pair["b"], f"{name}: {size(pair['a'])} in A, {size(pair['b'])} in B")
    before, now = totals["recompiles"]["a"], totals["recompiles"]["b"]
    if before is not None and now is not None and now > before:
        note("recompiles", before, now, f"recompiles: {before} in A, {now} in B")
    if steps["verdict"] in ("faster", "no difference seen") and _more(steps["a"]["p90"], steps["b"]["p90"]):
        late = difference([(a.took, 1.0)], [(b.took, 1.0)], "p90 of steps", seed, share=0.9)
        if late is not None and late.seen:
            told = f"slow steps: p90 {duration(steps['a']['p90'])} in A, {duration(steps['b']['p90'])} in B"
            note("p90 of steps", steps["a"]["p90"], steps["b"]["p90"], told, timed=True)
    for row in breakdown:
        interval = row["interval"]
        if interval is not None and interval[0] > 0 and row["difference"] > OF_A_STEP * (steps["b"]["median"] or 0.0):
            told = f"{row['category']}: {duration(row['a'])} a step in A, {duration(row['b'])} in B"
            note(row["category"], row["a"], row["b"], told, timed=True)
    for row in regions:
        if row["in"] != "both":
            continue
        name = f"{row['function']} {os.path.basename(row['file'])}:{row['line']} {row['direction']}"
        before, now = row["initial"]["a"], row["initial"]["b"]
        if _once(before, now, max(LEAST_INITIAL_S, NOTICED * (steps["b"]["median"] or 0.0))):
            told = f"initial calls of {name}: {duration(before)} in A, {duration(now)} in B"
            note(f"initial calls of {name}", before, now, told, timed=True)
        after = row["after_guard_change"]
        before, now, interval = after["a"], after["b"], after["interval"]
        counts = _more(before, now) and now - before > NOTICED * (steps["b"]["median"] or 0.0)
        if counts and interval is not None and interval[0] > 0:
            told = f"calls after a guard change of {name}: {duration(before)} a step in A, {duration(now)} in B"
            note(f"calls after a guard change of {name}", before, now, told, timed=True)
    for one in met:
        if one.row["in"] == "b":
            place = f"{os.path.basename(one.row['file'])}:{one.row['line']}"
            note(f"boundary {place}", 0.0, 1.0, f"a graph break at {place} that was not there before: {one.row['reason']}")
    return found


def _more(before: float | None, now: float | None) -> bool:
    return before is not None and now is not None and before > 0 and now > MORE * before


def _once(before: float | None, now: float | None, least: float) -> bool:
    return before is not None and now is not None and now - before > max(least, before * (MORE_ONCE - 1))
