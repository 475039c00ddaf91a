"""The rule finds the steps that are slow, and leaves noise, warm-up and a second kind of steps alone."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.model.steps import MS, account, judged, slow
from tuimon.model.slow.rule import LONGEST_WAIT, WINDOW, Judge, rule

RECORDED = json.loads((Path(__file__).parent / "step_times.json").read_text())


def noise(n: int, ms: float = 20.0, seed: int = 1) -> list[float]:
    picked = random.Random(seed)
    return [ms * math.exp(picked.gauss(0, 0.03)) for _ in range(n)]


def test_a_steady_job_has_none() -> None:
    assert slow(noise(2000)) == []


def test_a_spike_is_found_with_what_it_was_compared_with() -> None:
    times = noise(300)
    times[200] = 120.0
    (found,) = judged(times)
    assert found.account.index == 200 and not found.first
    assert found.base.n == WINDOW and found.base.median_ns == pytest.approx(20 * MS, rel=0.05)
    assert found.base.limit_ns == pytest.approx(30 * MS, rel=0.05)  # half of the median is more than 10 ms or 8 deviations
    assert found.base.usual[-1] == pytest.approx(found.base.median_ns, rel=0.01)


def test_a_slow_step_is_told_when_it_is_over_and_not_later() -> None:
    judge = Judge()
    for one in range(20):
        assert judge.take(account(one, 20)) == []
    assert [found.account.index for found in judge.take(account(20, 100))] == [20]


def test_short_steps_have_to_be_ten_milliseconds_over() -> None:
    times = [1.0] * 100
    times[50], times[60] = 10.5, 11.5
    assert slow(times) == [60]
    assert slow(times, judge=Judge(over_ns=5 * MS)) == [50, 60]


def test_steps_with_a_compilation_are_judged_but_no_measure() -> None:
    times = [20.0] * 100
    for at in range(10, 60):
        times[at] = 400.0
    assert slow(times, compiled=range(10, 60)) == list(range(10, 60))


def test_the_first_steps_wait_for_those_after_them() -> None:
    judge = Judge()
    for index, ms in enumerate((5000.0, 900.0, *[20.0] * 15)):
        assert judge.take(account(index, ms, compiled=index < 2)) == []
    assert judge.base is None
    found = judge.take(account(17, 20.0))
    assert [one.account.index for one in found] == [0, 1] and all(one.first for one in found)
    assert judge.base is not None and judge.base.median_ns == 20 * MS


def test_at_the_end_of_the_job_fewer_will_do_and_too_few_will_not() -> None:
    assert slow([900.0, *[20.0] * 6], compiled=[0]) == [0]
    assert slow([900.0, 20.0, 20.0], compiled=[0]) == []
    assert slow([]) == []


def test_a_job_that_compiles_in_every_step_is_not_waited_for_for_ever() -> None:
    judge = Judge()
    for index in range(3 * LONGEST_WAIT):
        assert judge.take(account(index, 500, compiled=True)) == []
    assert len(judge._waiting) < LONGEST_WAIT
    assert judge.end() == []


def test_a_job_that_has_become_slower_is_told_for_some_steps_and_then_has_another_measure() -> None:
    found = slow([20.0] * 200 + [60.0] * 400)
    assert found == list(range(200, 200 + len(found))) and len(found) <= 0.2 * WINDOW
    times = [20.0] * 200 + [60.0] * 400
    times[500] = 300.0
    (last,) = [one for one in judged(times) if one.account.index >= 400]
    assert last.account.index == 500 and last.base.median_ns == 60 * MS


def test_steps_of_which_something_was_dropped_are_no_measure() -> None:
    judge = Judge()
    for index in range(40):
        one = account(index, 20)
        assert judge.take(type(one)(index, 0, 20 * MS, one.parts, False, complete=False)) == []
    assert judge.base is None


STREAMS: dict[str, tuple[Callable[[random.Random], float], float]] = {
    "lognormal": (lambda r: 20 * math.exp(r.gauss(0, 0.3)), 0.001),
    "lognormal, narrow": (lambda r: 300 * math.exp(r.gauss(0, 0.1)), 0.001),
    "preempted now and then": (
        lambda r: 2 + r.expovariate(1 / 0.3) + (r.expovariate(1 / 8) if r.random() < 0.03 else 0),
        0.01,
    ),
    "two kinds of steps": (lambda r: (20 if r.random() < 0.7 else 45) * math.exp(r.gauss(0, 0.05)), 0.01),
}


@pytest.mark.parametrize("name", STREAMS)
def test_false_flags(name: str) -> None:
    step, most = STREAMS[name]
    picked = random.Random(1)
    found = slow([step(picked) for _ in range(3000)])
    assert len(found) <= most * 3000, f"{len(found)} of 3000 flagged"


@pytest.mark.parametrize("case", RECORDED)
def test_no_slow_step_of_a_recorded_job_is_missed(case: str) -> None:
    """Step times of real programs on a busy machine: others than the expected ones may have been held up there."""
    recorded = RECORDED[case]
    found = slow(recorded["ms"], recorded["compiled"])
    # the first step of a job without a compilation is some milliseconds of first use
    assert set(recorded["slow"]) <= set(found)
    assert len(set(found) - set(recorded["slow"])) <= 3


def test_the_rule_in_words_has_its_numbers() -> None:
    assert all(text in rule() for text in ("8 d", "0.5 m", "10 ms", "128", "1.2 times", "85th"))
    assert "5 ms" in rule(5 * MS)
