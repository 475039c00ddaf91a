"""The account of a step, against brute force."""

from __future__ import annotations

import random

from hypothesis import given, settings
from hypothesis import strategies as st

from tuimon.model.steps.account import COMPILE, DATA, FORWARD, GC, MOST_COVERED, OPAQUE, OTHER, PROFILER, SWALLOWED, Account
from tuimon.model.steps.parts import CATEGORIES

Row = tuple[int, int, int]
"""(begin, end, category)."""


def account(begin: int, end: int, rows: list[Row]) -> tuple[int, ...]:
    one = Account(begin)
    for row in rows:
        one.add(row[0], min(row[1], end), row[2])
    return one.parts(end)


def painted(begin: int, end: int, rows: list[Row]) -> tuple[int, ...]:
    """The same, instant by instant: the innermost row has it, or the outermost opaque one around what it swallows."""
    parts = [0] * len(CATEGORIES)
    for at in range(begin, end):
        around = [row for row in rows if row[0] <= at < row[1]]
        if not around:
            parts[OTHER] += 1
            continue
        owner = around[0][2]
        opaque = [row[2] for row in around if row[2] in OPAQUE]
        parts[opaque[-1] if owner in SWALLOWED and opaque else owner] += 1
    return tuple(parts)


def nested(rng: random.Random, begin: int, end: int, rows: list[Row], depth: int = 0) -> None:
    """Random rows, each within another or beside it, in order of end."""
    at = begin
    while True:
        at += rng.randrange(0, max(2, (end - begin) // 3))
        high = at + rng.randrange(1, max(2, (end - begin) // 3))
        if high >= end:
            return
        if depth < 4 and rng.random() < 0.6:
            nested(rng, at, high, rows, depth + 1)
        rows.append((at, high, rng.randrange(len(CATEGORIES))))
        at = high


@settings(max_examples=150, deadline=None)
@given(st.randoms(use_true_random=False), st.integers(0, 50), st.integers(1, 400))
def test_every_instant_belongs_to_the_innermost(rng: random.Random, begin: int, length: int) -> None:
    rows: list[Row] = []
    nested(rng, 0, begin + length + 30, rows)  # some reach over the step's ends
    end = begin + length
    rows = [(low, min(high, end), category) for low, high, category in rows if low < end]
    rows.sort(key=lambda row: (row[1], -row[0]))
    assert account(begin, end, rows) == painted(begin, end, rows)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(st.integers(-20, 120), st.integers(-20, 120), st.integers(0, 9)), max_size=40))
def test_whatever_is_given_the_sum_is_exact_and_nothing_below_zero(rows: list[Row]) -> None:
    """Rows that overlap, end before they begin, or come out of order."""
    parts = account(0, 100, rows)
    assert sum(parts) == 100 and min(parts) >= 0
    inverse = {at for low, high, _ in rows for at in range(max(low, 0), min(high, 100))}
    assert parts[OTHER] >= 100 - len(inverse)


def test_a_collection_within_a_profiler_or_a_compilation_is_theirs() -> None:
    assert account(0, 100, [(10, 20, GC), (5, 50, PROFILER)])[PROFILER] == 45
    assert account(0, 100, [(12, 18, FORWARD), (10, 20, GC), (5, 50, COMPILE)])[COMPILE] == 39
    # also where something else lies between, and the outer of two has it
    parts = account(0, 100, [(10, 20, GC), (8, 30, DATA), (5, 50, COMPILE), (2, 60, PROFILER)])
    assert (parts[DATA], parts[GC], parts[COMPILE], parts[PROFILER]) == (12, 0, 0, 46)


def test_ten_thousand_steps_add_up() -> None:
    rng = random.Random(1)
    at = total = 0
    for _ in range(10_000):
        end = at + rng.randrange(200, 4000)
        rows: list[Row] = []
        nested(rng, at, end, rows, depth=3)
        rows = [(low + rng.randrange(-30, 30), high + rng.randrange(-30, 30), category) for low, high, category in rows]
        rows.sort(key=lambda row: row[1])
        parts = account(at, end, rows)
        assert sum(parts) == end - at and min(parts) >= 0
        total += sum(parts)
        at = end
    assert total == at


def test_the_memory_of_one_step_is_bounded() -> None:
    one = Account(0)
    for at in range(3 * MOST_COVERED):
        one.add(10 * at, 10 * at + 5, FORWARD)
    assert len(one._covered) <= MOST_COVERED
    end = 30 * MOST_COVERED
    one.add(0, end, DATA)
    parts = one.parts(end)
    assert sum(parts) == end and parts[FORWARD] == 15 * MOST_COVERED
