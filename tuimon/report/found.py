"""The report's findings: what the model concludes, as plain values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tuimon.model import Model
from tuimon.model.findings import findings as conclude
from tuimon.model.ranks.lateness import Lateness


def findings(model: Model, ranks: Sequence[Lateness] = (), beside: Sequence[tuple[str, Model]] = ()) -> list[dict[str, Any]]:
    """`findings[]`, most costly first; empty for a healthy job. `cost` is in seconds, None where it is not known.

    `ranks`: of each job, what is known of its ranks beside each other; `beside`: all processes, by name.
    """
    return [
        {
            "kind": finding.kind,
            "title": finding.title,
            "where": finding.where,
            "cost": finding.cost_s,
            "evidence": list(finding.evidence),
            "next_step": finding.next_step,
        }
        for finding in conclude(model, ranks, beside)
    ]
