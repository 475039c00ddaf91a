"""Which processes of real torch families are jobs: loader workers, spawned ranks, torchrun, compile workers."""

from __future__ import annotations

import importlib.util
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tuimon.attach import procfs
from tuimon.attach.find.choice import choose
from tuimon.attach.find.process import Target, find_targets
from tuimon.attach.refusal import Refused

from .conftest import needs_tracing, until

pytestmark = [
    needs_tracing,
    pytest.mark.live,
    pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="needs torch"),
]
PROGRAM = str(Path(__file__).with_name("family_program.py"))
STARTS = 120.0

TORCHRUN = ["-m", "torch.distributed.run", "--nproc-per-node", "2", "--rdzv-backend", "c10d", "--rdzv-id", "nightly"]
FAMILIES = {
    "fork": [],
    "spawn": [],
    "forkserver": [],
    "ranks": [],
    "rank": [*TORCHRUN, "--rdzv-endpoint", "127.0.0.1:0"],
    "compile": [],
}

Family = Callable[[str, str, int], list[Target]]


@pytest.fixture(scope="module")
def family(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Family]:
    """family(kind, name, count) gives a family's targets once `count` processes of it have said `name`; all start at once."""
    directory = tmp_path_factory.mktemp("families")
    environment = {
        **os.environ, "FAMILY_READY": str(directory), "OMP_NUM_THREADS": "1", "TORCHINDUCTOR_CACHE_DIR": str(directory),
    }  # fmt: skip
    running = {}
    for kind, launcher in FAMILIES.items():
        (directory / kind).mkdir()
        command = [sys.executable, *launcher, PROGRAM, kind]
        with open(directory / f"{kind}.errors", "wb") as errors:
            running[kind] = subprocess.Popen(command, env=environment, start_new_session=True, stdout=errors, stderr=errors)

    def up(kind: str, name: str, count: int) -> list[Target]:
        process = running[kind]
        until(lambda: len(list((directory / kind).glob(f"{name}.*"))) >= count or process.poll() is not None, STARTS)
        assert process.poll() is None, (directory / f"{kind}.errors").read_text()
        return members(process.pid)

    yield up
    for process in running.values():
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    for target in find_targets(everything=True):
        if str(directory) in procfs.environment(target.pid).get("FAMILY_READY", ""):
            os.kill(target.pid, signal.SIGKILL)  # torchrun's ranks have a session of their own


def members(pid: int) -> list[Target]:
    """The targets of a family, its head first."""
    return [target for target in find_targets(everything=True) if target.pid == pid or pid in procfs.ancestors(target.pid)]


def kinds(targets: list[Target]) -> list[str]:
    """The kinds, the head's apart, in alphabetical order."""
    return [targets[0].kind, *sorted(target.kind for target in targets[1:])]


@pytest.mark.parametrize(
    ("method", "expected"),
    [
        ("fork", ["job", "loader worker", "loader worker"]),
        ("spawn", ["job", "loader worker", "loader worker", "worker"]),
        ("forkserver", ["job", "loader worker", "loader worker", "worker", "worker"]),
    ],
)
def test_loader_workers_are_no_targets(family: Family, method: str, expected: list[str]) -> None:
    targets = family(method, "loader", 2)
    job = targets[0]
    assert kinds(targets) == expected
    assert [target.pid for target in find_targets() if target.pid in {one.pid for one in targets}] == [job.pid]
    assert [target.pid for target in choose([job.pid], False)] == [job.pid]
    worker = next(target for target in targets if target.kind == "loader worker")
    assert worker.parent == job.pid and not worker.attachable
    with pytest.raises(Refused) as refused:
        choose([worker.pid], False)
    assert refused.value.code == "loader-worker" and f"tuimon attach {job.pid}" in refused.value.sentence


def test_spawned_ranks_are_jobs_and_their_parent_is_none(family: Family) -> None:
    parent = family("ranks", "rank", 2)[0].pid
    # the parent joins its ranks from the moment on in which the last of them has been started
    until(lambda: members(parent)[0].kind == "launcher", STARTS)
    targets = members(parent)
    ranks = [target for target in targets if target.kind == "job"]
    assert kinds(targets) == ["launcher", "job", "job", "worker"]
    assert all(target.attachable and target.parent == parent and target.rank is None for target in ranks)
    assert {target.pid for target in choose([parent], False)} == {target.pid for target in ranks}
    assert not {parent} & {target.pid for target in choose([], True)}


def test_torchrun_is_the_launcher_of_its_ranks(family: Family) -> None:
    targets = family("rank", "rank", 2)
    parent, *ranks = targets
    assert kinds(targets) == ["launcher", "job", "job"]
    assert [(target.rank, target.local_rank, target.world_size, target.job) for target in ranks] == [
        (0, 0, 2, "nightly"),
        (1, 1, 2, "nightly"),
    ]
    assert (parent.rank, parent.world_size, parent.code) == (None, None, "launcher")
    assert [target.pid for target in choose([parent.pid], False)] == [target.pid for target in ranks]
    assert [target.pid for target in choose([ranks[1].pid, ranks[0].pid], False)] == [target.pid for target in ranks]


def test_compile_workers_are_no_targets(family: Family) -> None:
    targets = family("compile", "compile", 1)
    job = targets[0]
    assert job.kind == "job"
    workers = [target for target in targets if target.kind == "compile worker"]
    assert len(workers) >= 2 and len(workers) == len(targets) - 1  # one that leads, and those that it forks
    with pytest.raises(Refused) as refused:
        choose([workers[-1].pid], False)
    assert refused.value.code == "compile-worker"
