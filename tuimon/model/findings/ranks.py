"""Ranks that the others of their job wait for, and ranks that do not run their graphs in the same order.

A verdict is a finding where enough time was lost by it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tuimon.model.about import About
from tuimon.model.findings.finding import Finding

if TYPE_CHECKING:
    from tuimon.model.model import Model
    from tuimon.model.ranks.lateness import Lateness

LOST_S = 0.1
"""So long somebody has waited, all together."""


def find(lateness: Lateness) -> list[Finding]:
    """One for each verdict that cost enough."""
    return [
        Finding(one.kind, one.sentence, "", one.cost_s, one.evidence, one.next_step, about=About("rank", str(one.key)))
        for one in lateness.verdicts()
        if one.cost_s >= LOST_S
    ]


SHOWN = 12
"""Graphs of an order that are told."""


def orders(ranks: Sequence[tuple[str, Model]]) -> list[Finding]:
    """One where logs say that ranks ran their graphs in different orders. `ranks`: (what to call it, its model)."""
    told = [(name, model.recorded.executed) for name, model in ranks if model.recorded.executed]
    found: list[tuple[str, tuple[str, ...], int]] = []
    for name, order in told[1:]:
        first = told[0][1]
        at = next((at for at, (one, other) in enumerate(zip(first, order, strict=False)) if one != other), None)
        if at is not None:
            found.append((name, order, at))
    if not found:
        return []
    (name, order), (other, others, at) = told[0], found[0]
    more = f", and {len(found) - 1} more differ" if len(found) > 1 else ""
    title = f"{name} and {other} run their graphs in different orders: number {at + 1} is {order[at]} and {others[at]}{more}"
    evidence = [f"{who}: {_words(ran)}" for who, ran in ((name, order), *((who, ran) for who, ran, _ in found[:4]))]
    advice = (
        "ranks that come to collectives in different orders wait for each other without end: look for a branch that goes by "
        "the rank or by data"
    )
    return [Finding("graph_order", title, "", None, tuple(evidence), advice, about=About("rank", ""))]


def _words(order: Sequence[str]) -> str:
    return " ".join(order[:SHOWN]) + (f" and {len(order) - SHOWN} more" if len(order) > SHOWN else "")
