"""The host and the target's process, read from outside with psutil and /proc once a second. Nothing runs in the job."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import psutil

from tuimon.events import HostSampled, NotAvailable
from tuimon.sources import kernel
from tuimon.sources.ticker import Put, Ticked, Ticker

T = TypeVar("T")


class Gone(Exception):
    """The process is not there any more."""


class RunQueue:
    """How long the threads of a process were runnable but had no CPU, in seconds since they started.

    The kernel keeps it for each thread in /proc/PID/task/TID/schedstat (run time ns, wait time ns, time slices) and drops
    it with the thread. Adding up the living threads alone would run backwards whenever one ends, so what an ended one had
    last is kept.
    """

    def __init__(self, tasks: Path) -> None:
        self._tasks = tasks
        self._last: dict[str, int] = {}
        self._ended = 0

    def seconds(self) -> float | None:
        """The total so far. None where the kernel does not keep it or does not let us read it."""
        now: dict[str, int] = {}
        counted = False
        try:
            tids = [entry.name for entry in self._tasks.iterdir()]
        except OSError:
            return None
        for tid in tids:
            try:
                _, waited, slices = map(int, (self._tasks / tid / "schedstat").read_text().split())
            except (OSError, ValueError):
                continue  # this thread has just ended, or the file is not of this form
            now[tid] = waited
            # a kernel that does not account writes "0 0 0"; a thread that ever ran has had a time slice
            counted = counted or slices > 0
        for tid, waited in self._last.items():
            # a smaller figure under the same id is another thread
            if now.get(tid, -1) < waited:
                self._ended += waited
        self._last = now
        return (sum(now.values()) + self._ended) / 1e9 if counted else None


def major_faults(stat: str) -> int | None:
    """Page faults that had to read from a device, from the text of /proc/PID/stat (field 12, proc(5)); None if malformed."""
    # the command stands in parentheses and may itself hold spaces and parentheses
    fields = stat.rpartition(")")[2].split()
    try:
        return int(fields[9])
    except (IndexError, ValueError):
        return None


class HostSource(Ticked):
    """Puts a `HostSampled` every `period` seconds until the process `pid` is gone; then it ends without a word.

    That the target ended, and how, is for the one that is attached to it to say. A pid that was given to another process in
    the meantime counts as gone.
    """

    def __init__(self, put: Put, pid: int, period: float = 1.0) -> None:
        self._put = put
        self._pid = pid
        self._process: psutil.Process | None = None
        self._run_queue = RunQueue(Path(f"/proc/{pid}/task"))
        self._quotas: list[Path] | None = None
        self._ticker = Ticker("tuimon-host", period, self._round, self._failed)

    def _round(self) -> bool:
        try:
            if self._process is None:
                self._process = psutil.Process(self._pid)
                sample = self._read(self._process, first=True)
            else:
                sample = self._read(self._process, first=False)
        except (Gone, psutil.NoSuchProcess):
            return False
        if self._ticker.stopping:
            return False
        self._put(sample)
        return True

    def _read(self, process: psutil.Process, first: bool) -> HostSampled:
        """One reading. Raises Gone or psutil.NoSuchProcess when there is nothing left to read."""
        # both percentages are of the time since the last call; the first call has none, and psutil answers 0.0
        cpu = _may_be_denied(lambda: float(process.cpu_percent(None)))
        host_cpu = float(psutil.cpu_percent(None))
        memory = psutil.virtual_memory()
        io = _may_be_denied(process.io_counters) if hasattr(process, "io_counters") else None
        # none at all: it is ending, and has given its memory back before its status says so
        rss = _may_be_denied(lambda: int(process.memory_info().rss)) or None
        threads = _may_be_denied(lambda: int(process.num_threads()))
        waited = self._run_queue.seconds()
        faults = self._major_faults()
        # asked last: the values of a process that became a zombie during the reading are zeros, not facts
        if not process.is_running() or process.status() in (psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD):
            raise Gone
        return HostSampled(
            t_ns=time.monotonic_ns(),
            cpu_percent=None if first else cpu,
            rss_bytes=rss,
            threads=threads,
            host_cpu_percent=None if first else host_cpu,
            host_memory_used_bytes=int(memory.total - memory.available),
            host_memory_total_bytes=int(memory.total),
            run_queue_wait_s=waited,
            major_faults=faults,
            read_bytes=None if io is None else int(io.read_bytes),
            written_bytes=None if io is None else int(io.write_bytes),
            swap_bytes=kernel.swapped_bytes(kernel.read(Path(f"/proc/{self._pid}/status")) or ""),
            throttled_s=self._throttled(),
            pressure=kernel.pressure(),
        )

    def _throttled(self) -> float | None:
        if self._quotas is None:  # a process seldom moves to another group
            self._quotas = kernel.control_groups(kernel.read(Path(f"/proc/{self._pid}/cgroup")) or "")
        return kernel.throttled_s(self._quotas)

    def _major_faults(self) -> int | None:
        try:
            return major_faults(Path(f"/proc/{self._pid}/stat").read_text(errors="replace"))
        except OSError:
            return None

    def _failed(self, error: BaseException) -> None:
        self._put(NotAvailable(time.monotonic_ns(), "host", f"reading the host failed: {type(error).__name__}: {error}"))


def _may_be_denied(read: Callable[[], T]) -> T | None:
    """What `read` gives, or None where the kernel does not let us see it."""
    try:
        return read()
    except (psutil.AccessDenied, PermissionError, NotImplementedError):
        return None
