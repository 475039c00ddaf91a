"""Joined at a random moment, a job has its steps right from the first whole one on; at length: `tests.bench.attach_steps`."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.bench.attach_steps import JOB, KINDS, attached
from tests.support.command import environment

pytestmark = pytest.mark.live
pytest.importorskip("torch")


@pytest.mark.parametrize("kind", ["optimizer", "backward"])
def test_steps_after_an_attach_have_their_index_and_their_cause(kind: str) -> None:
    found = attached(kind, 5.0, sys.executable, seed=1)
    assert found.source == KINDS[kind] and found.before is not None and found.misplaced == []
    assert found.wrong == []


def test_the_job_does_not_end_before_it_has_been_joined() -> None:
    command = [sys.executable, str(JOB), "0", "calls"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment()) as process:
        assert process.stdin is not None and process.stdout is not None
        assert process.stdout.readline() == "begins\n"  # however long it has compiled
        assert process.poll() is None
        process.stdin.close()
        assert '"middles"' in process.stdout.readline()
    assert process.returncode == 0
