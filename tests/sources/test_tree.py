"""The job's processes: a real loader's workers and a compile worker, and what a /proc of files can bring about."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tuimon.attach.find import command_lines
from tuimon.events import Event, NotAvailable, ProcessTreeSampled, TreeRow
from tuimon.sources import tree
from tuimon.sources.tree import MOST_ROWS, Tree, TreeSource, below, kind_of, stat

Until = Callable[[Callable[[], bool]], None]
JOB = """
import operator, subprocess
from torch._inductor.compile_worker.subproc_pool import SubprocPool
from torch.utils.data import DataLoader
batches = iter(DataLoader(range(10**9), num_workers=2))
next(batches)
plain = subprocess.Popen(["sleep", "600"])
compiles = SubprocPool(1)
compiles.submit(operator.add, 1, 2).result()
print(plain.pid, flush=True)
while True:
    next(batches)
"""


@pytest.fixture
def start() -> Iterator[Callable[[str], tuple[subprocess.Popen[bytes], list[int]]]]:
    """Starts a program in a session of its own, and gives it and the numbers of its first line."""
    started: list[subprocess.Popen[bytes]] = []

    def run(program: str) -> tuple[subprocess.Popen[bytes], list[int]]:
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        process = subprocess.Popen(
            [sys.executable, "-c", program], stdout=subprocess.PIPE, start_new_session=True, env=environment
        )
        started.append(process)
        assert process.stdout is not None
        return process, [int(word) for word in process.stdout.readline().split()]

    yield run
    for process in started:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        assert process.stdout is not None
        process.stdout.close()


def test_loader_workers_and_compile_workers_are_told_apart(
    start: Callable[[str], tuple[subprocess.Popen[bytes], list[int]]], until: Until
) -> None:
    pytest.importorskip("torch")
    job, (plain,) = start(JOB)
    got: list[Event] = []
    source = TreeSource(got.append, job.pid, period=0.05)
    source.start()
    try:
        until(lambda: any(isinstance(event, ProcessTreeSampled) and _busy(event) for event in got))
    finally:
        source.stop(20)
    sample = next(event for event in reversed(got) if isinstance(event, ProcessTreeSampled))
    kinds = {row.pid: row.kind for row in sample.rows}
    assert kinds[job.pid] == "job" and sample.rows[0].pid == job.pid
    assert kinds[plain] == "other"
    compile_workers = [row for row in sample.rows if row.kind == "compile worker"]
    assert len(compile_workers) == 2  # torch starts one, which forks as many as are wanted
    assert [row.parent for row in sorted(compile_workers, key=lambda row: row.pid)] == [
        job.pid,
        min(row.pid for row in compile_workers),
    ]
    loaders = [row for row in sample.rows if row.kind == "loader worker"]
    assert len(loaders) == 2 and {row.parent for row in loaders} == {job.pid} and {row.name for row in loaders} == {tree.LOADER}
    assert all((row.rss_bytes or 0) > 1_000_000 for row in loaders)
    assert all(row.state for row in sample.rows)
    totals = source.totals()
    assert totals is not None and totals.rss_bytes >= sum(row.rss_bytes or 0 for row in sample.rows)
    assert totals.cpu_percent is not None


def _busy(event: ProcessTreeSampled) -> bool:
    loaders = [row for row in event.rows if row.kind == "loader worker"]
    return len(loaders) == 2 and any((row.cpu_percent or 0) > 0 for row in loaders)


def test_the_end_of_the_job_ends_the_source_quietly(
    start: Callable[[str], tuple[subprocess.Popen[bytes], list[int]]], until: Until
) -> None:
    job, _ = start("import time\nprint(1, flush=True)\ntime.sleep(600)")
    got: list[Event] = []
    source = TreeSource(got.append, job.pid, period=0.01)
    source.start()
    until(lambda: bool(got))
    job.kill()
    until(lambda: not source.alive)  # a zombie: nobody has waited for it yet
    assert all(isinstance(event, ProcessTreeSampled) for event in got)
    assert source.stop()


class Proc:
    """A /proc made of files."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def process(
        self, pid: int, parent: int, *, name: str = "python", argv: str = "python a.py", ticks: int = 0, state: str = "S",
        started: int = 5,
    ) -> None:  # fmt: skip
        """One process that has been on a core for so many ticks."""
        folder = self.root / str(pid)
        (folder / "task" / str(pid)).mkdir(parents=True, exist_ok=True)
        fields = [state, parent, *[0] * 9, ticks, 0, 0, 0, 20, 0, 1, 0, started, 1000, 50, *[0] * 20]
        (folder / "stat").write_text(f"{pid} ({name}) " + " ".join(map(str, fields)) + "\n")
        (folder / "cmdline").write_text(argv.replace(" ", "\0") + "\0")
        (folder / "task" / str(pid) / "schedstat").write_text("5 1000000000 3\n")


@pytest.fixture
def proc(tmp_path: Path) -> Proc:
    """With a job, 100, in it, and a process that is none of it."""
    made = Proc(tmp_path)
    made.process(1, 0, name="init")
    made.process(100, 1)
    return made


def rows(sample: ProcessTreeSampled | None) -> dict[int, TreeRow]:
    """By pid."""
    assert sample is not None
    return {row.pid: row for row in sample.rows}


def test_there_is_no_share_in_the_first_reading_of_a_process_and_a_pid_may_be_given_away(proc: Proc) -> None:
    proc.process(101, 100, ticks=5000)
    read = Tree(100, proc.root)
    assert rows(read.sample())[101].cpu_percent is None
    proc.process(101, 100, ticks=6000)
    assert (rows(read.sample())[101].cpu_percent or 0) > 0
    proc.process(101, 100, ticks=7000, started=99)  # another process under the same pid
    assert rows(read.sample())[101].cpu_percent is None
    proc.process(100, 1, started=77)
    assert read.sample() is None  # and the job's own


def test_the_busiest_come_first_and_the_rest_is_counted(proc: Proc) -> None:
    for pid in range(101, 301):
        proc.process(pid, 100)
    read = Tree(100, proc.root)
    read.sample()
    proc.process(250, 100, ticks=900)
    proc.process(120, 100, ticks=50)
    sample = read.sample()
    assert sample is not None and len(sample.rows) == MOST_ROWS and sample.left_out == 201 - MOST_ROWS
    assert [row.pid for row in sample.rows[:3]] == [100, 250, 120]


def test_no_more_than_so_many_are_looked_at_and_a_circle_ends(proc: Proc) -> None:
    for pid in range(101, 111):
        proc.process(pid, pid - 1)
    proc.process(100, 110)  # cannot be, but files can say it
    assert len(below(100, proc.root)) == 10
    assert len(below(100, proc.root, most=4)) == 4


def test_one_look_at_all_processes_serves_several_jobs(proc: Proc, monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[Path] = []
    children = tree._children

    def counted(root: Path) -> dict[int, list[tree.Stat]]:
        looks.append(root)
        return children(root)

    monkeypatch.setattr(tree, "_children", counted)
    proc.process(200, 1)
    for pid, parent in ((101, 100), (102, 100), (103, 102), (201, 200)):
        proc.process(pid, parent)
    assert sorted(one.pid for one in below(100, proc.root, kept_s=3600)) == [101, 102, 103]
    proc.process(101, 100, ticks=500)
    proc.process(102, 1)  # it has ended, and its pid is another's now
    found = below(100, proc.root, kept_s=3600)
    assert [one.pid for one in found] == [101] and found[0].cpu_s > 0  # what is told of it is new
    assert [one.pid for one in below(200, proc.root, kept_s=3600)] == [201]
    assert len(looks) == 1
    assert [one.pid for one in below(100, proc.root)] == [101] and len(looks) == 2


def test_one_that_cannot_be_read_does_not_hide_the_others(proc: Proc) -> None:
    proc.process(101, 100)
    proc.process(102, 100, state="Z")
    proc.process(103, 100)
    (proc.root / "101" / "stat").write_text("101 (odd")
    (proc.root / "103" / "cmdline").unlink()
    found = rows(Tree(100, proc.root).sample())
    assert set(found) == {100, 102, 103}
    assert found[102].state == "zombie" and found[102].rss_bytes is None  # it has given its memory back
    assert found[103].kind == "other"


def test_what_did_not_run_is_not_asked_for_its_wait_again(proc: Proc) -> None:
    proc.process(101, 100)
    read = Tree(100, proc.root)
    assert rows(read.sample())[101].run_queue_wait_s == 1.0
    schedstat = proc.root / "101" / "task" / "101" / "schedstat"
    schedstat.write_text("5 3000000000 3\n")
    assert rows(read.sample())[101].run_queue_wait_s == 1.0
    proc.process(101, 100, ticks=1)
    schedstat.write_text("5 3000000000 3\n")
    assert rows(read.sample())[101].run_queue_wait_s == 3.0


def test_devices_and_their_rate(proc: Proc) -> None:
    read = Tree(100, proc.root)
    (proc.root / "100" / "io").write_text("rchar: 9\nread_bytes: 100\nwrite_bytes: 50\ncancelled_write_bytes: 7\n")
    assert rows(read.sample())[100].io_bytes_s is None
    (proc.root / "100" / "io").write_text("rchar: 9\nread_bytes: 1100\nwrite_bytes: 50\n")
    assert (rows(read.sample())[100].io_bytes_s or 0) > 0


def test_after_a_reading_that_took_long_it_rests(proc: Proc, monkeypatch: pytest.MonkeyPatch) -> None:
    got: list[Event] = []
    source = TreeSource(got.append, 100, proc=proc.root)
    now = [0.0]
    monkeypatch.setattr("tuimon.sources.tree.time.monotonic", lambda: now[0])
    sample = source._tree.sample

    def slow() -> ProcessTreeSampled | None:
        now[0] += 0.5
        return sample()

    monkeypatch.setattr(source._tree, "sample", slow)
    assert source._round() and len(got) == 1
    now[0] += 10
    assert source._round() and len(got) == 1
    now[0] += 11
    assert source._round() and len(got) == 2


def test_a_reading_that_breaks_says_so(proc: Proc, until: Until, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("no such thing")

    monkeypatch.setattr(tree, "below", broken)
    got: list[Event] = []
    source = TreeSource(got.append, 100, proc=proc.root)
    source.start()
    until(lambda: not source.alive)
    (event,) = got
    assert isinstance(event, NotAvailable) and "no such thing" in event.why


@pytest.mark.parametrize("mark", command_lines._COMPILE)
def test_compile_workers_are_those_that_the_list_of_processes_knows(mark: str) -> None:
    argv = [
        "python",
        "/x/torch/_inductor/compile_worker/__main__.py" if mark == "compile_worker" else f"/x/{mark}.py",
        "--kind=fork",
    ]
    assert command_lines.is_compile_worker(argv)
    assert kind_of("python", argv, "job", ["python", "a.py"]) == "compile worker"


def test_other_kinds() -> None:
    own = ["python", "a.py"]
    assert kind_of("python", own, "job", own) == "worker"  # by fork
    spawned = ["python", "-c", "from multiprocessing.spawn import spawn_main; spawn_main(5)", "--multiprocessing-fork"]
    assert kind_of("python", spawned, "job", own) == "worker"
    assert kind_of("pt_data_worker", spawned, "job", own) == "loader worker"
    assert kind_of("python", own, "compile worker", own) == "compile worker"
    assert kind_of("nvidia-smi", ["nvidia-smi"], "job", own) == "other"
    for compiler in (
        "g++",
        "/usr/lib/gcc/x86_64-linux-gnu/12/cc1plus",
        "x86_64-linux-gnu-g++-12",
        "/opt/cuda/bin/ptxas",
        "clang-18",
    ):
        assert kind_of("x", [compiler, "-O3", "a.cpp"], "job", own) == "compile worker"
    assert kind_of("asv", ["asv", "-c"], "job", own) == kind_of("rg", ["rg", "g++"], "job", own) == "other"
    tracker = ["python", "-c", "from multiprocessing.resource_tracker import main;main(5)"]
    assert kind_of("python", tracker, "job", own) == "other"  # it does nothing but wait for the end
    assert kind_of("kworker", [], "other", []) == "other"
    speaks = ["python", "-c", "import torch._inductor.compile_worker", "torch/_inductor/compile_worker/__main__.py"]
    assert kind_of("python", speaks, "job", own) == "other"  # it speaks of it only
    module = ["python", "-X", "dev", "-u", "-m", "torch._inductor.compile_worker"]
    assert kind_of("python", module, "job", own) == "compile worker"


def test_names_may_hold_anything() -> None:
    fields = "S 1 1 1 0 -1 0 100 200 33 44 50 6 0 0 20 0 1 0 777 1000 3"
    found = stat(f"7 (odd ) name (x) {fields}")
    assert found is not None and found.name == "odd ) name (x" and (found.parent, found.started) == (1, 777)
    assert found.cpu_s == pytest.approx(56 / os.sysconf("SC_CLK_TCK"))
    assert stat("7 (short) R 1") is None and stat("") is None


def test_this_process_has_the_children_that_it_has(start: Callable[[str], tuple[subprocess.Popen[bytes], list[int]]]) -> None:
    job, _ = start("print(1, flush=True)\nimport time\ntime.sleep(600)")
    assert job.pid in {one.pid for one in below(os.getpid())}
