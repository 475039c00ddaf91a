"""Differences of medians, and how far they can be trusted: a moving-block bootstrap, seeded, so that it gives the same again.

Calls and steps next to each other are alike (a busy neighbour, a warm cache): drawn one by one they would make an interval that
is too narrow. So stretches of them are drawn.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from tuimon.model.statistics import quantile

RESAMPLES = 1000
BLOCK = 8
"""Values of a stretch; of few values fewer, so that there are at least four stretches."""
LEVEL = 0.95
FEW = 20
"""An interval from fewer values than this is told, with a word that it is a rough one."""

SAME_PROGRAM = 0.03
"""Of a step. By so much the medians of two runs of one program differ on a machine that nobody else uses."""

Part = tuple[Sequence[int], float]
"""(values in ns, oldest first; factor): counts as factor x median."""
Interval = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Difference:
    """B without A, in seconds."""

    value: float
    interval: Interval | None
    """None where one side has too few values for any."""
    least: float = 0.0
    """Two runs of one program differ by less than this: it is no difference, however narrow the interval."""

    @property
    def seen(self) -> bool:
        """The interval leaves zero out, and the difference is no smaller than those of one program."""
        apart = self.interval is not None and (self.interval[0] > 0 or self.interval[1] < 0)
        return apart and abs(self.value) >= self.least


def rule(seed: int) -> str:
    """The rule in words."""
    return (
        f"differences are of medians, with a {LEVEL:.0%} interval: moving-block bootstrap, {RESAMPLES:,} resamples, stretches "
        f"of {BLOCK} values next to each other (shorter where there are fewer than {4 * BLOCK}), seed {seed}; each side is "
        f"drawn by itself; from fewer than {FEW} values an interval is a rough one. That of the steps is the wider one of that "
        f"and of stretches of a quarter of all, for a machine's pace drifts; it tells how far one run's steps scatter, and "
        f"less than {SAME_PROGRAM:.0%} of a step is never called a difference: two runs of one program differ by so much"
    )


def median(values: Sequence[int]) -> float:
    """The median of values of which there is at least one."""
    return _middle(sorted(values))


def of_steps(a: Sequence[int], b: Sequence[int], seed: int) -> Difference | None:
    """The difference of steps' medians: with the wider of two intervals, as the pace drifts in each run; and no smaller than
    what two runs of one program differ by."""
    found = difference([(a, 1.0)], [(b, 1.0)], "steps", seed)
    if found is None or found.interval is None:
        return found
    longest = max(len(a), len(b)) // 4
    drifting = difference([(a, 1.0)], [(b, 1.0)], "steps", seed, block=max(BLOCK, longest))
    assert drifting is not None and drifting.interval is not None
    low, high = zip(found.interval, drifting.interval, strict=True)
    return Difference(found.value, (min(low), max(high)), SAME_PROGRAM * max(median(a), median(b)) / 1e9)


def difference(
    a: Sequence[Part], b: Sequence[Part], name: str, seed: int, *, block: int | None = None, share: float = 0.5
) -> Difference | None:
    """The sum of the parts of B without that of A. No parts is 0: something that is not there. A part without values makes it
    None. `name` is what is compared: each has its own draws, whatever else is compared with it. `block`: values of a
    stretch, where not BLOCK; `share`: 0.5 for medians, 0.9 for the ninth decile of a single part."""
    parts = [*a, *b]
    if any(not values for values, _ in parts):
        return None
    value = _sum(b, share) - _sum(a, share)
    if any(len(values) < 2 for values, _ in parts) or not parts:
        return Difference(value, None)
    if all(not any(values) for values, _ in parts):
        return Difference(0.0, (0.0, 0.0))
    draw = random.Random(f"{seed} {name}")
    found = [0.0] * RESAMPLES
    for sign, side in ((-1.0, a), (1.0, b)):
        for values, factor in side:
            for at, one in enumerate(_resampled(values, draw, block or BLOCK, share)):
                found[at] += sign * factor * one / 1e9
    found.sort()
    tail = int(RESAMPLES * (1 - LEVEL) / 2)
    return Difference(value, (found[tail], found[RESAMPLES - 1 - tail]))


def seconds_of(parts: Sequence[Part]) -> float:
    """The sum of parts that all have values."""
    return sum(factor * median(values) for values, factor in parts) / 1e9


def _sum(parts: Sequence[Part], share: float) -> float:
    return sum(factor * _quantile(sorted(values), share) for values, factor in parts) / 1e9


def _resampled(values: Sequence[int], draw: random.Random, block: int, share: float) -> list[float]:
    """The quantile of each resample: as many values as there are, in stretches that begin anywhere and go round at the end."""
    n = len(values)
    block = max(1, min(block, n // 4))
    around = [*values, *values[: block - 1]]
    stretches = -(-n // block)
    begins = range(n)
    found = []
    for _ in range(RESAMPLES):
        drawn: list[int] = []
        for begin in draw.choices(begins, k=stretches):
            drawn += around[begin : begin + block]
        del drawn[n:]
        drawn.sort()
        found.append(_quantile(drawn, share))
    return found


def _quantile(ordered: Sequence[int], share: float) -> float:
    return _middle(ordered) if share == 0.5 else quantile(list(ordered), share) or 0.0


def _middle(ordered: Sequence[int]) -> float:
    n = len(ordered)
    return float(ordered[n // 2]) if n % 2 else (ordered[n // 2 - 1] + ordered[n // 2]) / 2
