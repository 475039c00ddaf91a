"""Attaching to real torch programs from outside: results stay the same to the bit, Dynamo notices nothing.

The long versions are commands: `python -m tests.attach.cycles`, and so `kills` and `matrix`.
"""

from __future__ import annotations

import sys

import pytest

from tests.attach import cycles, kills
from tests.attach.conftest import CYCLES, needs_tracing, until
from tests.attach.matrix_pythons import describe
from tests.attach.matrix_target import TORCH, Running, start
from tuimon.attach.find.process import find_targets
from tuimon.attach.session import attach

pytestmark = [pytest.mark.live, needs_tracing]


@pytest.fixture(scope="module")
def training() -> Running:
    """A compiled training run, for the tests that do not end it."""
    python = describe(sys.executable)
    assert python is not None
    with start(python, TORCH, "training", "aot_eager") as target:
        yield target


def test_results_counters_and_surroundings_are_those_of_a_run_alone(capsys: pytest.CaptureFixture[str]) -> None:
    status = cycles.run(cycles.arguments(["--cycles", str(CYCLES), "--backend", "aot_eager", "--steps", "5", "--growth", "50"]))
    assert status == 0, capsys.readouterr().out


def test_killed_tuimon_or_helper_leaves_the_job_as_it_was(capsys: pytest.CaptureFixture[str]) -> None:
    # by this seed tuimon, the helper, and both at once
    status = kills.run(kills.arguments(["--attaching", "5", "--streaming", "2", "--gone-within", "60", "--seed", "2"]))
    assert status == 0, capsys.readouterr().out


def test_numbers_come(training: Running) -> None:
    session = attach(training.pid, {})
    kinds: list[int] = []
    session.start(lambda kind, body: kinds.append(kind), lambda reason: None)
    until(lambda: 2 in kinds)  # samples
    assert session.detach() is not None


def test_list_shows_it(training: Running) -> None:
    target = next(target for target in find_targets() if target.pid == training.pid)
    assert target.has_torch and target.attachable and target.kind == "job"
