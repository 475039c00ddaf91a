"""The target's busiest threads, read from outside ten times a second. Nothing runs in the job.

What a thread waited for a core (`schedstat`), and its page faults (`stat`), tell a step that was slow by itself from one that
the machine held up. Reading one thread takes some microseconds, and a process can have hundreds: only the first thread, where
nearly every job has its loop, and the few busiest others are read.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path

from tuimon.events import NotAvailable, ThreadSampled
from tuimon.sources.ticker import Put, Ticked, Ticker

PERIOD_S = 0.1
ROUNDS = 10
"""In every so many-th round all threads are looked at, to find the busiest."""
BUSIEST = 3
"""So many threads are read besides the first."""
STOPPED = {"T": "signal", "t": "tracer"}
"""States of a thread that is held, and by what."""
BUSY_NS = 20_000_000
"""A thread that ran or waited for less than this since the last look at all is not busy."""
MOST_THREADS = 4096
"""Threads that are looked at, of a process that has even more."""
DELAYS = Path("/proc/sys/kernel/task_delayacct")
"""Whether the kernel counts waits for block devices; it does not by default."""


@dataclass(frozen=True, slots=True)
class Sched:
    """What /proc/PID/task/TID/schedstat says, in ns."""

    run_ns: int
    wait_ns: int


def sched(text: str) -> Sched | None:
    """Run and wait time from the text of a schedstat file; None where the kernel does not account, or it is malformed."""
    try:
        run, wait, slices = map(int, text.split())
    except ValueError:
        return None
    return Sched(run, wait) if slices > 0 else None  # a kernel that does not account writes "0 0 0"


@dataclass(frozen=True, slots=True)
class Faults:
    """Page faults, waits for block devices, name and core of one thread, and whether it is held."""

    minor: int
    major: int
    io_ticks: int | None
    name: str = ""
    core: int | None = None
    """The one it was on last."""
    stopped: str = ""
    """As in `ThreadSampled`."""


def faults(stat: str) -> Faults | None:
    """From the text of /proc/PID/task/TID/stat (fields 2, 3, 10, 12, 39 and 42, proc(5)); None if malformed."""
    # the name stands in parentheses and may itself hold spaces and parentheses
    front, _, behind = stat.rpartition(")")
    fields = behind.split()
    ticks, core = (int(fields[at]) if len(fields) > at and fields[at].isdecimal() else None for at in (39, 36))
    try:
        held = STOPPED.get(fields[0], "")
        return Faults(int(fields[7]), int(fields[9]), ticks, front.partition("(")[2], core, held)
    except (IndexError, ValueError):
        return None


def counts_delays(switch: Path = DELAYS) -> bool:
    """Whether the kernel counts how long a thread waits for block devices."""
    try:
        return switch.read_text().strip() == "1"
    except OSError:
        return False


class ThreadSource(Ticked):
    """Puts a `ThreadSampled` for each of the busiest threads every `period` seconds until the process `pid` is gone."""

    def __init__(self, put: Put, pid: int, period: float = PERIOD_S, proc: Path = Path("/proc")) -> None:
        self._put = put
        self._tasks = proc / str(pid) / "task"
        self._first = str(pid)
        self._round_number = 0
        self._chosen: list[str] = []
        self._busy_before: dict[str, int] = {}
        self._delays = counts_delays()
        self._ticks_s = 1.0 / os.sysconf("SC_CLK_TCK")
        self._ticker = Ticker("tuimon-threads", period, self._round, self._failed)

    def _round(self) -> bool:
        if self._round_number % ROUNDS == 0:
            self._choose()
        self._round_number += 1
        found = [self._read(name) for name in (self._first, *self._chosen)]
        if self._ticker.stopping:
            return False
        for event in found:
            if event is not None:
                self._put(event)
        # the first thread of a process may end before the others do; its folder stays as long as one lives
        return self._tasks.is_dir() and not self._ended()

    def _ended(self) -> bool:
        try:
            state = (self._tasks.parent / "stat").read_text(errors="replace").rpartition(")")[2].split()[:1]
        except OSError:
            return True
        if state == ["X"]:
            return True
        try:  # a first thread that has ended is a zombie, and so is a process of which nobody has taken the status
            return state == ["Z"] and len(os.listdir(self._tasks)) <= 1
        except OSError:
            return True

    def _choose(self) -> None:
        """The threads that ran or waited most since the last look."""
        try:
            names = os.listdir(self._tasks)[:MOST_THREADS]
        except OSError:
            return
        now: dict[str, int] = {}
        for name in names:
            found = self._sched(name)
            if found is not None:
                now[name] = found.run_ns + found.wait_ns
        before = self._busy_before
        grown = {name: total - before.get(name, total if before else 0) for name, total in now.items() if name != self._first}
        busiest = sorted((name for name, by in grown.items() if by >= BUSY_NS), key=lambda name: -grown[name])
        self._chosen, self._busy_before = busiest[:BUSIEST], now

    def _sched(self, name: str) -> Sched | None:
        try:
            return sched((self._tasks / name / "schedstat").read_text())
        except OSError:
            return None

    def _read(self, name: str) -> ThreadSampled | None:
        """One reading of one thread; None where it has ended."""
        times = self._sched(name)
        now = time.monotonic_ns()
        try:
            told = faults((self._tasks / name / "stat").read_text(errors="replace"))
        except OSError:
            return None
        if times is None and told is None:
            return None
        counted = self._delays and told is not None and told.io_ticks is not None
        return ThreadSampled(
            t_ns=now,
            native=int(name),
            wait_s=None if times is None else times.wait_ns / 1e9,
            run_s=None if times is None else times.run_ns / 1e9,
            major_faults=None if told is None else told.major,
            minor_faults=None if told is None else told.minor,
            io_wait_s=(told.io_ticks or 0) * self._ticks_s if counted and told is not None else None,
            name="" if told is None else told.name,
            core=None if told is None else told.core,
            stopped="" if told is None else told.stopped,
        )

    def _failed(self, error: BaseException) -> None:
        what = f"reading the threads failed: {type(error).__name__}: {error}"
        self._put(NotAvailable(time.monotonic_ns(), "run-queue wait of threads", what))
