"""Ranks that the others of their job wait for, and ranks that do not run their graphs in the same order.

A verdict is a finding where enough time was lost by it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tuimon.model.about import About
from tuimon.model.findings.finding import Finding, many

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


def who_is_late(model: Model, compared: Sequence[Lateness]) -> str:
    """The next step where this model's rank waits for others: to attach to those that are watched already is none."""
    own, size = model.target.rank, model.target.world_size
    together = [(one, ranks) for one in compared if len(ranks := one.together(own)) > 1]
    if own is None or len(together) != 1:  # of two jobs that have a rank of this number, it is not known which is this one's
        return "find the rank that comes late: tuimon attach --all compares them; where none is, look at the network"
    lateness, ranks = together[0]
    for verdict in sorted(lateness.verdicts(), key=lambda one: one.kind == "compile_skew"):  # others wait for that now and then
        if verdict.key != ranks[own]:
            return verdict.next_step
    n, least = lateness.fewest
    if n < least:
        if not n:
            return "where the ranks meet was not seen, so who is late is not known: compare what is slow in each of them"
        return f"who is late is not known yet: {many(n, 'step')} compared, where {least} are the least"
    if size is None:
        return "none of the other ranks that are watched is late often: watch any that are not, else look at the network"
    unseen = size - len(ranks)
    if unseen > 0:
        return f"none of the other ranks that are watched is late often: watch the {unseen} that are not, too"
    return "none of the other ranks is late often: look at the network"


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
