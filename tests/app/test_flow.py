"""How much may be under way: found out by what the terminal answers, on made-up lines."""

from __future__ import annotations

import pytest

from tuimon.app.tty.flow import FIRST, LEAST, LOST_S, SILENT_S, Flow


class Line:
    """Carries `rate` bytes a second, one after the other, and takes `far_s` for the way there and back."""

    def __init__(self, rate: float, far_s: float = 0.0) -> None:
        self.rate, self.far_s = rate, far_s
        self.now = 0.0
        self.flow = Flow()
        self.most = 0

    def send(self, wanted: int) -> int:
        """Send so much of what is wanted as may be sent, and wait for the answer. Gives how much that was."""
        size = min(wanted, self.flow.room(self.now))
        number = self.flow.ask(size, self.now)
        self.most = max(self.most, size)
        self.now += size / self.rate + self.far_s
        if number is not None:
            assert self.flow.answered(number, self.now)
        return size

    def picture(self, size: int) -> float:
        """All of a picture. Gives the seconds it took."""
        began = self.now
        while size > 0:
            size -= self.send(size)
        return self.now - began

    def idle(self, seconds: float) -> None:
        self.now += seconds


@pytest.mark.parametrize("far_s", [0.0, 0.05, 0.3])
def test_at_9600_bits_half_a_second_is_the_most(far_s: float) -> None:
    line = Line(960, far_s)
    line.picture(8_000)
    for size in (60, 500, 30, 900, 200, 2_000) * 5:
        line.picture(size)
        line.idle(0.3)
    assert line.most <= 480
    assert line.flow.rate_bytes_s == pytest.approx(960, rel=0.25)


def test_a_quick_line_takes_a_picture_at_once() -> None:
    line = Line(10e6, 0.001)
    line.picture(400)
    assert line.flow.room(line.now) >= 10_000
    line.picture(20_000)
    assert line.flow.rate_bytes_s is None or line.flow.rate_bytes_s > 100_000


def test_a_far_line_is_not_taken_for_a_slow_one() -> None:
    line = Line(1e6, 0.2)
    line.picture(20_000)
    for _ in range(10):
        line.picture(2_000)
        line.idle(0.2)
    assert line.flow.rate_bytes_s is None or line.flow.rate_bytes_s > 50_000
    assert line.flow.room(line.now) > 5_000


def test_a_line_that_gets_quicker_is_found_out() -> None:
    line = Line(960)
    for _ in range(10):
        line.picture(1_000)
    line.rate = 1e6
    for _ in range(12):
        line.picture(2_000)
    assert line.flow.rate_bytes_s is not None and line.flow.rate_bytes_s > 20_000
    line.rate = 960
    line.picture(2_000)  # behind which nothing is asked, so soon after the last question
    line.picture(2_000)
    line.picture(2_000)
    assert line.flow.room(line.now) <= 480


def test_that_it_got_quicker_is_found_out_by_short_pictures_alone() -> None:
    line = Line(1e6, 0.002)
    for _ in range(4):
        line.picture(1_500)  # the quickest answer is one of many bytes
    line.rate = 300
    for _ in range(4):
        line.picture(700)
    assert line.flow.rate_bytes_s == pytest.approx(300, rel=0.25)
    line.rate = 1e6
    line.far_s = 0.02  # and a busy machine answers later than it did
    for _ in range(3):
        line.idle(2.0)
        line.picture(350)
    assert line.flow.rate_bytes_s is not None and line.flow.rate_bytes_s > 5_000


def test_one_late_answer_makes_no_slow_line() -> None:
    line = Line(1e6, 0.001)
    for turn in range(30):
        line.far_s = 0.4 if turn % 5 == 3 else 0.001
        line.picture(700)
        line.idle(1.0)
        rate = line.flow.rate_bytes_s
        assert rate is None or rate > 20_000 or turn < 5


def test_a_late_answer_at_the_start_makes_no_slow_line() -> None:
    for late in range(4):
        line = Line(1e6, 0.001)
        for turn in range(12):
            line.far_s = 0.4 if turn == late else 0.001
            line.picture(700)
            line.idle(0.25)
            rate = line.flow.rate_bytes_s
            assert rate is None or rate > 50_000, (late, turn, rate)


def test_nothing_goes_out_before_the_answer() -> None:
    flow = Flow()
    assert flow.room(0.0) == FIRST
    number = flow.ask(FIRST, 0.0)
    assert number is not None and flow.room(0.1) == 0 and flow.waiting
    assert flow.answered(number, 0.2)
    assert flow.room(0.2) > 0 and flow.answers


def test_a_terminal_that_never_answers_is_not_waited_for() -> None:
    flow = Flow()
    flow.ask(300, 0.0)
    assert flow.room(SILENT_S - 0.1) == 0 and flow.answers is None
    assert flow.room(SILENT_S) > 10_000 and flow.answers is False
    flow.ask(5_000, SILENT_S)
    assert flow.room(SILENT_S) > 10_000


def test_an_answer_after_ten_seconds_counts_as_one_that_answers() -> None:
    flow = Flow()
    first = flow.ask(300, 0.0)
    flow.room(SILENT_S)
    assert flow.answers is False
    assert first is not None and not flow.answered(first, 10.0)
    assert flow.answers and 0 < flow.room(10.0) <= FIRST


def test_a_lost_answer_is_waited_for_ten_seconds() -> None:
    flow = Flow()
    number = flow.ask(300, 0.0)
    assert number is not None and flow.answered(number, 0.01)
    lost = flow.ask(300, 1.0)
    assert flow.room(1.0 + LOST_S - 0.1) == 0 and flow.is_overdue(3.0, 0.4)
    assert flow.room(1.0 + LOST_S) == LEAST
    after = flow.ask(200, 1.0 + LOST_S)
    assert lost is not None and not flow.answered(lost, 12.0)  # late: it says nothing of the one that is open
    assert flow.waiting
    assert after is not None and flow.answered(after, 12.1)


def test_only_the_rest_of_a_number_is_told() -> None:
    flow = Flow()
    for turn in range(20):
        number = flow.ask(300, float(turn))
        assert number is not None and not flow.answered((number + 1) % 7, turn + 0.1, 7)
        assert flow.answered(number % 7, turn + 0.1, 7)
