"""Quantiles over a bounded window, counts over everything."""

from __future__ import annotations

import statistics

from hypothesis import given
from hypothesis import strategies as st

from tuimon.model.statistics import WINDOW, Durations, quantile

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
