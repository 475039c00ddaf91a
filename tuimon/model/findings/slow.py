"""Steps that are slow again and again by one cause, and a job that becomes slower. A step that was slow once is a row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tuimon.model.about import About
from tuimon.model.findings.finding import Finding, many, place, seconds
from tuimon.model.findings.ranks import who_is_late
from tuimon.model.slow import naming

if TYPE_CHECKING:
    from tuimon.model.model import Model
    from tuimon.model.ranks.lateness import Lateness
    from tuimon.model.slow.fold import Tally
    from tuimon.model.slow.trends import Drift, MoreEager

LOST_S, ONCE_S = 0.1, 1.0
"""So much lost time makes a finding where it happened more than once; and so much where it happened once."""
MACHINE_LOST_S, MACHINE_SHARE = 1.0, 0.01
"""What is not the job's own doing, or has no name, is one where it lost that much, and that part of the time of all steps."""
MACHINE = (naming.RUN_QUEUE, naming.UNEXPLAINED, naming.FAULTS, naming.STOPPED)
RESETS = 3
"""Compilations have findings of their own, or are what was asked for; but not those of a reset, so many times."""

_ADVICE = {
    "compile": "see who calls torch._dynamo.reset() (torch.compiler.reset()) within the loop",
    "data wait": "more workers, a deeper prefetch, or a faster store behind the loader: the loop waits for its input",
    "gc": "gc.freeze() after the set-up, then gc.collect() at a moment of your own choice; or fewer objects that live long",
    "profiler": "nothing, where the window was wanted; a profiler's start and stop belong outside of what is measured",
    "optimizer": "see what the optimizer does in these steps that it does not do in the others",
    "boundary": "see the boundary's own row: what runs there in eager takes longer in these steps",
    "other python": "look at that line: it runs on the step's own thread, outside of all that is timed by name",
    naming.RUN_QUEUE: "give the job cores of its own (taskset, cgroups, fewer threads): others run where it would",
    naming.QUOTA: "raise the CPU quota of the container, or run fewer threads in it",
    naming.FAULTS: "memory comes from a device: look for swapping and for files that are read through mmap",
    naming.STOPPED: "nothing in the job: see who stops it (kill -STOP, Ctrl-Z, a debugger, a scheduler that suspends jobs)",
    naming.GPU: "look at power and cooling of the GPU: its clock was held back",
    naming.UNEXPLAINED: "attach with stack looks on, or mark the suspected part with torch.profiler.record_function",
}


def find(model: Model, compared: Sequence[Lateness] = ()) -> list[Finding]:
    """One for each cause, and one for the trend. `compared`: of each job, its ranks beside each other."""
    found = [_again(model, tally, compared) for tally in model.slowness.tallies.values() if _counts(model, tally)]
    drift = model.slowness.trends.drift
    if drift is not None:
        found.append(_slower(drift))
    eager = model.slowness.trends.more_eager
    if eager is not None:
        found.append(_more_eager(eager))
    return found


def _counts(model: Model, tally: Tally) -> bool:
    lost = tally.lost_ns / 1e9
    if tally.cause == naming.WAITING:
        return False
    if tally.cause == "compile" and tally.resets < RESETS:
        return False
    if tally.cause in MACHINE:
        return lost >= MACHINE_LOST_S and lost >= MACHINE_SHARE * model.steps.durations.total_ns / 1e9
    return lost >= (LOST_S if tally.n > 1 else ONCE_S)


def _again(model: Model, tally: Tally, compared: Sequence[Lateness]) -> Finding:
    worst, last = tally.worst, tally.last
    assert worst is not None and last is not None
    every = tally.every
    cause = worst.causes[0]
    detail = f": {cause.detail}" if cause.detail else ""
    if tally.n == 1:
        title = naming.sentence(worst)
    else:
        when = f", every {every} steps" if every is not None else ""
        title = f"{many(tally.n, 'step')} slow by {_by(tally.cause)}{when}{_places(tally)}{detail}"
    evidence = [f"the worst: {naming.sentence(worst)}"] if tally.n > 1 else []
    if last is not worst:
        evidence.append(f"the last: {naming.sentence(last)}")
    evidence += [*cause.evidence, f"{seconds(tally.lost_ns / 1e9)} lost beyond the usual in {many(tally.n, 'step')}"]
    about = About("step", str(worst.account.index))
    advice = who_is_late(model, compared) if tally.cause == "communication" else _ADVICE.get(tally.cause, _LAST)
    return Finding("slow_step", title, tally.where, tally.lost_ns / 1e9, tuple(evidence), advice, about=about)


def _by(cause: str) -> str:
    return "no cause that could be named" if cause == naming.UNEXPLAINED else cause


def _places(tally: Tally) -> str:
    """That they were not all slow at the place of which the worst one's detail speaks; empty where they were."""
    if not tally.places or (len(tally.places) == 1 and tally.places[tally.where] == tally.n):
        return ""
    most, n = tally.places.most_common(1)[0]
    if n > tally.n / 2:
        file, _, line = most.rpartition(":")
        return f", {n:,} of them at {place(file, int(line))}; the worst"
    return f", at {many(len(tally.places), 'place')}; the worst"


def _slower(drift: Drift) -> Finding:
    title = (
        f"steps have become {drift.slower:.0%} slower: {seconds(drift.before_ns / 1e9)} at first, "
        f"{seconds(drift.now_ns / 1e9)} now; {drift.grew} grew most, by {seconds(drift.grew_ns / 1e9)}"
    )
    evidence = [
        f"median of the first and of the last quarter of {drift.steps:,} steps in {seconds(drift.took_s)}; Mann-Kendall z = "
        f"{drift.z:.1f}"
    ]
    if drift.eager_before is not None and drift.eager_now is not None and drift.eager_now > drift.eager_before:
        evidence.append(f"{drift.eager_before:.0%} of the calls ran in eager at first, {drift.eager_now:.0%} now")
    lost = (drift.now_ns - drift.before_ns) * drift.steps / 4 / 1e9  # in the last quarter alone
    step = f"look at what {drift.grew} does now that it did not do at first"
    return Finding("slower", title, "", lost, tuple(evidence), step, about=About("step", ""))


def _more_eager(eager: MoreEager) -> Finding:
    return Finding(
        "more_eager",
        f"more and more calls run in eager: {eager.before:.0%} of them at first, {eager.now:.0%} now",
        "",
        None,
        (f"the first and the last quarter of {eager.steps:,} steps; Mann-Kendall z = {eager.z:.1f}",),
        "see the frames that have reached their limit of entries, and what it is that keeps changing",
        about=About("frame", ""),
    )


_LAST = "see the step's own account beside that of a usual one"
