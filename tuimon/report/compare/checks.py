"""The checks before a comparison: is it the same work, on the same machine, timed in the same way?

Some of what differs makes two runs no pair (`refuses`); the rest is said beside the numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tuimon.draw.format import count, duration, per_step
from tuimon.report.compare import work
from tuimon.report.compare.parts import Met
from tuimon.report.compare.side import Side
from tuimon.report.compare.work import Verdict, Work
from tuimon.report.phases import THE_END
from tuimon.report.phrases import many

FEWEST = 20
"""Whole steps that each of two recordings has at least."""
FEWEST_IN_TRACE = 3
"""A profiler's trace holds but a few; the interval tells what they are worth."""
SHAPES = "shapes"
OPERATIONS = "operations per step"
HOST_ALONE = "host times alone"
WHOLE = "all of it"

KINDS = {
    "recording": "recording",
    "torch_trace": "TORCH_TRACE log",
    "kineto": "Kineto trace",
    "ncu": "table of Nsight Compute",
}
_TOO_MANY_DROPPED = 0.05
OTHER_LOAD = 0.1
"""Of its time a thread waits for a core no more than so much, or so much more, where nothing is said of it."""
MOST_OPTIONS = 6
"""Of those that differ so many are named."""


@dataclass(frozen=True)
class Checked:
    """All checks, in the order in which they are told."""

    rows: list[tuple[str, Verdict]]

    @property
    def refusals(self) -> list[str]:
        """Why the pair is none; empty where it is one."""
        return [verdict.refuses for _, verdict in self.rows if verdict.refuses]


def checked(a: Side, b: Side, works: tuple[Work, Work], met: Sequence[Met]) -> Checked:
    """Every check of two runs."""
    rows = [("kind of file", _kind(a, b))]
    if a.phase is not None:
        rows.append(("phase", _phase(a, b)))
    rows += [
        ("torch", _equal(a.model.target.torch, b.model.target.torch)),
        ("python", _equal(a.model.target.python, b.model.target.python)),
        ("devices", _devices(a, b)),
        ("world size", _world(a, b)),
        ("rank", _rank(a, b)),
        ("options", _options(a, b)),
        ("step source", _source(a, b)),
        ("steps", _steps(a, b)),
        ("whole", _complete(a, b)),
        ("samples dropped", _dropped(a, b)),
        ("waiting for a core", _waiting(a, b)),
        (SHAPES, work.shapes(*works)),
        ("dtype", work.dtypes(*works)),
        (OPERATIONS, work.operations(*works)),
        ("host work at boundaries", _boundaries(met)),
        ("device completion", _completion(a, b)),
    ]
    return Checked(rows)


def _equal(a: object, b: object) -> Verdict:
    if a is None or b is None:
        return Verdict(_shown(a), _shown(b), "not known", "the file does not tell it")
    return Verdict(str(a), str(b), "same" if a == b else "differs")


def _shown(value: object) -> str:
    return "not told" if value is None else str(value)


def _kind(a: Side, b: Side) -> Verdict:
    first, second = KINDS.get(a.kind, a.kind), KINDS.get(b.kind, b.kind)
    if a.kind == b.kind == "ncu":
        why = "a table of Nsight Compute has kernels alone: no steps and no times of a job that could be compared"
        return Verdict(first, second, "same", None, why)
    if a.kind == b.kind:
        return Verdict(first, second, "same")
    return Verdict(first, second, "differs", None, f"A is a {first} and B a {second}: what one times the other does not")


def _phase(a: Side, b: Side) -> Verdict:
    told = _phase_of(a), _phase_of(b)
    for name, side in (("A", a), ("B", b)):
        if side.marked is None:
            names = ", ".join(dict.fromkeys(one.name for one in side.model.phases.all))
            has = f"it has {names}" if names else "no phase is marked in it (tuimon record --phases ..)"
            return Verdict(*told, "differs", None, f"{name} has no phase {side.phase}: {has}")
    if a.population != b.population:
        why = f"in this phase the steps of A are those {a.population}, and of B those {b.population}"
        return Verdict(*told, "differs", None, why)
    assert a.marked is not None and b.marked is not None
    same = a.marked.planned == b.marked.planned
    return Verdict(*told, "same" if same else "differs", None if same else "the phases were planned to be of other lengths")


def _phase_of(side: Side) -> str:
    if side.marked is None:
        return "none"
    return f"{side.phase}, {side.marked.planned}" if side.marked.planned else str(side.phase)


def _devices(a: Side, b: Side) -> Verdict:
    first, second = (sorted(set(side.model.target.devices)) for side in (a, b))
    told = ", ".join(first) or "not told", ", ".join(second) or "not told"
    if not first or not second:
        return Verdict(*told, "not known", "the file does not tell it")
    if first == second:
        return Verdict(*told, "same")
    return Verdict(*told, "differs", None, f"A ran on {told[0]} and B on {told[1]}")


def _world(a: Side, b: Side) -> Verdict:
    first, second = (_world_size(side) for side in (a, b))
    if first == second:
        return Verdict(_alone(first), _alone(second), "same")
    told = f"A is a job of {_alone(first)} and B of {_alone(second)}"
    return Verdict(_alone(first), _alone(second), "differs", None, told)


def _world_size(side: Side) -> int:
    return side.model.target.world_size or 1


def _alone(number: int) -> str:
    return many(number, "process", "processes")


def _rank(a: Side, b: Side) -> Verdict:
    first, second = a.model.target.rank, b.model.target.rank
    if first is None and second is None:
        why = None if max(a.ranks, b.ranks) == 1 else "there are several files on a side; the first one is compared"
        return Verdict("none", "none", "same", why)
    why = None if max(a.ranks, b.ranks) == 1 else f"A holds {a.ranks} and B {b.ranks}; one of each is compared"
    return Verdict(_shown(first), _shown(second), "same" if first == second else "differs", why)


def _options(a: Side, b: Side) -> Verdict:
    first, second = dict(a.model.target.options), dict(b.model.target.options)
    if a.model.target.recompile_limit is not None or b.model.target.recompile_limit is not None:
        first.setdefault("recompile_limit", _shown(a.model.target.recompile_limit))
        second.setdefault("recompile_limit", _shown(b.model.target.recompile_limit))
    if not first and not second:
        return Verdict("not told", "not told", "not known", "the file does not tell it")
    other = [name for name in dict.fromkeys([*first, *second]) if first.get(name) != second.get(name)]
    if not other:
        return Verdict(many(len(first), "option"), many(len(second), "option"), "same")
    why = f"{len(other)} of them differ" if len(other) > MOST_OPTIONS else None
    return Verdict(_named(first, other), _named(second, other), "differs", why)


def _named(options: dict[str, str], names: Sequence[str]) -> str:
    return ", ".join(f"{name}={options.get(name, 'not told')}" for name in names[:MOST_OPTIONS])


def _source(a: Side, b: Side) -> Verdict:
    first, second = (side.model.steps for side in (a, b))
    if first.source is None and second.source is None:
        return Verdict("none", "none", "not known", a.no_steps)
    told = first.source or "none", second.source or "none"
    if first.source == second.source:
        return Verdict(*told, "same", None if first.how == second.how else f"A: {first.how}; B: {second.how}")
    return Verdict(*told, "differs", None, f"steps are told by {told[0]} in A and by {told[1]} in B: one is not the other's")


def _steps(a: Side, b: Side) -> Verdict:
    told = _whole(a), _whole(b)
    if a.no_steps and b.no_steps:
        if a.kind == b.kind == "torch_trace":  # it can tell what was compiled, and that is worth comparing
            return Verdict("none", "none", "not known", a.no_steps)
        return Verdict("none", "none", "not known", None, f"neither tells a step: {a.no_steps}")
    fewest = FEWEST_IN_TRACE if a.kind == b.kind == "kineto" else FEWEST
    for name, side in (("A", a), ("B", b)):
        if len(side.steps) < fewest and side.population == "without a compilation":
            few = f"{name} has {many(len(side.steps), 'whole step')} without a compilation, {fewest} are needed"
            lost = sum(not one.complete for one in side.model.steps.accounts)
            few += f" (samples were dropped in {lost} others)" if lost else ""
            return Verdict(*told, "differs", None, few)
    rough = min(len(a.steps), len(b.steps)) < FEWEST
    return Verdict(*told, "same", f"fewer than {FEWEST}: the interval is a rough one" if rough else None)


def _whole(side: Side) -> str:
    return f"{count(len(side.steps))} whole ones {side.population}"


def _complete(a: Side, b: Side) -> Verdict:
    first, second = _missing(a), _missing(b)
    if first == second == WHOLE:
        return Verdict(first, second, "same")
    return Verdict(first, second, "not known", "what is not there may have been another part of the job")


def _missing(side: Side) -> str:
    gaps = len(side.model.recorded.gaps)
    told = [f"{many(gaps, 'stretch', 'stretches')} missing"] if gaps else []
    told += ["cut off at its end"] if THE_END in side.model.coverage.not_available else []
    return ", ".join(told) or WHOLE


def _dropped(a: Side, b: Side) -> Verdict:
    shares = [_dropped_share(side) for side in (a, b)]
    first, second = ("not told" if share is None else f"{share:.2%}" for share in shares)
    known = [share for share in shares if share is not None]
    if not known:
        return Verdict(first, second, "not known", "the file does not tell it")
    if max(known) > _TOO_MANY_DROPPED:
        return Verdict(first, second, "differs", "counts a step are too low where many were dropped")
    return Verdict(first, second, "same")


def _waiting(a: Side, b: Side) -> Verdict:
    first, second = (_share(side.waited) for side in (a, b))
    if a.waited is None or b.waited is None:
        return Verdict(first, second, "not known", "it was not read, or for less than half of these steps")
    if abs(a.waited - b.waited) > OTHER_LOAD:
        return Verdict(first, second, "differs", "other programs kept the machine busier in one of them: times tell that too")
    busy = max(a.waited, b.waited) > OTHER_LOAD
    return Verdict(first, second, "same", "the machine was busy with other programs: intervals are wide" if busy else None)


def _share(value: float | None) -> str:
    return "not told" if value is None else f"{value:.0%} of the time"


def _dropped_share(side: Side) -> float | None:
    coverage = side.model.coverage
    every = coverage.samples + coverage.dropped
    return coverage.dropped / every if every else None


def _boundaries(met: Sequence[Met]) -> Verdict:
    mine = [one for one in met if one.a is not None], [one for one in met if one.b is not None]
    told = _crossed(mine[0], "a"), _crossed(mine[1], "b")
    if len(mine[0]) == len(mine[1]) == len(met):
        return Verdict(*told, "same")
    return Verdict(*told, "differs", "what ran there may still run elsewhere: a boundary that is gone is told by name")


def _crossed(mine: Sequence[Met], which: str) -> str:
    if not mine:
        return "none"
    n = many(len(mine), "boundary", "boundaries")
    crossed = [one.row["per_step"][which] for one in mine]
    if all(one is None for one in crossed):
        return f"{n}, crossings not known"
    host = [one.row["host_per_step"][which] for one in mine if one.row["host_per_step"][which] is not None]
    costs = f", host {duration(sum(host))} a step" if host else ""
    times = sum(one or 0.0 for one in crossed)
    return f"{n}, {per_step(times)} {'crossing' if times == 1 else 'crossings'} a step{costs}"


def _completion(a: Side, b: Side) -> Verdict:
    told = _completed(a), _completed(b)
    if told[0] != told[1]:
        return Verdict(*told, "differs")
    if told[0] != HOST_ALONE:
        return Verdict(*told, "same")
    return Verdict(*told, "not known", "device work may still run when a step ends")


def _completed(side: Side) -> str:
    if set(side.model.target.devices) == {"cpu"}:
        return "CPU: a call is over when it returns"
    if any(region.device.n for region in side.model.regions.values()):
        return "some calls timed on the device"
    if any(row[5] >= 0 for seen in side.model.kernels.values() for row in seen.rows):
        return "kernels timed on the device"
    return HOST_ALONE
