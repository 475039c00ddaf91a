"""What changes slowly, or comes again and again: a job that gets slower, a spike every n steps, steps of two kinds.

Constant memory: steps are folded into blocks, and blocks in pairs where they become too many. What a larger block says is the
mean of what those of BLOCK steps say of which it is made, whether it was made of them at once or of two later: blocks of any
age can be compared, and however long a job runs, no more than BLOCK of its steps wait for their block. Everything that is
concluded is concluded when it is asked for.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from operator import add
from statistics import median

from tuimon.model.steps.parts import CATEGORIES, StepAccount

BLOCK = 64
"""Steps in a block, as long as there are few of them."""
MOST_BLOCKS = 512
FEWEST_BLOCKS = 8
"""Fewer than this say nothing about a trend."""
SLOWER = 0.10
"""From this on a job that has become slower is told so."""
CERTAIN = 3.0
"""And from this value of the Mann-Kendall test's z on: one case in seven hundred by chance."""
MORE_EAGER = 0.05
"""From so many more of the calls in eager on it is told that they become more."""
OFTEN, HIT = 4, 0.8
"""Spikes are periodic from so many on, where so large a part of the multiples are hit, and of the spikes are multiples."""
LOOSE, OFTEN_LOOSE = 16, 6
"""From this period on, and from so many on, spikes may be one step beside their places: else too many fit by chance."""
MODE_SHARE, MODE_RATIO, MODE_GAP = 0.15, 1.5, 1.25
"""Two kinds of steps: each has that share at least, their medians lie that far apart, and between them is a gap so wide."""
FEWEST_OF_MODES = 32


@dataclass(frozen=True, slots=True)
class Block:
    """Some steps in a row."""

    steps: int
    begin_ns: int
    end_ns: int
    median_ns: float
    parts: tuple[float, ...]
    """The median of each of CATEGORIES. Of a block of more than BLOCK steps both are means of such medians."""
    eager: int | None
    calls: int | None
    """Calls of compiled functions in it that ran in eager, and all of them; None where they are not counted."""


@dataclass(frozen=True, slots=True)
class Drift:
    """The job has become slower."""

    before_ns: float
    now_ns: float
    """The median step in the first and in the last quarter of what was seen."""
    steps: int
    took_s: float
    """How many steps, and how long, that is about."""
    z: float
    grew: str
    """The one of CATEGORIES that grew most."""
    grew_ns: float
    eager_before: float | None
    eager_now: float | None
    """The share of calls in eager, then and now."""

    @property
    def slower(self) -> float:
        """0.12: twelve per cent slower."""
        return self.now_ns / self.before_ns - 1.0


@dataclass(frozen=True, slots=True)
class MoreEager:
    """A growing share of the calls of compiled functions runs in eager."""

    before: float
    now: float
    """The share in the first and in the last quarter of what was seen."""
    steps: int
    z: float


@dataclass(frozen=True, slots=True)
class Modes:
    """There are steps of two kinds."""

    share: float
    """Of the slower kind."""
    fast_ns: float
    slow_ns: float
    n: int


@dataclass(slots=True)
class _Growing:
    """The block that is under way: its steps are summed up BLOCK by BLOCK."""

    begin_ns: int = 0
    end_ns: int = 0
    steps: int = 0
    median_ns: float = 0.0
    parts: tuple[float, ...] = (0.0,) * len(CATEGORIES)

    def take(self, steps: Sequence[StepAccount]) -> None:
        """The next BLOCK of steps."""
        if not self.steps:
            self.begin_ns = steps[0].begin_ns
        self.end_ns = steps[-1].end_ns
        self.steps += len(steps)
        self.median_ns += _middle([one.took_ns for one in steps])
        medians = [_middle(part) for part in zip(*[one.parts for one in steps], strict=True)]
        self.parts = tuple(map(add, self.parts, medians))

    def block(self, eager: int | None, calls: int | None) -> Block:
        """What it says; it is full."""
        n = self.steps // BLOCK
        parts = tuple(part / n for part in self.parts)
        return Block(self.steps, self.begin_ns, self.end_ns, self.median_ns / n, parts, eager, calls)


class Trends:
    """Folds steps into blocks."""

    def __init__(self) -> None:
        self.blocks: list[Block] = []
        self._open: list[StepAccount] = []
        """The latest steps, fewer than BLOCK."""
        self._growing = _Growing()
        self._size = BLOCK
        """Steps in a block now."""
        self._counted: tuple[int, int] | None = None
        self._drift: tuple[int, Drift | None] = (-1, None)
        self._eager: tuple[int, MoreEager | None] = (-1, None)
        self._closed = 0

    def take(self, account: StepAccount) -> bool:
        """One more step. Gives whether a block is full: then `close` is to be called."""
        if not account.complete or account.compiled:
            return False
        steps = self._open
        steps.append(account)
        if len(steps) < BLOCK:
            return False
        self._growing.take(steps)
        steps.clear()
        return self._growing.steps >= self._size

    def close(self, eager: int | None, calls: int | None) -> None:
        """The block is full. `eager`, `calls`: calls of compiled functions so far, those in eager and all of them."""
        before, self._counted = self._counted, None if eager is None or calls is None else (eager, calls)
        if before is None or eager is None or calls is None:
            self.blocks.append(self._growing.block(None, None))
        else:
            self.blocks.append(self._growing.block(eager - before[0], calls - before[1]))
        self._growing = _Growing()
        self._closed += 1
        if len(self.blocks) > MOST_BLOCKS:
            pairs = [self.blocks[at : at + 2] for at in range(0, len(self.blocks), 2)]
            self.blocks = [_merged(pair) for pair in pairs]
            self._size *= 2

    @property
    def drift(self) -> Drift | None:
        """That the job has become slower, where it has."""
        if self._drift[0] != self._closed:
            self._drift = (self._closed, _drift(self.blocks))
        return self._drift[1]

    @property
    def more_eager(self) -> MoreEager | None:
        """That more and more calls run in eager, where they do, whether steps become slower by it or not."""
        if self._eager[0] != self._closed:
            self._eager = (self._closed, _more_eager(self.blocks))
        return self._eager[1]


def _merged(blocks: Sequence[Block]) -> Block:
    counted = [one for one in blocks if one.eager is not None and one.calls is not None]
    return Block(
        sum(one.steps for one in blocks),
        blocks[0].begin_ns,
        blocks[-1].end_ns,
        sum(one.median_ns for one in blocks) / len(blocks),
        tuple(sum(parts) / len(blocks) for parts in zip(*(one.parts for one in blocks), strict=True)),
        sum(one.eager or 0 for one in counted) if counted else None,
        sum(one.calls or 0 for one in counted) if counted else None,
    )


def _drift(blocks: Sequence[Block]) -> Drift | None:
    if len(blocks) < FEWEST_BLOCKS:
        return None
    quarter = len(blocks) // 4
    first, last = blocks[:quarter], blocks[-quarter:]
    before, now = (median(one.median_ns for one in some) for some in (first, last))
    if before <= 0 or now < (1 + SLOWER) * before:
        return None
    z = mann_kendall([one.median_ns for one in blocks])
    if z <= CERTAIN:
        return None
    grown = [median(one.parts[at] for one in last) - median(one.parts[at] for one in first) for at in range(len(CATEGORIES))]
    most = max(range(len(CATEGORIES)), key=lambda at: grown[at])
    return Drift(
        before,
        now,
        sum(one.steps for one in blocks),
        (blocks[-1].end_ns - blocks[0].begin_ns) / 1e9,
        z,
        CATEGORIES[most],
        grown[most],
        _eager(first),
        _eager(last),
    )


def _more_eager(blocks: Sequence[Block]) -> MoreEager | None:
    counted = [one for one in blocks if one.calls]
    if len(counted) < FEWEST_BLOCKS:
        return None
    quarter = len(counted) // 4
    before, now = _eager(counted[:quarter]), _eager(counted[-quarter:])
    if before is None or now is None or now < before + MORE_EAGER:
        return None
    z = mann_kendall([(one.eager or 0) / (one.calls or 1) for one in counted])
    return MoreEager(before, now, sum(one.steps for one in counted), z) if z > CERTAIN else None


def _middle(values: Sequence[int]) -> float:
    """`statistics.median`, which takes four times as long."""
    if not any(values):
        return 0.0
    ordered, at = sorted(values), len(values) // 2
    return ordered[at] if len(ordered) % 2 else (ordered[at - 1] + ordered[at]) / 2


def _eager(blocks: Sequence[Block]) -> float | None:
    calls = sum(one.calls or 0 for one in blocks)
    return sum(one.eager or 0 for one in blocks) / calls if calls else None


def mann_kendall(values: Sequence[float]) -> float:
    """The z of the Mann-Kendall test: how much more often a later value is the larger one than chance would have it."""
    n = len(values)
    if n < 2:
        return 0.0
    s = sum((later > value) - (later < value) for at, value in enumerate(values) for later in values[at + 1 :])
    ties = sum(count * (count - 1) * (2 * count + 5) for count in Counter(values).values())
    variance = (n * (n - 1) * (2 * n + 5) - ties) / 18
    return (s - (s > 0) + (s < 0)) / math.sqrt(variance) if variance > 0 else 0.0


def period(indices: Sequence[int]) -> int | None:
    """The n of steps that come every n steps, from their indices in order; None where they do not.

    A few that are missing, or that came in between, do no harm. Where no n fits exactly and n is large, each may be one step
    off: what runs between two steps is counted with the one or the other of them, by what ran beside it.
    """
    if len(indices) < OFTEN:
        return None
    gaps = Counter(later - one for one, later in pairwise(indices) if later > one)
    likely = [n for n, _ in gaps.most_common(3)]
    for n in likely:
        if n >= 2 and _comes_every(n, indices, 0):
            return n
    around = dict.fromkeys(n + off for n in likely for off in (0, -1, 1) if n + off >= LOOSE)
    fits = [(hits, n) for n in around if (hits := _comes_every(n, indices, 1))]
    if not fits:
        return None
    most = max(hits for hits, _ in fits)
    best = [n for hits, n in fits if hits == most]
    mean = (indices[-1] - indices[0]) / max(1, round((indices[-1] - indices[0]) / best[0]))
    return min(best, key=lambda n: abs(n - mean))


def _comes_every(n: int, indices: Sequence[int], off: int) -> int:
    """How many of them are multiples of n apart, each `off` at most beside its place; 0 where that are too few."""
    phase = max(range(n), key=Counter((one + shift) % n for one in indices for shift in range(-off, off + 1)).__getitem__)
    places = [round((one - phase) / n) for one in indices if min((one - phase) % n, (phase - one) % n) <= off]
    hits = len(set(places))
    if hits < (OFTEN_LOOSE if off else OFTEN) or hits < HIT * len(indices) or hits < HIT * (places[-1] - places[0] + 1):
        return 0
    return hits


def modes(durations: Sequence[int]) -> Modes | None:
    """Whether steps of these durations are of two kinds, and which; None where they are of one, or are too few."""
    ordered = sorted(durations)
    n = len(ordered)
    if n < FEWEST_OF_MODES:
        return None
    low, high = math.ceil(MODE_SHARE * n), n - math.ceil(MODE_SHARE * n)
    if not 0 < low < high:
        return None
    at = max(range(low, high + 1), key=lambda place: ordered[place] / max(1, ordered[place - 1]))
    fast, slow = median(ordered[:at]), median(ordered[at:])
    if fast <= 0 or ordered[at] < MODE_GAP * ordered[at - 1] or slow < MODE_RATIO * fast:
        return None
    return Modes((n - at) / n, fast, slow, n)
