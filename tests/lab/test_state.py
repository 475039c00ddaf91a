"""The lab's state machine: questions, predictions, the trace; and nothing is lost by what cannot be used."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tuimon.lab import state
from tuimon.lab.state import Lab, Taken

TAKEN = Taken("region 0:0/0:forward", "region block", 4.2, 20e9, 98e9, "<=", "compulsory bytes; DRAM calibrated")


def asked(intensity: str, bandwidth: str = "80") -> Lab:
    return state.set_bandwidth(state.set_intensity(state.reset(Lab()), intensity), bandwidth)


def stepped(lab: Lab) -> list[Lab]:
    """The states from one step to the next, up to I."""
    states = []
    while True:
        lab = state.step(lab)
        states.append(lab)
        if lab.revealed:
            return states


class TestTheTwoSettings:
    def test_eight(self) -> None:
        lab = asked("8")
        assert (state.ceiling(lab), state.ridge(lab)) == (640e9, 12.5)
        assert state.formula(lab) == "min(1,000 GFLOP/s, 8 FLOP/byte x 80 GB/s) = 640 GFLOP/s"
        assert state.limit(lab, 8.0) == "bandwidth is the limit"

    def test_sixteen(self) -> None:
        lab = asked("16")
        assert (state.ceiling(lab), state.ridge(lab)) == (1000e9, 12.5)
        assert state.formula(lab) == "min(1,000 GFLOP/s, 16 FLOP/byte x 80 GB/s) = 1,000 GFLOP/s"
        assert state.limit(lab, 16.0) == "the peak is the limit"

    @pytest.mark.parametrize(("intensity", "ceiling"), [("8", 640e9), ("16", 1000e9)])
    def test_steps_reach_the_exact_ceiling(self, intensity: str, ceiling: float) -> None:
        last = stepped(asked(intensity))[-1]
        assert state.station(last) == (float(intensity), ceiling)
        assert last.revealed and f"the ceiling is {'640' if ceiling == 640e9 else '1,000'} GFLOP/s" in last.message

    def test_the_trace_to_sixteen_passes_the_ridge_exactly(self) -> None:
        passed = [state.station(lab) for lab in stepped(asked("16"))]
        assert (12.5, 1000e9) in passed
        assert [one[0] for one in passed if one] == sorted(one[0] for one in passed if one)


class TestPredictions:
    def test_a_right_one(self) -> None:
        lab = state.reveal(state.predict(asked("8"), "640"))
        assert lab.score == (1, 1) and lab.message.startswith("RIGHT: the ceiling is 640 GFLOP/s")

    @pytest.mark.parametrize(
        ("intensity", "text", "why"),
        [
            ("8", "1000", "that is the peak, and at this I the bandwidth allows less"),
            ("16", "1280", "that is I x B, and the peak cuts it off"),
            ("8", "647", "bandwidth is the limit"),
        ],
    )
    def test_a_wrong_one_is_told_why(self, intensity: str, text: str, why: str) -> None:
        lab = state.reveal(state.predict(asked(intensity), text))
        assert lab.score == (0, 1) and lab.message.startswith("WRONG: the ceiling is ") and lab.message.endswith(why)

    @pytest.mark.parametrize(("text", "right"), [("633.6", True), ("646.4", True), ("633.5", False), ("646.5", False)])
    def test_within_one_percent_is_right(self, text: str, right: bool) -> None:
        assert state.reveal(state.predict(asked("8"), text)).score == (int(right), 1)

    def test_one_that_can_still_be_changed(self) -> None:
        lab = state.predict(state.predict(asked("8"), "1000"), "640")
        assert state.reveal(lab).score == (1, 1)

    def test_it_is_scored_once_for_each_question(self) -> None:
        lab = state.reveal(state.reveal(state.predict(asked("8"), "640")))
        again = state.predict(lab, "640")
        assert again.score == (1, 1) and "revealed already" in again.message
        assert state.reveal(state.predict(state.set_intensity(again, "8"), "640")).score == (2, 2)

    def test_without_one_nothing_is_scored(self) -> None:
        lab = state.reveal(asked("8"))
        assert lab.score == (0, 0) and "nothing was predicted" in lab.message

    def test_reset_keeps_the_score_and_nothing_else(self) -> None:
        lab = state.reset(state.reveal(state.predict(state.set_peak(asked("8"), "500"), "500")))
        assert replace(lab, message="") == Lab(score=(1, 1))


class TestPlaying:
    def test_it_goes_on_by_ticks_up_to_the_ceiling_and_stops(self) -> None:
        lab = state.play(asked("8"))
        assert lab.playing and lab.at == 0
        for _ in range(20):
            lab = state.tick(lab)
        assert not lab.playing and lab.revealed and state.station(lab) == (8.0, 640e9)

    def test_it_stops_and_goes_on_where_it_was(self) -> None:
        stopped = state.play(state.tick(state.play(asked("8"))))
        assert not stopped.playing and stopped.at == 1 and state.tick(stopped) == stopped
        assert state.play(stopped).at == 2

    def test_another_question_stops_it(self) -> None:
        lab = state.set_intensity(state.play(asked("8")), "16")
        assert not lab.playing and lab.at is None and lab.prediction is None

    def test_from_the_end_it_begins_anew(self) -> None:
        last = stepped(asked("8"))[-1]
        assert state.step(last).at == 0
        assert state.play(last).at == 0 and state.play(last).playing

    def test_that_it_only_traces_is_one_sentence(self) -> None:
        assert state.ONLY_TRACES == "playback only traces the selected roof"


class TestWithoutAQuestion:
    @pytest.mark.parametrize("do", [state.step, state.play, state.reveal, lambda lab: state.predict(lab, "640")])
    def test_what_is_lacking_is_said(self, do: Callable[[Lab], Lab]) -> None:
        for lab in (Lab(), state.set_intensity(Lab(), "8"), state.set_bandwidth(Lab(), "80")):
            after = do(lab)
            assert "set I (i) and B (b)" in after.message
            assert replace(after, message="") == replace(lab, message="")

    def test_letters_stand_for_what_is_not_set(self) -> None:
        assert state.formula(Lab()) == "min(1,000 GFLOP/s, I x B) = ?"
        assert state.formula(state.set_bandwidth(Lab(), "80")) == "min(1,000 GFLOP/s, I x 80 GB/s) = ?"
        assert state.ceiling(Lab()) is state.ridge(Lab()) is state.as_ceiling(Lab()) is None
        assert state.track(Lab()) == ()


@pytest.mark.parametrize("text", ["", "0", "-1", "nan", "inf", "1e400", "1e40", "abc", "8 GB", "\x1b[2J"])
@pytest.mark.parametrize(
    ("setter", "stays"),
    [
        (state.set_intensity, "it stays 8 FLOP/byte"),
        (state.set_bandwidth, "it stays 80 GB/s"),
        (state.set_peak, "it stays 1,000 GFLOP/s"),
        (state.predict, "it stays 640 GFLOP/s"),
    ],
)
def test_bad_input_is_told_and_nothing_is_lost(setter: Callable[[Lab, str], Lab], stays: str, text: str) -> None:
    lab = state.predict(asked("8"), "640")
    after = setter(lab, text)
    assert after.message.endswith(stays)
    assert replace(after, message="") == replace(lab, message="")


positive = st.floats(min_value=-8.9, max_value=8.9).map(lambda power: 10.0**power)


@given(intensity=positive, bandwidth=positive, peak=positive)
def test_any_trace_lies_on_its_roof_and_ends_at_the_exact_ceiling(intensity: float, bandwidth: float, peak: float) -> None:
    lab = Lab(intensity, bandwidth * 1e10, peak * 1e10)
    stations = state.track(lab)
    assert stations[-1] == (intensity, state.ceiling(lab))
    assert 2 <= len(stations) <= state.MOST_STATIONS + 3
    assert [one[0] for one in stations] == sorted({one[0] for one in stations})
    ridge = state.ridge(lab)
    assert ridge is not None
    if ridge < intensity:
        assert (ridge, lab.peak) in stations
    for at, roof in stations:
        assert roof == pytest.approx(min(lab.peak, at * lab.bandwidth), rel=1e-12)  # type: ignore[operator]
        assert state.limit(lab, at) and state.formula(lab, at)
    assert state.as_ceiling(lab).ridge == ridge  # type: ignore[union-attr]


class TestWhatIsTakenFromAJob:
    def test_it_is_the_question_and_is_kept_beside_it(self) -> None:
        lab = state.set_intensity(state.take(replace(Lab(), score=(1, 2)), TAKEN), "8.4")
        assert lab.taken == TAKEN and lab.score == (1, 2)
        assert (TAKEN.ceiling, state.ceiling(lab)) == (84e9, 98e9)

    def test_reset_lets_it_go(self) -> None:
        assert state.reset(state.take(Lab(), TAKEN)).taken is None

    @pytest.mark.parametrize("intensity", [0.0, -1.0, float("nan"), float("inf"), 1e12])
    def test_numbers_that_make_no_question_are_refused(self, intensity: float) -> None:
        lab = asked("8")
        after = state.take(lab, replace(TAKEN, intensity=intensity))
        assert "lies outside" in after.message and replace(after, message="") == replace(lab, message="")
