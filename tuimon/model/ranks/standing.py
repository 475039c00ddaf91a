"""What is counted of each rank beside the others of its job, and who came when where ranks met. Constant memory for each."""

from __future__ import annotations

from array import array
from collections import Counter, OrderedDict, deque
from collections.abc import Mapping
from dataclasses import dataclass, field

from tuimon.model.findings.finding import seconds
from tuimon.model.ranks.digest import StepDigest
from tuimon.model.ranks.rounds import Rank
from tuimon.model.ranks.verdicts import Late, Skew
from tuimon.model.steps.parts import CATEGORIES

WINDOW = 256
"""The latest latenesses of a rank that are kept."""
MOST_SECONDS = 128
"""So many of the latest seconds of a rank are kept, with what of them it spent in collectives."""
MOST_WAITED = 16
"""Ranks for which it is kept how long one has waited for them."""


_COMMUNICATION = CATEGORIES.index("communication")


@dataclass(frozen=True, slots=True)
class RankLateness:
    """What is known of one rank beside the others. Times in ns, None where nothing is known."""

    n: int = 0
    """Steps in which it met others."""
    median_ns: int | None = None
    p90_ns: int | None = None
    last_ns: int | None = None
    late_in: int = 0
    """Slow steps in which the others waited for it."""
    slow_n: int = 0
    """Slow steps in which it met others."""
    waits_for: int | None = None
    """The key of the rank for which it has waited most."""
    waited_ns: int = 0
    """How long it has waited for that one, in all."""
    skew: Skew | None = None
    """What it compiled while others waited; None where it did not."""


@dataclass(slots=True)
class Standing:
    """What is counted of one rank."""

    rank: Rank
    late: array[int] = field(default_factory=lambda: array("q"))
    """The latest latenesses in ns, in a ring."""
    at: int = 0
    n: int = 0
    last_ns: int | None = None
    among_last: deque[bool] = field(default_factory=lambda: deque(maxlen=WINDOW))
    among_last_n: int = 0
    slow_n: int = 0
    waited: Counter[int] = field(default_factory=Counter)
    by_second: OrderedDict[int, list[int]] = field(default_factory=OrderedDict)
    """Of the latest seconds of its host's clock: ns of the steps that ended in each, and what of these was communication."""
    held_up: Late = field(default_factory=Late)
    skew: Skew | None = None

    def add(self, late_ns: int, among_last: bool) -> None:
        if len(self.late) < WINDOW:
            self.late.append(late_ns)
        else:
            self.late[self.at] = late_ns
            self.at = (self.at + 1) % WINDOW
            self.among_last_n -= self.among_last[0]
        self.among_last.append(among_last)
        self.among_last_n += among_last
        self.n += 1
        self.last_ns = late_ns

    def spent(self, step: StepDigest) -> None:
        """One more step of it."""
        second = step.end_ns // 1_000_000_000
        of = self.by_second.get(second)
        if of is None:
            of = self.by_second[second] = [0, 0]
            if len(self.by_second) > MOST_SECONDS:
                self.by_second.popitem(last=False)
        of[0] += step.took_ns
        of[1] += step.parts[_COMMUNICATION]

    def in_collectives(self, begin_ns: int, end_ns: int) -> float | None:
        """The part of its steps that it spent in collectives between two times of its host's clock; None where its steps fill
        less than half of that time."""
        first, last = begin_ns // 1_000_000_000, end_ns // 1_000_000_000
        found = [of for second, of in self.by_second.items() if first <= second <= last]
        took, waited = sum(of[0] for of in found), sum(of[1] for of in found)
        return waited / took if took and took >= (end_ns - begin_ns) / 2 else None

    def quantile(self, share: float) -> int | None:
        ordered = sorted(self.late)
        return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else None

    def waits(self, key: int, ns: int) -> None:
        if key not in self.waited and len(self.waited) >= MOST_WAITED:
            del self.waited[min(self.waited, key=lambda one: self.waited[one])]
        self.waited[key] += ns


@dataclass(slots=True)
class Arrivals:
    """Who came when in one round."""

    late: dict[int, int] = field(default_factory=dict)
    """Key -> ns after the first."""
    waits: dict[int, tuple[int, int, str]] = field(default_factory=dict)
    """Key -> (ns that it was held there, the key of who came last, what it waited in)."""
    last: int = -1
    """The key of the one that was latest."""
    spread_ns: int = 0

    def meet(self, came: list[tuple[int, int, int]], op: str) -> None:
        """One meeting: (begin, end, key) of those that took part."""
        first, (last, _, latest) = min(came)[0], max(came)
        if last - first >= self.spread_ns:
            self.last, self.spread_ns = latest, last - first
        for begin, end, key in came:
            if begin - first >= self.late.get(key, 0):
                self.late[key] = begin - first
            wait = min(last, end) - begin
            if key != latest and wait > self.waits.get(key, (0,))[0]:
                self.waits[key] = wait, latest, op


def late_words(of: RankLateness) -> str:
    """For a cell: `12.0 ms`, `12.0 ms 4/4` where it was late in slow steps; empty where nothing is known."""
    if of.median_ns is None:
        return ""
    slow = f" {of.late_in:,}/{of.slow_n:,}" if of.late_in else ""
    return f"{seconds(of.median_ns / 1e9)}{slow}"


def waits_words(of: RankLateness, names: Mapping[int, str]) -> str:
    """For a cell: `rank 1, 412 ms`, for whom it has waited most and how long in all; empty where it has waited for nobody."""
    return "" if of.waits_for is None else f"{names.get(of.waits_for, '?')}, {seconds(of.waited_ns / 1e9)}"
