"""The order of calls that repeats: after how many calls it does.

While nothing repeats that is looked for again and again, so it is done without a step of Python for each call: the calls are a
whole number with a byte for each, and those that differ from the one a period before are what is left of it and of itself moved
by so many bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import eq

LONGEST_PERIOD = 64
LOOKED_AT = 512
"""The last so many calls are what a period is told by."""
ALIKE = 0.75
"""So many of the calls must be the same as the one a period before."""
BETTER = 0.05
"""By so much another period must fit better to be taken instead."""


def agreement(entries: Sequence[str], period: int) -> float:
    """Which share of the calls is the same as the one a period before."""
    pairs = len(entries) - period
    return sum(map(eq, entries[period:], entries)) / pairs if pairs > 0 else 0


def period_of(entries: Sequence[str]) -> int:
    """The shortest period that fits (nearly) as well as the best; 0 where none does, or too few calls are there to tell."""
    entries = entries[-LOOKED_AT:]
    size = len(entries)
    longest = min(LONGEST_PERIOD, (size - 1) // 2)
    numbers = dict(zip(dict.fromkeys(entries), range(size), strict=False))
    if size - len(numbers) < ALIKE * (size - longest):
        return 0  # the first of each is the same as none before it: too many are firsts
    calls = int.from_bytes(bytes(map(numbers.__getitem__, entries)), "little")  # by now they are far fewer than 256
    fits = {}
    for period in range(1, longest + 1):
        differ = calls >> 8 * period ^ calls
        fits[period] = differ.to_bytes(size, "little").count(0, 0, size - period) / (size - period)
    best = max(fits.values(), default=0)
    if best < ALIKE:
        return 0
    return next(p for p, fit in fits.items() if fit >= ALIKE and fit >= best - BETTER)
