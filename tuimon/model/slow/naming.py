"""What made a step slow, by name: the causes with their shares, and one sentence that can be pasted into a ticket.

Pure. A category is blamed for what it took beyond its median in the steady steps. What the machine did comes off first, since
waiting for a core, or being stopped, makes every category longer. Nothing is named that explains less than half; then it says
"unexplained".
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from tuimon.model.findings.finding import seconds
from tuimon.model.slow.outside import Outside
from tuimon.model.slow.rule import OVER_NS, Base, Slow
from tuimon.model.steps.parts import CATEGORIES, Cause, SlowStep, StepAccount

UNEXPLAINED = "unexplained"
RUN_QUEUE, QUOTA, FAULTS, GPU = "run-queue wait", "CPU quota", "major page faults", "GPU throttled"
EVENTS = ("compile", "data wait", "communication", "gc", "profiler")
"""Categories that are something that happened, and not what every step does anyway."""
ON_DEVICE = ("forward regions", "backward regions", "boundary", "optimizer")
"""Categories that a slow device, or a team of threads without cores, makes longer."""
OTHER = "other python"
STOPPED = "stopped"
"""The job was held: by somebody who stopped it, or by a debugger."""
WAITING = "waits for work"
"""Not a cause but the absence of one: a server whose thread sat in the wait that its requests end. No finding is made of it."""

NAMED, SECOND, TOGETHER = 0.5, 0.2, 0.75
"""The share of the excess that one cause has to explain; that of a second one; and of two that only together explain it."""
SECOND_WORK = 0.35
"""What a second one has to explain where it is no more than the step's usual work that took longer: a first call after a
compilation does that, and is no cause of its own."""
FEW_FAULTS = 16
"""Fewer major page faults than this held nothing up."""


@dataclass(frozen=True, slots=True)
class Told:
    """What is known of one category in the step: where and what, in one line, and the evidence for it."""

    detail: str = ""
    evidence: tuple[str, ...] = ()
    covered_ns: int | None = None
    """For "other python": for how much of it the thread's stack says where it was. None: it was not looked at."""
    second: str = ""
    second_part: float = 0.0
    """For "other python": the place at which the thread was seen most after that in `detail`, and its part of both."""
    waits_ns: int = 0
    waits: str = ""
    """For "other python" of a server: how long looks saw it wait for work, and where. Nothing of that is in the rest."""


@dataclass(frozen=True, slots=True)
class Known:
    """What a step is judged by beyond its account."""

    outside: Outside = field(default_factory=Outside)
    tell: Callable[[str], Told] = lambda _category: Told()
    """The details of a category, asked for those alone that are named."""
    whys: tuple[str, ...] = ()
    """Remarks that belong to the step as a whole ("2 backwards, usually 1")."""


def explain(slow: Slow, known: Known) -> SlowStep:
    """The step with its causes, most of the excess first, those that are something that happened before the rest."""
    account, base, outside = slow.account, slow.base, known.outside
    whole = max(1, account.took_ns - base.median_ns)
    held = min(outside.stopped_ns, whole)
    idle = max(0, _idle(account, base, known) - held)
    took = account.took_ns - idle - held
    excess = max(1, took - base.median_ns)
    over = {name: max(0, took - usual) for name, took, usual in zip(CATEGORIES, account.parts, base.usual, strict=True)}
    over[OTHER] = max(0, over[OTHER] - idle)
    if held:
        over = _without(over, held)
        slow = replace(slow, account=replace(account, end_ns=account.end_ns - held))
        known = replace(known, outside=replace(outside, off_ns=max(0, outside.off_ns - held) if outside.off_ns else None))
    enough = bool(idle) or held >= NAMED * whole  # a shorter stop is no reason not to say what the rest was
    found = [] if enough and took <= base.limit_ns else _blame(slow, over, took, excess, known)
    causes = tuple(replace(one, share=one.share * min(1.0, excess / whole)) for one in _two(found, known))
    if held >= (SECOND if causes else NAMED) * whole:
        causes = tuple(sorted((_cause_of_stop(held, whole, outside), *causes[:1]), key=lambda one: -one.share))
    if len(causes) < 2 and idle >= (SECOND if causes else NAMED) * whole:
        # between its begin and the first look a wait is seen by nobody: what is left of it is no riddle of its own
        causes = (*causes, Cause(WAITING, min(1.0, idle / whole), known.tell(OTHER).waits, outside.evidence))
    named = bool(causes)
    if not named:
        causes = (_unexplained(over, excess, known),)
    if known.whys:
        first = causes[0]
        causes = (Cause(first.cause, first.share, first.detail, (*first.evidence, *known.whys)), *causes[1:])
    return SlowStep(account, base.median_ns, base.usual, causes, named, base.limit_ns, base.deviation_ns, base.n)


def _idle(account: StepAccount, base: Base, known: Known) -> int:
    """For how many ns of a step its thread has waited for work, on no core; 0 where that is not more than usual."""
    told = known.tell(OTHER)
    off = known.outside.off_ns
    idle = told.waits_ns if off is None else min(told.waits_ns, max(0, off - (known.outside.waited_ns or 0)))
    at = CATEGORIES.index(OTHER)
    return max(0, min(idle, account.parts[at] - base.usual[at]))


def _without(over: dict[str, int], held_ns: int) -> dict[str, int]:
    """What is left of the categories where so many ns are nobody's: a stop lies in what has become longer by as much."""
    found = dict(over)
    for name in sorted(over, key=lambda name: -over[name]):
        taken = min(found[name], held_ns)
        found[name] -= taken
        held_ns -= taken
    return found


def _cause_of_stop(held_ns: int, whole_ns: int, outside: Outside) -> Cause:
    by = "by a debugger or another tracer" if outside.stopped_by == "tracer" else "by a signal (kill -STOP, Ctrl-Z)"
    return Cause(STOPPED, held_ns / whole_ns, f"the job was held {by} for {seconds(held_ns / 1e9)}", outside.evidence)


def _blame(slow: Slow, over: dict[str, int], took_ns: int, excess: int, known: Known) -> list[tuple[str, float]]:
    """(cause, share of `excess`) of what made it slow; `took_ns` and `over` without what it has waited for work."""
    base, outside = slow.base, known.outside
    beyond = waited = max(0, (outside.waited_ns or 0) - outside.usual_wait_ns)
    alone = base.limit_ns - base.median_ns
    # on an idle machine all steps would be shorter by their waiting, and so would be what makes one slow
    free = 1.0 - outside.wait_rate
    would_be_slow = free * base.median_ns + min(alone, max(OVER_NS, free * alone))
    unusual = waited - outside.wait_rate * excess
    if unusual < NAMED * excess and took_ns - (outside.waited_ns or 0) >= would_be_slow:
        # the machine is not to blame alone, for without any waiting it were a slow step, too; beside what is, it may be
        found = _choose(over, 0, alone, outside, excess, known)
        both = _choose(over, waited, alone, outside, excess, known) if unusual >= SECOND * excess else []
        wait = _wait_name(outside, waited)
        if len(both) == 2 and (not found or {found[0][0], wait} == {name for name, _ in both}):
            found = sorted(both, key=lambda one: one[0] == wait)
        waited = 0
    else:
        found = _choose(over, waited, alone, outside, excess, known)
    if not found and waited:
        found = _choose(over, 0, alone, outside, excess, known)
    if (outside.waited_ns or 0) >= NAMED * excess and all(name in ON_DEVICE for name, _ in found[:1]):
        # the usual work took longer; where it was on its core for no longer than usual, it has only waited
        on_core = slow.account.took_ns - max(outside.off_ns or 0, outside.waited_ns or 0)
        if on_core < would_be_slow:
            rest = [one for one in _choose(over, beyond, alone, outside, excess, known) if one[0] not in ON_DEVICE]
            found = rest or [(_wait_name(outside, beyond), max(beyond / excess, NAMED))]
    return found or _machine(over, excess, outside)


def _choose(
    over: dict[str, int], waited_ns: float, alone_ns: float, outside: Outside, excess: int, known: Known
) -> list[tuple[str, float]]:
    """(cause, share) of what explains the excess; empty where nothing does.

    `over`: ns of the categories beyond the usual, with their part of the waiting in them; `alone_ns`: what makes a step slow.
    """
    waited, wait = min(1.0, waited_ns / excess), _wait_name(outside, waited_ns)
    # a wait is taken to have been in the work that every step does, as far as that took longer; the rest of it elsewhere
    usual_work = sum(over[name] for name in ON_DEVICE)
    elsewhere = max(0.0, waited_ns - usual_work)
    within = {True: (usual_work, waited_ns - elsewhere), False: (sum(over.values()) - usual_work, elsewhere)}
    raw, shares, own = {}, {}, set()
    for name, ns in over.items():
        of_all, waiting = within[name in ON_DEVICE]
        raw[name] = ns / excess
        shares[name] = ns * (1.0 - min(1.0, waiting / of_all)) / excess if of_all else 0.0
        # each may have been where all of it was: what is left then was its own doing
        if ns - waiting >= alone_ns:
            own.add(name)
    candidates = [
        (name, share)
        for name, share in shares.items()
        if share >= (SECOND_WORK if name in ON_DEVICE else SECOND) or (name in EVENTS and name in own and raw[name] >= NAMED)
    ]
    if waited >= SECOND:
        candidates.append((wait, waited))
    candidates = [one for one in candidates if one[0] != OTHER or _seen(one[1] * excess, known)]
    candidates.sort(key=lambda one: -one[1])
    enough = [one for one in candidates if one[0] not in shares or one[0] in own]
    happened = [one for one in enough if one[0] in EVENTS]
    if candidates and candidates[0][1] >= NAMED:
        # something that happened would have made the step slow on an idle machine too: it comes first
        first = happened[0] if happened and candidates[0][0] in (RUN_QUEUE, QUOTA) else candidates[0]
        rest = [one for one in enough if one is not first]
        return [_on_device(first, outside, excess), *rest[:1]]
    if len(candidates) >= 2 and candidates[0][1] + candidates[1][1] >= TOGETHER:
        return sorted(candidates[:2], key=lambda one: one[0] not in EVENTS)
    return []


def _wait_name(outside: Outside, waited_ns: float) -> str:
    """What is to blame for a wait for a core."""
    return QUOTA if (outside.throttled_s or 0.0) * 1e9 >= waited_ns / 2 > 0 else RUN_QUEUE


def _seen(ns: float, known: Known) -> bool:
    """Whether looks at the stack say where the thread was for at least half of this much of "other python"."""
    covered = known.tell(OTHER).covered_ns
    return covered is not None and covered >= NAMED * ns


def _on_device(cause: tuple[str, float], outside: Outside, excess: int) -> tuple[str, float]:
    """What lies behind a category that only took longer: a GPU that was held back, or a team of threads without cores."""
    name, share = cause
    if name in ON_DEVICE:
        if outside.gpu:
            return GPU, share
        if (outside.others_waited_ns or 0) >= NAMED * excess:
            return RUN_QUEUE, min(share, (outside.others_waited_ns or 0) / excess)
    return cause


def _machine(over: dict[str, int], excess: int, outside: Outside) -> list[tuple[str, float]]:
    """Causes that cannot be timed, named only where nothing else is: and the thread was off its core for most of the excess."""
    off = outside.off_ns or 0
    if outside.io_wait_ns is not None and outside.io_wait_ns >= NAMED * excess:
        return [(FAULTS, min(1.0, outside.io_wait_ns / excess))] if (outside.major_faults or 0) >= FEW_FAULTS else []
    if (outside.major_faults or 0) >= FEW_FAULTS and off >= NAMED * excess:
        return [(FAULTS, min(1.0, off / excess))]
    if outside.gpu and sum(over[name] for name in ON_DEVICE) >= NAMED * excess:
        return [(GPU, min(1.0, sum(over[name] for name in ON_DEVICE) / excess))]
    return []


def _two(found: list[tuple[str, float]], known: Known) -> tuple[Cause, ...]:
    """The causes of these names: two at most, where the second may be another place at which the thread was seen for long.

    Such a place gives way to a second cause that explains more: two lines of one checkpoint do not hide a profiler's window.
    """
    causes = [_cause(name, min(1.0, share), known) for name, share in found[:2]]
    at = next((at for at, one in enumerate(causes) if one.cause == OTHER), None)
    if at is None:
        return tuple(causes)
    one, told = causes[at], known.tell(OTHER)
    share = one.share * told.second_part
    rest = [other for other in causes if other is not one]
    if not 0.0 < told.second_part <= 0.5 or share < SECOND or any(other.share >= share for other in rest):
        return tuple(causes)
    return replace(one, share=one.share - share), Cause(OTHER, share, told.second, one.evidence)


def _cause(name: str, share: float, known: Known) -> Cause:
    outside = known.outside
    if name in CATEGORIES:
        told = known.tell(name)
        return Cause(name, share, told.detail, (*told.evidence, *outside.evidence))
    if name in (RUN_QUEUE, QUOTA):
        others = outside.others_waited_ns or 0
        if (outside.waited_ns or 0) >= others:
            detail = f"ready to run for {seconds((outside.waited_ns or 0) / 1e9)} and no core was free"
        else:
            detail = f"a thread of the job was ready to run for {seconds(others / 1e9)} and no core was free"
        if name == QUOTA:
            detail += ": the CPU quota of its control group was used up"
        return Cause(name, share, detail, outside.evidence)
    if name == FAULTS:
        return Cause(name, share, f"{outside.major_faults} pages were read from a device", outside.evidence)
    return Cause(name, share, outside.gpu, outside.evidence)


def _unexplained(over: dict[str, int], excess: int, known: Known) -> Cause:
    """What is known all the same: the category in which most of it lies, and what the thread was seen doing."""
    outside = known.outside
    largest = max(over, key=lambda name: over[name])
    share = min(1.0, over[largest] / excess)
    told = known.tell(largest)
    parts = [f"{share:.0%} of it is {largest}"]
    if told.detail:
        parts.append(told.detail)
    elif largest == OTHER:
        parts.append("the stack was not looked at" if told.covered_ns is None else "its stack was seen at no one place")
    if outside.off_ns is not None and outside.off_ns >= NAMED * excess and not outside.waited_ns:
        why = "asleep, or waiting for something" if outside.waited_ns == 0 else "why is not known here"
        parts.append(f"its thread was on no core for {seconds(outside.off_ns / 1e9)}: {why}")
    elif (outside.waited_ns or 0) >= SECOND * excess:
        parts.append(f"for {seconds((outside.waited_ns or 0) / 1e9)} it was ready to run and no core was free")
    return Cause(UNEXPLAINED, share, "; ".join(parts), (*told.evidence, *outside.evidence))


# ------------------------------------------------------------------------------------------------- words


def sentence(slow: SlowStep) -> str:
    """One sentence for a ticket: which step, how slow, and why.

    `step 14 took 4.42 s, 17 times the usual 262 ms: compile, 98% of the excess (recompile of encode [0/1]: ..)`.
    """
    account = slow.account
    name = f"step {account.index}" if account.index_certain else f"step {account.index} (or the one beside it)"
    usual = f", {times(slow.ratio)} the usual {seconds(slow.usual_ns / 1e9)}" if slow.ratio is not None else ""
    told = f"{name} took {seconds(account.took_ns / 1e9)}{usual}: {'; '.join(cause_words(one) for one in slow.causes)}"
    return told if account.complete else f"{told}; samples of it were dropped"


def cause_words(cause: Cause) -> str:
    """`gc, 98% of the excess (generation 2, gc.collect() at train.py:15)`."""
    if cause.cause == UNEXPLAINED:
        return f"unexplained ({cause.detail})" if cause.detail else "unexplained"
    return f"{cause.cause}, {cause.share:.0%} of the excess" + (f" ({cause.detail})" if cause.detail else "")


def times(ratio: float | None) -> str:
    """`17 times`, `2.4 times`."""
    if ratio is None:
        return "-"
    return f"{ratio:,.0f} times" if ratio >= 10 else f"{ratio:.1f} times"
