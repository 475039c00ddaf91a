"""Two runs beside each other, as a dict of plain values ("tuimon.compare/1"): are they the same work, what is faster, and why.

Times are seconds. A difference is B without A: below zero, B takes less. Where the two are no pair, no difference is told.
"""

from __future__ import annotations

from statistics import median
from typing import Any

from tuimon.draw.format import duration
from tuimon.model import Model
from tuimon.model.statistics import quantile, seconds
from tuimon.model.steps.parts import CATEGORIES
from tuimon.report.compare import parts
from tuimon.report.compare.checks import OPERATIONS, SHAPES, Checked, checked
from tuimon.report.compare.interval import FEW, SAME_PROGRAM, Difference, difference, of_steps, rule
from tuimon.report.compare.mechanisms import BESIDE, Steps, mechanisms, other_load, recompiles_of, signed
from tuimon.report.compare.side import Side
from tuimon.report.compare.work import work_of
from tuimon.report.compare.worse import worse

SCHEMA = "tuimon.compare/1"
SEED = 20

Facts = dict[str, Any]


def compare(
    a: Model,
    b: Model,
    *,
    names: tuple[str, str],
    kinds: tuple[str, str] = ("recording", "recording"),
    ranks: tuple[int, int] = (1, 1),
    phase: str | None = None,
    seed: int = SEED,
) -> Facts:
    """What B is beside A. `names`: the files; `kinds`: of `sources.files.Kind`; `ranks`: how many each file holds.

    `phase`: only the steps of the phase of that name; what is told of regions and boundaries is of all of the run.
    """
    first = Side(a, names[0], kinds[0], phase, ranks[0])
    second = Side(b, names[1], kinds[1], phase, ranks[1])
    met = parts.boundaries(first, second)
    tested = checked(first, second, (work_of(first), work_of(second)), met)
    comparable = not tested.refusals
    parts.add_costs(met, first, second, seed, comparable=comparable)
    found = of_steps(first.took, second.took, seed) if comparable else None
    steps = _steps(first, second, found)
    medians = Steps(steps["a"]["median"], steps["b"]["median"], found)
    breakdown = _breakdown(first, second, seed, comparable)
    regions = parts.regions(first, second, seed, comparable=comparable)
    totals = {
        "recompiles": parts.pair(_recompiles(first), _recompiles(second)),
        "compile_s": parts.pair(_compile_s(first), _compile_s(second)),
        "memory": {"rss": _both(_rss(a), _rss(b)), "gpu": _both(_gpu(a), _gpu(b))},
    }
    alike = dict(tested.rows)[OPERATIONS].verdict == "same"
    named = mechanisms(first, second, medians, met, breakdown, alike=alike) if comparable else []
    load = other_load(named)
    if load is not None:
        steps["verdict"] = "not known"
    return {
        "schema": SCHEMA,
        "a": _head(first),
        "b": _head(second),
        "comparable": comparable,
        "not_comparable": tested.refusals,
        "checks": [
            {"what": what, "a": one.a, "b": one.b, "verdict": one.verdict, "why": one.why or one.refuses or None}
            for what, one in tested.rows
        ],
        "rule": _rule(first, second, seed),
        "steps": steps,
        "breakdown": breakdown,
        "regions": regions,
        "boundaries": [one.row for one in met],
        **totals,
        "mechanisms": named,
        "worse": worse(first, second, steps, breakdown, regions, met, totals, seed) if comparable else [],
        "verdict": _verdict(tested, first.no_steps, steps, found, named, load),
    }


def _head(side: Side) -> Facts:
    target = side.model.target
    return {
        "name": side.name,
        "kind": side.kind,
        "command": target.command or None,
        "torch": target.torch,
        "devices": list(target.devices),
        "steps": side.model.steps.n,
        "phase": side.phase,
    }


def _rule(a: Side, b: Side, seed: int) -> str:
    told = f"{rule(seed)}. Steps: the last 512 whole ones {a.population}, slow ones among them"
    if a.population != b.population:
        told += f" (B: {b.population})"
    told += (
        ". Calls with a compilation in them, later calls of a first entry, and calls of entries that a recompile made are "
        "three populations and are never mixed; a time a step is the median of a call times the calls a step"
    )
    if a.phase is not None:
        told += "; regions, boundaries and memory are those of the whole run, not of the phase alone"
    return told


def _recompiles(side: Side) -> int | None:
    """How many were watched; None where a file of its kind tells of no compilation."""
    return None if side.model.recorded.missing("compiles") else recompiles_of(side)[0]


def _steps(a: Side, b: Side, found: Difference | None) -> Facts:
    sides = [_summary(side) for side in (a, b)]
    ratio = sides[1]["median"] / sides[0]["median"] if found is not None and sides[0]["median"] else None
    verdict = "not known"
    if found is not None and found.interval is not None:
        verdict = ("faster" if found.value < 0 else "slower") if found.seen else "no difference seen"
    return {"a": sides[0], "b": sides[1], **parts.spread(found), "ratio": ratio, "verdict": verdict}


def _summary(side: Side) -> Facts:
    ordered = sorted(side.took)
    quantiles = {name: seconds(quantile(ordered, share)) for name, share in (("median", 0.5), ("p10", 0.1), ("p90", 0.9))}
    return {"n": len(ordered), **quantiles}


def _breakdown(a: Side, b: Side, seed: int, comparable: bool) -> list[Facts]:
    """`breakdown[]`: the categories that either has time in, largest first. Empty where one has no steps."""
    if not a.steps or not b.steps:
        return []
    rows = []
    for name in CATEGORIES:
        first, second = a.category(name), b.category(name)
        if not any(first) and not any(second):
            continue
        found = difference([(first, 1.0)], [(second, 1.0)], f"category {name}", seed) if comparable else None
        rows.append({"category": name, "a": median(first) / 1e9, "b": median(second) / 1e9, **parts.spread(found)})
    return sorted(rows, key=lambda row: -max(row["a"], row["b"]))


def _compile_s(side: Side) -> float | None:
    """Seconds in compilations that were watched; None where the file tells of none."""
    if side.model.recorded.missing("compiles"):
        return None
    return sum(one.total_s for one in side.compilations if one.total_s is not None)


def _rss(model: Model) -> int | None:
    host = model.surroundings.host
    return None if host is None else host.rss_bytes


def _gpu(model: Model) -> int | None:
    """The most that the job had on its GPUs; where the driver does not tell that, what its pools held at most."""
    tracks = [
        max((one for one in track.process_memory if one is not None), default=None)
        for track in model.surroundings.gpu_tracks.values()
    ]
    known = [int(one) for one in tracks if one is not None]
    if not known:
        known = [one.allocated_peak_bytes for one in model.surroundings.pools.values() if one.allocated_peak_bytes is not None]
    return sum(known) if known else None


def _both(a: int | None, b: int | None) -> Facts | None:
    return None if a is None or b is None else parts.pair(a, b)


def _verdict(
    tested: Checked, no_steps: str, steps: Facts, found: Difference | None, named: list[Facts], load: Facts | None
) -> str:
    if tested.refusals:
        return f"not comparable, because {'; and '.join(tested.refusals)}"
    told = f"nothing is told of the time of a step: {no_steps}" if found is None else _of_steps(steps, found)
    checks = dict(tested.rows)
    if found is not None and all(checks[what].verdict == "not known" for what in (SHAPES, OPERATIONS)):
        told += "; whether both do the same work is not known"
    explaining = [row["sentence"] for row in named if row["explains"] and row is not load]
    others = [row["sentence"] for row in named if not row["explains"] and row["kind"] not in BESIDE]
    beside = f"; beside it: {others[0]}" if others else ""
    if load is not None:
        enough = f"the load of the machine is enough for {min(1.0, load['share']):.0%} of that"
        told += f"; {enough}, so that it tells nothing of the code: {load['sentence']}"
        return told + (f"; beside it: {explaining[0]}" if explaining else beside)
    if explaining:
        return f"{told}; {explaining[0]}{beside}"
    if steps["verdict"] in ("faster", "slower"):
        none = "no mechanism found that explains it" if named else "no mechanism found: nothing that is timed by name changed"
        return f"{told}; {none}{beside or ', and fewer graphs alone are no result'}"
    return f"{told}; {others[0] if others else 'no mechanism found'}"


def _of_steps(steps: Facts, found: Difference) -> str:
    told = f"{duration(steps['a']['median'])} in A and {duration(steps['b']['median'])} in B"
    if found.interval is None:
        return f"a step takes {told}; how far that can be trusted is not known"
    low, high = (signed(one) for one in found.interval)
    if steps["verdict"] == "no difference seen":
        few = min(steps["a"]["n"], steps["b"]["n"]) < FEW
        seen = "of so few steps no difference can be told" if few else "no difference seen in the steps"
        apart = found.interval[0] > 0 or found.interval[1] < 0
        small = f"; two runs of one program differ by up to {SAME_PROGRAM:.0%}, too" if apart else ""
        return f"{seen}: {told} ({low} to {high}{small})"
    by = f"{duration(abs(found.value))} {'less' if found.value < 0 else 'more'}"
    return f"a step of B takes {by}: {told} ({low} to {high})"
