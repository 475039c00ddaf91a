"""What a person should look at, most costly first. A healthy job has no finding.

A finding names a place, its cost as it was measured, the evidence, and what to do next. A graph break is none by itself: only
a boundary that costs a share of the steps is. Compilation in the first step is none either: it is what was asked for.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tuimon.model.identity import plain_function
from tuimon.model.parts import Boundary, Recompile

if TYPE_CHECKING:
    from tuimon.model.model import Model

BOUNDARY_SHARE = 0.02
"""A boundary that takes less of the steady steps' time than this is shown in its table and is no finding."""


@dataclass(frozen=True, slots=True)
class Finding:
    """Something to look at."""

    kind: str
    """"boundary", "recompile", "limit"."""
    title: str
    where: str
    """"file:line"."""
    cost_s: float | None
    """Seconds seen so far, None where the cost is not known."""
    evidence: tuple[str, ...]
    next_step: str


def findings(model: Model) -> list[Finding]:
    """All findings, most costly first; those whose cost is not known come last."""
    found = [*_boundaries(model), *_recompiles(model), *_limits(model)]
    return sorted(found, key=lambda finding: (finding.cost_s is None, -(finding.cost_s or 0.0)))


def share_of_step(model: Model, boundary: Boundary) -> float | None:
    """The boundary's host time in steady steps over the time of those steps.

    None while there are none, and where the time of more than a hundredth of the crossings is not known: a sum with holes is
    no share.
    """
    steps, share = model.steps, boundary.share
    if not steps.steady_ns or boundary.crossings is None or share.untimed * 100 > share.count:
        return None
    return share.ns / steps.steady_ns


def per_step(model: Model, boundary: Boundary) -> float | None:
    """Crossings of the boundary in one steady step; None while there are none, or where crossings cannot be counted."""
    steps = model.steps
    if not steps.steady_n or boundary.crossings is None:
        return None
    return boundary.share.count / steps.steady_n


def _boundaries(model: Model) -> list[Finding]:
    found = []
    for boundary in model.boundaries.values():
        share = share_of_step(model, boundary)
        if share is None or share < BOUNDARY_SHARE or boundary.accepted is not None or boundary.requested:
            continue
        host = boundary.host.summary
        each = f"{host.median * 1e6:.0f} us" if host.median is not None else "?"
        found.append(
            Finding(
                kind="boundary",
                title=f"the boundary in {boundary.function} takes {share:.0%} of a step: {boundary.kind}",
                where=f"{boundary.user_file}:{boundary.user_line}",
                cost_s=host.total,
                evidence=(
                    f"{boundary.crossings} crossings, {per_step(model, boundary):.3g} a step, median {each} of host time",
                    f"{host.total:.3f} s of host time in all",
                ),
                next_step=boundary.hints[0] if boundary.hints else "look at the line: can the graph go on without it?",
            )
        )
    return found


def _recompiles(model: Model) -> list[Finding]:
    found = []
    by_frame: dict[str, list[Recompile]] = {}
    for recompile in model.recompiles:
        if not recompile.compilation.refused:
            by_frame.setdefault(recompile.compilation.frame or "?", []).append(recompile)
    for recompiles in by_frame.values():
        last = recompiles[-1].compilation
        known = [r.compilation.total_s for r in recompiles if r.compilation.total_s is not None]
        when = " before the attach" if last.before_attach else ""
        times = "once" if len(recompiles) == 1 else f"{len(recompiles)} times"
        found.append(
            Finding(
                kind="recompile",
                title=f"{_shown(last.function)} was recompiled {times}{when}: {recompiles[-1].guard}",
                where=f"{last.file}:{last.line}",
                cost_s=sum(known) if known else None,
                evidence=tuple(f"[{r.compilation.compile_id}] {r.guard}" for r in recompiles[-4:]),
                next_step="keep what the guard names the same from call to call, or mark it dynamic",
            )
        )
    return found


def _shown(function: str) -> str:
    plain = plain_function(function)
    return function if plain == function else f"{plain} (the part after its graph break)"


def _limits(model: Model) -> list[Finding]:
    return [
        Finding(
            kind="limit",
            title=f"{_shown(frame.name)} is at its limit of {frame.limit} entries; calls that fit none of them run in eager",
            where=f"{frame.file}:{frame.line}",
            cost_s=None,
            evidence=(f"[{frame.refused_compile_id}] was refused", f"{len(frame.entries)} entries go on serving"),
            next_step=f"see its recompiles for the guard that keeps failing ({os.path.basename(frame.file)}:{frame.line})",
        )
        for frame in model.frames.values()
        if frame.refused_compile_id is not None
    ]
