"""Whether a measurement may be kept: the rules by which repeats are taken for a ceiling, or refused with the reason.

The ceiling is the best clean repeat: everything that goes wrong makes a repeat slower. A repeat is clean when its threads had
the CPUs that they needed. A figure that could be too low is worse than none, for later everything seems to be above it.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

OWN_CPU = 0.97
"""The least CPU time over wall time of a clean repeat of one thread."""
WAITED = 0.03
"""Of several threads, where the kernel tells it: the most time over wall time for which any of them waited for a CPU. CPU time
would not do, for what a library does with one thread alone leaves the others asleep."""
FEWEST = 3
"""Clean repeats."""
STEADY, NOISY = 0.05, 0.15
"""Standard deviation over mean of the clean repeats: up to here it is "ok", up to there "noisy", from there on refused."""
OTHERS = 0.2
"""CPUs that other work may use on average while bandwidths are measured: memory is shared by all cores."""
PRESSURE = 10.0
"""Percent of time in which tasks waited for a CPU, above which there is no point in beginning."""


@dataclass(frozen=True, slots=True)
class Repeat:
    """One timing of one probe."""

    rate: float
    """Work a second."""
    cpu: float | None
    """CPU time over wall time and threads; None where the work is not a CPU's."""
    others: float = 0.0
    """CPUs that other work used meanwhile; one value is rough, a mean of many is not."""
    seconds: float = 0.0
    waited: float | None = None
    """Seconds a second that its threads were ready and waited for a CPU; None: one thread, or not told."""

    @property
    def clean(self) -> bool:
        """Its threads had the CPUs that they needed."""
        if self.waited is not None:
            return self.waited <= WAITED
        return self.cpu is None or self.cpu >= OWN_CPU


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the repeats of one probe are worth."""

    best: float | None
    """None: refused."""
    why: str
    """Why it was refused; "" where it was not."""
    median: float
    cv: float | None
    spread: float | None
    clean: int
    repeats: int
    by_cpu_time: float | None
    """Median of work over CPU time: right for arithmetic even under load, but never kept."""

    @property
    def quality(self) -> str:
        """In a word."""
        if self.best is None or self.cv is None:
            return "refused"
        return "ok" if self.cv < STEADY else "noisy"


def judge(repeats: Sequence[Repeat]) -> Verdict:
    """The verdict on a probe's repeats."""
    clean = [one.rate for one in repeats if one.clean]
    normalised = [one.rate / one.cpu for one in repeats if one.cpu]
    median = statistics.median(clean or [one.rate for one in repeats] or [0.0])
    cv = statistics.pstdev(clean) / statistics.fmean(clean) if len(clean) > 1 else None
    spread = _spread(clean) if len(clean) > 1 else None
    why = ""
    if len(clean) < FEWEST:
        why = f"{len(clean)} of {len(repeats)} repeats clean (at least {FEWEST} must be){_lack(repeats)}"
    elif cv is not None and cv >= NOISY:
        why = f"its repeats differ by {cv:.0%} (standard deviation over mean; less than {NOISY:.0%} is needed)"
    return Verdict(
        best=None if why else max(clean),
        why=why,
        median=median,
        cv=cv,
        spread=spread,
        clean=len(clean),
        repeats=len(repeats),
        by_cpu_time=statistics.median(normalised) if normalised else None,
    )


def _lack(repeats: Sequence[Repeat]) -> str:
    """What the repeats lacked, in words."""
    waited = [one.waited for one in repeats if one.waited is not None]
    if waited:
        return f": its threads waited for a CPU for {statistics.median(waited):.0%} of the time"
    had = [one.cpu for one in repeats if one.cpu is not None and not one.clean]
    return f": its thread had {statistics.median(had):.0%} of the CPU time that it needed" if had else ""


def others(repeats: Sequence[Repeat]) -> float:
    """CPUs that other work used on average during these repeats."""
    seconds = sum(one.seconds for one in repeats)
    return max(0.0, sum(one.others * one.seconds for one in repeats) / seconds) if seconds else 0.0


def _spread(rates: Sequence[float]) -> float:
    """(p90 - p10) / median."""
    deciles = statistics.quantiles(rates, n=10, method="inclusive")
    return (deciles[-1] - deciles[0]) / statistics.median(rates)
