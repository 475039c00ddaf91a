"""The interval of a difference: it holds the truth about as often as it says, also where neighbours are alike."""

from __future__ import annotations

import random

import pytest

from tuimon.report.compare import interval
from tuimon.report.compare.interval import Difference, difference, median

MS = 1_000_000


def series(draw: random.Random, n: int, middle_ms: float, keeps: float) -> list[int]:
    """Values around a middle; `keeps`: how much of a value the next one keeps (0: none is like the one before)."""
    found, off = [], 0.0
    for _ in range(n):
        off = keeps * off + draw.gauss(0.0, 1.0)
        found.append(int((middle_ms + 0.2 * off) * MS))
    return found


def held(keeps: float) -> float:
    """In what part of 100 pairs of runs the interval holds the true difference."""
    draw, found = random.Random(7), 0
    for run in range(100):
        a, b = series(draw, 60, 10.0, keeps), series(draw, 60, 9.0, keeps)
        one = difference([(a, 1.0)], [(b, 1.0)], f"{run}", 20)
        assert one is not None and one.interval is not None
        found += one.interval[0] <= -1e-3 <= one.interval[1]
    return found / 100


def test_it_holds_the_truth_about_as_often_as_it_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interval, "RESAMPLES", 80)
    assert held(0.0) >= 0.88 and (alike := held(0.6)) >= 0.85
    monkeypatch.setattr(interval, "BLOCK", 1)
    assert held(0.6) < alike - 0.05  # drawn one by one they promise too much


def test_it_is_wider_where_neighbours_are_alike() -> None:
    draw = random.Random(2)
    alone, alike = series(draw, 400, 10.0, 0.0), series(draw, 400, 10.0, 0.9)
    widths = []
    for values in (alone, alike):
        found = difference([(values, 1.0)], [(values, 1.0)], "x", 20)
        assert found is not None and found.interval is not None
        widths.append((found.interval[1] - found.interval[0]) / (max(values) - min(values)))
    assert widths[1] > 1.5 * widths[0]


def test_what_is_not_there_is_zero_and_what_has_no_values_is_not_known() -> None:
    values = [3 * MS] * 30
    gone = difference([(values, 2.0)], [], "x", 20)
    assert gone == Difference(-0.006, (-0.006, -0.006)) and gone.seen
    assert difference([([], 1.0)], [], "x", 20) is None
    assert difference([([5 * MS], 1.0)], [(values, 1.0)], "x", 20) == Difference(-0.002, None)
    assert difference([([0, 0, 0], 1.0)], [([0, 0], 1.0)], "x", 20) == Difference(0.0, (0.0, 0.0))


def test_each_thing_has_its_own_draws() -> None:
    draw = random.Random(3)
    a, b = series(draw, 60, 10.0, 0.0), series(draw, 60, 10.0, 0.0)
    one, again, other = (difference([(a, 1.0)], [(b, 1.0)], name, 20) for name in ("x", "x", "y"))
    assert one == again and one != other


def test_the_rule_is_told_in_words() -> None:
    assert "95% interval: moving-block bootstrap, 1,000 resamples, stretches of 8 values" in interval.rule(20)


def test_the_median_of_an_even_number_lies_between_the_two() -> None:
    assert median([4, 1, 3, 2]) == 2.5 and median([9, 1, 5]) == 5.0
