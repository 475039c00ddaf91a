"""The account of a step: its wall time divided among CATEGORIES, each instant once.

Rows are given in the order in which they end, so what lies within a row comes before it. The innermost row that covers an
instant has it; where two rows only overlap, the one that ended first keeps it. A compilation and a profiler swallow what is
theirs: a collection within one of them is part of it. What no row covers is "other python".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Union

from tuimon.model.steps.parts import CATEGORIES, LongRow

if TYPE_CHECKING:
    from tuimon.model.steps.long import Long

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

EAGER, ENGINE = len(CATEGORIES), len(CATEGORIES) + 1
"""What is "other python" to an account, and known for more: a call of a frame in eager, a run of the autograd engine."""

_KINDS = len(CATEGORIES) + 2
_SWALLOWED_AT = tuple(
    SWALLOWED.index(OTHER if at >= EAGER else at) if at in (*SWALLOWED, EAGER, ENGINE) else None for at in range(_KINDS)
)

_SWALLOWED_BY_NONE = frozenset(at for at in range(_KINDS) if _SWALLOWED_AT[at] is None)

MOST_COVERED = 4096
"""Stretches of one step that are kept apart. Beyond it the oldest two become one; what lies between them is then given to
nobody but "other python"."""

Span = tuple[int, int, int, Union["Long", LongRow, None]]
"""(end, begin, one of CATEGORIES or of EAGER and ENGINE, the row where it is a long one)."""

NEVER = 1 << 80
"""Behind all that is ever timed."""

Held = tuple[int, int, int, int] | None
"""How much of a covered stretch was given to each of SWALLOWED; None for nothing."""

Covered = tuple[int, int, Held | int, object]
"""(end, begin, what of it is held, anything): all of it is where that is a number, of one of CATEGORIES or of EAGER and
ENGINE. So most of the time the span itself is what it has covered."""


class Account:
    """One step's account while it grows. No entry can be below zero, and the sum is exact whatever is given."""

    __slots__ = ("_covered", "_parts", "begin_ns")

    def __init__(self, begin_ns: int = 0) -> None:
        self.begin_ns = begin_ns
        self._parts = [0] * _KINDS
        self._covered: list[Covered] = []
        """Disjoint stretches that rows have covered, ascending."""

    def anew(self, begin_ns: int) -> None:
        """It is the account of another step."""
        self.begin_ns = begin_ns
        self._parts = [0] * _KINDS
        self._covered = []

    def take(self, spans: Sequence[Span], end_ns: int, long: list[Long | LongRow]) -> None:
        """Rows in their order, of each what lies before `end_ns`. The long ones are told what of them is their own, and are
        added to `long`.
        """
        parts, covered = self._parts, self._covered
        # nothing is taken for what lies behind all that came before it where there are too many, or one reaches over the end
        never = len(covered) + len(spans) >= MOST_COVERED or (bool(spans) and spans[-1][0] > end_ns)
        reached = NEVER if never else covered[-1][0] if covered else self.begin_ns
        cover = covered.append
        for span in spans:
            end, begin, kind, row = span
            if reached <= begin < end:  # most: behind all that came before
                own = end - begin
                parts[kind] += own
                cover(span)
                reached = end
            else:
                own = self.add(begin, end if end < end_ns else end_ns, kind)
                reached = NEVER if never else covered[-1][0] if covered else self.begin_ns
            if row is not None:
                row.own_ns += own
                long.append(row)

    def add(self, begin_ns: int, end_ns: int, kind: int) -> int:
        """One more row. Gives how many ns of it were nobody's yet, or were taken from what it swallows."""
        begin = begin_ns if begin_ns > self.begin_ns else self.begin_ns
        if end_ns <= begin:
            return 0
        covered = self._covered
        taken = 0
        held: Held = None
        after: list[Covered] = []
        while covered and covered[-1][0] > begin:
            high, low, inner, _ = covered.pop()
            if low >= end_ns:  # only where rows come out of order
                after.append((high, low, inner, None))
                continue
            if inner is not None:
                inner = None if inner in _SWALLOWED_BY_NONE else _held(inner, high - low)
            if high > end_ns:
                inner, rest = _divide(inner, end_ns - low)
                after.append((high, end_ns, rest, None))
                high = end_ns
            if low < begin:
                left, inner = _divide(inner, begin - low)
                covered.append((begin, low, left, None))
                taken += high - begin
                held = _plus(held, inner)
                break
            taken += high - low
            if inner is not None:
                held = inner if held is None else _plus(held, inner)
        parts = self._parts
        if held is not None and kind in OPAQUE:
            for swallowed, ns in zip(SWALLOWED, held, strict=True):
                parts[swallowed] -= ns
                taken -= ns
            held = None
        own = end_ns - begin - taken
        parts[kind] += own
        if own and _SWALLOWED_AT[kind] is not None:
            held = _held(kind, own) if held is None else _plus(held, _held(kind, own))
        covered.append((end_ns, begin, held, None))
        if after:
            covered += reversed(after)
        if len(covered) > MOST_COVERED:
            (end, low, one, _), (high, between, other, _) = covered[:2]
            covered[:2] = [(high, low, _plus(_held(one, end - low), _held(other, high - between)), None)]
        return own

    def parts(self, end_ns: int) -> tuple[int, ...]:
        """ns of each of CATEGORIES up to `end_ns`, behind which no row that was given may lie; the sum is exact."""
        given = self._parts
        named = given[:OTHER]
        took = end_ns - self.begin_ns
        rest = (took if took > 0 else 0) - sum(named)
        if rest >= 0:
            return (*named, rest)
        short = []
        for ns in named:  # a row reached behind the end after all
            taken = min(ns, -rest)
            short.append(ns - taken)
            rest += taken
        return (*short, 0)


def _held(inner: Held | int, ns: int) -> Held:
    """What a stretch of so many ns holds."""
    if not isinstance(inner, int):
        return inner
    at = _SWALLOWED_AT[inner]
    return None if at is None else (ns if at == 0 else 0, ns if at == 1 else 0, ns if at == 2 else 0, ns if at == 3 else 0)


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
