"""Counts and spreads of durations, with the aggregation rule declared in one place.

The rule is on screen and in every report: a median with p10 and p90, over the last `WINDOW` values; never the fastest alone.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass

WINDOW = 512
"""How many of the latest values a median is taken over. Totals and counts are over all of them."""

LONGEST_NS = 2**64 - 1
"""A longer one is none that a clock gives: in the window it is as long as that."""

RULE = f"median [p10-p90] of the last {WINDOW}; n and total over all"


_NONE: array[int] = array("Q")
"""The window of what has had no value: of all that have none."""


def _fitted(duration_ns: int) -> int:
    return min(max(duration_ns, 0), LONGEST_NS)


@dataclass(frozen=True, slots=True)
class Summary:
    """A population of durations in seconds. `median`, `p10` and `p90` are None while there are no values."""

    n: int
    median: float | None
    p10: float | None
    p90: float | None
    total: float


_EMPTY = Summary(0, None, None, None, 0.0)
"""The same for all that have had no value, as most of what is known of a region on the device and after a guard change."""


class Durations:
    """A growing population of durations. Constant memory: a window for the quantiles, counts for the rest."""

    __slots__ = ("_summary", "_window", "n", "total_ns")

    def __init__(self) -> None:
        self.n = 0
        self.total_ns = 0
        self._window = _NONE
        """The n-th value, from 0, is at n % WINDOW: eight bytes each, as there are models with ten thousand regions."""
        self._summary: Summary | None = None

    def add(self, duration_ns: int) -> None:
        """Take one more duration in ns."""
        n = self.n
        self.n = n + 1
        self.total_ns += duration_ns
        self._summary = None
        if not n:
            self._window = array("Q")
        try:
            if n < WINDOW:
                self._window.append(duration_ns)
            else:
                self._window[n % WINDOW] = duration_ns
        except OverflowError:
            self._window[n % WINDOW : n % WINDOW + 1] = array("Q", (_fitted(duration_ns),))

    def grow(self, more_ns: int) -> None:
        """The last duration turned out to be so many ns longer."""
        self.total_ns += more_ns
        last = (self.n - 1) % WINDOW
        self._window[last] = _fitted(self._window[last] + more_ns)
        self._summary = None

    def extend(self, durations_ns: Sequence[int]) -> None:
        """Take some more, in their order."""
        n, more = self.n, len(durations_ns)
        try:
            new = array("Q", durations_ns)
        except OverflowError:
            new = array("Q", map(_fitted, durations_ns))
        window, at = self._window, n % WINDOW
        if not n and more <= WINDOW:
            self._window = new
        elif n + more <= WINDOW:
            window.extend(new)
        elif n >= WINDOW and at + more <= WINDOW:
            window[at : at + more] = new
        else:
            window = (self._ordered() + new)[-WINDOW:]
            begin = WINDOW - (n + more) % WINDOW
            self._window = window[begin:] + window[:begin]
        self.n = n + more
        self.total_ns += sum(durations_ns)
        self._summary = None

    def latest(self, count: int) -> list[int]:
        """The last `count` durations in ns, oldest first (at most WINDOW)."""
        ordered = self._ordered()
        return list(ordered[-count:] if count < len(ordered) else ordered)

    def copy(self) -> Durations:
        """The population as it is, for who keeps it."""
        copied = Durations()
        copied.n, copied.total_ns, copied._summary = self.n, self.total_ns, self._summary
        copied._window = self._window[:] if self.n else _NONE
        return copied

    def _ordered(self) -> array[int]:
        """The window, oldest first."""
        at = self.n % WINDOW
        return self._window if self.n <= WINDOW or not at else self._window[at:] + self._window[:at]

    @property
    def summary(self) -> Summary:
        """The population now. Sorting happens here, once per change, and only for what is looked at."""
        if not self.n:
            return _EMPTY
        if self._summary is None:
            ordered = sorted(self._window)
            self._summary = Summary(
                n=self.n,
                median=seconds(quantile(ordered, 0.5)),
                p10=seconds(quantile(ordered, 0.1)),
                p90=seconds(quantile(ordered, 0.9)),
                total=self.total_ns / 1e9,
            )
        return self._summary


def quantile(ordered: list[int], share: float) -> float | None:
    """The `share` quantile of an ascending list by linear interpolation between ranks (Hyndman & Fan's type 7)."""
    if not ordered:
        return None
    position = share * (len(ordered) - 1)
    low = int(position)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (position - low)


def seconds(ns: float | None) -> float | None:
    """Nanoseconds as seconds; None stays None."""
    return None if ns is None else ns / 1e9
