"""The functions that stand in for regions give what the region gives and take one sample a call."""

from __future__ import annotations

import os
import threading

import pytest

from tuimon.hook import outbox, timers, wire


def make() -> outbox.Outbox:
    return outbox.Outbox(None)


def samples(box: outbox.Outbox) -> list[tuple[int, ...]]:
    return [wire.SAMPLE.unpack(wire.SAMPLE.pack(*sample)) for sample in box.queue]


def test_a_call_gives_its_result_and_one_sample() -> None:
    box = make()
    timed = timers.call_timer(lambda a, b=0: a + b, 5, box, timers.fork_mark())
    assert timed(1, b=2) == 3
    number, thread, flags, begin, end = samples(box)[0]
    assert (number, thread, flags) == (5, threading.get_ident(), 0)
    assert begin <= end


def test_an_exception_passes_and_is_marked() -> None:
    box = make()

    def fails() -> None:
        raise KeyError("the job's own")

    with pytest.raises(KeyError, match="the job's own"):
        timers.call_timer(fails, 1, box, timers.fork_mark())()
    assert samples(box)[0][2] == timers.RAISED


def test_a_resume_takes_its_sample_before_it_goes_on() -> None:
    box = make()
    seen: list[int] = []
    timed = timers.resume_timer(lambda: seen.append(len(box.queue)), 1, box, timers.fork_mark())
    timed()
    assert seen == [1]
    assert samples(box)[0][3] == samples(box)[0][4]


def test_a_full_queue_drops_and_counts() -> None:
    box = make()
    box.limit = 2
    timed = timers.call_timer(lambda: 1, 1, box, timers.fork_mark())
    assert [timed() for _ in range(5)] == [1] * 5
    assert (len(box.queue), box.dropped[0]) == (2, 3)


def test_a_forked_child_calls_the_region_and_takes_no_sample() -> None:
    box = make()
    timed = timers.call_timer(lambda: 42, 1, box, timers.fork_mark())
    timed()
    child = os.fork()
    if child == 0:
        os._exit(0 if timed() == 42 and len(box.queue) == 1 else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    timed()
    assert len(box.queue) == 2
