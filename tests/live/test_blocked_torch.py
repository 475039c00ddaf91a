"""Attaching to torch programs whose main thread does not come back to Python for long: the hook gets in beside it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.attach.conftest import DUMMY_SESSION, needs_tracing, until
from tuimon.attach import procfs
from tuimon.attach.session import attach

pytest.importorskip("torch")
pytestmark = needs_tracing
HOOK = Path(__file__).resolve().parents[2] / "tuimon" / "hook"
SOURCES = {"session": DUMMY_SESSION, **{name: (HOOK / f"{name}.py").read_text("utf-8") for name in ("wire", "remains")}}
"""A hook that does nothing but answer."""

COLLECTIVE = """
import os, sys, time, torch, torch.distributed as dist
folder, rank = sys.argv[1], int(sys.argv[2])
torch.set_num_threads(1)
dist.init_process_group("gloo", init_method="file://" + folder + "/meet", rank=rank, world_size=2)
total = torch.ones(4)
dist.all_reduce(total)
if rank == 1:
    while not os.path.exists(folder + "/go"): time.sleep(0.05)
else:
    open(folder + "/blocks", "w").close()
dist.all_reduce(total)
assert total.tolist() == [4.0] * 4
open(folder + "/done%d" % rank, "w").write(str("_tuimon_hook" in sys.modules))
time.sleep(600)
"""

PRODUCT = """
import sys, threading, time, torch
folder = sys.argv[1]
torch.set_num_threads(1)
threading.Thread(target=threading.Event().wait, daemon=True).start()
a = torch.rand(1024, 1024)
a @ a
begin = time.perf_counter(); a @ a; once = time.perf_counter() - begin
size = min(8000, int(1024 * (6 / once) ** (1 / 3)))
a = torch.rand(size, size)
open(folder + "/blocks", "w").close()
b = a @ a
open(folder + "/done0", "w").write(str(tuple(b.shape)))
time.sleep(600)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A directory for the programs' marks."""
    return tmp_path


@pytest.fixture
def running() -> Iterator[list[subprocess.Popen[bytes]]]:
    """Processes, killed at the end."""
    processes: list[subprocess.Popen[bytes]] = []
    yield processes
    for process in processes:
        process.kill()
        process.wait()


def begin(running: list[subprocess.Popen[bytes]], text: str, *arguments: str) -> int:
    """Start a program; gives its pid."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"}
    running.append(subprocess.Popen([sys.executable, "-c", text, *arguments], env=environment))
    return running[-1].pid


def test_main_thread_that_waits_in_a_collective(folder: Path, running: list[subprocess.Popen[bytes]]) -> None:
    pid = begin(running, COLLECTIVE, str(folder), "0")
    begin(running, COLLECTIVE, str(folder), "1")
    until((folder / "blocks").exists, 300)
    until(lambda: (procfs.thread_call(pid, pid) or procfs.ThreadCall(0, None, (), 0, 0)).number is not None)
    session = attach(pid, {}, sources=SOURCES)
    assert session.mechanism == "thread"
    assert not (folder / "done0").exists()  # it is still in there
    goodbye = session.detach()
    assert goodbye is not None and goodbye["left"] == []
    (folder / "go").touch()
    until(lambda: (folder / "done0").exists() and (folder / "done1").exists(), 60)


def test_main_thread_in_a_long_matrix_product(folder: Path, running: list[subprocess.Popen[bytes]]) -> None:
    pid = begin(running, PRODUCT, str(folder))
    until((folder / "blocks").exists, 300)
    session = attach(pid, {}, sources=SOURCES)
    assert (folder / "done0").exists() or session.mechanism == "thread"
    assert session.detach() is not None
    until((folder / "done0").exists, 300)
