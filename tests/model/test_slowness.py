"""Slow steps in the model: which are told, when, and in what words."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.model.slow_jobs import (
    COMMUNICATION,
    DATA,
    FILE,
    GC,
    MAIN,
    MS,
    PROFILER,
    STALL,
    TORCH,
    Job,
    compiled,
)
from tuimon import events as ev
from tuimon.model.findings import findings
from tuimon.model.slow.naming import sentence

SIZE = "tensor 'x' size mismatch at index 0. expected 8, actual 6"


def only(job: Job) -> tuple[int, str, str]:
    (found,) = job.slow
    return found


def test_a_steady_job_has_none() -> None:
    job = Job().steps(60).end()
    assert job.slow == [] and findings(job.model) == [] and job.model.steps.slow_n == 0


def test_a_collection_with_its_generation_and_its_line() -> None:
    job = Job().steps(29)
    job.step((GC, 230), site=15, flags=2 << 8)
    job.steps(1)
    assert only(job) == (29, "gc", "collection of generation 2 at train.py:15: gc.collect(), 230.0 ms")
    assert job.model.steps.slow[0].named and "in 1 collection (gc.callbacks)" in job.model.steps.slow[0].causes[0].evidence[0]


def test_an_automatic_collection_is_told_from_one_that_was_asked_for() -> None:
    job = Job().steps(29)
    job.step((GC, 230), site=10, flags=1 << 8)
    assert only(job.steps(1))[2] == "automatic collection of generation 1 at train.py:10, 230.0 ms"


def test_a_loader_a_collective_and_a_profiler() -> None:
    job = Job().steps(20)
    job.step((DATA, 150), site=12)
    job.steps(20)
    job.step((COMMUNICATION, 102), site=17, flags=7 << 8)
    job.steps(20)
    job.step((PROFILER, 250), site=33)
    job.steps(20)
    assert job.slow == [
        (20, "data wait", "DataLoader at train.py:12, 150.0 ms"),
        (41, "communication", "wait for all_reduce at train.py:17, 102.0 ms, number 7 of its group"),
        (62, "profiler", "torch.profiler step (profile.step) at train.py:33, 250.0 ms"),
    ]


def test_other_python_by_the_line_at_which_the_thread_was_seen() -> None:
    job = Job().steps(20)
    quiet = job.ns + 8 * MS
    for at in range(20, 120, 20):
        job.look(quiet + at * MS, quiet, (MAIN, 10))
    job.look(quiet + 119 * MS, quiet, (MAIN, 40), (STALL, 31))
    job.step(idle=120)
    job.steps(1)
    index, cause, detail = only(job)
    assert (index, cause) == (20, "other python")
    assert detail == "<module> train.py:10: time.sleep(0.12), in 5 of 6 looks"


def test_a_long_stretch_with_many_looks_is_covered_to_its_end() -> None:
    job = Job().steps(20)
    quiet = job.ns + 8 * MS
    for at in range(20, 6000, 20):
        job.look(quiet + at * MS, quiet, (MAIN, 10 if at < 4000 else 40))
    job.step(idle=6000)
    job.steps(1)
    first, second = job.model.steps.slow[0].causes
    assert first.detail.startswith("<module> train.py:10: time.sleep(0.12), in 40 of 60 looks")
    assert second.detail == "<module> train.py:40, in 20 of 60 looks"
    assert first.cause == second.cause == "other python"
    assert (first.share, second.share) == (pytest.approx(2 / 3, abs=0.03), pytest.approx(1 / 3, abs=0.03))


def test_what_is_left_out_of_many_looks_stays_covered() -> None:
    job = Job().steps(20)
    quiet = job.ns + 8 * MS
    for at in range(40, 6000, 40):  # each a stretch of its own: something came just before
        job.look(quiet + at * MS, quiet + (at - 25) * MS, (MAIN, 10))
    job.step(idle=6000)
    job.steps(1)
    assert only(job)[1] == "other python" and job.model.steps.slow[0].named


def test_the_lines_of_one_call_are_one_place() -> None:
    job = Job().steps(20)
    quiet = job.ns + 8 * MS
    for at in range(20, 600, 20):
        job.look(quiet + at * MS, quiet, *([(MAIN, 10)] if at <= 200 else [(MAIN, 40), (STALL, 31 + at // 300)]))
    job.step(idle=600)
    job.steps(1)
    call, line = job.model.steps.slow[0].causes
    assert call.detail == "stall train.py:32 and 1 more line, in 19 of 29 looks"
    assert call.share == pytest.approx(2 / 3, abs=0.03)
    assert line.detail == "<module> train.py:10: time.sleep(0.12), in 10 of 29 looks"


def test_a_library_is_named_behind_the_users_line() -> None:
    job = Job().steps(20)
    quiet = job.ns + 8 * MS
    for at in range(20, 120, 20):
        job.look(quiet + at * MS, quiet, (MAIN, 40), (TORCH, 950))
    job.step(idle=120)
    assert only(job.steps(1))[2] == "<module> train.py:40 (in save), in 5 of 5 looks"


def test_what_was_not_seen_is_unexplained() -> None:
    job = Job().steps(20)
    job.step(idle=120)
    index, cause, detail = only(job.steps(1))
    assert (index, cause) == (20, "unexplained") and detail.startswith(
        "100% of it is other python; the stack was not looked at"
    )
    assert not job.model.steps.slow[0].named


class TestCompilations:
    def test_the_first_step_by_its_compilation_and_no_finding(self) -> None:
        job = Job()
        job.apply(*compiled(job, "0/0", 900))
        job.ns += 900 * MS
        job.steps(40)
        assert only(job) == (0, "compile", "first compile of f [0/0] (900.0 ms)")
        assert findings(job.model) == []

    def test_a_recompile_with_what_changed(self) -> None:
        job = Job().steps(14)
        job.apply(*compiled(job, "0/1", 4400, SIZE))
        job.ns += 4400 * MS
        job.steps(4)
        index, cause, detail = only(job)
        assert (index, cause) == (14, "compile") and detail.startswith("recompile of f [0/1]: ") and "(4.40 s)" in detail
        assert "8" in detail and "6" in detail
        told = sentence(job.model.steps.slow[0])
        assert told.startswith("step 14 took 4.42 s, 221 times the usual 20.0 ms: compile, 100% of the excess (recompile of f")

    def test_a_first_compile_that_comes_late_is_a_row_and_no_finding(self) -> None:
        job = Job().steps(40)
        job.apply(*compiled(job, "1/0", 2000))
        job.ns += 2000 * MS
        job.steps(20)
        assert only(job)[:2] == (40, "compile")
        assert findings(job.model) == []

    def test_after_a_reset_it_says_so_and_where_it_came_from(self) -> None:
        job = Job()
        job.apply(*compiled(job, "0/0", 900))
        job.ns += 900 * MS
        job.steps(30)
        job.apply(*compiled(job, "0/0", 150)[:1], ev.CacheLooked(job.ns, "0/0", "fx_graph", "hit", "MainThread"))
        job.apply(*compiled(job, "0/0", 150)[1:])
        job.ns += 150 * MS
        job.steps(5)
        assert job.slow[1][1:] == ("compile", "f [0/0] compiled again after torch._dynamo.reset(), from the cache (150.0 ms)")

    def test_a_reset_is_known_by_what_was_compiled_before_the_attach(self) -> None:
        job = Job()
        past = ev.CompileFinished(job.ns, "0/0", "forward", "f", FILE, 10, "", job.ns - MS, 0.9, before_attach=True)
        job.apply(past, ev.FrameSeen(job.ns, "f", FILE, 10, ("0/0",), owners=("Network",)))
        job.steps(30)
        start, end = compiled(job, "0/0", 150)
        assert isinstance(start, ev.CompileStarted)
        job.apply(replace(start, owner="Network"), end)
        job.ns += 150 * MS
        job.steps(5)
        assert only(job)[1:] == ("compile", "Network.f [0/0] compiled again after torch._dynamo.reset() (150.0 ms)")

    def test_resets_again_and_again_are_a_finding(self) -> None:
        job = Job()
        for number in range(5):
            job.apply(*compiled(job, "0/0", 300 + number))
            job.ns += 300 * MS
            job.steps(25)
        (found,) = findings(job.model)
        assert found.title.startswith("4 steps slow by compile, every 25 steps: f [0/0] compiled again after")


class TestWarmingUp:
    def test_a_first_use_without_a_name_is_not_told(self) -> None:
        job = Job()
        job.step(idle=90)
        job.steps(40)
        assert job.slow == []

    def test_what_has_a_name_is_told(self) -> None:
        job = Job()
        job.step((DATA, 90))
        job.steps(40)
        assert only(job)[:2] == (0, "data wait")

    def test_at_the_end_of_a_short_job_those_that_wait_are_judged(self) -> None:
        job = Job().steps(5)
        job.step((GC, 300), flags=2 << 8)
        job.steps(4)
        assert job.slow == []
        assert only(job.end())[:2] == (5, "gc")


class TestTheMachine:
    def test_a_step_waits_for_the_reading_after_it(self) -> None:
        job = Job()
        for _ in range(5):
            job.steps(10)
            job.read(0.0)
        job.cpu_ns = 0
        job.step(idle=0, cpu=True)
        job.cpu_ns += 20 * MS
        job.step(idle=100, cpu=True)
        job.cpu_ns += 22 * MS
        job.step(cpu=True)
        assert job.slow == []  # not read since
        job.read(97.0)
        index, cause, detail = only(job)
        assert (index, cause) == (51, "run-queue wait") and "no core was free" in detail
        assert job.model.steps.accounts[51].waited_ns == pytest.approx(97 * MS, rel=0.05)
        evidence = job.model.steps.slow[0].causes[0].evidence
        assert any("schedstat" in line for line in evidence)

    def test_a_step_in_which_the_job_was_stopped(self) -> None:
        job = Job().steps(50)
        job.read(0.0)
        begin = job.ns
        job.step((DATA, 1500))
        for at in range(100, 1500, 100):
            job.read(0.0, begin + at * MS, stopped="signal")
        job.step()
        job.read(0.0)
        index, cause, detail = only(job)
        assert (index, cause) == (50, "stopped") and "kill -STOP" in detail
        (found,) = findings(job.model)
        assert "stopped" in found.title and found.next_step.startswith("nothing in the job")

    def test_but_not_for_ever(self) -> None:
        job = Job().steps(50)
        job.read(0.0)
        job.step(idle=100)
        assert job.slow == []
        job.steps(60)
        assert only(job)[:2] == (50, "unexplained")

    def test_what_the_rest_of_the_bracket_waited_is_not_the_steps(self) -> None:
        job = Job()
        for at in range(30):  # a busy machine: half of the time it waits
            job.steps(5)
            job.read(50.0 * at)
        job.step((DATA, 100))
        job.steps(4)
        job.read(50.0 * 30 + 50)
        assert only(job)[:2] == (150, "data wait")


class TestFindings:
    def test_one_for_a_cause_with_its_period_and_the_worst(self) -> None:
        job = Job()
        for number in range(5):
            job.steps(9)
            job.step((DATA, 150 + number), site=12)
        job.steps(2)
        (found,) = findings(job.model)
        assert found.kind == "slow_step" and found.where == "/w/train.py:12"
        assert found.title == "5 steps slow by data wait, every 10 steps: DataLoader at train.py:12, 154.0 ms"
        assert found.evidence[0].startswith("the worst: step 49 took")
        assert found.cost_s == pytest.approx(0.76) and found.next_step

    def test_a_stall_in_python_stands_at_the_line_at_which_it_was_seen(self) -> None:
        job = Job()
        for _ in range(2):
            job.steps(20)
            quiet = job.ns + 8 * MS
            for at in range(20, 120, 20):
                job.look(quiet + at * MS, quiet, (MAIN, 10))
            job.step(idle=120)
        job.steps(1)
        (found,) = findings(job.model)
        assert found.where == "/w/train.py:10" and found.title.startswith("2 steps slow by other python: <module> train.py:10")

    @pytest.mark.parametrize(
        ("lines", "says"),
        [
            ((10, 11), ", at 2 places; the worst: <module> train.py:11"),
            ((10, 10, 11), ", 2 of them at train.py:10; the worst: <module> train.py:11"),
            ((10, 10), ": <module> train.py:10"),
        ],
    )
    def test_the_worst_does_not_speak_for_those_at_other_places(self, lines: tuple[int, ...], says: str) -> None:
        job = Job()
        for number, line in enumerate(lines):
            job.steps(20 + number)
            quiet = job.ns + 8 * MS
            for at in range(20, 120, 20):
                job.look(quiet + at * MS, quiet, (MAIN, line))
            job.step(idle=120 + number)
        job.steps(1)
        (found,) = findings(job.model)
        assert found.title.startswith(f"{len(lines)} steps slow by other python{says}")
        assert found.where == f"/w/train.py:{lines[-1]}"

    def test_the_longest_of_many_waits_is_told_beside_all_of_them(self) -> None:
        job = Job().steps(30)
        job.step((DATA, 30), (DATA, 20), (DATA, 25), site=12)
        job.steps(3)
        (slow,) = job.model.steps.slow
        assert slow.causes[0].detail == "DataLoader at train.py:12, 30.0 ms of 75.0 ms in 3 calls"

    def test_a_short_stall_that_came_once_is_none(self) -> None:
        job = Job().steps(30)
        job.step((DATA, 150))
        job.steps(3)
        assert len(job.slow) == 1 and findings(job.model) == []

    def test_a_long_one_is_told_by_its_sentence(self) -> None:
        job = Job().steps(30)
        job.step((DATA, 3000))
        job.steps(60)
        (found,) = findings(job.model)
        assert found.title == sentence(job.model.steps.slow[0])

    def test_what_cannot_be_named_has_to_cost_something(self) -> None:
        job = Job()
        for _ in range(6):
            job.steps(30)
            job.step(idle=60)
        job.steps(3)
        assert len(job.slow) == 6 and findings(job.model) == []


def test_counting_anew_forgets() -> None:
    job = Job().steps(30)
    job.step((GC, 300))
    job.steps(3)
    assert job.model.slowness.tallies
    job.model.slowness.anew()
    assert not job.model.slowness.tallies and job.model.slowness.trends.blocks == []


def test_a_slow_step_is_a_line_of_the_log() -> None:
    job = Job().steps(30)
    job.step((GC, 300))
    job.steps(3)
    assert [line.text for line in job.model.log if line.kind == "slow"] == [sentence(job.model.steps.slow[0])]
