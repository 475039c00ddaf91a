from __future__ import annotations

import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tuimon.events import Event, Line, Samples
from tuimon.sources.inbox import Inbox, weight


def samples(rows: int, start: int = 0) -> Samples:
    return Samples(start, tuple((n, 0, 0, n, n + 1) for n in range(start, start + rows)))


def line(n: int) -> Line:
    return Line(n, str(n))


def test_order_is_kept_and_a_drain_empties_it() -> None:
    inbox = Inbox()
    inbox.put(line(1))
    inbox.put_many([samples(3), line(2)])
    assert inbox.held == 5
    assert inbox.drain() == [line(1), samples(3), line(2)]
    assert inbox.drain() == []
    assert (inbox.held, inbox.dropped) == (0, 0)


def test_a_batch_that_does_not_fit_is_cut_and_the_rest_is_counted() -> None:
    inbox = Inbox(limit=10)
    inbox.put(samples(8))
    inbox.put(samples(5, start=8))
    inbox.put(samples(1))
    kept = inbox.drain()
    assert [event.rows for event in kept if isinstance(event, Samples)] == [samples(8).rows, samples(2, start=8).rows]
    assert inbox.dropped == 4


def test_a_flood_of_samples_does_not_push_out_what_names_them() -> None:
    inbox = Inbox(limit=16)
    inbox.put(samples(1000))
    inbox.put(line(1))
    inbox.put(line(2))
    assert inbox.dropped == 984
    inbox.put(line(3))  # the eighth over the limit is used up: bounded all the same
    assert inbox.dropped == 985
    assert inbox.drain()[1:] == [line(1), line(2)]


def test_room_comes_back_with_a_drain() -> None:
    inbox = Inbox(limit=4)
    for _ in range(100):
        inbox.put(samples(4))
        assert len(inbox.drain()) == 1
    assert inbox.dropped == 0


def test_a_bounded_drain_leaves_the_rest_and_always_gets_on() -> None:
    inbox = Inbox()
    inbox.put_many([samples(5), line(1), line(2)])
    assert inbox.drain(limit=1) == [samples(5)]
    assert inbox.held == 2
    assert inbox.drain(limit=100) == [line(1), line(2)]
    assert inbox.drain(limit=0) == []


def test_no_room_at_all_is_refused() -> None:
    with pytest.raises(ValueError, match="room"):
        Inbox(limit=0)


def test_nothing_is_lost_or_counted_twice_between_threads() -> None:
    inbox = Inbox(limit=500)
    writers = [threading.Thread(target=lambda: [inbox.put(samples(7)) for _ in range(500)]) for _ in range(4)]
    for writer in writers:
        writer.start()
    got = 0
    while any(writer.is_alive() for writer in writers):
        got += sum(map(weight, inbox.drain(limit=50)))
    got += sum(map(weight, inbox.drain()))
    assert got + inbox.dropped == 4 * 500 * 7


@given(
    st.integers(1, 40),
    st.lists(st.one_of(st.integers(1, 30).map(samples), st.integers(1, 9).map(line), st.none())),
)
def test_what_goes_in_comes_out_or_is_counted(limit: int, plan: list[Event | None]) -> None:
    inbox = Inbox(limit=limit)
    put = got = 0
    for event in plan:
        if event is None:
            got += sum(map(weight, inbox.drain(limit=3)))
        else:
            inbox.put(event)
            put += weight(event)
        assert 0 <= inbox.held <= limit + max(1, limit // 8)
    got += sum(map(weight, inbox.drain()))
    assert put == got + inbox.dropped


def test_events_weigh_by_their_texts() -> None:
    inbox = Inbox(limit=1000)
    long = Line(1, "x" * 25_600)
    for _ in range(100):
        inbox.put(long)
    assert len(inbox.drain()) == 11  # a thousand rows of 256 bytes, and an eighth
    assert inbox.dropped == 89
    assert inbox.held == 0
