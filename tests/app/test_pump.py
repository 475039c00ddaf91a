"""The one timer: what it takes in, when it paints, how it slows down."""

from __future__ import annotations

from tests.support.fake_feed import ATTACHED, FakeFeed, S, busy
from tests.support.monitor import Clock
from tuimon import events as ev
from tuimon.app.pump import Pump


class FakeSurface:
    def __init__(self) -> None:
        self.painted = 0
        self.waiting = 0
        self.rate: float | None = None
        self.picture = 0
        self.intervals: list[float] = []
        self.gone = False
        self.left = False

    def paint(self) -> None:
        self.painted += 1

    def backlog(self) -> int:
        return self.waiting

    def line_rate(self) -> float | None:
        return self.rate

    def sent(self) -> int:
        return self.painted * self.picture

    def set_timer_interval(self, seconds: float) -> None:
        self.intervals.append(seconds)

    def terminal_gone(self) -> bool:
        return self.gone

    def leave_gone_terminal(self) -> None:
        self.left = True

    def leave_refused(self) -> None:
        raise AssertionError("nothing was refused")


def make(events: list[ev.Event] | None = None) -> tuple[Pump, FakeSurface, FakeFeed, Clock]:
    feed, surface, clock = FakeFeed(events or []), FakeSurface(), Clock()
    return Pump(feed, surface, 4.0, clock), surface, feed, clock


def test_a_tick_folds_and_paints() -> None:
    pump, surface, feed, _ = make(busy())
    pump.tick()
    assert feed.model.steps.n == 260
    assert surface.painted == 1


def test_samples_are_counted_one_by_one() -> None:
    pump, _, _, _ = make([ev.Samples(ATTACHED, ((1, 1, 0, 0, 1), (1, 1, 0, 1, 2))), ev.Line(ATTACHED, "x")])
    pump.tick()
    assert pump.events == 3


def test_a_backlog_skips_the_paint_but_not_the_data() -> None:
    pump, surface, feed, _ = make(busy())
    surface.waiting = 3
    pump.tick()
    assert feed.model.steps.n == 260
    assert surface.painted == 0
    assert pump.slow_link and pump.hertz == 2.0
    for _ in range(5):
        pump.tick()
    assert pump.hertz == 0.5
    surface.waiting = 0
    for _ in range(30):
        pump.tick()
    assert pump.hertz == 4.0 and not pump.slow_link
    assert surface.intervals == [0.5, 1.0, 2.0, 1.0, 0.5, 0.25]


def test_pictures_take_half_of_a_slow_line() -> None:
    pump, surface, _, _ = make(busy())
    surface.rate, surface.picture = 960.0, 400
    for _ in range(40):
        pump.tick()
    assert pump.hertz == 1.0 and pump.slow_link
    surface.picture = 2_000  # more than that at the slowest rate: it is drawn all the same
    for _ in range(40):
        pump.tick()
    assert pump.hertz == 0.5
    painted = surface.painted
    pump.tick()
    assert surface.painted == painted + 1
    surface.rate, surface.picture = 100_000.0, 400
    for _ in range(60):
        pump.tick()
    assert pump.hertz == 4.0


def test_a_rate_does_not_go_to_and_fro() -> None:
    pump, surface, _, _ = make(busy())
    surface.rate, surface.picture = 960.0, 230  # 2.1 Hz would be half of the line
    for _ in range(200):
        pump.tick()
    assert surface.intervals == [0.5]


def test_a_person_chooses_the_rate() -> None:
    pump, _, _, _ = make()
    assert [pump.choose(1), pump.choose(1), pump.choose(1)] == [5.0, 10.0, 10.0]
    assert [pump.choose(-1) for _ in range(6)] == [5.0, 4.0, 2.0, 1.0, 0.5, 0.5]


def test_the_jobs_clock_goes_on_between_events_and_stands_still_at_the_end() -> None:
    pump, _, feed, clock = make([ev.Line(ATTACHED, "x")])
    assert pump.now_ns() == 0
    pump.tick()
    clock.on(2.5)
    assert pump.now_ns() == ATTACHED + int(2.5 * S)
    feed.give(ev.TargetEnded(ATTACHED + S, "exited", "over"))
    pump.tick()
    clock.on(100)
    assert pump.now_ns() == ATTACHED + S


def test_a_terminal_that_hung_up_is_noticed() -> None:
    pump, surface, _, clock = make()
    pump.tick()
    surface.gone = True
    pump.tick()
    assert not surface.left
    clock.on(1.1)
    pump.tick()
    assert surface.left
