"""The list of processes."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tuimon.attach import process
from tuimon.attach.process import find_targets

from .conftest import Start, needs_tracing, until

pytestmark = needs_tracing


def entry(pid: int) -> process.Target:
    """The list's entry for a process."""
    found = [target for target in find_targets(everything=True) if target.pid == pid]
    assert len(found) == 1
    return found[0]


def test_what_it_says_of_a_program(start: Start) -> None:
    program = start("sleeping", environment={"RANK": "3", "WORLD_SIZE": "8"})
    target = entry(program.pid)
    assert (target.kind, target.rank, target.world_size) == ("job", 3, 8)
    assert target.attachable and target.how == "injected" and target.why is None
    assert target.python == "{}.{}".format(*sys.version_info)
    assert target.has_torch is False
    assert "sleeping" in target.command
    assert 0 <= target.age < 300
    assert program.pid not in [target.pid for target in find_targets()]  # no torch in it


def test_not_us_and_not_what_is_ours() -> None:
    assert os.getpid() not in [target.pid for target in find_targets(everything=True)]
    assert process._is_tuimon(["python", "-m", "tuimon", "attach", "1"])
    assert process._is_tuimon(["/usr/bin/python3", "/usr/local/bin/tuimon", "list"])
    assert process._is_tuimon(["python", "-I", "-S", "-c", "from tuimon.attach.helper import main"])
    assert not process._is_tuimon(["python", "train.py", "--monitor", "tuimon"])


def test_stopped_program_says_what_to_do(start: Start) -> None:
    import signal

    program = start("busy")
    os.kill(program.pid, signal.SIGSTOP)
    until(lambda: entry(program.pid).code == "stopped")
    target = entry(program.pid)
    assert not target.attachable and target.how is None
    assert target.why is not None and "kill -CONT" in target.why


def test_worker_with_its_parents_command_line() -> None:
    script = "import os, time\nif os.fork() == 0:\n    print(os.getpid(), flush=True)\ntime.sleep(600)\n"
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        try:
            assert entry(parent.pid).kind == "job"
            assert entry(child).kind == "worker"
        finally:
            os.kill(child, 9)
            parent.kill()


@pytest.mark.parametrize(("text", "number"), [("0", 0), ("12", 12), ("", None), ("x", None), (None, None), ("-1", None)])
def test_numbers_in_the_environment(text: str | None, number: int | None) -> None:
    assert process._number(text) == number
