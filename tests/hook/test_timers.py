"""The functions that stand in for regions give what the region gives and take one sample a call."""

from __future__ import annotations

import threading

import pytest

from tuimon.hook import outbox, timers, wire


def make() -> outbox.Outbox:
    return outbox.Outbox(None)


def samples(box: outbox.Outbox) -> list[tuple[int, ...]]:
    return [wire.SAMPLE.unpack(wire.SAMPLE.pack(*sample)) for sample in box.queue]


def test_a_call_gives_its_result_and_one_sample() -> None:
    box = make()
    timed = timers.call_timer(lambda a, b=0: a + b, 5, box, [True])
    assert timed(1, b=2) == 3
    number, thread, flags, begin, end = samples(box)[0]
    assert (number, thread, flags) == (5, threading.get_ident(), 0)
    assert begin <= end


def test_an_exception_passes_and_is_marked() -> None:
    box = make()

    def fails() -> None:
        raise KeyError("the job's own")

    with pytest.raises(KeyError, match="the job's own"):
        timers.call_timer(fails, 1, box, [True])()
    assert samples(box)[0][2] == timers.RAISED


def test_a_resume_takes_its_sample_before_it_goes_on() -> None:
    box = make()
    seen: list[int] = []
    timed = timers.resume_timer(lambda: seen.append(len(box.queue)), 1, box, [True])
    timed()
    assert seen == [1]
    assert samples(box)[0][3] == samples(box)[0][4]


def test_a_full_queue_drops_and_counts() -> None:
    box = make()
    box.limit = 2
    timed = timers.call_timer(lambda: 1, 1, box, [True])
    assert [timed() for _ in range(5)] == [1] * 5
    assert (len(box.queue), box.dropped[0]) == (2, 3)


def test_a_timer_that_is_not_wanted_any_more_calls_the_region_and_takes_no_sample() -> None:
    box, here = make(), [True]
    timed = timers.call_timer(lambda: 42, 1, box, here)
    resumed = timers.resume_timer(lambda: 43, 2, box, here)
    timed()
    here[0] = False
    assert (timed(), resumed(), len(box.queue)) == (42, 43, 1)
