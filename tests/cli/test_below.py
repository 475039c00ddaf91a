"""What is said of processes that a program under `tuimon run` has started."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from types import SimpleNamespace

import pytest

from tests.attach.conftest import until
from tuimon.attach.find.process import find_targets
from tuimon.commands import below
from tuimon.model import Model


@pytest.fixture
def said(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What was said."""
    found: list[str] = []
    monkeypatch.setattr(below, "say", found.append)
    monkeypatch.setattr(below, "OFTEN_S", 0.01)
    monkeypatch.setattr(below, "LASTING_S", 0.05)
    return found


def looks(monkeypatch: pytest.MonkeyPatch, *every: dict[int, bool], then: dict[int, bool]) -> Callable[[], bool]:
    """Jobs below, and whether they have torch, at one look after the other. Gives whether three more were taken."""
    coming = [*every, *[then] * 3]
    names: Iterator[int] = iter(range(10**9))

    def targets(*, everything: bool) -> list[SimpleNamespace]:
        now = coming.pop(0) if coming else then
        command = str(next(names)) if now is not then else "rank"
        return [SimpleNamespace(pid=pid, kind="job", has_torch=torch, command=[command]) for pid, torch in now.items()]

    monkeypatch.setattr(below, "find_targets", targets)
    monkeypatch.setattr(below, "_below", lambda _: {7, 8, next(names)})  # a new one each time: it is looked again
    return lambda: not coming


def test_ranks_are_told_with_their_number(monkeypatch: pytest.MonkeyPatch, said: list[str]) -> None:
    looks(monkeypatch, {}, {7: True}, then={7: True, 8: True})
    with below.Below(Model(), 1):
        until(lambda: said)
    assert said[0].startswith("the program has started 2 that run torch themselves") and len(said) == 1


@pytest.mark.parametrize(
    ("every", "then"),
    [([], {7: False}), ([{7: True}] * 3, {}), ([{7: True}] * 3, {7: False})],
    ids=["without-torch", "gone", "before-its-exec"],
)
def test_what_runs_no_torch_of_its_own_is_not_told(
    monkeypatch: pytest.MonkeyPatch, said: list[str], every: list[dict[int, bool]], then: dict[int, bool]
) -> None:
    over = looks(monkeypatch, *every, then=then)
    model = Model()
    with below.Below(model, 1):
        until(over)
    assert not said and not model.coverage.not_available


def test_a_plain_python_program_has_no_torch() -> None:
    with subprocess.Popen([sys.executable, "-S", "-c", "input()"], stdin=subprocess.PIPE) as child:
        until(lambda: any(one.pid == child.pid and one.has_torch is False for one in find_targets(everything=True)))
        assert child.stdin is not None
        child.stdin.close()
