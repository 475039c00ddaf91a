"""The sentences on ranks: one each that can be pasted into a ticket. Pure."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from tuimon.model.findings.finding import many, seconds

BACKWARD = "the backward"
"""What ranks are said to wait in where C++ lets them meet: DistributedDataParallel."""
WAITS = 256


@dataclass(frozen=True, slots=True)
class Verdict:
    """One thing that a person should know of a rank."""

    kind: Literal["late_rank", "slow_rank", "compile_skew"]
    """Late in slow steps; late in most steps; compiled while others waited."""
    key: int
    sentence: str
    cost_s: float
    """For how long others have waited, step by step that which waited longest."""
    evidence: tuple[str, ...] = ()
    next_step: str = ""


@dataclass(slots=True)
class Late:
    """The slow steps in which one rank held the others up."""

    n: int = 0
    lost_ns: int = 0
    causes: Counter[str] = field(default_factory=Counter)
    words: dict[str, str] = field(default_factory=dict)
    """The latest, by cause."""
    waits: deque[tuple[int, int, int]] = field(default_factory=lambda: deque(maxlen=WAITS))
    """(median wait in ns, how many waited, one of them by key)."""
    op: str = ""

    def add(self, cause: str, words: str, waits: Mapping[int, int], op: str, spread_ns: int) -> None:
        """One more. `waits`: ns that each of the others was held, by key."""
        self.n += 1
        self.lost_ns += max(waits.values(), default=0)
        self.causes[cause] += 1
        if words or cause not in self.words:
            self.words[cause] = words
        ordered = sorted(waits.values())
        if ordered:
            self.waits.append((ordered[len(ordered) // 2], len(waits), min(waits)))
        else:  # what begins a collective does not wait for it: nobody was held up in Python
            self.waits.append((spread_ns, 0, -1))
        self.op = op

    @property
    def cause(self) -> str:
        """The cause of most of them."""
        return self.causes.most_common(1)[0][0] if self.causes else ""


@dataclass(frozen=True, slots=True)
class Skew:
    """What one rank compiled while others waited; the fields but the first two are of the longest time."""

    n: int
    total_ns: int
    """What it compiled longer than those who waited."""
    step: int
    compile_ns: int
    waiting: int
    """So many waited."""
    waited_ns: int
    op: str
    words: str = ""

    def joined(self, other: Skew) -> Skew:
        """Both of them."""
        longer = other if other.compile_ns > self.compile_ns else self
        return replace(longer, n=self.n + other.n, total_ns=self.total_ns + other.total_ns)


def late_rank(key: int, late: Late, slow_n: int, names: Mapping[int, str]) -> Verdict:
    """`rank 1 is late in 4 of 4 slow steps by other python: main train.py:17: time.sleep(0.1); rank 0 waited 101 ms in
    all_reduce for it`."""
    why = f" by {late.cause}" if late.cause else ""
    words = late.words.get(late.cause, "")
    told = f"{names[key]} is late in {late.n:,} of {many(slow_n, 'slow step')}{why}{f': {words}' if words else ''}"
    waits = sorted(ns for ns, _, _ in late.waits)
    wait, (_, waiting, one) = waits[len(waits) // 2], late.waits[-1]
    median = " (median)" if late.n > 1 else ""
    if waiting:
        told += f"; {_who(waiting, one, names)} waited {seconds(wait / 1e9)}{median} in {late.op} for it"
    else:
        told += f"; it came {seconds(wait / 1e9)}{median} after the first to {late.op}, where nobody waits in Python"
    evidence = []
    if len(late.causes) > 1:
        counts = ", ".join(f"{number} by {cause or 'nothing that stands out'}" for cause, number in late.causes.most_common())
        evidence.append(f"its slow steps: {counts}")
    evidence.append(_how(late.op))
    advice = f"look at {names[key]}: what it does in these steps the others wait for"
    return Verdict("late_rank", key, told, late.lost_ns / 1e9, tuple(evidence), advice)


def slow_rank(
    key: int,
    median_ns: int,
    n: int,
    usual_ns: float,
    more: tuple[str, float] | None,
    op: str,
    names: Mapping[int, str],
) -> Verdict:
    """`rank 3 comes late to most steps: 4.1 ms (median of 256 steps of 20.0 ms) after the first to all_reduce; it takes 3.9 ms
    longer than the middle rank in forward regions`."""
    told = (
        f"{names[key]} is late in most steps: it comes {seconds(median_ns / 1e9)} after the first to {op} "
        f"(median; a step takes {seconds(usual_ns / 1e9)})"
    )
    if more is not None:
        told += f", and takes {seconds(more[1] / 1e9)} longer than the middle one of the others in {more[0]}"
    evidence = (f"{many(n, 'step')} compared", _how(op))
    advice = f"compare {names[key]} with the others: its device and clocks, its host's load, its share of the data"
    return Verdict("slow_rank", key, told, median_ns * n / 1e9, evidence, advice)


def worst_skew(key: int, skew: Skew, names: Mapping[int, str]) -> Verdict:
    """`rank 1 compiled for 1.20 s in step 30 while 1 other rank waited in all_reduce`."""
    others = many(skew.waiting, "other rank")
    told = (
        f"{names[key]} compiled for {seconds(skew.compile_ns / 1e9)} in its step {skew.step:,} while {others} waited "
        f"{seconds(skew.waited_ns / 1e9)} in {skew.op}"
    )
    if skew.words:
        told += f": {skew.words}"
    evidence = [_how(skew.op)]
    if skew.n > 1:
        evidence.insert(0, f"{skew.n} times, {seconds(skew.total_ns / 1e9)} in all; this was the longest")
    advice = "give all ranks the same shapes and arguments, or mark what differs as dynamic: they compile together then"
    return Verdict("compile_skew", key, told, skew.total_ns / 1e9, tuple(evidence), advice)


def _who(waiting: int, one: int, names: Mapping[int, str]) -> str:
    return names[one] if waiting == 1 and one in names else f"{waiting} ranks"


def _how(op: str) -> str:
    if op == BACKWARD:
        return "by when each rank began its backward, in which DistributedDataParallel lets ranks meet: no collective was seen"
    return "by when each rank called the same collective of its group (timed in each)"
