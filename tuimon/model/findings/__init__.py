"""What a person should look at, most costly first. A healthy job has no finding.

A finding names a place, its cost as it was measured, the evidence, and what to do next. A graph break is none by itself: only
a boundary that costs a share of the steps is. Compilation in the first step is none either: it is what was asked for; and a
recompile that happened once and is over is a row in its table.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tuimon.model.findings import boundaries, eager, machine, ranks, recompiles, settings, slow
from tuimon.model.findings.boundaries import BOUNDARY_SHARE, per_step, share_of_step
from tuimon.model.findings.finding import Finding

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tuimon.model.model import Model
    from tuimon.model.ranks.lateness import Lateness

__all__ = ["BOUNDARY_SHARE", "Finding", "findings", "per_step", "share_of_step"]

_FIRST = ("disabled", "stance", "compiled nothing")
"""Kinds that come before all others: while they hold, nothing else about the compiler matters."""
_SILENT = ("skipped frame", "limit")
"""Kinds whose cost cannot be measured and may be all of the time: next, the largest number of calls in eager first."""


def findings(model: Model, compared: Iterable[Lateness] = (), beside: Sequence[tuple[str, Model]] = ()) -> list[Finding]:
    """All findings: what makes the whole compilation void, then what runs in eager unseen, then by cost; those whose cost is
    not known come last.

    `compared`: of each job of which several ranks are watched, what they are beside each other; `beside`: all of them, by name.
    """
    compared = list(compared)
    found = [*settings.find(model), *eager.find(model), *boundaries.find(model), *recompiles.find(model)]
    found += slow.find(model, compared)
    found += machine.find(model, compared)
    found += [one for lateness in compared for one in ranks.find(lateness)] + ranks.orders(beside)
    return sorted(found, key=_weight)


def _weight(finding: Finding) -> tuple[int, float]:
    if finding.kind in _FIRST:
        return _FIRST.index(finding.kind), 0.0
    if finding.kind in _SILENT:
        return len(_FIRST), -(finding.calls or 0.0)
    if finding.cost_s is None:
        return len(_FIRST) + 2, 0.0
    return len(_FIRST) + 1, -finding.cost_s
