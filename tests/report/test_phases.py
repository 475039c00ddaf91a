"""Phases of an experiment: what is written on the command line, which steps belong to which, and what the report says."""

from __future__ import annotations

import pytest

from tests.report.compared import Run
from tests.report.jobs import MS, model_of, reported
from tuimon import events as ev
from tuimon.commands.phases import PhasePlan, Phases, phases
from tuimon.model import Model
from tuimon.report import render


def test_a_plan_is_names_with_steps_or_seconds() -> None:
    assert phases("initial=1, steady=200,guard=0.5s") == (
        PhasePlan("initial", 1, None), PhasePlan("steady", 200, None), PhasePlan("guard", None, 0.5),
    )  # fmt: skip
    assert [one.planned for one in phases("initial=1,steady=200,guard=30s")] == ["1 step", "200 steps", "30 s"]


@pytest.mark.parametrize(
    "text", ["", "steady", "steady=", "=5", "steady=0", "steady=-1", "steady=1.5", "steady=0s", "a=1,a=2", "a=1m", "a=1,,b=2"]
)
def test_what_is_none_is_refused_with_a_sentence(text: str) -> None:
    with pytest.raises(ValueError, match=r"\w \w"):
        phases(text)


def watched(run: Run, plan: str, every: int) -> Model:
    """The run, as a watcher sees it that looks after every so many steps and marks the phases then."""
    model, marker = Model(), Phases(phases(plan))
    waiting: list[ev.Event] = []
    steps = 0
    for event in run.events():
        waiting.append(event)
        steps += isinstance(event, ev.Samples)
        if not isinstance(event, ev.Samples) or steps % every == 0:
            model.apply(waiting)
            waiting.clear()
            model.apply(marker.marks(model))
    model.apply(waiting)
    model.apply(marker.marks(model))
    return model


@pytest.mark.parametrize("every", [1, 7, 50])
def test_a_step_belongs_to_the_phase_in_which_it_begins_however_late_the_mark_comes(every: int) -> None:
    model = watched(Run(steps=60), "initial=1,steady=30,guard=20", every)
    found = [(one.name, one.first_step, one.last_step, one.n) for one in model.phases.all]
    assert found == [("initial", 0, 0, 1), ("steady", 1, 30, 30), ("guard", 31, 50, 20)]
    assert model.phases.now is None  # the rest belongs to none


def test_seconds_are_those_of_the_job() -> None:
    model = watched(Run(steps=60, noise=0.0), "initial=1,steady=0.2s", 5)
    steady = model.phases.all[1]
    assert steady.end_ns is not None and (steady.end_ns - steady.begin_ns) / 1e9 == pytest.approx(0.2)
    assert steady.n == 20  # of 10.5 ms each: the one that straddles the end began in it


def test_a_job_that_ends_early_leaves_its_last_phase_open() -> None:
    model = watched(Run(steps=20), "initial=1,steady=500", 4)
    assert [(one.name, one.n, one.end_ns) for one in model.phases.all] == [
        ("initial", 1, model.phases.all[1].begin_ns), ("steady", 19, None),
    ]  # fmt: skip


def test_steps_that_are_counted_anew_begin_the_plan_anew() -> None:
    model, marker = Model(), Phases(phases("initial=1,steady=5"))
    model.apply(Run(steps=4).events()[:-2])
    model.apply(marker.marks(model))
    assert [one.name for one in model.phases.all] == ["initial", "steady"]
    mark = ev.InstrumentAdded(model.now_ns, 9, "mark", None, "step", "step", "", 0)
    at = model.now_ns
    rows = tuple((9, 0, 0, at + number * 10 * MS, at + number * 10 * MS) for number in range(1, 4))
    model.apply([mark, ev.Samples(rows[-1][4], rows)])
    assert model.steps.n < 4
    model.apply(marker.marks(model))
    assert [(one.name, one.first_step) for one in model.phases.all] == [("initial", 0), ("steady", 1)]
    assert sum(one.n for one in model.phases.all) <= model.steps.n


def test_the_report_tells_each_phase() -> None:
    report = reported(watched(Run(steps=60), "initial=1,steady=30,guard=20", 5))
    names = [(one["name"], one["planned"], one["n"]) for one in report["phases"]]
    assert names == [("initial", "1 step", 1), ("steady", "30 steps", 30), ("guard", "20 steps", 20)]
    steady = report["phases"][1]
    assert steady["p10"] <= steady["median"] <= steady["p90"] and steady["compile_s"] == 0.0
    assert "steady (30 steps planned): 30 steps (from step 1 to 30)" in render(report, "text")
    assert "## Phases" in render(report, "md") and "phases: a step belongs to" in render(report, "md")


def test_a_job_without_phases_has_none_and_says_nothing_of_them() -> None:
    report = reported(Run(steps=5).model())
    assert report["phases"] == [] and "Phases" not in render(report, "text")


def test_compilations_of_a_phase_are_its_own() -> None:
    events = Run(steps=40, phases=(("initial", 0), ("guard", 20))).events()
    at = next(event.t_ns for event in events if isinstance(event, ev.PhaseMarked) and event.name == "guard")
    began = at + 5 * MS
    late = [
        ev.GuardsFailed(began, "0/1", (("0/0", "size mismatch"),)),
        ev.CompileStarted(began, "0/1", 0, "forward", "/home/user/model.py", 12, "MainThread"),
        ev.CompileFinished(
            began + 3 * MS, "0/1", "forward", "forward", "/home/user/model.py", 12, "MainThread", began, 0.003, dynamo_s=0.003
        ),
    ]
    where = next(number for number, event in enumerate(events) if event.t_ns > began + 3 * MS and isinstance(event, ev.Samples))
    report = reported(model_of([*events[:where], *late, *events[where:]]))
    initial, guard = report["phases"]
    assert (guard["recompiles"], guard["compile_s"]) == (1, pytest.approx(0.003)) and initial["recompiles"] == 0
