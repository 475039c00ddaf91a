"""Which jobs a pid stands for. The families of real torch programs are in test_family."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace

import pytest

from tuimon.attach.find import choice, process
from tuimon.attach.find.choice import choose
from tuimon.attach.find.process import Target
from tuimon.attach.refusal import Refused

from .conftest import Start, needs_tracing

pytestmark = needs_tracing

BASE = Target(
    pid=0, kind="job", parent=None, rank=None, local_rank=None, world_size=None, job=None, user="ann", started=1.0, age=3.0,
    command=["python", "train.py"], python="3.11", has_torch=True, gpus=[], container=None, attachable=True, how="injected",
    code=None, why=None,
)  # fmt: skip
LAUNCHER = replace(BASE, pid=10, kind="launcher", attachable=False, code="launcher", why="process 10 only starts others")
RANKS = [replace(BASE, pid=pid, parent=10, rank=rank, world_size=2) for pid, rank in ((12, 1), (11, 0))]
LOADER = replace(
    BASE, pid=13, parent=11, kind="loader worker", rank=0, attachable=False, code="loader-worker", why="process 13 .."
)  # fmt: skip
COMPILER = replace(BASE, pid=14, parent=11, kind="compile worker", attachable=False, code="compile-worker", why="process 14 ..")
WORKER = replace(BASE, pid=15, parent=11, kind="worker")
NOTEBOOK = replace(BASE, pid=20, started=5.0)
OTHERS = replace(BASE, pid=21, has_torch=None, attachable=False, code="uid", why="process 21 belongs to bob")
PLAIN = replace(BASE, pid=22, has_torch=False)
ALL = [LAUNCHER, *RANKS, LOADER, COMPILER, WORKER, NOTEBOOK, OTHERS, PLAIN]
ABOVE = {11: [10, 1], 12: [10, 1], 13: [11, 10, 1], 14: [11, 10, 1], 15: [11, 10, 1], 20: [2, 1], 21: [2, 1], 22: [2, 1]}


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine with these processes; 1 and 2 are no Python programs."""
    monkeypatch.setattr(choice, "find_targets", lambda *, everything: list(ALL) if everything else [])
    monkeypatch.setattr(choice.procfs, "ancestors", lambda pid: iter(ABOVE.get(pid, [])))


def pids(targets: list[Target]) -> list[int]:
    return [target.pid for target in targets]


@pytest.mark.usefixtures("machine")
@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ([11], [11]),
        ([12, 11], [11, 12]),  # by rank, not as they were given
        ([10], [11, 12]),  # the launcher stands for its ranks
        ([10, 11, 11], [11, 12]),
        ([1], [11, 12, 21, 20]),  # a shell's pid for all jobs below it, also those that will be refused
        ([2], [21, 20]),  # without ranks by start
        ([15], [15]),  # a worker, if somebody means it
        ([21], [21]),
        ([22], [22]),  # no torch yet
        ([20, 11], [11, 20]),
    ],
)
def test_pids(given: list[int], meant: list[int]) -> None:
    assert pids(choose(given, False)) == meant


@pytest.mark.usefixtures("machine")
def test_everybody() -> None:
    assert pids(choose([], True)) == [11, 12, 20]
    assert pids(choose([10], True)) == [11, 12]


@pytest.mark.usefixtures("machine")
@pytest.mark.parametrize(("pid", "code"), [(13, "loader-worker"), (14, "compile-worker")])
def test_what_serves_a_job_is_refused_by_name(pid: int, code: str) -> None:
    with pytest.raises(Refused) as refused:
        choose([11, pid], False)
    assert refused.value.code == code and f"process {pid}" in refused.value.sentence


@pytest.mark.parametrize(
    ("targets", "words"),
    [([], "no process here has PyTorch"), ([OTHERS], "belongs to bob"), ([PLAIN, LAUNCHER], "no process here has PyTorch")],
)
def test_nobody_to_attach_to(monkeypatch: pytest.MonkeyPatch, targets: list[Target], words: str) -> None:
    monkeypatch.setattr(choice, "find_targets", lambda *, everything: list(targets))
    with pytest.raises(Refused) as refused:
        choose([], True)
    assert refused.value.code == "no-job" and words in refused.value.sentence


def test_launcher_without_ranks_yet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choice, "find_targets", lambda *, everything: [LAUNCHER])
    with pytest.raises(Refused) as refused:
        choose([10], False)
    assert refused.value.code == "no-job"


def test_no_pid_is_clear_only_with_a_single_job(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choice, "find_targets", lambda *, everything: [NOTEBOOK, OTHERS])
    assert pids(choose([], False)) == [20]
    monkeypatch.setattr(choice, "find_targets", lambda *, everything: list(ALL))
    with pytest.raises(Refused) as refused:
        choose([], False)
    assert refused.value.code == "no-job" and "--all" in refused.value.sentence


def test_launcher_stands_for_jobs_only_where_one_can_be_attached_to() -> None:
    denied = [replace(rank, attachable=False, code="uid", why=f"process {rank.pid} belongs to bob") for rank in RANKS]
    found = process._without_jobs(LAUNCHER, [LAUNCHER, *denied])
    assert found.code == "no-job" and "process 12 belongs to bob" in (found.why or "")
    assert process._without_jobs(LAUNCHER, [LAUNCHER, denied[0], RANKS[1]]) is LAUNCHER


# ------------------------------------------------------------------------------------------------- with real processes


def test_real_program(start: Start) -> None:
    program = start("sleeping")
    assert pids(choose([program.pid], False)) == [program.pid]
    assert choose([program.pid], False)[0].attachable


@pytest.mark.parametrize(
    ("command", "code"), [(["sleep", "600"], "not-python"), ([sys.executable, "-c", "import os; os._exit(0)"], "dead")]
)
def test_real_strangers(command: list[str], code: str) -> None:
    with subprocess.Popen(command) as process:
        if code == "dead":
            process.wait()
        try:
            with pytest.raises(Refused) as refused:
                choose([process.pid], False)
            assert refused.value.code == code
        finally:
            process.kill()


def test_ourselves() -> None:
    with pytest.raises(Refused) as refused:
        choose([os.getpid()], False)
    assert refused.value.code == "self"
