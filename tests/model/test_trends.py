"""Trends, periods and two kinds of steps; and above all where there are none."""

from __future__ import annotations

import gc
import random
from itertools import pairwise

import pytest

from tests.model.steps import MS, account
from tuimon.model.slow.trends import BLOCK, MOST_BLOCKS, Trends, mann_kendall, modes, period
from tuimon.model.steps.parts import StepAccount


def folded(times: list[float], calls: list[tuple[int, int]] | None = None, grows: str = "other python") -> Trends:
    trends = Trends()
    for index, ms in enumerate(times):
        parts = {} if grows == "other python" else {grows: ms - 10}
        if trends.take(account(index, ms, parts, begin=index * 20 * MS)):
            trends.close(*(calls[len(trends.blocks)] if calls else (None, None)))
    return trends


def noisy(n: int, slope: float, seed: int = 1, base: float = 20.0) -> list[float]:
    """`slope`: by how much the last one takes longer than the first."""
    picked = random.Random(seed)
    return [base * (1 + slope * at / n) * (1 + picked.gauss(0, 0.05)) for at in range(n)]


class TestDrift:
    def test_a_job_that_gets_slower_is_told_with_what_grew(self) -> None:
        drift = folded(noisy(BLOCK * 40, 0.2), grows="boundary").drift
        assert drift is not None and drift.slower == pytest.approx(0.15, abs=0.03) and drift.z > 3
        assert drift.grew == "boundary" and drift.grew_ns == pytest.approx(3 * MS, rel=0.2)
        assert drift.steps == BLOCK * 40 and drift.eager_before is None

    @pytest.mark.parametrize("seed", range(4))
    def test_a_steady_one_is_not(self, seed: int) -> None:
        assert folded(noisy(BLOCK * 40, 0.0, seed)).drift is None

    def test_five_per_cent_is_not_enough_and_few_steps_are_not(self) -> None:
        assert folded(noisy(BLOCK * 40, 0.06)).drift is None
        assert folded(noisy(BLOCK * 7, 0.5)).drift is None

    def test_a_job_that_gets_faster_is_none(self) -> None:
        assert folded(noisy(BLOCK * 40, -0.3)).drift is None

    def test_one_slow_stretch_in_the_middle_is_none(self) -> None:
        times = noisy(BLOCK * 40, 0.0)
        times[BLOCK * 15 : BLOCK * 25] = [40.0] * (BLOCK * 10)
        assert folded(times).drift is None

    def test_the_share_of_calls_in_eager_comes_with_it(self) -> None:
        calls = [(at * at, 100 * at) for at in range(1, 60)]
        drift = folded(noisy(BLOCK * 40, 0.3), calls).drift
        assert drift is not None and drift.eager_before is not None and drift.eager_now is not None
        assert drift.eager_before < 0.15 < 0.6 < drift.eager_now

    def test_a_growing_share_in_eager_is_told_by_itself(self) -> None:
        steady = noisy(BLOCK * 40, 0.0)
        assert (more := folded(steady, [(at * at, 100 * at) for at in range(1, 60)]).more_eager) is not None
        assert more.before < 0.15 < 0.6 < more.now and more.z > 3
        assert folded(steady, [(10 * at, 100 * at) for at in range(1, 60)]).more_eager is None
        assert folded(steady).more_eager is None

    def test_steps_with_a_compilation_do_not_count(self) -> None:
        trends = Trends()
        for index in range(BLOCK * 2):
            assert not trends.take(account(index, 500, compiled=True))

    def test_memory_is_bounded_and_the_trend_stays(self) -> None:
        trends = Trends()
        n = BLOCK * (MOST_BLOCKS + 200)
        for index in range(n):
            if trends.take(account(index, 20 + 10 * index / n, begin=index * 20 * MS)):
                trends.close(None, None)
        assert len(trends.blocks) <= MOST_BLOCKS
        assert trends.drift is not None and trends.drift.slower == pytest.approx(0.35, abs=0.05)

    def test_however_long_the_job_few_steps_are_held(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("tuimon.model.slow.trends.MOST_BLOCKS", 8)
        trends, before = Trends(), alive(StepAccount)
        for index in range(BLOCK * 8 * 2**6 + BLOCK // 2):
            if trends.take(account(index, 20 + index % 3, begin=index * 20 * MS)):
                trends.close(None, None)
        assert trends.blocks[-1].steps >= BLOCK * 2**5 and len(trends.blocks) <= 8
        assert alive(StepAccount) - before <= BLOCK

    def test_a_block_is_the_same_whether_it_was_made_at_once_or_of_two(self, monkeypatch: pytest.MonkeyPatch) -> None:
        times = noisy(BLOCK * 12, 0.0)
        small = folded(times).blocks
        monkeypatch.setattr("tuimon.model.slow.trends.MOST_BLOCKS", 8)
        old, new = folded(times).blocks[0], folded(times).blocks[-1]
        assert len(small) == 12 and old.steps == new.steps == 2 * BLOCK
        assert old.median_ns == (small[0].median_ns + small[1].median_ns) / 2
        assert new.median_ns in [(one.median_ns + other.median_ns) / 2 for one, other in pairwise(small)]


def alive(kind: type) -> int:
    """How many there are of a class."""
    gc.collect()
    return sum(type(one) is kind for one in gc.get_objects())


def test_mann_kendall() -> None:
    assert mann_kendall([1, 2, 3, 4, 5, 6, 7, 8]) == pytest.approx(3.34, abs=0.01)
    assert mann_kendall([8, 7, 6, 5, 4, 3, 2, 1]) == pytest.approx(-3.34, abs=0.01)
    assert mann_kendall([5] * 20) == 0.0 and mann_kendall([]) == 0.0 and mann_kendall([1]) == 0.0


@pytest.mark.parametrize(
    ("indices", "n"),
    [
        ([29, 59, 89, 119], 30),
        ([9, 19, 29, 39, 49, 59, 69, 79], 10),
        ([11, 31, 51, 71], 20),
        ([7, 17, 27, 37], 10),
        ([9, 19, 39, 49, 59], 10),  # one did not stand out
        ([9, 19, 23, 29, 39, 49], 10),  # one has another reason
        ([49, 100, 149, 200, 249, 300, 349], 50),  # an evaluation beside every other one
        ([19, 40, 60], None),
        ([17, 40, 51, 80, 99, 141], None),
        ([9, 19, 29], None),
        ([3, 4, 5, 6, 7], None),  # one after the other is no period
        ([1, 5, 17, 20, 48, 61], None),
        ([], None),
    ],
)
def test_periods(indices: list[int], n: int | None) -> None:
    assert period(indices) == n


def test_two_kinds_of_steps() -> None:
    picked = random.Random(1)
    times = [round((20 if picked.random() < 0.7 else 45) * (1 + picked.gauss(0, 0.02)) * MS) for _ in range(400)]
    found = modes(times)
    assert found is not None and found.share == pytest.approx(0.3, abs=0.05)
    assert found.fast_ns == pytest.approx(20 * MS, rel=0.02) and found.slow_ns == pytest.approx(45 * MS, rel=0.02)


def test_one_kind_of_steps() -> None:
    picked = random.Random(2)
    assert modes([round(20 * MS * (1 + picked.gauss(0, 0.1))) for _ in range(400)]) is None
    assert modes([20 * MS] * 400) is None
    assert modes([20 * MS] * 390 + [200 * MS] * 10) is None  # spikes, no kind
    assert modes([0] * 100) is None and modes([]) is None
