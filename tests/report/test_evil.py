"""A hostile job in all that is written of it: traces, tables, Prometheus, reports. None of it acts on who looks at it."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable
from io import StringIO

import pytest

from tests.report.jobs import model_of, training
from tests.report.test_export import checked
from tests.report.test_export_prometheus import parsed, watched
from tests.support.evil import evil, hostile, moves
from tests.support.gpu_scenes import MACHINES
from tests.support.scenes import WHOLE
from tuimon import events as ev
from tuimon.commands.watch import progress
from tuimon.model import Model
from tuimon.report import build, render
from tuimon.report.perfetto import Perfetto
from tuimon.report.prometheus import exposition
from tuimon.report.seen import begin_of
from tuimon.report.series import Series

FORMULA = re.compile(r"\s*[=+\-@\t]")


def scene(name: str) -> Callable[[], list[ev.Event]]:
    """The events of one that is a single job."""

    def events() -> list[ev.Event]:
        made = WHOLE[name]()
        assert isinstance(made, list)
        return made

    return events


SCENES: dict[str, Callable[[], list[ev.Event]]] = {
    "training": lambda: training(20),
    "gpus": MACHINES["eight"],
    **{name: scene(name) for name in ("busy", "slow", "awkward", "before-attach", "h100", "ended")},
}


@pytest.fixture(params=SCENES)
def job(request: pytest.FixtureRequest) -> tuple[list[ev.Event], list[ev.Event]]:
    """(the events of a job, those of the same job with hostile texts)."""
    events = SCENES[request.param]()
    return events, [hostile(event) for event in events]


def trace(events: list[ev.Event], label: str) -> str:
    """As `export --to perfetto` writes it."""
    out, model = StringIO(), Model()
    written = Perfetto(out)
    _, zero, _ = begin_of([events])
    member = written.member(0, label, model, zero or 0)
    member.take(events)
    model.apply(events)
    member.fed()
    member.close()
    written.close()
    return out.getvalue()


def table(events: list[ev.Event], label: str) -> str:
    """As `export --to csv` writes it."""
    out, model = StringIO(), Model()
    _, zero, wall = begin_of([events])
    member = Series(out).member(label, model, zero or 0, wall)
    member.take(events)
    model.apply(events)
    member.fed()
    member.close()
    return out.getvalue()


def test_a_trace(job: tuple[list[ev.Event], list[ev.Event]]) -> None:
    usual, other = (trace(events, label) for events, label in zip(job, ("job", evil("job")), strict=True))
    assert other.isascii() and not moves(other)
    assert {event["ph"] for event in checked(other)} == {event["ph"] for event in checked(usual)}
    assert json.loads(other).keys() == json.loads(usual).keys()


def test_a_table(job: tuple[list[ev.Event], list[ev.Event]]) -> None:
    usual, other = (table(events, label) for events, label in zip(job, ("job", evil("job")), strict=True))
    assert not moves(other)
    assert other.count("\n") == usual.count("\n")  # no line end in a cell: what reads lines reads rows
    rows, before = (list(csv.reader(StringIO(text, newline=""))) for text in (other, usual))
    assert [len(row) for row in rows] == [len(row) for row in before]
    texts = [cell for row in rows for cell in row if not re.fullmatch(r"-?[\d.e+-]+", cell)]
    assert not [cell for cell in texts if FORMULA.match(cell)]


def test_a_scrape(job: tuple[list[ev.Event], list[ev.Event]]) -> None:
    usual, other = (exposition([watched(model_of(events))]) for events in job)
    assert not moves(other)
    assert {name for name, _ in parsed(other)[1]} == {name for name, _ in parsed(usual)[1]}


@pytest.mark.parametrize("form", ["text", "md", "json"])
def test_a_report(job: tuple[list[ev.Event], list[ev.Event]], form: str) -> None:
    usual, other = (render(build(model_of(events)), form) for events in job)
    assert not moves(other)
    if form == "text":
        assert len(other.splitlines()) >= len(usual.splitlines()) * 0.9
    if form == "json":
        assert json.loads(other).keys() == json.loads(usual).keys()


def test_what_is_said_meanwhile(job: tuple[list[ev.Event], list[ev.Event]]) -> None:
    assert not moves(progress(model_of(job[1])))
