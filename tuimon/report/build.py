"""The report as a dict of plain values, in the words and units of its contract ("tuimon.report/1").

Times are seconds as floats, `at` and `attached_at` are Unix times. What is not known is None and has its reason in
`coverage.not_available`; a zero is a measured zero.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tuimon.model import Model
from tuimon.model.recorded import NOT_IN_FILE
from tuimon.model.statistics import RULE, WINDOW
from tuimon.report import compiler, roofline, runtime, spans, surroundings
from tuimon.report import phases as phases_part
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
    file: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """All that `model` knows at this moment. `ceiling` is the one that a person chose for the roofline, if any; `known` what is
    known of machines, `here` whether the job runs on this one.

    `ranks`: all the processes that were watched, where they were several; `model` is one of theirs. `file`: what they
    were read from, {name, kind, ranks}.
    """
    gaps = Gaps.of(model)
    if not ranks:
        one = f"{NOT_IN_FILE}: it is of one process" if model.target.how == "file" else "one process was watched"
        gaps.add("ranks", f"{one}: ranks cannot be compared")
    if file is not None and ranks:
        gaps.add("ranks[].host", "where it ran is not read from a file")
    computed = roofline.seen(model, known, here=here)
    report: dict[str, Any] = {
        "schema": SCHEMA,
        "target": _target(model, gaps, file),
        "aggregation": _aggregation(model),
        "coverage": {},
        "warmup": compiler.warmup(model, gaps),
        "frames": compiler.frames(model, gaps),
        "regions": runtime.regions(model, gaps, roofline.per_region(computed, model, gaps)),
        "boundaries": runtime.boundaries(model, gaps),
        "recompiles": compiler.recompiles(model),
        "compiles": compiler.compiles(model, gaps),
        "steps": steps_part.steps(model, gaps),
        "phases": phases_part.phases(model),
        "slow_steps": steps_part.slow_steps(model, gaps),
        "trends": steps_part.trends(model),
        "ranks": ranks_part.rows(ranks, gaps) if ranks else None,
        "ranks_verdict": ranks_part.verdicts(ranks) if ranks else None,
        "gpu": surroundings.gpu(model, gaps),
        "host": surroundings.host(model, gaps),
        "roofline": roofline.part(computed, model, ceiling, gaps),
        "spans": spans.part(model, gaps),
        "recording": phases_part.recording(model, file, gaps),
        "findings": findings(model, ranks_part.compared(ranks), [(one.label, one.model) for one in ranks]),
    }
    report["coverage"] = _coverage(model, gaps)  # last: by now every gap has come up
    return report


def _target(model: Model, gaps: Gaps, file: Mapping[str, Any] | None) -> dict[str, Any]:
    target = model.target
    if target.torch is None:
        why = f"{NOT_IN_FILE}: it does not tell the version" if target.how == "file" else _NO_TORCH
        gaps.add("target.torch", why)
    if target.rank is None:
        whole = "the job says nothing of a rank: it is no part of a distributed job, as far as can be told"
        gaps.add("target.rank", f"{NOT_IN_FILE}: it tells of no rank" if target.how == "file" else whole)
    if target.how == "run":
        before: int | None = 0
    else:
        before = model.steps.before_attach
        if before is None:
            gaps.add("target.steps_before_attach", "torch counts no steps, and nobody watched before")
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
        "file": None if file is None else {"name": file["name"], "kind": file["kind"], "ranks": file["ranks"]},
        "ended": None
        if target.ended is None
        else {"how": target.ended, "detail": target.ended_detail, "status": target.status},
    }


def _aggregation(model: Model) -> dict[str, str]:
    untold = "; this file does not tell which had one: all are counted" if model.recorded.missing("compiles") else ""
    return {
        "rule": RULE,
        "initial": "calls with a compilation in them; the first one counts from the start of its compilation",
        "steady": f"median [p10-p90] of the last {WINDOW} calls of a frame's first entry, calls with a compilation left out"
        f"{untold}",
        "after_guard_change": f"median [p10-p90] of the last {WINDOW} calls of entries that a recompile made",
        "steps": f"median [p10-p90] of the last {WINDOW} steps, end to end, those with a compilation in them included",
        "steps.breakdown": steps_part.BREAKDOWN,
        "phases": phases_part.RULE,
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
    hooked = model.target.how != "file"
    if coverage.hook_s is None:
        gaps.add("coverage.hook_s", "the hook had not reported its own cost yet")
    return {
        "samples": coverage.samples if hooked else None,
        "dropped": coverage.dropped if hooked else None,
        "windows": model.closed_windows,
        "hook_s": coverage.hook_s,
        "instruments": dict(coverage.instruments),
        "not_available": gaps.listed(),
    }
