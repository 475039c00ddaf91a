"""Threads of a real process, read from outside; and the parsing of what the kernel says."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tuimon.events import CodeSeen, Event, SiteSeen, SourceSeen, StackSeen, ThreadSampled
from tuimon.sources import kernel, threads
from tuimon.sources.lines import Lines
from tuimon.sources.threads import Faults, Sched, ThreadSource, counts_delays, faults, sched

Until = Callable[[Callable[[], bool]], None]

BUSY = """
import threading
threading.Thread(target=lambda: [sum(range(1000)) for _ in iter(int, 1)], daemon=True).start()
print(threading.get_native_id(), threading.enumerate()[1].native_id, flush=True)
while True: sum(range(1000))
"""


@pytest.fixture
def child() -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """A process with two threads that compute until it is killed, and the id of the second."""
    process = subprocess.Popen([sys.executable, "-c", BUSY], stdout=subprocess.PIPE)
    assert process.stdout is not None
    _, second = map(int, process.stdout.readline().split())
    yield process, second
    process.kill()
    process.wait()
    process.stdout.close()


def test_the_first_thread_and_the_busy_ones_are_read_until_the_process_ends(
    child: tuple[subprocess.Popen[bytes], int], until: Until, monkeypatch: pytest.MonkeyPatch
) -> None:
    process, second = child
    monkeypatch.setattr(threads, "BUSY_NS", 1)
    got: list[Event] = []
    source = ThreadSource(got.append, process.pid, period=0.02)
    source.start()
    until(lambda: {event.native for event in got if isinstance(event, ThreadSampled)} >= {process.pid, second})
    process.kill()
    until(lambda: not source.alive)  # a zombie counts as gone
    assert all(isinstance(event, ThreadSampled) for event in got)
    first = [event for event in got if isinstance(event, ThreadSampled) and event.native == process.pid]
    assert first[0].minor_faults is not None and first[0].major_faults is not None
    if first[0].run_s is not None:  # a kernel that accounts
        ran = [event.run_s or 0.0 for event in first]
        waited = [event.wait_s or 0.0 for event in first]
        assert ran == sorted(ran) and waited == sorted(waited)
    assert [event.t_ns for event in first] == sorted(event.t_ns for event in first)


def test_that_it_is_stopped_is_read(child: tuple[subprocess.Popen[bytes], int], until: Until) -> None:
    process, _ = child
    got: list[Event] = []
    source = ThreadSource(got.append, process.pid, period=0.02)
    source.start()

    def reads(stopped: str) -> Callable[[], bool]:
        return lambda: isinstance(got[-1], ThreadSampled) and got[-1].stopped == stopped if got else False

    until(reads(""))
    process.send_signal(signal.SIGSTOP)
    until(reads("signal"))
    process.send_signal(signal.SIGCONT)
    until(reads(""))
    assert source.stop()


def test_a_process_that_is_not_there_ends_the_source_at_once(until: Until) -> None:
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    got: list[Event] = []
    source = ThreadSource(got.append, gone.pid)
    source.start()
    until(lambda: not source.alive)
    assert got == [] and source.stop()


def task(folder: Path, pid: int, tid: int, run: int, wait: int, slices: int = 1) -> None:
    at = folder / str(pid) / "task" / str(tid)
    at.mkdir(parents=True, exist_ok=True)
    (at / "schedstat").write_text(f"{run} {wait} {slices}\n")
    (at / "stat").write_text(f"{tid} (a b) R 1 1 1 0 -1 4194304 100 0 33 0 5 6\n")
    (folder / str(pid) / "stat").write_text(f"{pid} (a b) R 1\n")


def test_only_the_busiest_of_many_are_read(tmp_path: Path) -> None:
    got: list[Event] = []
    source = ThreadSource(got.append, 7, proc=tmp_path)
    for tid in range(7, 30):
        task(tmp_path, 7, tid, 0, 0)
    assert source._round()
    assert [event.native for event in got if isinstance(event, ThreadSampled)] == [7]
    for tid in range(7, 30):
        task(tmp_path, 7, tid, tid * 50_000_000 if tid > 10 else 5, 0)
    source._round_number = 0
    got.clear()
    assert source._round()
    assert [event.native for event in got if isinstance(event, ThreadSampled)] == [7, 29, 28, 27]
    assert isinstance(got[0], ThreadSampled) and (got[0].major_faults, got[0].minor_faults) == (33, 100)


def test_a_kernel_that_does_not_account_gives_no_times_but_faults(tmp_path: Path) -> None:
    got: list[Event] = []
    task(tmp_path, 7, 7, 0, 0, slices=0)
    assert ThreadSource(got.append, 7, proc=tmp_path)._round()
    (event,) = got
    assert isinstance(event, ThreadSampled) and event.wait_s is None and event.run_s is None and event.major_faults == 33


def test_parsing() -> None:
    assert sched("5000 700 3\n") == Sched(5000, 700)
    assert sched("0 0 0") is None and sched("what") is None and sched("") is None
    numbers = " ".join(str(number) for number in range(4, 53))
    assert faults(f"7 (odd ) name (x) R {numbers}") == Faults(10, 12, 42, "odd ) name (x", 39)
    assert faults("7 (early) R " + " ".join(["5"] * 20)) == Faults(5, 5, None, "early", None)
    assert faults("7 (short) R 1") is None
    held = [faults(f"7 (x) {state} " + " ".join(["5"] * 20)) for state in "TtS"]
    assert [one and one.stopped for one in held] == ["signal", "tracer", ""]


def test_waits_for_devices_only_where_the_kernel_counts_them(tmp_path: Path) -> None:
    switch = tmp_path / "switch"
    assert not counts_delays(switch)
    switch.write_text("0\n")
    assert not counts_delays(switch)
    switch.write_text("1\n")
    assert counts_delays(switch)


class TestKernel:
    def test_swap(self) -> None:
        assert kernel.swapped_bytes("Name:\tx\nVmSwap:\t  2048 kB\n") == 2048 * 1024
        assert kernel.swapped_bytes("Name:\tx\n") is None and kernel.swapped_bytes("VmSwap: much\n") is None

    def test_pressure(self, tmp_path: Path) -> None:
        (tmp_path / "cpu").write_text("some avg10=12.50 avg60=1.00 avg300=0.00 total=5\n")
        (tmp_path / "io").write_text("full avg10=1.00\n")
        assert kernel.pressure(tmp_path) == (("cpu", 12.5),)
        assert kernel.pressure(tmp_path / "none") == ()


class TestLines:
    def test_a_line_is_told_once_behind_what_names_it(self, tmp_path: Path) -> None:
        file = tmp_path / "train.py"
        file.write_text("import time\nfor i in range(3):\n    time.sleep(1)  # a stall\n")
        lines = Lines()
        look = StackSeen(9, 0, 1, ((4, 3, 0, 0), (5, 1, 0, 0)))
        assert lines.told([CodeSeen(1, 4, "f", "f", str(file), 1)]) == [CodeSeen(1, 4, "f", "f", str(file), 1)]
        assert lines.told([look]) == [look, SourceSeen(9, str(file), 3, "time.sleep(1)  # a stall")]
        assert lines.told([look]) == [look]
        site = SiteSeen(10, 2, 4, 1, 0, ((str(file), 2, "f"),), 0)
        assert [event.text for event in lines.told([site]) if isinstance(event, SourceSeen)] == [
            "import time",
            "for i in range(3):",
        ]

    @pytest.mark.parametrize("name", ["none.py", "folder.py", "train.txt", "odd.py"])
    def test_what_is_no_source_is_not_read(self, tmp_path: Path, name: str) -> None:
        (tmp_path / "folder.py").mkdir()
        (tmp_path / "train.txt").write_text("secret\n")
        (tmp_path / "odd.py").write_bytes(b"\xff\xfe\x00\n")
        lines = Lines()
        look = StackSeen(9, 0, 1, ((4, 1, 0, 0),))
        lines.told([CodeSeen(1, 4, "f", "f", str(tmp_path / name), 1)])
        assert lines.told([look]) == [look]

    @pytest.mark.skipif(os.geteuid() != 0, reason="needs root: another user")
    def test_only_files_that_the_job_may_read_itself(self, tmp_path: Path) -> None:
        """Root watches a job of nobody's, which names files of root's."""
        for folder in (tmp_path, *tmp_path.parents):
            folder.chmod(folder.stat().st_mode | 0o001)  # pytest's own are private
        for name, mode in (("open.py", 0o644), ("shut.py", 0o600)):
            (tmp_path / name).write_text("text\n")
            (tmp_path / name).chmod(mode)
        with subprocess.Popen(["/bin/sleep", "60"], user=65534, group=65534, extra_groups=[]) as process:
            lines = Lines(process.pid)
            process_lines = [lines._text(str(tmp_path / name), 1) for name in ("open.py", "shut.py")]
            process.kill()
        assert process_lines == ["text", ""]
        assert Lines(process.pid)._text(str(tmp_path / "open.py"), 1) == ""  # it has ended: nobody knows what it may

    def test_a_pipe_is_not_opened(self, tmp_path: Path) -> None:
        os.mkfifo(tmp_path / "fifo.py")
        for lines in (Lines(), Lines(os.getpid())):
            assert lines._text(str(tmp_path / "fifo.py"), 1) == ""
        (tmp_path / "train.py").write_text("# coding: latin-1\nx = 'é'\n", encoding="latin-1")
        assert Lines(os.getpid())._text(str(tmp_path / "train.py"), 2) == "x = 'é'"
