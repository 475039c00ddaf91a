"""The matrix and the fork test in short, and what their commands rest on."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from . import forkhang, matrix
from .conftest import needs_tracing
from .matrix_cells import FORMS, KINDS, Kind, Result, Settings, forms_for, kinds_for, milliseconds, spread, try_cell
from .matrix_pythons import Interpreter, describe, discover, split_specifications
from .matrix_target import start

CHEAP = ["running", "sleeping", "epoll in C", "checksum"]


@pytest.fixture(scope="module")
def own() -> Interpreter:
    """The Python that runs this."""
    python = describe(sys.executable)
    assert python is not None
    return python


@needs_tracing
@pytest.mark.parametrize("name", CHEAP)
def test_each_form_works_or_is_refused_by_name(own: Interpreter, name: str) -> None:
    kind = next(kind for kind in KINDS if kind.name == name)
    with start(own, kind.program, kind.mode) as target:
        for form in forms_for(own):
            result = try_cell(own, kind, form, target, Settings(attaches=3), lambda _text: None)
            assert result.verdict == "ok"
            must_refuse, _ = kind.may_be_refused(form)
            assert result.attached == (0 if must_refuse else 3)


@needs_tracing
@pytest.mark.parametrize("form", forkhang.FORMS)
def test_no_child_of_a_forking_program_hangs(own: Interpreter, form: str) -> None:
    found = forkhang.one_run(own, form, attaches=40, whole=False, seconds=30.0)
    assert (found.hung, found.wrong, found.refused) == (0, "", {})
    assert found.attached and found.rounds


def test_what_has_to_come_of_a_cell() -> None:
    named = {kind.name: kind for kind in KINDS}
    assert len(named) == len(KINDS)
    for kind in KINDS:
        assert kind.may_be_refused("ladder") == (False, False)  # the ladder gets in everywhere
    assert named["sleeping"].may_be_refused("pending") == (True, True)
    assert named["sleeping"].may_be_refused("thread") == (False, False)
    assert named["running"].may_be_refused("thread") == (True, True)
    assert named["forking"].may_be_refused("thread") == (False, True)
    assert named["lock"].may_be_refused("remote_exec") == (True, True)


def a_python(version: tuple[int, int, int], torch: bool = False) -> Interpreter:
    return Interpreter(f"/{version}", "/", version, torch, torch, False, "")


def test_only_what_a_python_can_do_is_tried() -> None:
    old, new = a_python((3, 10, 1)), a_python((3, 14, 0), torch=True)
    assert "remote_exec" not in forms_for(old) and "remote_exec" in forms_for(new)
    assert not any(kind.needs_torch for kind in kinds_for(old))
    assert kinds_for(new) == KINDS


def test_breadth_comes_first() -> None:
    pythons = [a_python((3, 10, 1)), a_python((3, 11, 1), torch=True), a_python((3, 12, 1), torch=True)]
    order = list(matrix.breadth_first(pythons, []))
    assert [python for python, _ in order[:3]] == pythons
    assert len({kind.name for _, kind in order[:3]}) == 3
    assert len(order) == len(set(order)) == sum(len(kinds_for(python)) for python in pythons)


def test_pythons_are_named_by_path_or_with_their_root(own: Interpreter) -> None:
    assert split_specifications("/a/python:chroot:/root:/b/python::/c/python") == [
        "/a/python",
        "chroot:/root:/b/python",
        "/c/python",
    ]
    assert discover([sys.executable, sys.executable]) == [own]
    assert own.version == sys.version_info[:3]
    assert describe("/bin/true") is None
    assert describe("/there/is/none") is None


def test_a_run_goes_on_where_the_last_one_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file, tried = tmp_path / "cells.json", []

    def pretend(python: Interpreter, kind: Kind, forms: list[str], settings: Settings, deadline: float) -> list[Result]:
        tried.extend((python.label, kind.name, form) for form in forms)
        done = [Result(python.label, python.executable, kind.name, form, settings.attaches) for form in forms]
        for result in done:
            result.tried = result.attached = settings.attaches
            result.acks = [0.01]
            result.wrong = "as asked" if kind.name == "lock" and len(tried) < 60 else ""
        return done

    monkeypatch.setattr(matrix, "try_kind", pretend)
    monkeypatch.setattr(matrix, "discover", lambda _named: [a_python((3, 12, 1))])

    def again(*words: str) -> int:
        tried.clear()
        return matrix.run(matrix.arguments(["--json", str(file), "--attaches", "7", *words]))

    assert again() == 1  # one failed
    assert len(tried) == 3 * len(kinds_for(a_python((3, 12, 1))))
    assert again("--targets", "running") == 1 and tried == []
    assert again("--attaches", "9", "--targets", "running") == 1 and len(tried) == 3  # more of them are wanted now
    again()
    assert {name for _, name, _ in tried} == {"lock"}


def test_figures() -> None:
    assert spread([]) is None and milliseconds([]) == "-"
    assert spread([0.003, 0.001, 0.002]) == (0.002, 0.003, 0.003)
    assert milliseconds([0.001, 0.001, 0.2]) == "1.00 / 200 / 200"
    assert set(FORMS) >= set(forkhang.FORMS)
