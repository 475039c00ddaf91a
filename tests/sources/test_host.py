from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import fields
from pathlib import Path

import psutil
import pytest

from tuimon.events import Event, HostSampled, NotAvailable
from tuimon.sources.host import HostSource
from tuimon.sources.kernel import RunQueue, Usage, usage
from tuimon.sources.tree import Totals

Until = Callable[[Callable[[], bool]], None]
TICKS = os.sysconf("SC_CLK_TCK")


@pytest.fixture
def child() -> Iterator[subprocess.Popen[bytes]]:
    """A process that computes until it is killed."""
    process = subprocess.Popen(
        [sys.executable, "-c", "print('up', flush=True)\nwhile True: sum(range(1000))"], stdout=subprocess.PIPE
    )
    assert process.stdout is not None
    process.stdout.readline()
    yield process
    process.kill()
    process.wait()
    process.stdout.close()


def test_a_busy_process_is_seen_and_its_end_ends_the_source_quietly(child: subprocess.Popen[bytes], until: Until) -> None:
    got: list[Event] = []
    source = HostSource(got.append, child.pid, period=0.05)
    source.start()
    until(lambda: len(got) >= 4)
    child.kill()
    until(lambda: not source.alive)  # a zombie counts as gone: nobody has waited for it yet
    samples = [event for event in got if isinstance(event, HostSampled)]
    assert samples == got
    assert samples[0].cpu_percent is None  # there is no time before the first reading to take a percentage of
    assert samples[0].host_cpu_percent is None
    assert any((sample.cpu_percent or 0) > 0 for sample in samples[1:])
    for sample in samples:
        assert sample.rss_bytes is not None and sample.rss_bytes > 1_000_000
        assert sample.threads == 1
        assert sample.major_faults is not None
        assert sample.host_memory_total_bytes is not None
        assert 0 < (sample.host_memory_used_bytes or 0) < sample.host_memory_total_bytes
    assert [s.t_ns for s in samples] == sorted(s.t_ns for s in samples)


def test_a_process_that_is_not_there_ends_the_source_at_once(until: Until) -> None:
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    got: list[Event] = []
    source = HostSource(got.append, gone.pid)
    source.start()
    until(lambda: not source.alive)
    assert got == []
    assert source.stop()


def test_what_may_not_be_read_is_none(child: subprocess.Popen[bytes], until: Until, monkeypatch: pytest.MonkeyPatch) -> None:
    def denied(self: psutil.Process) -> None:
        raise psutil.AccessDenied(self.pid)

    monkeypatch.setattr(psutil.Process, "io_counters", denied)
    monkeypatch.setattr(psutil.Process, "memory_info", denied)
    got: list[Event] = []
    source = HostSource(got.append, child.pid, period=0.01)
    source.start()
    until(lambda: len(got) >= 1)
    source.stop(20)
    (sample, *_) = got
    assert isinstance(sample, HostSampled)
    assert sample.read_bytes is sample.written_bytes is sample.rss_bytes is None
    assert sample.threads == 1
    why = dict(sample.missing)
    assert "/proc/PID/io" in why["read_bytes"] and "no permission" in why["rss_bytes"]
    assert why["cpu_percent"] == "it takes two readings" and why["tree_rss_bytes"] == "the processes below it are not read"


def test_each_value_that_is_none_has_its_reason(child: subprocess.Popen[bytes], until: Until) -> None:
    """But for what is an answer: no quota, no limit."""
    none = {
        "quota_cores",
        "periods",
        "throttled_periods",
        "throttled_s",
        "memory_limit_bytes",
        "memory_group_bytes",
        "oom_kills",
    }
    totals: list[Totals | None] = [None, Totals(None, 7)]
    for below in totals:
        got: list[Event] = []
        source = HostSource(got.append, child.pid, period=0.01, totals=lambda below=below: below)  # type: ignore[misc]
        source.start()
        until(lambda got=got: len(got) >= 2)  # type: ignore[misc]
        source.stop(20)
        for sample in got:
            assert isinstance(sample, HostSampled)
            absent = {one.name for one in fields(sample) if getattr(sample, one.name) is None}
            assert absent - none == set(dict(sample.missing)) - {"cgroup"}
            assert "tree_cpu_percent" in absent


def test_a_reading_that_breaks_says_so(child: subprocess.Popen[bytes], until: Until, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> None:
        raise RuntimeError("no meminfo")

    monkeypatch.setattr(psutil, "virtual_memory", broken)
    got: list[Event] = []
    source = HostSource(got.append, child.pid, period=0.01)
    source.start()
    until(lambda: not source.alive)
    (event,) = got
    assert isinstance(event, NotAvailable)
    assert "no meminfo" in event.why


def test_a_pid_that_was_given_away_counts_as_gone(
    child: subprocess.Popen[bytes], until: Until, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(psutil.Process, "is_running", lambda self: False)
    got: list[Event] = []
    source = HostSource(got.append, child.pid, period=0.01)
    source.start()
    until(lambda: not source.alive)
    assert got == []


class TestRunQueue:
    @staticmethod
    def write(folder: Path, waits: dict[str, str]) -> None:
        for entry in folder.iterdir():
            (entry / "schedstat").unlink()
            entry.rmdir()
        for tid, text in waits.items():
            (folder / tid).mkdir()
            (folder / tid / "schedstat").write_text(text)

    def test_the_waits_of_threads_that_ended_are_kept(self, tmp_path: Path) -> None:
        queue = RunQueue(tmp_path)
        self.write(tmp_path, {"1": "5 1000000000 3\n", "2": "5 500000000 1\n"})
        assert queue.seconds() == 1.5
        self.write(tmp_path, {"1": "9 1250000000 4\n"})
        assert queue.seconds() == 1.75
        self.write(tmp_path, {"1": "1 100000000 1\n"})  # the id stands for another thread now
        assert queue.seconds() == 1.85
        assert queue.seconds() == 1.85

    def test_a_kernel_that_does_not_account_gives_no_figure(self, tmp_path: Path) -> None:
        queue = RunQueue(tmp_path)
        self.write(tmp_path, {"1": "0 0 0\n"})
        assert queue.seconds() is None
        self.write(tmp_path, {"1": "what is this\n"})
        assert queue.seconds() is None
        assert RunQueue(tmp_path / "no such process").seconds() is None


def test_a_command_with_parentheses_and_spaces_does_not_shift_the_fields() -> None:
    numbers = f"R 1 1 1 0 -1 4194304 100 200 33 44 {5 * TICKS} {2 * TICKS}"
    assert usage(f"7 (odd ) name (x) {numbers}") == Usage(100, 33, 5.0, 2.0)
    assert usage("7 (short) R 1") is None
    assert usage("") is None


def test_what_the_process_may_use_and_has_used(child: subprocess.Popen[bytes], until: Until) -> None:
    got: list[Event] = []
    source = HostSource(got.append, child.pid, period=0.02)
    source.start()
    until(lambda: any(isinstance(event, HostSampled) and (event.user_s or 0) > 0 for event in got))
    source.stop(20)
    sample = got[-1]
    assert isinstance(sample, HostSampled)
    assert sample.minor_faults is not None and sample.minor_faults > 0
    assert sample.system_s is not None and sample.system_s >= 0
    assert sample.cores == os.cpu_count() and 0 < (sample.cores_allowed or 0) <= (sample.cores or 0)
    assert bool(sample.cgroup) == (dict(sample.missing).get("cgroup") is None)
    assert sample.tree_cpu_percent is sample.tree_rss_bytes is None  # nobody reads the tree


def test_affinity_bounds_what_it_may_use(child: subprocess.Popen[bytes], until: Until) -> None:
    os.sched_setaffinity(child.pid, {min(os.sched_getaffinity(child.pid))})
    got: list[Event] = []
    source = HostSource(got.append, child.pid, totals=lambda: Totals(250.0, 7))
    source.start()
    until(lambda: bool(got))
    source.stop(20)
    sample = got[0]
    assert isinstance(sample, HostSampled) and (sample.cores_allowed or 2) <= 1
    assert (sample.tree_cpu_percent, sample.tree_rss_bytes) == (250.0, 7)
