"""The report as a dict of plain values, in the words and units of its contract ("tuimon.report/1").

Times are seconds as floats, `at` and `attached_at` are Unix times. What is not known is None and has its reason in
`coverage.not_available`; a zero is a measured zero.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tuimon.model import Model
from tuimon.model.statistics import RULE, WINDOW
from tuimon.report import compiler, roofline, runtime, surroundings
from tuimon.report import ranks as ranks_part
from tuimon.report import steps as steps_part
from tuimon.report.found import findings
from tuimon.report.gaps import Gaps
from tuimon.report.ranks import Watched
from tuimon.roofline.ceilings import Ceiling
from tuimon.roofline.inforce import Known
from tuimon.roofline.points import RULE as RULE_OF_POINTS

SCHEMA = "tuimon.report/1"
_NO_TORCH = "the job had not imported torch when this report was made"


def build(
    model: Model,
    *,
    ceiling: Ceiling | None = None,
    ranks: Sequence[Watched] = (),
    known: Known | None = None,
    here: bool = True,
) -> dict[str, Any]:
    """All that `model` knows at this moment. `ceiling` is the one that a person chose for the roofline, if any; `known` what is
    known of machines, `here` whether the job runs on this one.

    `ranks`: all the processes that were watched, where they were several; `model` is one of theirs.
    """
    gaps = Gaps(model.coverage.not_available)
    if not ranks:
        gaps.add("ranks", "one process was watched: ranks cannot be compared")
    computed = roofline.seen(model, known, here=here)
    report: dict[str, Any] = {
        "schema": SCHEMA,
        "target": _target(model, gaps),
        "aggregation": _aggregation(model),
        "coverage": {},
        "warmup": compiler.warmup(model, gaps),
        "frames": compiler.frames(model, gaps),
        "regions": runtime.regions(model, gaps, roofline.per_region(computed, model, gaps)),
        "boundaries": runtime.boundaries(model, gaps),
        "recompiles": compiler.recompiles(model),
        "compiles": compiler.compiles(model, gaps),
        "steps": steps_part.steps(model, gaps),
        "slow_steps": steps_part.slow_steps(model, gaps),
        "trends": steps_part.trends(model),
        "ranks": ranks_part.rows(ranks, gaps) if ranks else None,
        "ranks_verdict": ranks_part.verdicts(ranks) if ranks else None,
        "gpu": surroundings.gpu(model, gaps),
        "host": surroundings.host(model, gaps),
        "roofline": roofline.part(computed, model, ceiling, gaps),
        "findings": findings(model, ranks_part.compared(ranks)),
    }
    report["coverage"] = _coverage(model, gaps)  # last: by now every gap has come up
    return report


def _target(model: Model, gaps: Gaps) -> dict[str, Any]:
    target = model.target
    if target.torch is None:
        why = "the file does not tell its version" if target.how == "file" else _NO_TORCH
        gaps.add("target.torch", why)
    if target.rank is None:
        gaps.add("target.rank", "the job says nothing of a rank: it is no part of a distributed job, as far as can be told")
    if target.how == "run":
        before: int | None = 0
    else:
        before = model.steps.before_attach
        if before is None:
            why = "a file holds what it holds" if target.how == "file" else "torch counts no steps, and nobody watched before"
            gaps.add("target.steps_before_attach", why)
    return {
        "pid": target.pid,
        "command": target.command,
        "python": target.python,
        "torch": target.torch,
        "devices": list(target.devices),
        "rank": target.rank,
        "world_size": target.world_size,
        "how": target.how,
        "attached_at": target.attached_wall_s,
        "steps_before_attach": before,
        "options": dict(target.options),
        "ended": None
        if target.ended is None
        else {"how": target.ended, "detail": target.ended_detail, "status": target.status},
    }


def _aggregation(model: Model) -> dict[str, str]:
    return {
        "rule": RULE,
        "initial": "calls with a compilation in them; the first one counts from the start of its compilation",
        "steady": f"median [p10-p90] of the last {WINDOW} calls of a frame's first entry, calls with a compilation left out",
        "after_guard_change": f"median [p10-p90] of the last {WINDOW} calls of entries that a recompile made",
        "steps": f"median [p10-p90] of the last {WINDOW} steps, end to end, those with a compilation in them included",
        "steps.breakdown": steps_part.BREAKDOWN,
        "slow_steps": model.slowness.rule,
        "ranks": ranks_part.RULE,
        "boundaries.host": "from the return of the region before the break to the call of the code that goes on, "
        "without compilations and without regions called in between",
        "per_step": "over the steps without a compilation in them",
        "share_of_step": "host time at the boundary in steps without a compilation, over the time of those steps",
        "roofline": f"{RULE_OF_POINTS}; over all calls since the attach without a compilation in them",
        "compile_s": "disjoint parts of the total: each without the parts that torch counts within it",
    }


def _coverage(model: Model, gaps: Gaps) -> dict[str, Any]:
    coverage = model.coverage
    if coverage.hook_s is None:
        gaps.add("coverage.hook_s", "the hook had not reported its own cost yet")
    return {
        "samples": coverage.samples,
        "dropped": coverage.dropped,
        "windows": model.closed_windows,
        "hook_s": coverage.hook_s,
        "instruments": dict(coverage.instruments),
        "not_available": gaps.listed(),
    }
