from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from tuimon.sources.ticker import Ticker


def test_rounds_come_until_one_says_no_and_closing_comes_last(until: Callable[[Callable[[], bool]], None]) -> None:
    seen: list[str] = []

    def round_() -> bool:
        seen.append("round")
        return len(seen) < 3

    ticker = Ticker("t", 0.001, round_, lambda error: seen.append(str(error)), lambda: seen.append("closed"))
    ticker.start()
    until(lambda: not ticker.alive)
    assert seen == ["round", "round", "round", "closed"]


def test_an_exception_ends_the_source_and_is_told_once(until: Callable[[Callable[[], bool]], None]) -> None:
    told: list[BaseException] = []

    def round_() -> bool:
        raise LookupError("odd")

    ticker = Ticker("t", 0.001, round_, told.append)
    ticker.start()
    until(lambda: not ticker.alive)
    assert [type(error) for error in told] == [LookupError]


def test_stop_does_not_wait_for_the_next_round() -> None:
    first = threading.Event()

    def round_() -> bool:
        first.set()
        return True

    ticker = Ticker("t", 3600.0, round_, lambda error: None)
    ticker.start()
    assert first.wait(20)
    assert ticker.stop(20)
    assert not ticker.alive


def test_stop_gives_up_on_a_round_that_hangs() -> None:
    inside, let_go = threading.Event(), threading.Event()

    def round_() -> bool:
        inside.set()
        let_go.wait(60)
        return True

    ticker = Ticker("t", 1.0, round_, lambda error: None)
    ticker.start()
    assert inside.wait(20)
    assert not ticker.stop(0.05)
    assert ticker.stopping
    let_go.set()
    assert ticker.stop(20)


def test_stop_before_start_is_no_mistake_and_a_period_must_be_one() -> None:
    assert Ticker("t", 1.0, lambda: True, lambda error: None).stop()
    with pytest.raises(ValueError, match="positive"):
        Ticker("t", 0.0, lambda: True, lambda error: None)
