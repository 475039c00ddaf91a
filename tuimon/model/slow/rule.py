"""The rule by which a step is slow: robust, declared, and the same on screen, in the report and in the tests.

Pure: from accounts in their order to verdicts. A step is compared with the steady steps before it; while there are too few of
them it waits, and the first ones are judged together.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from tuimon.model.statistics import quantile
from tuimon.model.steps.parts import CATEGORIES, StepAccount

WINDOW = 128
"""So many steady steps before it a step is compared with, at most."""
LEAST = 8
"""And so many at least. While there are fewer, steps wait for 2 x LEAST of them, or for the end of the job."""
LEAST_AT_END = 4
"""What is enough when no more come."""
LONGEST_WAIT = 256
"""Steps that wait at most: a job that compiles in every step never has steady ones."""
DEVIATIONS, PART, OVER_NS = 8.0, 0.5, 10_000_000
"""How far above the median a slow step is: the largest of so many robust standard deviations, this part of the median, ns."""
MODE, ABOVE_MODE = 0.85, 1.2
"""More than one step in seven that takes long is another mode of the job and no spike: a slow step is above that, too."""
LONG_WINDOW = 512
"""The modes of a job are looked for among so many steps as well: by chance there are few of the slower ones in a row."""
TO_SIGMA = 1.4826
"""What makes a median absolute deviation the standard deviation of normal values."""


@dataclass(frozen=True, slots=True)
class Base:
    """The steady steps that one is compared with."""

    n: int
    median_ns: int
    deviation_ns: int
    limit_ns: int
    """What takes longer than this is slow."""
    usual: tuple[int, ...]
    """The median of each of CATEGORIES."""
    waited_ns: int = 0
    """The median of `StepAccount.waited_ns`."""


@dataclass(frozen=True, slots=True)
class Slow:
    """A step that was found slow, and what it was compared with."""

    account: StepAccount
    base: Base
    first: bool
    """One of the first steps, judged with those after it: what it did may be no more than warming up."""


def rule(over_ns: int = OVER_NS) -> str:
    """The rule in words."""
    return (
        f"slow: longer than m + max({DEVIATIONS:g} d, {PART:g} m, {over_ns / 1e6:g} ms), where m is the median of the last "
        f"{WINDOW} steps before it that were not slow and had no compilation in them, and d {TO_SIGMA} times their median "
        f"absolute deviation; and longer than {ABOVE_MODE:g} times the 85th percentile of the last {WINDOW} steps, and of the "
        f"last {LONG_WINDOW}. "
        f"The first {2 * LEAST} are judged together, by the faster three quarters of them."
    )


class Judge:
    """Tells the slow ones among steps that come in their order. Constant memory."""

    def __init__(self, over_ns: int = OVER_NS) -> None:
        self.over_ns = over_ns
        self.steady = 0
        """Steps that were not slow and had no compilation in them."""
        self._base: deque[StepAccount] = deque(maxlen=WINDOW)
        self._times = _Window(WINDOW)
        self._recent: deque[int] = deque(maxlen=LONG_WINDOW)
        """How long the latest steps without a compilation took, slow ones too."""
        self._waiting: list[StepAccount] = []

    def take(self, account: StepAccount) -> list[Slow]:
        """One more step; gives those that are known to be slow by now."""
        if len(self._base) >= LEAST:
            took, ordered = account.end_ns - account.begin_ns, self._times.ordered
            base = None
            if took > ordered[(len(ordered) - 1) // 2] + self.over_ns:  # the median is no less: of most steps this is all
                base = self._slow(took)
            if account.complete and not account.compiled:
                self._recent.append(took)
                if base is None:
                    self.steady += 1
                    self._base.append(account)
                    self._times.add(took)
            return [] if base is None else [Slow(account, base, False)]
        self._waiting.append(account)
        plain = sum(_plain(one) for one in self._waiting)
        if plain >= 2 * LEAST or len(self._waiting) >= LONGEST_WAIT:
            return self._judge_first()
        return []

    def end(self) -> list[Slow]:
        """No more steps come: judges those that wait, where there is enough to judge them by."""
        return self._judge_first()

    @property
    def base(self) -> Base | None:
        """What the next step will be compared with; None while that is not known."""
        return self._measure() if len(self._base) >= LEAST else None

    def _judge_first(self) -> list[Slow]:
        waiting, self._waiting = self._waiting, []
        plain = sorted((one for one in waiting if _plain(one)), key=lambda one: one.took_ns)
        if len(plain) < LEAST_AT_END:
            return []
        for one in plain[: max(1, 3 * len(plain) // 4)]:
            self._add(one)
        for one in plain:
            self._recent.append(one.took_ns)
        measured = self._measure()
        found = [Slow(one, measured, True) for one in waiting if one.took_ns > measured.limit_ns]
        slow = {id(one.account) for one in found}
        self._clear()
        for one in waiting:
            if _plain(one):
                self._recent.append(one.took_ns)
                if id(one) not in slow:
                    self._add(one)
        return found

    def _clear(self) -> None:
        self._base.clear()
        self._times = _Window(WINDOW)
        self._recent.clear()
        self.steady = 0

    def _mode(self) -> int:
        """What the slower mode of the job takes, where it has one; 0 where nothing was seen. Asked seldom, so sorted then."""
        recent = list(self._recent)
        return max(_at(sorted(recent[-WINDOW:]), MODE), _at(sorted(recent), MODE))

    def _add(self, account: StepAccount) -> None:
        self.steady += 1
        self._base.append(account)
        self._times.add(account.end_ns - account.begin_ns)

    def _slow(self, took: int) -> Base | None:
        usual = self._times.quantile(0.5)
        if took <= usual + max(PART * usual, self.over_ns):  # nearly all: the deviation could only raise the limit
            return None
        if took <= ABOVE_MODE * self._mode():
            return None
        base = self._measure()
        return base if took > base.limit_ns else None

    def _measure(self) -> Base:
        usual = self._times.quantile(0.5)
        deviation = TO_SIGMA * _median([abs(one - usual) for one in self._times.ordered])
        limit = usual + max(DEVIATIONS * deviation, PART * usual, self.over_ns)
        limit = max(limit, ABOVE_MODE * self._mode())
        parts = tuple(int(_median([one.parts[at] for one in self._base])) for at in range(len(CATEGORIES)))
        waited = int(_median([one.waited_ns for one in self._base]))
        return Base(len(self._base), int(usual), int(deviation), int(limit), parts, waited)


@dataclass(slots=True)
class _Window:
    """The last values, in their order and by size."""

    size: int
    _queue: deque[int] = field(default_factory=deque)
    ordered: list[int] = field(default_factory=list)

    def add(self, value: int) -> None:
        self._queue.append(value)
        insort(self.ordered, value)
        if len(self._queue) > self.size:
            del self.ordered[bisect_left(self.ordered, self._queue.popleft())]

    def quantile(self, share: float) -> float:
        return quantile(self.ordered, share) or 0.0


def _at(ordered: Sequence[int], share: float) -> int:
    """The value at this place of ordered ones; 0 where there are none."""
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else 0


def _plain(account: StepAccount) -> bool:
    """Whether a step can be one that others are compared with."""
    return account.complete and not account.compiled


def _median(values: Sequence[float]) -> float:
    ordered = sorted(values)
    middle = len(ordered) // 2
    if not ordered:
        return 0.0
    return float(ordered[middle]) if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2
