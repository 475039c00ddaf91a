"""Ranks that the others of their job wait for. A verdict is a finding where enough time was lost by it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tuimon.model.findings.finding import Finding

if TYPE_CHECKING:
    from tuimon.model.ranks.lateness import Lateness

LOST_S = 0.1
"""So long somebody has waited, all together."""


def find(lateness: Lateness) -> list[Finding]:
    """One for each verdict that cost enough."""
    return [
        Finding(one.kind, one.sentence, "", one.cost_s, one.evidence, one.next_step)
        for one in lateness.verdicts()
        if one.cost_s >= LOST_S
    ]
