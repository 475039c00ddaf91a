"""Boundaries that take a share of the steps."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tuimon.model.about import About
from tuimon.model.findings.finding import Finding, many, place, seconds
from tuimon.model.hosts import reads_host
from tuimon.model.identity import is_library
from tuimon.model.parts import Boundary

if TYPE_CHECKING:
    from tuimon.model.model import Model

BOUNDARY_SHARE = 0.02
"""A boundary that takes less of the steady steps' time than this is shown in its table and is no finding."""


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


def find(model: Model) -> list[Finding]:
    """One for each boundary whose share is `BOUNDARY_SHARE` or more, apart from requested and accepted ones."""
    found = []
    for boundary in model.boundaries.values():
        share = share_of_step(model, boundary)
        if share is None or share < BOUNDARY_SHARE or boundary.accepted is not None or boundary.requested:
            continue
        found.append(_finding(model, boundary, share))
    return found


def _finding(model: Model, boundary: Boundary, share: float) -> Finding:
    host = boundary.host.summary
    each = seconds(host.median) if host.median is not None else "?"
    crossed = many(boundary.crossings or 0, "crossing")
    evidence = [
        f"{crossed}, {per_step(model, boundary):.3g} a step, median {each} of host time",
        f"{seconds(host.total)} of host time in all",
    ]
    if boundary.sync_waited:
        evidence.append(
            f"a wait for the device was seen in {boundary.sync_waited} of {boundary.sync_looked} crossings looked at"
        )
    elif reads_host(boundary.kind, boundary.explanation):
        evidence.append("an operation of this kind reads a value: on a device the host waits for it")
    if is_library(boundary.file) and (boundary.file, boundary.line) != (boundary.user_file, boundary.user_line):
        evidence.append(f"the break itself is in {boundary.file}:{boundary.line}, called from the line above")
    at = place(boundary.user_file or boundary.file, boundary.user_line or boundary.line)
    return Finding(
        kind="boundary",
        title=f"the boundary in {boundary.function} at {at} takes {share:.0%} of a step: {boundary.kind or 'reason not known'}",
        where=f"{boundary.user_file or boundary.file}:{boundary.user_line or boundary.line}",
        cost_s=host.total,
        evidence=tuple(evidence),
        next_step=_next_step(boundary),
        about=About("boundary", boundary.key),
    )


def _next_step(boundary: Boundary) -> str:
    if boundary.asked_by == "library":
        return "the library asks for this break itself: keep that call out of the compiled function, or accept the boundary"
    return boundary.hints[0] if boundary.hints else "look at the line: can the graph go on without it?"
