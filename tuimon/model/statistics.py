"""Counts and spreads of durations, with the aggregation rule declared in one place.

The rule is on screen and in every report: a median with p10 and p90, over the last `WINDOW` values; never the fastest alone.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

WINDOW = 512
"""How many of the latest values a median is taken over. Totals and counts are over all of them."""

RULE = f"median [p10-p90] of the last {WINDOW}; n and total over all"


@dataclass(frozen=True, slots=True)
class Summary:
    """A population of durations in seconds. `median`, `p10` and `p90` are None while there are no values."""

    n: int
    median: float | None
    p10: float | None
    p90: float | None
    total: float


class Durations:
    """A growing population of durations. Constant memory: a window for the quantiles, counts for the rest."""

    __slots__ = ("_summary", "_window", "n", "total_ns")

    def __init__(self) -> None:
        self.n = 0
        self.total_ns = 0
        self._window: deque[int] = deque(maxlen=WINDOW)
        self._summary: Summary | None = None

    def add(self, duration_ns: int) -> None:
        """Take one more duration in ns."""
        self.n += 1
        self.total_ns += duration_ns
        self._window.append(duration_ns)
        self._summary = None

    def grow(self, more_ns: int) -> None:
        """The last duration turned out to be so many ns longer."""
        self.total_ns += more_ns
        self._window[-1] += more_ns
        self._summary = None

    def extend(self, durations_ns: Sequence[int]) -> None:
        """Take some more, in their order."""
        self.n += len(durations_ns)
        self.total_ns += sum(durations_ns)
        self._window.extend(durations_ns)
        self._summary = None

    def latest(self, count: int) -> list[int]:
        """The last `count` durations in ns, oldest first (at most WINDOW)."""
        window = self._window
        return list(window)[-count:] if count < len(window) else list(window)

    @property
    def summary(self) -> Summary:
        """The population now. Sorting happens here, once per change, and only for what is looked at."""
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
