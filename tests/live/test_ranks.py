"""Two ranks of a real job (gloo, on the CPU), attached to at once: who is late, who waits for whom, whose compiling."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.support.command import TUIMON, start, until

torch = pytest.importorskip("torch")
pytestmark = [
    pytest.mark.live,
    pytest.mark.skipif(not torch.distributed.is_available(), reason="this torch has no torch.distributed"),
]

TORCHRUN = (
    "-m", "torch.distributed.run", "--nproc-per-node", "2", "--rdzv-backend", "c10d", "--rdzv-endpoint", "127.0.0.1:0",
)  # fmt: skip

LOOP = """\
import os, sys, time
import torch, torch.distributed as dist

def slowly(graph, inputs):
    time.sleep(0.25)
    return graph

def loop(rank, steps):
    torch.set_num_threads(1)
    f = torch.compile(lambda w, x: (x @ w).relu().mean(), backend=slowly, dynamic=False)
    w = torch.ones(16, 16, requires_grad=True)
    open(f"{sys.argv[1]}/ready-{os.getpid()}", "w").close()
    while not os.path.exists(f"{sys.argv[1]}/go"):
        time.sleep(0.01)
    for i in range(steps):
        f(w, torch.ones(9 if rank == 1 and i == 62 else 8, 16)).backward()
        if rank == 1 and i % 10 == 7: time.sleep(0.1)
        dist.all_reduce(w.grad)
        w.grad = None
        time.sleep(0.003)
    dist.destroy_process_group()
"""
UNDER_TORCHRUN = f"""{LOOP}
dist.init_process_group("gloo")
loop(dist.get_rank(), 100)
"""
FORKED = f"""{LOOP}
import torch.multiprocessing as mp

def begin(rank):
    dist.init_process_group("gloo", init_method=f"file://{{sys.argv[1]}}/store", rank=rank, world_size=2)
    loop(rank, 30)

if __name__ == "__main__":
    mp.start_processes(begin, nprocs=2, start_method="fork")
"""


@contextmanager
def job(command: Sequence[str], folder: Path) -> Iterator[tuple[subprocess.Popen[str], list[int]]]:
    """A job of two ranks that wait before their first step: its process, and the ranks' ids. It is killed afterwards."""
    process = start([sys.executable, *command, str(folder)])
    try:
        until(lambda: process.poll() is not None or len(list(folder.glob("ready-*"))) == 2, "the ranks", 180)
        yield process, sorted(int(path.name.partition("-")[2]) for path in folder.glob("ready-*"))
    finally:
        for child in psutil.Process(process.pid).children(recursive=True) if process.poll() is None else ():
            child.send_signal(signal.SIGKILL)
        process.kill()
        process.communicate()


def report_of(process: subprocess.Popen[str], words: Sequence[str], folder: Path) -> dict[str, Any]:
    """Attach as these words say, let the ranks go when the hook is in both, and watch them to their end: the report."""
    watching = start([*TUIMON, "attach", *words, "--format", "json"])
    try:
        assert watching.stderr is not None
        told = []
        for line in watching.stderr:
            told.append(line)
            if sum("attached to" in one and "not attached" not in one for one in told) == 2:
                break
        (folder / "go").touch()
        out, err = watching.communicate(timeout=120)
    finally:
        watching.kill()
    assert watching.returncode == 0, "".join(told) + err
    report: dict[str, Any] = json.loads(out)
    return report


def test_a_straggler_and_compile_skew_are_named(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(UNDER_TORCHRUN)
    with job([*TORCHRUN, str(script)], tmp_path) as (process, pids):
        assert len(pids) == 2, process.communicate()
        report = report_of(process, [str(process.pid)], tmp_path)  # a launcher stands for its ranks
    first, second = report["ranks"]
    assert (first["rank"], second["rank"]) == (0, 1) and first["state"] == second["state"] == "exited"
    titles = {finding["kind"]: finding["title"] for finding in report["findings"]}
    late, skew = titles["late_rank"], titles["compile_skew"]
    assert late.startswith("rank 1 is late in ") and "by other python: loop train.py:" in late and "time.sleep(0.1)" in late
    assert "rank 0 waited" in late and "in all_reduce for it" in late
    assert skew.startswith("rank 1 compiled for ") and "1 other rank waited" in skew and "in all_reduce" in skew
    assert "recompile of" in skew and "was 8" in skew
    assert set(report["ranks_verdict"]) >= {late, skew}
    assert second["late_in"] >= 8 > first["late_in"] and first["waits_for"] == 1
    assert first["lateness"]["n"] > 90 and second["lateness"]["p90"] >= first["lateness"]["p90"]
    assert second["compile_skew"]["n"] >= 1 and second["compile_skew"]["longest"]["detail"].startswith("recompile of")
    causes = {row["rank"]: [step["cause"] for step in row["slow_steps"]] for row in report["ranks"]}
    assert "communication" in causes[0] and "other python" in causes[1]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_ranks_that_a_program_forks_are_told_to_their_last_step(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(FORKED)
    with job([str(script)], tmp_path) as (process, pids):
        assert len(pids) == 2, process.communicate()
        report = report_of(process, [str(pid) for pid in pids], tmp_path)
    assert sorted(row["rank"] for row in report["ranks"]) == [0, 1]  # as they said while they had a process group
    assert all(row["step"]["n"] in (29, 30) for row in report["ranks"])  # they leave by os._exit, behind a last flush
    assert [title for title in report["ranks_verdict"] if title.startswith("rank 1 is late in ")]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_run_says_that_others_do_the_work(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(FORKED)
    running = start([*TUIMON, "run", "--format", "json", "--", sys.executable, str(script), str(tmp_path)])
    try:
        assert running.stderr is not None
        told = next(line for line in running.stderr if "has started 2 that run torch themselves" in line)
        (tmp_path / "go").touch()
        out, _ = running.communicate(timeout=120)
    finally:
        running.kill()
    report = json.loads(out)
    assert f"tuimon attach {report['target']['pid']}`" in told
    gaps = {gap["what"]: gap["why"] for gap in report["coverage"]["not_available"]}
    assert gaps["processes that the program started"].startswith("2 that run torch") and report["steps"]["source"] is None
