"""The functions that stand in for regions give what the region gives and take one sample a call."""

from __future__ import annotations

import threading
import types
from collections.abc import Callable

import pytest

from tuimon.hook import loops, outbox, timers, wire


def make() -> outbox.Outbox:
    return outbox.Outbox(None)


def samples(box: outbox.Outbox) -> list[tuple[int, ...]]:
    return [wire.SAMPLE.unpack(wire.SAMPLE.pack(*sample)) for sample in box.queue]


def test_a_call_gives_its_result_and_one_sample() -> None:
    box = make()
    timed = timers.call_timer(lambda a, b=0: a + b, 5, box)
    assert timed(1, 2) == 3
    number, thread, flags, begin, end = samples(box)[0]
    assert (number, thread, flags) == (5, threading.get_ident(), 0)
    assert begin <= end


def test_an_exception_passes_and_is_marked() -> None:
    box = make()

    def fails() -> None:
        raise KeyError("the job's own")

    with pytest.raises(KeyError, match="the job's own"):
        timers.call_timer(fails, 1, box)()
    assert samples(box)[0][2] == timers.RAISED


def test_a_resume_takes_its_sample_before_it_goes_on() -> None:
    box = make()
    seen: list[int] = []
    timed = timers.resume_timer(lambda: seen.append(len(box.queue)), 1, box)
    timed()
    assert seen == [1]
    assert samples(box)[0][3] == samples(box)[0][4]


def test_a_full_queue_drops_and_counts() -> None:
    box = make()
    box.room[0] = 2
    timed = timers.call_timer(lambda: 1, 1, box)
    assert [timed() for _ in range(5)] == [1] * 5
    assert (len(box.queue), box.dropped[0]) == (2, 3)


def test_what_a_timer_calls_is_known_as_timed_on_a_stack() -> None:
    box = make()
    sizes = types.SimpleNamespace(places=[0], numbers={}, fresh=lambda values: 2)
    for timed in (timers.call_timer(len, 1, box), timers.sized_timer(len, 1, box, sizes), timers.resume_timer(len, 1, box)):
        assert loops.is_timed(timed.__code__)


def test_a_timer_adds_one_frame_to_a_traceback_and_nothing_else() -> None:
    def fails(argument: int) -> None:
        raise KeyError(argument)

    def frames(function: Callable[[int], None]) -> list[tuple[str, int]]:
        with pytest.raises(KeyError) as caught:
            function(5)
        assert caught.value.__context__ is None and caught.value.__cause__ is None
        return [(frame.name, frame.lineno) for frame in caught.traceback][1:]

    box = make()
    sizes = types.SimpleNamespace(places=[0], numbers={}, fresh=lambda values: 2)
    plain = frames(fails)
    for timed in (
        timers.call_timer(fails, 1, box),
        timers.sized_timer(fails, 1, box, sizes),
        timers.resume_timer(fails, 1, box),
    ):
        ours, *rest = frames(timed)
        assert rest == plain and ours[0] == timed.__name__
    assert [row[2] for row in box.queue] == [timers.RAISED, timers.RAISED, 0]


def test_a_timer_that_is_not_wanted_any_more_calls_the_region_and_takes_no_sample() -> None:
    box = make()
    timed = timers.call_timer(lambda: 42, 1, box)
    resumed = timers.resume_timer(lambda: 43, 2, box)
    timed()
    box.room[0] = False
    assert (timed(), resumed(), len(box.queue)) == (42, 43, 1)
