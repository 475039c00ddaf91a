"""The fold: three populations, crossings by entry, compile time kept out of everything else, generations."""

from __future__ import annotations

import pytest

from tests.model.script import added, broke, compiled, model_of, samples, target
from tuimon import events as ev
from tuimon.model import Model
from tuimon.model.findings import findings, per_step, share_of_step


def us(seconds: float | None) -> int | None:
    return None if seconds is None else round(seconds * 1e6)


def test_initial_steady_and_after_guard_change_are_never_mixed() -> None:
    model = model_of(
        compiled("0/0", 0, 1000),
        added(1, "forward", "0/0"),
        samples((1, 1000, 1010), (1, 1020, 1025), (1, 1030, 1036)),
        ev.GuardsFailed(0, "0/1", (("0/0", "size mismatch  # x = 1  # model.py:3"),)),
        compiled("0/1", 1040, 2040),
        added(2, "forward", "0/1"),
        samples((2, 2040, 2060), (1, 2061, 2066), (2, 2070, 2077)),
    )
    first, second = model.regions["0:0/0:forward"], model.regions["0:0/1:forward"]
    assert (first.initial.n, first.steady.n, first.after_guard_change.n) == (1, 3, 0)
    assert (second.initial.n, second.steady.n, second.after_guard_change.n) == (1, 0, 1)
    assert us(first.initial.summary.median) == 1010  # from the start of its compilation to the end of its first call
    assert us(second.initial.summary.median) == 1020
    assert us(second.after_guard_change.summary.median) == 7
    (recompile,) = model.recompiles
    assert recompile.guard == "size mismatch" and recompile.compilation.why == "recompile"
    assert model.frames["0:0"].entries == ["0/0", "0/1"] and model.frames["0:0"].compiled_calls == 6


def test_a_call_with_a_compilation_inside_is_initial_whenever_it_comes() -> None:
    model = model_of(
        compiled("0/0", 0, 10),
        added(1, "backward", "0/0"),
        samples((1, 20, 30)),
        ev.CompileStarted(40_000, "0/0", 0, "", "", 0, "main", "backward"),
        ev.CompileFinished(90_000, "0/0", "backward", None, None, None, "main", 40_000, 50e-6),
        samples((1, 38, 95), (1, 100, 104)),
    )
    region = model.regions["0:0/0:backward"]
    assert (region.initial.n, region.steady.n) == (2, 1)
    assert [c.why for c in model.compilations] == ["first", "backward"]


def test_the_boundary_is_the_eager_stretch_without_callees_and_compilations() -> None:
    model = model_of(
        compiled("0/0", 0, 10),
        broke("0/0", 13),
        added(1, "forward", "0/0"),
        added(2, "resume", "0/0", function="torch_dynamo_resume_in_f_at_13", line=13),
        added(9, "forward", "5/0"),
        # region of f, then in the stretch: a compilation of 100 us and another compiled function of 30 us, 20 us of its own
        samples((1, 20, 30)),
        compiled("5/0", 35, 135, function="g"),
        samples((9, 135, 165), (2, 180, 180)),
    )
    (boundary,) = model.boundaries.values()
    assert boundary.crossings == 1
    assert us(boundary.host.summary.median) == 20


def test_two_boundaries_on_one_line_stay_two() -> None:
    model = model_of(
        compiled("0/0", 0, 1),
        broke("0/0", 16),
        compiled("1/0", 2, 3, function="torch_dynamo_resume_in_f_at_16"),
        broke("1/0", 16),
        compiled("1/1", 4, 5, function="torch_dynamo_resume_in_f_at_16"),
        broke("1/1", 16),
        [added(n, "resume", c, function="torch_dynamo_resume_in_f_at_16") for n, c in ((1, "0/0"), (2, "1/0"), (3, "1/1"))],
        samples((1, 6, 6), (2, 7, 7), (3, 8, 8)),
    )
    assert sorted((b.breaks, b.crossings) for b in model.boundaries.values()) == [(1, 1), (2, 2)]


def test_a_restart_is_neither_a_break_nor_a_recompile() -> None:
    model = model_of(
        ev.CompileStarted(0, "0/0", 0, "f", "/w/model.py", 10, "main"),
        broke("0/0", 13),
        ev.CompileStarted(5, "0/0", 1, "f", "/w/model.py", 10, "main"),
        broke("0/0", 13, attempt=1),
    )
    (boundary,) = model.boundaries.values()
    assert boundary.breaks == 1 and model.recompiles == []
    assert model.running["main"].attempt == 1 and model.running["main"].since_ns == 0


def test_ids_that_start_over_open_a_generation() -> None:
    model = model_of(
        compiled("0/0", 0, 1), added(1, "forward", "0/0"), samples((1, 2, 3)), compiled("0/0", 10, 11),
        added(2, "forward", "0/0"), samples((2, 12, 13)),
    )  # fmt: skip
    assert set(model.regions) == {"0:0/0:forward", "1:0/0:forward"}
    assert model.recompiles == [] and [c.why for c in model.compilations] == ["first", "first"]


def test_the_refused_attempt_is_no_recompile_of_the_frame() -> None:
    model = model_of(
        compiled("0/0", 0, 1),
        ev.GuardsFailed(0, "0/1", (("0/0", "n == 1"),)),
        ev.CompileFinished(9, "0/1", "forward", None, None, None, "main", 5, 4e-9, refused=True),
    )
    frame = model.frames["0:0"]
    assert frame.refused_compile_id == "0/1" and frame.entries == ["0/0"]
    (recompile,) = model.recompiles
    assert recompile.compilation.refused and recompile.compilation.function == "f"
    assert [finding.kind for finding in findings(model)] == ["limit"]


def steps(count: int, boundary_us: int, step_us: int = 1000) -> list[ev.Event]:
    """`count` steps: a region, a boundary of so many us, the optimizer at the end."""
    rows = []
    for number in range(count):
        at = 10_000 + number * step_us
        rows += [(1, at, at + 50), (2, at + 50 + boundary_us, at + 50 + boundary_us), (3, at + 900, at + step_us)]
    return [
        *compiled("0/0", 0, 5_000),
        broke("0/0", 13),
        added(1, "forward", "0/0"),
        added(2, "resume", "0/0", line=13),
        added(3, "optimizer", None, function="SGD"),
        samples(*rows),
    ]


def test_steps_and_what_a_boundary_takes_of_them() -> None:
    model = model_of(steps(11, boundary_us=100))
    assert (model.steps.source, model.steps.n, model.steps.durations.n) == ("optimizer", 11, 11)
    assert model.steps.recent[0][2] and not model.steps.recent[1][2]  # the first step has the compilation in it
    (boundary,) = model.boundaries.values()
    assert per_step(model, boundary) == 1.0
    assert share_of_step(model, boundary) == 0.1
    (finding,) = findings(model)
    assert (finding.kind, finding.where) == ("boundary", "/w/model.py:13")


def test_a_cheap_boundary_is_no_finding_and_an_asked_for_one_neither() -> None:
    assert findings(model_of(steps(11, boundary_us=5))) == []
    model = model_of(steps(11, boundary_us=100))
    next(iter(model.boundaries.values())).requested = True
    assert findings(model) == []


def test_a_step_that_began_before_the_attach_has_no_duration() -> None:
    model = Model()
    model.apply([target("injected"), added(3, "optimizer", None), samples((3, 10, 20), (3, 50, 60))])
    assert model.steps.n == 2 and model.steps.durations.n == 1


def test_a_past_break_finds_its_boundary_by_line_or_by_function() -> None:
    model = Model()
    past = {"before_attach": True}
    model.apply([target("injected"), ev.FrameSeen(0, "f", "/w/model.py", 10, ("0/0",))])
    model.apply([added(1, "resume", "0/0", function="torch_dynamo_resume_in_f_at_30", line=30, **past)])
    model.apply([broke(None, 28, **past), broke(None, 77, function="other", **past), samples((1, 5, 5))])
    known, unknown = model.boundaries.values()
    assert (known.line, known.reason, known.crossings, known.function) == (28, "print", 1, "f")
    assert (unknown.line, unknown.crossings) == (77, None)  # never seen crossing: not 0


def test_dropped_instrument_messages_give_no_wrong_rows() -> None:
    model = model_of(samples((99, 1, 2)))
    assert model.regions == {} and model.boundaries == {}


def test_the_end_is_a_state_and_keeps_the_data() -> None:
    model = model_of(compiled("0/0", 0, 1), ev.TargetEnded(5, "lost", "connection closed"))
    model.apply([ev.TargetEnded(6, "exited", "exited with status 3", 3), ev.TargetEnded(7, "lost", "again")])
    assert (model.target.ended, model.target.status) == ("exited", 3)
    assert model.compilations


def test_a_crossing_whose_begin_is_unknown_is_counted_and_its_share_is_unknown() -> None:
    events = [event for event in steps(11, boundary_us=100) if getattr(event, "role", None) != "forward"]
    model = model_of(events)
    (boundary,) = model.boundaries.values()
    assert boundary.crossings == 11 and boundary.host.n == 0
    assert per_step(model, boundary) == 1.0 and share_of_step(model, boundary) is None
    assert findings(model) == []


def test_time_at_an_inner_boundary_is_not_the_outer_ones_too() -> None:
    model = model_of(
        compiled("0/0", 0, 1),
        broke("0/0", 13),
        compiled("1/0", 2, 3, function="g"),
        broke("1/0", 33, function="g"),
        [added(n, "forward", c) for n, c in ((1, "0/0"), (2, "1/0"))],
        [added(n, "resume", c, line=line) for n, c, line in ((11, "0/0", 13), (12, "1/0", 33))],
        # f's region; in the stretch g: region, 500 us of its own stretch, and on; 5 us before and after g are f's
        samples((1, 10, 20), (2, 25, 30), (12, 530, 530), (11, 535, 535)),
    )
    assert {b.line: us(b.host.summary.median) for b in model.boundaries.values()} == {33: 500, 13: 10}


def test_a_recursive_boundary_pairs_its_ends_from_the_inside_out() -> None:
    model = model_of(
        compiled("0/0", 0, 1),
        broke("0/0", 13),
        added(1, "forward", "0/0"),
        added(2, "resume", "0/0", line=13),
        samples((1, 10, 20), (1, 30, 40), (2, 47, 47), (2, 60, 60)),
    )
    (boundary,) = model.boundaries.values()
    assert sorted(boundary.host.latest(9)) == [7_000, 23_000]  # 40-47; and 20-60 without the inner call and its stretch


def optimizer_steps(*ends: tuple[int, int]) -> ev.Samples:
    """(instrument, number of the step) with 100 us a step and 10 us of optimizer."""
    return samples(*((instrument, number * 100 - 10, number * 100) for instrument, number in ends))


def test_the_mark_is_handed_on_when_the_job_moves_to_another_optimizer() -> None:
    model = model_of(
        [added(n, "optimizer", None) for n in (1, 2, 3)],
        optimizer_steps(*((1, n) for n in range(1, 11))),
        optimizer_steps(*((2, n) for n in range(11, 21))),
        optimizer_steps(*((3, n) for n in range(21, 24))),
    )
    assert model.steps.n == 20  # the third has not stepped often enough yet to be more than a visitor
    model.apply([optimizer_steps(*((3, n) for n in range(24, 31)))])
    assert model.steps.n == 30 and model.steps.durations.n == 29


def test_a_step_within_a_step_of_the_same_optimizer_is_one() -> None:
    rows = [row for n in range(1, 6) for row in ((1, n * 100 - 30, n * 100 - 10), (1, n * 100 - 40, n * 100))]
    assert model_of(added(1, "optimizer", None), samples(*rows)).steps.n == 5


def test_a_backward_compiled_on_another_thread_makes_the_step_no_steady_one() -> None:
    model = model_of(
        added(1, "optimizer", None),
        optimizer_steps((1, 1), (1, 2)),
        ev.CompileFinished(260_000, "0/0", "backward", None, None, None, "autograd (1)", 210_000, 50e-6),
        optimizer_steps((1, 3), (1, 4)),
    )
    assert [compiled_in for _, _, compiled_in in model.steps.recent] == [False, True, False]
    assert model.steps.steady_n == 2


def test_graphs_of_one_compilation_are_regions_of_their_own() -> None:
    model = model_of(compiled("1/0", 0, 1), [added(n, "backward", "1/0") for n in (1, 2, 3)], samples((2, 5, 9)))
    assert [(key, region.calls) for key, region in model.regions.items()] == [
        ("0:1/0:backward", 0),
        ("0:1/0:backward#2", 1),
        ("0:1/0:backward#3", 0),
    ]


def test_an_entry_after_a_failed_compilation_is_the_first_and_not_a_guard_change() -> None:
    model = model_of(
        compiled("1/0", 0, 1, failed="BackendCompilerFailed"),
        ev.CompileStarted(2_000, "1/1", 0, "f", "/w/model.py", 10, "main"),
        added(1, "forward", "1/1"),
        ev.CompileFinished(3_000, "1/1", "forward", "f", "/w/model.py", 10, "main", 2_000, 1e-6),
        samples((1, 5, 6), (1, 7, 8)),
    )
    (region,) = model.regions.values()
    assert (region.initial.n, region.steady.n, region.after_guard_change.n) == (1, 1, 0)


def test_threads_that_come_and_go_do_not_pile_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tuimon.model.calls.MOST_THREADS", 10)
    monkeypatch.setattr("tuimon.model.compiling.MOST_NAMES", 10)
    model = model_of(compiled("0/0", 0, 1), added(1, "forward", "0/0"), added(2, "resume", "0/0"), samples((1, 5, 6)))
    for thread in range(1, 50):
        # a thread with a resume function to come is not forgotten: thread 0 is in the boundary all the while
        rows = ((1, thread, 0, 1, 2), (2, thread, 0, 3, 3))
        model.apply([ev.ThreadSeen(1, thread, f"Thread-{thread}"), ev.Samples(9, rows)])
    model.apply([ev.Samples(9_000, ((2, 0, 0, 9_000, 9_000),))])
    assert model.overflow == {}
    assert next(iter(model.boundaries.values())).host.latest(1) == [3_000]
    assert len(model._calls._threads) == len(model._compiler._now._thread_number) == 10
    # threads that are all within the boundary cannot be forgotten: what comes beyond them is left out, and that is said
    model.apply([ev.Samples(9, tuple((1, thread, 0, 1, 2) for thread in range(100, 150)))])
    assert model.overflow["threads"] == 40
    assert "40 more were left out" in model.coverage.not_available["more threads"]


def test_a_recompile_of_no_frame_tells_its_own_guard() -> None:
    model = model_of(
        ev.GuardsFailed(1, "odd", (("0/0", "x == 1"),)),
        ev.CompileFinished(2, "odd", "forward", "f", "f.py", 1, "main", 1, 1e-6),
    )
    assert "x is no longer 1" in model.log[-1].text


def test_an_optimizer_behind_more_regions_than_are_kept_still_ends_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tuimon.model.adding.MOST_INSTRUMENTS", 20)
    monkeypatch.setattr("tuimon.model.adding.MOST_TELLING", 2)
    model = model_of([added(number, "forward", f"{number}/0") for number in range(30)], added(99, "optimizer", None))
    model.apply([samples(*((99, at, at + 5) for at in range(10, 100, 10)))])
    assert len(model.regions) == 20 and model.overflow == {"regions and other timed calls": 10}
    assert (model.steps.source, model.steps.n) == ("optimizer", 9)
    model.apply([added(number, "loop", None) for number in (100, 101)])
    assert model.coverage.not_available["more things that steps are told by"] == "2 are kept; 1 more were left out"
