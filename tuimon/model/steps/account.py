"""The account of a step: its wall time divided among CATEGORIES, each instant once.

Rows are given in the order in which they end, so what lies within a row comes before it. The innermost row that covers an
instant has it; where two rows only overlap, the one that ended first keeps it. A compilation and a profiler swallow what is
theirs: a collection within one of them is part of it. What no row covers is "other python".
"""

from __future__ import annotations

from collections.abc import Iterable

from tuimon.model.steps.parts import CATEGORIES, LongRow

COMPILE = CATEGORIES.index("compile")
FORWARD = CATEGORIES.index("forward regions")
BACKWARD = CATEGORIES.index("backward regions")
BOUNDARY = CATEGORIES.index("boundary")
OPTIMIZER = CATEGORIES.index("optimizer")
DATA = CATEGORIES.index("data wait")
COMMUNICATION = CATEGORIES.index("communication")
GC = CATEGORIES.index("gc")
PROFILER = CATEGORIES.index("profiler")
OTHER = CATEGORIES.index("other python")

OPAQUE = (COMPILE, PROFILER)
SWALLOWED = (GC, COMPILE, PROFILER, OTHER)
"""What a row of OPAQUE takes as its own where it lies within it. OTHER: the compiler runs the autograd engine to trace it."""

MOST_COVERED = 4096
"""Stretches of one step that are kept apart. Beyond it the oldest two become one; what lies between them is then given to
nobody but "other python"."""

Span = tuple[int, int, int, str, LongRow | None]
"""(end, minus begin, category, role, the row where it is a long one): they sort as an account wants them."""

Held = tuple[int, int, int, int] | None
"""How much of a covered stretch was given to each of SWALLOWED; None for nothing."""


class Account:
    """One step's account while it grows. No entry can be below zero, and the sum is exact whatever is given."""

    __slots__ = ("_covered", "_parts", "begin_ns")

    def __init__(self, begin_ns: int) -> None:
        self.begin_ns = begin_ns
        self._parts = [0] * len(CATEGORIES)
        self._covered: list[tuple[int, int, Held]] = []
        """Disjoint stretches that rows have covered, ascending."""

    def take(self, spans: Iterable[Span], end_ns: int) -> None:
        """Rows in their order, of each what lies before `end_ns`. The long ones are told what of them is their own."""
        parts, covered = self._parts, self._covered
        reached = covered[-1][1] if covered else self.begin_ns
        for end, minus_begin, category, _, row in spans:
            begin = -minus_begin
            if reached <= begin < end <= end_ns and len(covered) < MOST_COVERED:  # most: behind all that came before
                own = end - begin
                parts[category] += own
                covered.append((begin, end, _mine(category, own) if category in SWALLOWED else None))
                reached = end
            else:
                own = self.add(begin, end if end < end_ns else end_ns, category)
                reached = covered[-1][1] if covered else self.begin_ns
            if row is not None:
                row.own_ns += own

    def add(self, begin_ns: int, end_ns: int, category: int) -> int:
        """One more row. Gives how many ns of it were nobody's yet, or were taken from what it swallows."""
        begin = begin_ns if begin_ns > self.begin_ns else self.begin_ns
        if end_ns <= begin:
            return 0
        covered = self._covered
        taken = 0
        held: Held = None
        after: list[tuple[int, int, Held]] = []
        while covered and covered[-1][1] > begin:
            low, high, inner = covered.pop()
            if low >= end_ns:  # only where rows come out of order
                after.append((low, high, inner))
                continue
            if high > end_ns:
                inner, rest = _divide(inner, end_ns - low)
                after.append((end_ns, high, rest))
                high = end_ns
            if low < begin:
                left, inner = _divide(inner, begin - low)
                covered.append((low, begin, left))
                taken += high - begin
                held = _plus(held, inner)
                break
            taken += high - low
            held = _plus(held, inner)
        parts = self._parts
        if held is not None and category in OPAQUE:
            for swallowed, ns in zip(SWALLOWED, held, strict=True):
                parts[swallowed] -= ns
                taken -= ns
            held = None
        own = end_ns - begin - taken
        parts[category] += own
        if category in SWALLOWED and own:
            held = _mine(category, own) if held is None else _plus(held, _mine(category, own))
        covered.append((begin, end_ns, held))
        if after:
            covered += reversed(after)
        if len(covered) > MOST_COVERED:
            (low, _, one), (_, high, other) = covered[:2]
            covered[:2] = [(low, high, _plus(one, other))]
        return own

    def parts(self, end_ns: int) -> tuple[int, ...]:
        """ns of each of CATEGORIES up to `end_ns`, behind which no row that was given may lie; the sum is exact."""
        given = self._parts
        rest = max(0, end_ns - self.begin_ns) - (sum(given) - given[OTHER])
        if rest >= 0:
            return (*given[:OTHER], rest)
        short = []
        for ns in given[:OTHER]:  # a row reached behind the end after all
            taken = min(ns, -rest)
            short.append(ns - taken)
            rest += taken
        return (*short, 0)


def _mine(category: int, ns: int) -> Held:
    return (
        ns if category == GC else 0,
        ns if category == COMPILE else 0,
        ns if category == PROFILER else 0,
        ns if category == OTHER else 0,
    )


def _plus(one: Held, other: Held) -> Held:
    if one is None or other is None:
        return one or other
    return one[0] + other[0], one[1] + other[1], one[2] + other[2], one[3] + other[3]


def _divide(held: Held, left: int) -> tuple[Held, Held]:
    """What a stretch holds, divided between its first `left` ns and the rest: no part gets more than it is long."""
    if held is None:
        return None, None
    first: list[int] = []
    for ns in held:  # all together they are no longer than the stretch, so what does not fit on the left fits on the right
        first.append(min(ns, left))
        left -= first[-1]
    gc, compiling, profiler, other = first
    return (gc, compiling, profiler, other), (held[0] - gc, held[1] - compiling, held[2] - profiler, held[3] - other)
