"""The report's part about steps: how they are told, what they are divided into, which were slow and why, what changes."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import Any

from tuimon.model import Model
from tuimon.model.slow.naming import sentence
from tuimon.model.slow.trends import modes
from tuimon.model.steps.parts import CATEGORIES, SlowStep, StepAccount
from tuimon.report.gaps import Gaps

STEADY = 512
"""The breakdown is over the last so many steady steps."""
BREAKDOWN = (
    f"median of each category over the last {STEADY} steps that were not slow and had no compilation in them; medians do not "
    "add up to the median step, the means in breakdown_mean do to the mean one"
)


def steps(model: Model, gaps: Gaps) -> dict[str, Any]:
    """`steps`: where they come from, how many, how long, and what they are divided into."""
    found = model.steps
    if found.source is None:
        why = found.why_not or "no step has been seen since the attach"
        for what in ("steps.source", "boundaries.per_step", "boundaries.share_of_step"):
            gaps.add(what, why)
    if model.coverage.unmarked:  # steps are told by something else
        gaps.add("steps.marked", model.coverage.unmarked)
    steady = steady_steps(model)
    if not steady:
        dropped = any(not one.complete for one in found.accounts)
        none = "samples were dropped while the steps ran" if dropped else "no steady step has been seen"
        gaps.add("steps.breakdown", found.why_not or none)
    summary = found.durations.summary
    counted, compiles = not model.recorded.missing("steps"), not model.recorded.missing("compiles")
    return {
        "source": found.source,
        "how": found.how or None,
        "from": f"{model.steps_since}: step {found.first} is the first whole one" if found.source is not None else None,
        "n": found.n if counted else None,
        "without_compilation": found.steady_n if counted and compiles else None,
        "median": summary.median,
        "p10": summary.p10,
        "p90": summary.p90,
        "breakdown": _told(model, by_category(steady, median)) if steady else None,
        "breakdown_mean": _told(model, by_category(steady, _mean)) if steady else None,
        "slow": found.slow_n if counted else None,
    }


UNTOLD = ("compile", "boundary", "gc", "profiler")
"""Categories that no trace of torch.profiler tells apart: what was of them is in "other python"."""


def _told(model: Model, parts: dict[str, float]) -> dict[str, float]:
    """Without the categories that this kind of file does not tell: a zero would say that there was none."""
    if not model.recorded.missing("compiles"):
        return parts
    return {name: seconds for name, seconds in parts.items() if name not in UNTOLD or seconds}


def steady_steps(model: Model) -> list[StepAccount]:
    """The last steps that were not slow, had no compilation in them and of which nothing was dropped; oldest first."""
    slow = {one.account.index for one in model.steps.slow}
    found = [
        one for one in model.steps.accounts if one.complete and not one.compiled and one.index not in slow and one.took_ns > 0
    ]
    return found[-STEADY:]


def by_category(accounts: Sequence[StepAccount], fold: Any) -> dict[str, float]:
    """{category: seconds} by `fold` over what each of these steps had of it."""
    return {name: float(fold([one.parts[at] for one in accounts])) / 1e9 for at, name in enumerate(CATEGORIES)}


def _mean(values: Sequence[int]) -> float:
    return sum(values) / len(values)


def slow_steps(model: Model, gaps: Gaps) -> list[dict[str, Any]] | None:
    """`slow_steps[]`, oldest first; None where there are no steps to judge."""
    found = model.steps
    if found.source is None:
        gaps.add("slow_steps", found.why_not or "no step has been seen since the attach")
        return None
    if found.slow_n > len(found.slow):
        gaps.add("slow_steps", f"the last {len(found.slow)} of {found.slow_n} slow steps are kept")
    return [_slow(model, one) for one in found.slow]


def _slow(model: Model, slow: SlowStep) -> dict[str, Any]:
    account, first, offset = slow.account, slow.causes[0], model.wall_offset_s
    parts = dict(zip(CATEGORIES, account.parts, strict=True))
    usual = dict(zip(CATEGORIES, slow.usual, strict=True))
    return {
        "index": account.index,
        "index_certain": account.index_certain,
        "at": None if offset is None else account.begin_ns / 1e9 + offset,
        "rank": model.target.rank,
        "duration": account.took_ns / 1e9,
        "usual": slow.usual_ns / 1e9,
        "ratio": slow.ratio,
        "cause": first.cause,
        "detail": first.detail,
        "named": slow.named,
        "causes": [{"cause": one.cause, "share": one.share, "detail": one.detail} for one in slow.causes],
        "evidence": list(dict.fromkeys(line for one in slow.causes for line in one.evidence)),
        "account": {name: ns / 1e9 for name, ns in parts.items()},
        "usual_account": {name: ns / 1e9 for name, ns in usual.items()},
        "excess": {name: max(0, parts[name] - usual[name]) / 1e9 for name in CATEGORIES},
        "run_queue_wait": account.waited_ns / 1e9,
        "complete": account.complete,
        "sentence": sentence(slow),
    }


def trends(model: Model) -> dict[str, Any]:
    """`trends`: a job that gets slower, calls that run in eager more and more, slow steps that come every n steps, steps of two
    kinds. None where there is no such."""
    drift, eager = model.slowness.trends.drift, model.slowness.trends.more_eager
    kinds = modes([took for _, took, compiled in model.steps.recent if not compiled])
    periodic = [(tally, tally.every) for tally in model.slowness.tallies.values()]
    return {
        "slower": None
        if drift is None
        else {
            "by": drift.slower,
            "before": drift.before_ns / 1e9,
            "now": drift.now_ns / 1e9,
            "steps": drift.steps,
            "seconds": drift.took_s,
            "z": drift.z,
            "grew": drift.grew,
            "grew_by": drift.grew_ns / 1e9,
            "eager_share": None if drift.eager_before is None else {"before": drift.eager_before, "now": drift.eager_now},
        },
        "more_eager": None if eager is None else {"before": eager.before, "now": eager.now, "steps": eager.steps, "z": eager.z},
        "periodic": [
            {"cause": tally.cause, "every": every, "n": tally.n, "lost": tally.lost_ns / 1e9}
            for tally, every in periodic
            if every is not None
        ],
        "two_kinds": None
        if kinds is None
        else {"share": kinds.share, "fast": kinds.fast_ns / 1e9, "slow": kinds.slow_ns / 1e9, "n": kinds.n},
    }
