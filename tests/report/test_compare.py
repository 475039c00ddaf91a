"""Two runs beside each other: a pair that is none is refused with the reason; a mechanism is named, with its interval."""

from __future__ import annotations

from typing import Any

import pytest

from tests.report.compared import RESAMPLES, Run, compared
from tests.report.jobs import MS, compiled, model_of, training
from tuimon import events as ev
from tuimon.model import Model
from tuimon.report.compare.interval import FEW
from tuimon.report.phases import THE_END


def kinds(found: dict[str, Any]) -> list[str]:
    return [row["kind"] for row in found["mechanisms"]]


def check(found: dict[str, Any], what: str) -> dict[str, Any]:
    (row,) = (row for row in found["checks"] if row["what"] == what)
    return dict(row)


def test_a_boundary_that_went_is_named_with_its_interval() -> None:
    found = compared(Run(boundary_us=3_000), Run(seed=2))
    first = found["mechanisms"][0]
    assert found["comparable"] and first["kind"] == "boundary gone" and first["explains"]
    assert "the boundary at model.py:41 is gone" in found["verdict"] and "one host round trip less per step" in found["verdict"]
    low, high = first["interval"]
    assert -3.2e-3 < low <= first["seconds_per_step"] <= high < -2.9e-3
    assert first["share"] == pytest.approx(1.0, abs=0.15)
    assert found["steps"]["verdict"] == "faster" and found["steps"]["interval"][1] < 0
    (row,) = found["boundaries"]
    assert (row["in"], row["per_step"], row["host_per_step"]["b"]) == ("a", {"a": 1.0, "b": 0.0}, 0.0)


def test_and_the_other_way_round_it_is_new_and_worse() -> None:
    found = compared(Run(), Run(boundary_us=3_000))
    assert kinds(found)[0] == "boundary new" and found["steps"]["verdict"] == "slower"
    assert any("graph break at model.py:41" in row["sentence"] for row in found["worse"])


def test_lines_put_in_above_a_boundary_do_not_make_it_another_one() -> None:
    found = compared(Run(boundary_us=3_000), Run(boundary_us=3_000, line=47, seed=2))
    assert [row["in"] for row in found["boundaries"]] == ["both"] and found["mechanisms"] == []


def test_one_that_is_crossed_less_often_is_named_too() -> None:
    found = compared(Run(boundary_us=2_000, crossings=4, graphs=False), Run(boundary_us=2_000, graphs=False))
    assert kinds(found)[0] == "boundary changed" and "4 crossings a step in A and 1 in B" in found["verdict"]


def test_the_wait_for_data_is_named() -> None:
    found = compared(Run(data_us=6_000), Run(seed=2))
    assert kinds(found) == ["data wait"] and found["verdict"].count("data wait: ") == 1
    rows = {row["category"]: row for row in found["breakdown"]}
    assert rows["data wait"]["interval"][1] < 0 < rows["data wait"]["b"]


def test_fewer_graphs_alone_are_no_result() -> None:
    found = compared(Run(boundary_us=1), Run(other_us=1_000, seed=3))
    assert found["steps"]["verdict"] == "faster"
    assert "no mechanism found that explains it" in found["verdict"]
    assert not any(row["explains"] for row in found["mechanisms"])


def test_two_runs_that_are_alike_show_no_difference() -> None:
    found = compared(Run(boundary_us=500), Run(boundary_us=500, seed=4))
    assert found["steps"]["verdict"] == "no difference seen"
    assert found["mechanisms"] == [] and found["worse"] == [] and found["verdict"].endswith("no mechanism found")


@pytest.mark.parametrize("more_us", [60, -60])
def test_by_so_little_two_runs_of_one_program_differ(more_us: int) -> None:
    found = compared(Run(steps=400, noise=0.02), Run(steps=400, noise=0.02, step_us=10_000 + 2 * more_us, seed=4))
    low, high = found["steps"]["interval"]
    assert low > 0 or high < 0  # each run for itself is steady enough to tell them apart
    assert found["steps"]["verdict"] == "no difference seen" and "differ by up to 3%, too" in found["verdict"]
    assert not any(row["explains"] for row in found["mechanisms"])


def test_a_pace_that_drifts_within_a_run_makes_the_interval_wider() -> None:
    drifting = Run(steps=200, slower_from=110)
    found = compared(drifting, Run(steps=200, slower_from=90, seed=3))
    assert found["steps"]["verdict"] == "no difference seen"


def test_whether_it_is_the_same_work_is_told_where_that_is_not_known() -> None:
    found = compared(Run(graphs=False), Run(graphs=False, step_us=20_000, seed=3))
    assert found["steps"]["verdict"] == "slower" and "whether both do the same work is not known" in found["verdict"]


@pytest.mark.parametrize(
    ("other", "why"),
    [
        (Run(batch=16), "the batch size is 8 in A and 16 in B"),
        (Run(boundary_us=900, batch=16), "the batch size is 8 in A and 16 in B"),
        (Run(width=128), "it is another model: they have no matrix product"),
        (Run(dtype="bf16"), "the data is f32 in A and bf16 in B"),
        (Run(devices=("NVIDIA H200",)), "A ran on cpu and B on NVIDIA H200"),
        (Run(world_size=4), "A is a job of 1 process and B of 4 processes"),
        (Run(steps=12), "B has 11 whole steps without a compilation, 20 are needed"),
    ],
)
def test_a_pair_that_is_none_is_refused_with_the_reason(other: Run, why: str) -> None:
    found = compared(Run(), other)
    assert not found["comparable"] and any(why in told for told in found["not_comparable"])
    assert found["verdict"].startswith("not comparable, because ") and why in found["verdict"]
    assert found["steps"]["difference"] is found["steps"]["interval"] is None and found["steps"]["a"]["n"] > 0
    assert all(row["difference"] is row["interval"] is None for row in found["breakdown"])
    assert all(row["host_per_step"]["difference"] is None for row in found["boundaries"])
    assert found["mechanisms"] == found["worse"] == []


def test_more_work_a_step_is_refused_where_the_sizes_are_the_same() -> None:
    """The same products, and twice as many of them."""
    more = Run()
    events = [_twice(event) for event in more.events()]
    model = Model()
    model.apply(events)
    found = compared(Run(), model)
    assert found["not_comparable"] == ["a step makes 8.39 MFLOP in matrix products in A and 16.8 MFLOP in B"]


def _twice(event: ev.Event) -> ev.Event:
    if not isinstance(event, ev.GraphSeen):
        return event
    rows = tuple((*row[:4], 2 * row[4]) for row in event.rows)
    return ev.GraphSeen(event.t_ns, event.compile_id, event.direction, 0, 0, "aten", rows, event.reads, event.writes)


def test_files_of_two_kinds_are_no_pair() -> None:
    found = compared(Run(), Run(), kinds=("recording", "kineto"))
    assert found["not_comparable"] == ["A is a recording and B a Kineto trace: what one times the other does not"]


def test_steps_that_are_told_in_another_way_are_no_pair() -> None:
    marked = Run().events()
    marked[3:3] = [ev.InstrumentAdded(3 * MS, 9, "mark", None, "step", "step", "", 0)]
    at = 0
    for number, event in enumerate(marked):
        if isinstance(event, ev.Samples):
            at = event.rows[0][3]
            marked[number] = ev.Samples(event.t_ns, ((9, 0, 0, at, at), *event.rows))
    found = compared(Run(), model_of(marked))
    assert any("steps are told by optimizer in A and by marked in B" in why for why in found["not_comparable"])


def test_another_version_of_torch_or_other_options_are_told_and_refuse_nothing() -> None:
    found = compared(Run(), Run(torch="2.14.0", options=(("num_threads", "2"),), seed=2))
    assert found["comparable"] and check(found, "torch")["verdict"] == "differs"
    assert check(found, "options")["verdict"] == "differs" and check(found, "options")["b"] == "num_threads=2"


def test_what_was_not_told_is_not_known_and_refuses_nothing() -> None:
    found = compared(Run(graphs=False), Run(graphs=False, batch=16))
    assert found["comparable"]
    for what in ("shapes", "dtype", "operations per step"):
        assert check(found, what)["verdict"] == "not known" and check(found, what)["why"]


def test_three_populations_stay_apart() -> None:
    found = compared(training_with_recompile(), training_with_recompile())
    row = next(row for row in found["regions"] if row["function"] == "forward")
    assert row["initial"]["a"] > 0 and row["steady"]["a"] == pytest.approx(0.0025, rel=0.1)
    assert row["after_guard_change"]["a"] == pytest.approx(0.0025, rel=0.1)


def training_with_recompile() -> Model:
    """The second half of its calls are of an entry that a recompile made."""
    found = Run(graphs=False).events()
    half = [number for number, event in enumerate(found) if isinstance(event, ev.Samples)][30]
    at = found[half].t_ns
    found.insert(
        half, ev.InstrumentAdded(at - MS, 11, "forward", "0/1", "__compiled_fn_3", "forward", "/home/user/model.py", 12)
    )
    for number in range(half + 1, len(found)):
        event = found[number]
        if isinstance(event, ev.Samples):
            found[number] = ev.Samples(event.t_ns, tuple((11 if row[0] == 1 else row[0], *row[1:]) for row in event.rows))
    return model_of(found)


def test_what_got_worse_is_told_where_steps_got_faster() -> None:
    found = compared(Run(data_us=6_000), Run(compile_s=9.0, rss=2 << 30, seed=2))
    assert found["steps"]["verdict"] == "faster"
    assert {row["what"] for row in found["worse"]} >= {"compile time", "resident memory"}


def test_the_same_pair_gives_the_same_again_and_another_seed_another_interval() -> None:
    one, again, other = (compared(Run(boundary_us=900), Run(seed=2), seed=seed) for seed in (20, 20, 21))
    assert one == again and one["breakdown"] != other["breakdown"]
    assert "seed 20" in one["rule"] and f"{RESAMPLES} resamples" in one["rule"] and f"fewer than {FEW}" in one["rule"]


def test_only_the_steps_of_a_phase() -> None:
    plan = (("initial", 0), ("steady", 1), ("guard", 40))
    a, b = Run(phases=plan, slower_from=40), Run(phases=plan, seed=2)
    found = compared(a, b, phase="steady")
    assert found["steps"]["verdict"] == "no difference seen" and found["steps"]["a"]["n"] == 39
    found = compared(a, b, phase="guard")
    assert found["steps"]["verdict"] == "faster" and found["a"]["phase"] == "guard"
    missing = compared(a, Run(), phase="steady")
    assert "B has no phase steady: no phase is marked in it (tuimon record --phases ..)" in missing["not_comparable"][0]


def test_runs_without_a_step_are_no_pair_and_say_why() -> None:
    found = compared(Model(), Model())
    assert found["not_comparable"] == ["neither tells a step: no step was seen"]


def test_two_logs_are_compared_by_what_they_can_tell() -> None:
    """They tell no steps: nothing of a step's time, and no mechanism; but what was compiled, and for how long."""
    logs = []
    for took in (1.0, 4.0):
        why = "a TORCH_TRACE log tells of compilations only"
        none = ev.NotInFile(0, ("calls", "steps", "crossings"), why)
        logs.append(model_of([ev.TargetSeen(0, None, "x.log", None, "2.9", "file", 0.0), none, *compiled("0/0", 5_000, took)]))
    found = compared(*logs, kinds=("torch_trace", "torch_trace"))
    assert found["comparable"] and found["steps"]["verdict"] == "not known" and found["mechanisms"] == []
    assert "nothing is told of the time of a step: not in this file" in found["verdict"]
    assert [row["what"] for row in found["worse"]] == ["compile time"]


def test_a_recording_of_which_a_part_is_missing_is_told() -> None:
    broken = Run(seed=2).model()
    broken.apply([ev.RecordingGap(broken.now_ns, 1, 2, None, "damaged"), ev.NotAvailable(broken.now_ns, THE_END, "cut")])
    row = check(compared(Run(), broken), "whole")
    assert row["verdict"] == "not known" and row["b"] == "1 stretch missing, cut off at its end"


def test_calls_that_are_counted_on_another_host_are_not_taken_for_none() -> None:
    """Of a job whose steps come folded, nobody knows here how often a boundary is crossed."""
    folded = Run(boundary_us=900).model()
    folded.apply([ev.StepsFolded(folded.now_ns, "optimizer", "from the optimizer", ())])
    found = compared(folded, Run(boundary_us=900, seed=2))
    assert not any(row["kind"].startswith("boundary") for row in found["mechanisms"])


def test_what_is_compiled_in_a_phase_is_told_of_that_phase_alone() -> None:
    plan = (("initial", 0), ("steady", 1))
    found = compared(Run(phases=plan), Run(phases=plan, seed=2), phase="steady")
    assert found["compile_s"] == {"a": 0.0, "b": 0.0}  # it was compiled before the first step


def test_steps_in_which_samples_were_dropped_are_left_out_and_that_is_said() -> None:
    found = compared(model_of(training(60)), model_of(training(60)))
    assert found["not_comparable"] == [
        "A has 0 whole steps without a compilation, 20 are needed (samples were dropped in 60 others)"
    ]
