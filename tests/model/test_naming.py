"""Causes by the excess over the steady steps: named where they explain it, and not where they do not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from tests.model.steps import MS, account
from tuimon.model.slow.naming import Known, Told, cause_words, explain, sentence, times
from tuimon.model.slow.outside import Outside
from tuimon.model.slow.rule import Base, Slow
from tuimon.model.steps.parts import CATEGORIES, SlowStep

USUAL = {"forward regions": 6.0, "backward regions": 9.0, "optimizer": 2.0, "other python": 3.0}


def explained(
    parts: Mapping[str, float],
    outside: Outside | None = None,
    told: Mapping[str, Told] | None = None,
    **more: object,
) -> SlowStep:
    """A step of a job whose usual one takes 20 ms, in which these categories (in ms) took what they did beyond the usual."""
    whole = {name: USUAL.get(name, 0.0) + parts.get(name, 0.0) for name in CATEGORIES}
    one = account(14, sum(whole.values()), {name: ms for name, ms in whole.items() if name != "other python"})
    usual = tuple(round(USUAL.get(name, 0.0) * MS) for name in CATEGORIES)
    base = Base(128, 20 * MS, MS, 30 * MS, usual)
    known = Known(outside or Outside(), lambda category: (told or {}).get(category, Told(f"what {category} did")), **more)  # type: ignore[arg-type]
    return explain(Slow(one, base, False), known)


def causes(found: SlowStep) -> list[tuple[str, float]]:
    return [(one.cause, round(one.share, 2)) for one in found.causes]


SEEN = {"other python": Told("main train.py:10: time.sleep(0.1)", (), 95 * MS)}
UNSEEN = {"other python": Told()}


@pytest.mark.parametrize("category", [name for name in CATEGORIES if name != "other python"])
def test_one_category_that_explains_it_is_the_cause(category: str) -> None:
    found = explained({category: 100, "other python": 5}, told=None)
    assert found.named and causes(found) == [(category, 0.95)]
    assert found.causes[0].detail == f"what {category} did"
    assert found.usual_ns == 20 * MS and found.ratio == pytest.approx(6.25)


def test_other_python_is_named_only_where_it_was_seen() -> None:
    assert causes(explained({"other python": 100}, told=SEEN)) == [("other python", 1.0)]
    found = explained({"other python": 100}, told=UNSEEN)
    assert not found.named and causes(found) == [("unexplained", 1.0)]
    assert found.causes[0].detail == "100% of it is other python; the stack was not looked at"
    seldom = {"other python": Told("main train.py:10", (), 30 * MS)}
    found = explained({"other python": 100}, told=seldom)
    assert not found.named and found.causes[0].detail == "100% of it is other python; main train.py:10"


def test_two_causes_are_both_named_with_their_shares() -> None:
    assert causes(explained({"data wait": 60, "gc": 40})) == [("data wait", 0.6), ("gc", 0.4)]
    assert causes(explained({"gc": 45, "communication": 35, "boundary": 20})) == [("gc", 0.45), ("communication", 0.35)]
    assert causes(explained({"gc": 80, "other python": 20}, told=SEEN)) == [("gc", 0.8), ("other python", 0.2)]


def test_a_first_call_that_takes_longer_is_no_second_cause() -> None:
    assert causes(explained({"compile": 75, "forward regions": 25})) == [("compile", 0.75)]


def test_many_small_things_are_unexplained() -> None:
    found = explained({"forward regions": 30, "backward regions": 30, "optimizer": 20, "gc": 20})
    assert not found.named and causes(found) == [("unexplained", 0.3)]


def test_nothing_is_negative_where_a_category_took_less_than_usual() -> None:
    found = explained({"gc": 100, "backward regions": -9, "forward regions": -6})
    assert found.named and causes(found)[0][0] == "gc" and all(0 <= one.share <= 1 for one in found.causes)


def test_two_places_in_other_python_are_two_causes() -> None:
    told = Told("main train.py:10: time.sleep(0.1)", (), 190 * MS, "save train.py:40: torch.save(..)", 0.4)
    found = explained({"other python": 200}, told={"other python": told})
    assert causes(found) == [("other python", 0.6), ("other python", 0.4)]
    assert [one.detail for one in found.causes] == [told.detail, told.second]
    short = Told(told.detail, (), 190 * MS, told.second, 0.1)
    assert causes(explained({"other python": 200}, told={"other python": short})) == [("other python", 1.0)]


def test_a_second_place_does_not_hide_another_cause_that_explains_more() -> None:
    told = {"other python": Told("save train.py:10: torch.save(..)", (), 160 * MS, "save train.py:11: os.fsync(..)", 0.4)}
    found = explained({"other python": 160, "profiler": 80}, told=told)
    assert causes(found) == [("other python", 0.67), ("profiler", 0.33)]
    assert found.causes[0].detail == "save train.py:10: torch.save(..)"
    assert causes(explained({"other python": 180, "forward regions": 20}, told=told)) == [
        ("other python", 0.54),
        ("other python", 0.36),
    ]


class TestTheMachine:
    def test_a_wait_is_looked_for_first_in_the_work_that_every_step_does(self) -> None:
        waiting = Outside(waited_ns=150 * MS)
        found = explained({"other python": 150, "forward regions": 60, "backward regions": 90}, waiting, SEEN)
        assert causes(found) == [("other python", 0.5), ("run-queue wait", 0.5)]
        # a collection that the competitors made five times as long: its own part of it is what is left
        found = explained({"gc": 400, "backward regions": 60}, Outside(waited_ns=360 * MS))
        assert sorted(causes(found)) == [("gc", 0.22), ("run-queue wait", 0.78)]

    def test_on_a_busy_machine_work_that_ran_no_longer_on_its_core_has_only_waited(self) -> None:
        busy = {"usual_wait_ns": 13 * MS, "wait_rate": 0.65}
        longer = {"forward regions": 230, "backward regions": 270}
        hogs = Outside(waited_ns=400 * MS, off_ns=505 * MS, **busy)
        assert causes(explained(longer, hogs)) == [("run-queue wait", 0.77)]
        itself = Outside(waited_ns=325 * MS, off_ns=330 * MS, **busy)
        assert [cause for cause, _ in causes(explained(longer, itself))] == ["backward regions", "forward regions"]

    def test_waiting_for_a_core_comes_before_the_categories_that_it_made_longer(self) -> None:
        outside = Outside(waited_ns=100 * MS, others_waited_ns=0, evidence=("waited 100.0 ms for a core",))
        found = explained({"backward regions": 70, "other python": 40}, outside, UNSEEN)
        assert found.named and causes(found)[0] == ("run-queue wait", 0.91)
        assert found.causes[0].evidence == ("waited 100.0 ms for a core",)
        assert "no core was free" in found.causes[0].detail

    def test_what_is_usual_of_it_is_not_blamed(self) -> None:
        outside = Outside(waited_ns=60 * MS, usual_wait_ns=55 * MS)
        assert causes(explained({"gc": 100}, outside))[0][0] == "gc"

    def test_what_happened_in_the_job_is_named_too_where_it_alone_would_have_been_slow(self) -> None:
        outside = Outside(waited_ns=2600 * MS)
        found = explained({"compile": 4400}, outside)
        assert [cause for cause, _ in causes(found)] == ["compile", "run-queue wait"]
        assert sum(one.share for one in found.causes) <= 1.01

    def test_a_machine_that_is_as_busy_as_ever_is_not_to_blame(self) -> None:
        busy = Outside(waited_ns=3800 * MS, usual_wait_ns=17 * MS, wait_rate=0.85)
        assert causes(explained({"compile": 4400}, busy)) == [("compile", 1.0)]
        assert causes(explained({"other python": 4400}, busy, {"other python": Told("", (), 4000 * MS)})) == [
            ("other python", 1.0)
        ]
        preempted = Outside(waited_ns=118 * MS, usual_wait_ns=17 * MS, wait_rate=0.85)
        assert causes(explained({"forward regions": 105}, preempted)) == [("run-queue wait", 0.96)]

    def test_a_machine_that_has_become_busier_is_named_beside_what_was_slow_by_itself(self) -> None:
        waiting = Outside(waited_ns=110 * MS, usual_wait_ns=2 * MS, wait_rate=0.1, off_ns=190 * MS)
        slept = {"other python": 108, "forward regions": 41, "backward regions": 56}
        assert [name for name, _ in causes(explained(slept, waiting, SEEN))] == ["other python", "run-queue wait"]
        loaded = {"data wait": 300, "forward regions": 104, "backward regions": 158, "other python": 63}
        waiting = Outside(waited_ns=250 * MS, usual_wait_ns=2 * MS, wait_rate=0.15)
        assert [name for name, _ in causes(explained(loaded, waiting, UNSEEN))] == ["data wait", "run-queue wait"]

    def test_a_wait_in_the_usual_work_and_beside_it_is_no_slow_region(self) -> None:
        waiting = Outside(waited_ns=168 * MS, usual_wait_ns=4 * MS, wait_rate=0.3, off_ns=218 * MS)
        assert causes(explained({"backward regions": 139, "other python": 79}, waiting, SEEN))[0][0] == "run-queue wait"

    def test_a_recompile_on_a_machine_that_has_become_busy(self) -> None:
        found = explained({"compile": 500}, Outside(waited_ns=423 * MS, wait_rate=0.1))
        assert [cause for cause, _ in causes(found)] == ["compile", "run-queue wait"] and found.named

    def test_a_short_collection_that_was_preempted_is_not_blamed(self) -> None:
        assert causes(explained({"gc": 60}, Outside(waited_ns=58 * MS)))[0][0] == "run-queue wait"

    def test_a_quota_is_told_from_a_neighbour(self) -> None:
        assert causes(explained({"forward regions": 100}, Outside(waited_ns=95 * MS, throttled_s=0.3)))[0][0] == "CPU quota"
        assert (
            causes(explained({"forward regions": 100}, Outside(waited_ns=95 * MS, throttled_s=0.0)))[0][0] == "run-queue wait"
        )

    def test_a_team_of_threads_without_cores(self) -> None:
        outside = Outside(waited_ns=1 * MS, others_waited_ns=90 * MS)
        found = explained({"forward regions": 100}, outside)
        assert causes(found) == [("run-queue wait", 0.9)] and found.causes[0].detail.startswith("a thread of the job")
        assert causes(explained({"data wait": 100}, outside)) == [("data wait", 1.0)]

    def test_page_faults_only_where_nothing_else_is_named(self) -> None:
        faults = Outside(waited_ns=0, off_ns=90 * MS, major_faults=400)
        assert causes(explained({"other python": 100}, faults, UNSEEN)) == [("major page faults", 0.9)]
        assert causes(explained({"data wait": 100}, faults)) == [("data wait", 1.0)]
        few = Outside(waited_ns=0, off_ns=90 * MS, major_faults=2)
        found = explained({"other python": 100}, few, UNSEEN)
        assert not found.named and "on no core for 90.0 ms: asleep, or waiting for something" in found.causes[0].detail

    def test_off_its_core_and_nobody_knows_why(self) -> None:
        found = explained({"other python": 100}, Outside(off_ns=90 * MS), UNSEEN)
        assert found.causes[0].detail.endswith("its thread was on no core for 90.0 ms: why is not known here")

    def test_a_wait_that_explains_less_than_half_is_told_and_not_blamed(self) -> None:
        found = explained({"other python": 100}, Outside(waited_ns=45 * MS), UNSEEN)
        assert not found.named and "for 45.0 ms it was ready to run and no core was free" in found.causes[0].detail

    def test_a_gpu_that_was_held_back(self) -> None:
        held = Outside(gpu="GPU 0: thermal (hardware), 1.10 of 1.90 GHz")
        found = explained({"backward regions": 100}, held)
        assert causes(found) == [("GPU throttled", 1.0)] and found.causes[0].detail == held.gpu
        assert causes(explained({"gc": 100}, held)) == [("gc", 1.0)]
        assert causes(explained({"backward regions": 50, "forward regions": 50}, held))[0][0] == "GPU throttled"


class TestTheSentence:
    def test_it_says_which_how_slow_and_why(self) -> None:
        detail = "recompile of encode [0/1]: size of x at 0 was 8, is 6 (4.38 s)"
        found = explained({"compile": 4400}, told={"compile": Told(detail)})
        assert sentence(found) == f"step 14 took 4.42 s, 221 times the usual 20.0 ms: compile, 100% of the excess ({detail})"

    def test_two_causes(self) -> None:
        found = explained({"data wait": 60, "gc": 40})
        assert sentence(found) == (
            "step 14 took 120.0 ms, 6.0 times the usual 20.0 ms: data wait, 60% of the excess (what data wait did); "
            "gc, 40% of the excess (what gc did)"
        )

    def test_no_cause_is_said_to_be_none(self) -> None:
        found = explained({"other python": 100}, told=UNSEEN)
        assert "unexplained (100% of it is other python; the stack was not looked at)" in sentence(found)
        assert cause_words(found.causes[0]).startswith("unexplained")

    def test_it_is_one_line_and_ends_without_a_stop(self) -> None:
        for parts in ({"gc": 100.0}, {"data wait": 60.0, "gc": 40.0}, {"optimizer": 100.0}):
            told = sentence(explained(parts))
            assert "\n" not in told and not told.endswith(".")

    def test_ratios(self) -> None:
        assert [times(one) for one in (None, 2.44, 16.8, 4884.0)] == ["-", "2.4 times", "17 times", "4,884 times"]


class TestAStop:
    """The job was held for some ms of a step."""

    STOP = Outside(stopped_ns=95 * MS, stopped_by="signal", off_ns=96 * MS, evidence=("in state T",))

    @pytest.mark.parametrize("category", ["backward regions", "data wait", "other python"])
    def test_it_is_the_cause_wherever_it_lay(self, category: str) -> None:
        found = explained({category: 100}, self.STOP)
        assert found.named and causes(found) == [("stopped", 0.95)]
        assert found.causes[0].detail == "the job was held by a signal (kill -STOP, Ctrl-Z) for 95.0 ms"
        assert found.causes[0].evidence == ("in state T",)

    def test_what_else_made_it_slow_is_named_beside_it(self) -> None:
        assert causes(explained({"gc": 60, "backward regions": 96}, self.STOP)) == [("stopped", 0.61), ("gc", 0.38)]
        assert causes(explained({"compile": 900, "backward regions": 95}, self.STOP)) == [("compile", 0.81)]  # at least

    def test_a_short_one_hides_no_cause_though_the_step_were_none_too_slow_without_it(self) -> None:
        short = Outside(stopped_ns=3 * MS, stopped_by="tracer")
        assert causes(explained({"gc": 9, "backward regions": 3}, short)) == [("gc", 0.5), ("stopped", 0.25)]
        assert causes(explained({"gc": 10, "backward regions": 1}, replace(short, stopped_ns=MS))) == [("gc", 0.82)]

    def test_a_short_one_in_a_long_step_explains_nothing(self) -> None:
        found = explained({"other python": 400}, self.STOP, UNSEEN)
        assert not found.named and causes(found)[0][0] == "unexplained"

    def test_a_debugger(self) -> None:
        found = explained({"backward regions": 100}, Outside(stopped_ns=99 * MS, stopped_by="tracer"))
        assert found.causes[0].detail == "the job was held by a debugger or another tracer for 99.0 ms"
