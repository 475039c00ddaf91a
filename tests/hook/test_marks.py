"""Steps that the user has marked, without torch: by a call in the code, and by the name of a function."""

from __future__ import annotations

import os
import sys
import types
from collections.abc import Iterator
from typing import Any

import pytest

import tuimon
from tests.hook.test_loops import HEADS, Session
from tuimon.hook import marks
from tuimon.hook.loops import is_timed
from tuimon.hook.marks import Marks

JOB = """
def train_step(x):
    return x + 1

def train(n):
    for i in range(n):
        train_step(i)

def forward(x):
    return helper(x)

def helper(x):
    return x

class Trainer:
    def step(self):
        return self

    @staticmethod
    def other():
        return 5

number = 3
"""


@pytest.fixture
def hook() -> Iterator[Session]:
    made = Session()
    yield made
    made.here[0] = False
    assert made.undo.run() == []


@pytest.fixture
def job(monkeypatch: pytest.MonkeyPatch) -> types.ModuleType:
    module = types.ModuleType("the_job")
    exec(JOB, vars(module))
    monkeypatch.setitem(sys.modules, "the_job", module)
    return module


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> list[types.CodeType]:
    """What Dynamo has compiled."""
    found: list[types.CodeType] = []
    monkeypatch.setattr(marks, "_seen", lambda: found)
    monkeypatch.setattr(marks, "has_entries", lambda code: any(code is one for one in found))
    return found


def rows(hook: Session) -> list[str]:
    names = {added["number"]: added["role"] for added in hook.added}
    return [names[entry[0]] for entry in hook.outbox.queue if type(entry) is tuple and entry[3] == entry[4]]


def test_a_call_in_the_code_begins_a_step(hook: Session) -> None:
    tuimon.step()
    made = Marks(hook)
    made.watch()
    assert hook.added == [], "who never calls it is not bothered"
    tuimon.step()
    tuimon.step()
    made.watch()
    tuimon.step()
    assert rows(hook) == ["mark"] * 3
    hook.here[0] = False
    tuimon.step()
    assert rows(hook) == ["mark"] * 3
    assert hook.undo.run() == []
    assert tuimon._step is None
    tuimon.step()


def test_a_package_of_the_same_name_is_left_alone(hook: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    for other in (types.ModuleType("tuimon"), object(), None):
        monkeypatch.setitem(sys.modules, "tuimon", other)
        Marks(hook).watch()
    assert hook.outbox.queue == hook.outbox.queue.__class__()


@pytest.mark.parametrize("name", ["train_step", "Trainer.step"])
def test_each_call_of_a_function_that_is_named_begins_one(
    hook: Session, job: types.ModuleType, seen: list[types.CodeType], name: str
) -> None:
    seen.append(job.forward.__code__)
    made = Marks(hook, f"the_job:{name}")
    made.watch()
    original = vars(job.Trainer)["step"]
    job.train(4)
    for _ in range(4):
        job.Trainer().step()
    made.watch()
    assert rows(hook) == ["mark"] * 4
    assert hook.instruments["marked steps"] == "on"
    assert not is_timed(job.train_step.__code__), "or no look would be taken at what it calls"
    hook.here[0] = False
    assert hook.undo.run() == []
    assert vars(job)["train_step"].__code__.co_name == "train_step" and not hasattr(job.train_step, "__wrapped__")
    if HEADS:
        assert vars(job.Trainer)["step"] is original
    job.train(1)
    assert rows(hook) == ["mark"] * 4


def test_it_is_waited_for_until_it_is_there(hook: Session, job: types.ModuleType, seen: list[types.CodeType]) -> None:
    made = Marks(hook, "the_job:late")
    made.watch()
    assert hook.instruments["marked steps"] == "on: --step the_job:late: the_job has no late so far"
    exec("def late(): pass", vars(job))
    made.watch()
    job.late()
    assert rows(hook) == ["mark"]


def test_a_module_goes_by_what_the_job_calls_it(
    hook: Session, job: types.ModuleType, seen: list[types.CodeType], monkeypatch: pytest.MonkeyPatch
) -> None:
    package = types.ModuleType("package")
    package.alias = job  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "package", package)
    Marks(hook, "package.alias:train_step").watch()
    job.train(2)
    assert rows(hook) == ["mark"] * 2
    assert marks.resolve("os.path:join") == (os.path, os.path.join, "")


@pytest.mark.parametrize(
    ("wanted", "missing"),
    [
        ("nowhere:step", "there is no module nowhere in the job yet"),
        ("nowhere.at.all:step", "there is no module nowhere.at.all in the job yet"),
        ("os.nowhere.at:step", "there is no module os.nowhere in the job yet"),
        ("the_job:stpe", "the_job has no stpe so far"),
        ("the_job:Trianer.step", "the_job has no Trianer so far"),
        ("the_job:Trainer.stpe", "the_job:Trainer has no stpe so far"),
        ("the_job:number.step.more", "the_job:number has no step so far"),
    ],
)
def test_what_is_not_found_is_named(hook: Session, job: types.ModuleType, wanted: str, missing: str) -> None:
    made = Marks(hook, wanted)
    made.watch()
    assert hook.instruments["marked steps"] == f"on: --step {wanted}: {missing}"
    assert hook.gaps == []


def test_what_is_missing_is_told_anew_when_it_is_something_else(
    hook: Session, job: types.ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = Marks(hook, "soon:Loop.step")
    made.watch()
    monkeypatch.setitem(sys.modules, "soon", types.ModuleType("soon"))
    made.watch()
    assert hook.instruments["marked steps"] == "on: --step soon:Loop.step: soon has no Loop so far"


def test_a_script_goes_by_its_name_too(hook: Session, job: types.ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    job.__file__ = "/some/where/train.py"
    monkeypatch.setitem(sys.modules, "__main__", job)
    Marks(hook, "train:train_step").watch()
    job.train(2)
    assert rows(hook) == ["mark"] * 2


@pytest.mark.parametrize("name", ["number", "Trainer"])
def test_what_is_no_function_is_refused_by_name(hook: Session, job: types.ModuleType, name: str) -> None:
    Marks(hook, f"the_job:{name}").watch()
    ((what, why),) = hook.gaps
    assert what == "steps.marked" and why.startswith(f"the_job:{name} is no function")
    assert hook.instruments["marked steps"] == why


def test_what_is_compiled_itself_is_refused(hook: Session, job: types.ModuleType, seen: list[types.CodeType]) -> None:
    seen.append(job.train_step.__code__)
    Marks(hook, "the_job:train_step").watch()
    assert "is compiled itself" in hook.gaps[0][1]
    vars(job)["whole"] = made = lambda: None
    made._torchdynamo_orig_callable = job.helper  # type: ignore[attr-defined]
    Marks(hook, "the_job:whole").watch()
    assert "is compiled itself" in hook.gaps[1][1]


@pytest.mark.parametrize("before", [True, False])
def test_where_a_compiled_frame_may_call_it_nothing_is_replaced(
    hook: Session, job: types.ModuleType, seen: list[types.CodeType], before: bool
) -> None:
    original: Any = job.helper
    if before:
        seen.append(job.forward.__code__)
    made = Marks(hook, "the_job:helper")
    made.watch()
    assert (job.helper is original) is (HEADS or before)
    seen.append(job.forward.__code__)  # Dynamo is about to compile it
    made.watch()
    assert job.helper is original
    assert bool(hook.gaps) is not HEADS
    if hook.gaps:
        assert hook.gaps[0][1].startswith("the_job:helper may be called by a function that is compiled")
    job.forward(1)
    assert rows(hook) == (["mark"] if HEADS else [])


def test_who_may_call_it_is_found_among_its_neighbours(job: types.ModuleType) -> None:
    names, codes = marks.callers(job.train_step, "train_step")
    assert names == {"train_step", "train"} and len(codes) == 2
