"""Samples of the stack of the thread that runs the steps: when one is taken, what it says, when they end."""

from __future__ import annotations

import contextlib
import itertools
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.hook.test_eager import needs_monitoring
from tests.hook.test_loops import Session
from tuimon.hook import looking, timers
from tuimon.hook.looking import EVERY_NS, Looking
from tuimon.hook.loops import Loops


class Thread:
    """A thread of the job that stands where it is told to, and a hook that looks at it."""

    def __init__(self, hook: Session, wanted: bool = True) -> None:
        self.hook = hook
        self.loops = Loops(hook)
        self.looking = Looking(hook, self.loops, wanted)
        self.now = time.monotonic_ns()

    @contextlib.contextmanager
    def standing(self, in_what: Callable[[Callable[[], None]], Any]) -> Iterator[int]:
        inside, go_on = threading.Event(), threading.Event()

        def stand() -> None:
            inside.set()
            assert go_on.wait(30)

        thread = threading.Thread(target=in_what, args=(stand,))
        thread.start()
        try:
            assert inside.wait(30) and thread.ident is not None
            self.loops._threads.clear()
            self.loops.saw(thread.ident)
            yield thread.ident
        finally:
            go_on.set()
            thread.join()

    def row(self, ident: int) -> None:
        """The thread puts a row, right before the next tick."""
        ended = self.now + EVERY_NS - 1000
        self.hook.outbox.queue.append((1, ident, 0, ended - 10, ended))

    def ticks(self, count: int) -> None:
        """So many looks' time passes."""
        for _ in range(count):
            self.now += EVERY_NS
            self.looking._tick(self.now)

    @property
    def looks(self) -> list[dict[str, Any]]:
        return self.hook.messages("look")


@pytest.fixture
def hook() -> Iterator[Session]:
    made = Session()
    yield made
    made.here[0] = False
    assert made.undo.run() == []


def plain(stand: Callable[[], None]) -> None:
    stand()


def test_a_thread_of_which_nothing_is_told_is_looked_at(hook: Session) -> None:
    job = Thread(hook)
    with job.standing(plain) as ident:
        job.ticks(4)
    first, *others = job.looks
    names = {message["code"]: message["function"] for message in hook.messages("code")}
    assert first["thread"] == ident and first["since"] < first["t"] == job.looks[0]["t"]
    assert [names[row[0]] for row in first["rows"]][-4:-2] == ["plain", "stand"]
    assert others and all(look["same"] is True and "rows" not in look for look in others)
    assert hook.instruments["stack looks"].startswith("on: every 20 ms while nothing else is seen, ")


def test_a_thread_whose_calls_are_told_is_not(hook: Session) -> None:
    job = Thread(hook)
    with job.standing(plain) as ident:
        for _ in range(5):
            job.row(ident)
            job.ticks(1)
        assert job.looks == []
        hook.outbox.queue.append((1, ident + 1, 0, 1, 2))  # another thread's, and a message
        hook.outbox.put({"k": "status"})
        job.ticks(2)
        assert job.looks != []


def test_a_quiet_stretch_is_asked_after_sooner_and_begins_at_the_last_row(hook: Session) -> None:
    job = Thread(hook)
    with job.standing(plain) as ident:
        job.ticks(1)
        ended = job.now + EVERY_NS - 1000
        hook.outbox.queue.append((1, ident, 0, ended - 10, ended))
        hook.outbox.queue.append((9, ident, 0, ended, 5_000))  # a reading of the thread's clock
        job.ticks(1)
        assert job.looking.rest_ms() == looking.ASK_NS // 1_000_000 == 50 and not job.looks
        job.now += looking.ASK_NS - EVERY_NS
        job.ticks(1)
        assert job.looking.rest_ms() == 20 and [look["since"] for look in job.looks] == [ended]
        job.now += 30_000_000
        job.row(ident)
        job.now += 5_000_000  # it has been quiet for 5 ms, then for 12, then for 40
        job.ticks(1)
        assert job.looking.rest_ms() == 50 and len(job.looks) == 1
        job.row(ident)
        job.now += 12_000_000
        job.ticks(1)
        assert job.looking.rest_ms() == 20 and len(job.looks) == 1
        job.row(ident)
        job.now += 40_000_000
        job.ticks(1)
        assert job.looking.rest_ms() == 20 and len(job.looks) == 2


@pytest.mark.parametrize(("calm_ms", "first_ms", "least"), [(500, 60, 3), (3000, 120, 2)])
def test_a_stall_of_150_ms_is_looked_at_whenever_it_begins(hook: Session, calm_ms: int, first_ms: int, least: int) -> None:
    for begins_ms in range(0, 100, 7):
        job = Thread(hook)
        with job.standing(plain) as ident:
            began, last = job.now + (begins_ms + calm_ms) * 1_000_000, 0
            while job.now < began + 150_000_000:
                job.now += job.looking.rest_ms() * 1_000_000
                if last < began:  # a row each millisecond
                    last = min(began, job.now)
                    hook.outbox.queue.append((1, ident, 0, last - 10, last))
                job.looking._tick(job.now)
            looks = [look["t"] - began for look in job.looks if look["t"] < began + 150_000_000]
            assert len(looks) >= least and looks[0] <= first_ms * 1_000_000
            assert job.looking.rest_ms() == 20
            job.now += 20_000_000
            job.row(ident)
            job.now += EVERY_NS
            job.looking._tick(job.now)
            assert job.looking.rest_ms() == 50  # it is asked oftener again for a second
            hook.outbox.queue.clear()


def test_a_long_stretch_is_looked_at_less_often_where_it_changes_too(hook: Session) -> None:
    job = Thread(hook)
    with job.standing(plain):
        job.ticks(2)
        job.looking._last = None
        for _ in range(500):
            job.ticks(1)
            job.looking._last = None  # as if something else had been seen
    apart = [(later["t"] - one["t"]) // 1_000_000 for one, later in itertools.pairwise(job.looks)]
    assert set(apart[:40]) == {20} and apart[-1] == 100 and apart == sorted(apart)
    assert job.looking.rest_ms() == 50


def test_what_is_emptied_from_the_queue_is_still_something(hook: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    job = Thread(hook)
    with job.standing(plain) as ident:
        for _ in range(5):
            job.row(ident)
            hook.outbox._pack(hook.outbox.queue)
            job.ticks(1)
        assert job.looks == []


def test_its_own_words_are_no_sign_of_life(hook: Session) -> None:
    job, looks = Thread(hook), []
    with job.standing(plain):
        for _ in range(8):
            job.ticks(1)
            looks += job.looks
            while hook.outbox.queue:
                hook.outbox._pack(hook.outbox.queue)
            hook.outbox.put({"k": "status"})  # as each second, after the look and before all goes
            while hook.outbox.queue:
                hook.outbox._pack(hook.outbox.queue)
    assert len(looks) >= 6 and len({look["since"] for look in looks}) == 1
    assert {later["t"] - one["t"] for one, later in itertools.pairwise(looks)} == {EVERY_NS}


def test_within_a_timed_call_and_a_compilation_there_is_no_look(hook: Session) -> None:
    def timed(stand: Callable[[], None]) -> None:
        timers.call_timer(stand, 5, hook.outbox)()

    scope: dict[str, Any] = {"__name__": "torch._dynamo.convert_frame"}
    exec("def _compile(stand):\n    stand()", scope)
    for in_what in (timed, scope["_compile"]):
        job = Thread(hook)
        with job.standing(in_what):
            job.ticks(8)
            assert job.looks == []


def test_where_the_same_is_seen_for_long_looks_become_fewer(hook: Session) -> None:
    job = Thread(hook)
    with job.standing(plain):
        job.ticks(60)
        many = len(job.looks)
        job.ticks(300)
        assert many > 45 and len(job.looks) - many < 25
        job.row(job.loops.thread() or 0)
        before = len(job.looks)
        job.ticks(6)
        assert len(job.looks) - before >= 4


def test_looks_that_are_dear_become_fewer_and_end(hook: Session) -> None:
    job = Thread(hook)
    for every in (20, 40, 80):
        for _ in range(looking.BATCH):
            job.looking._pay(every * 11_000, job.now)
            job.now += every * 1_000_000
        assert job.looking.on is (every < 80)
        assert hook.instruments["stack looks"].startswith(
            "on: every " if every < 80 else "off: a look took 880 us, more than 1%"
        )


def test_switched_off_nothing_is_looked_at(hook: Session) -> None:
    job = Thread(hook, wanted=False)
    with job.standing(plain):
        job.ticks(5)
    assert job.looks == [] and hook.instruments["stack looks"] == "off: switched off by an option"


@needs_monitoring
def test_an_iterator_that_a_loop_waits_for_is_timed_from_then_on(hook: Session) -> None:
    job = Thread(hook)
    again = threading.Event()

    def items(stand: Callable[[], None]) -> Iterator[int]:
        yield 0
        stand()
        yield 1
        yield 2

    def loop(stand: Callable[[], None]) -> None:
        for item in items(stand):
            if item == 0:
                job.loops.anchor(8)
                hook.take()
        again.set()

    with job.standing(loop) as ident:
        job.ticks(3)
        assert job.looks[0]["thread"] == ident
        assert {row[3] for row in job.looks[0]["rows"]} == {0, 1}
    assert again.is_set()
    (data,) = [added for added in hook.added if added["role"] == "data"]
    # the item that was waited for had begun before; two more, one of them the end
    assert hook.samples.count(data["number"]) == 2
