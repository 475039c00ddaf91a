"""Quantiles over a bounded window, counts over everything."""

from __future__ import annotations

import statistics

from hypothesis import given
from hypothesis import strategies as st

from tuimon.model.statistics import LONGEST_NS, WINDOW, Durations, quantile, seconds

ns = st.integers(0, 10**12)


@given(st.lists(ns, min_size=2, max_size=200))
def test_quantiles_agree_with_the_standard_library(values: list[int]) -> None:
    ordered = sorted(values)
    assert quantile(ordered, 0.5) == statistics.median(ordered)
    deciles = statistics.quantiles(ordered, n=10, method="inclusive")
    assert abs((quantile(ordered, 0.1) or 0) - deciles[0]) <= 1e-6 * max(ordered[-1], 1)
    assert abs((quantile(ordered, 0.9) or 0) - deciles[8]) <= 1e-6 * max(ordered[-1], 1)


def test_nothing_is_none_and_not_zero() -> None:
    summary = Durations().summary
    assert (summary.n, summary.median, summary.p10, summary.p90, summary.total) == (0, None, None, None, 0.0)


def test_the_window_is_bounded_and_the_totals_are_not() -> None:
    durations = Durations()
    for value in range(3 * WINDOW):
        durations.add(value)
    summary = durations.summary
    assert summary.n == 3 * WINDOW
    assert summary.total == sum(range(3 * WINDOW)) / 1e9
    assert summary.median == (2 * WINDOW + (WINDOW - 1) / 2) / 1e9
    assert durations.latest(2) == [3 * WINDOW - 2, 3 * WINDOW - 1]


@given(st.lists(st.integers(0, 40) | st.sampled_from((WINDOW - 1, WINDOW, WINDOW + 1, 1300)), max_size=8))
def test_the_window_holds_the_last_values_however_they_come(pieces: list[int]) -> None:
    durations, told = Durations(), list[int]()
    for piece in pieces:
        more = [len(told) + at * at for at in range(piece)]
        if piece == 1:
            durations.add(more[0])
        else:
            durations.extend(more)
        told += more
        if told and piece % 3 == 0:
            durations.grow(5)
            told[-1] += 5
    for one in (durations, durations.copy()):
        assert (one.n, one.total_ns, one.latest(WINDOW)) == (len(told), sum(told), told[-WINDOW:])
        assert one.latest(7) == told[-7:]
        assert one.summary.median == seconds(quantile(sorted(told[-WINDOW:]), 0.5))


def test_a_copy_stays_as_it_was() -> None:
    durations = Durations()
    nothing = durations.copy()
    for value in range(WINDOW + 3):
        durations.add(value)
    copied = durations.copy()
    durations.add(9)
    durations.grow(1)
    assert copied.latest(2) == [WINDOW + 1, WINDOW + 2] and durations.latest(2) == [WINDOW + 2, 10]
    assert (nothing.n, nothing.latest(3), Durations().latest(3)) == (0, [], [])


def test_a_duration_that_no_clock_gives_harms_nothing() -> None:
    durations = Durations()
    durations.add(2**70)
    durations.extend([1, 2**65, -3])
    durations.grow(2**66)
    assert durations.n == 4 and durations.latest(9) == [LONGEST_NS, 1, LONGEST_NS, LONGEST_NS]
    assert durations.total_ns == 2**70 + 2**65 + 2**66 - 2
