"""The host and the target's process, read from outside with psutil and /proc once a second. Nothing runs in the job."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

import psutil

from tuimon.events import HostSampled, NotAvailable
from tuimon.sources import groups, kernel, tree
from tuimon.sources.ticker import Put, Ticked, Ticker

T = TypeVar("T")


TWO = "it takes two readings"
_DENIED = "no permission to read it (a process of another user)"
_STAT = "the kernel does not let /proc/PID/stat be read"
_WHYS = {
    "cpu_percent": _DENIED,
    "host_cpu_percent": TWO,
    "rss_bytes": "no permission to read it, or the process is ending and has given its memory back",
    "threads": _DENIED,
    "read_bytes": "no permission to read /proc/PID/io (a process of another user), or the kernel does not keep it",
    "written_bytes": "no permission to read /proc/PID/io (a process of another user), or the kernel does not keep it",
    "run_queue_wait_s": "the kernel does not keep it (/proc/PID/task/TID/schedstat), or does not let it be read",
    "major_faults": _STAT,
    "minor_faults": _STAT,
    "user_s": _STAT,
    "system_s": _STAT,
    "swap_bytes": "the kernel does not tell it (VmSwap in /proc/PID/status)",
    "cores": "the system does not tell the number of its cores",
    "cores_allowed": "its affinity may not be read, and no control group of it has a CPU quota",
    "tree_cpu_percent": "its processes have not been read yet",
    "tree_rss_bytes": "its processes have not been read yet",
}
"""Field -> why it is None, where nothing better is known."""


class Gone(Exception):
    """The process is not there any more."""


class HostSource(Ticked):
    """Puts a `HostSampled` every `period` seconds until the process `pid` is gone; then it ends without a word.

    That the target ended, and how, is for the one that is attached to it to say. A pid that was given to another process in
    the meantime counts as gone.
    """

    def __init__(self, put: Put, pid: int, period: float = 1.0, totals: Callable[[], tree.Totals | None] | None = None) -> None:
        """`totals`: those of the job's processes, for where a `TreeSource` reads them."""
        self._put = put
        self._pid = pid
        self._process: psutil.Process | None = None
        self._run_queue = kernel.RunQueue(Path(f"/proc/{pid}/task"))
        self._groups = groups.Groups(pid)
        self._totals = totals
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
        stat = kernel.usage(kernel.read(Path(f"/proc/{self._pid}/stat")) or "")
        version, cpu_group, memory_group = self._groups.now()
        allowed, quota = _affinity(self._pid), cpu_group.quota_cores
        below = None if self._totals is None else self._totals()
        # asked last: the values of a process that became a zombie during the reading are zeros, not facts
        if not process.is_running() or process.status() in (psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD):
            raise Gone
        sample = HostSampled(
            t_ns=time.monotonic_ns(),
            cpu_percent=None if first else cpu,
            rss_bytes=rss,
            threads=threads,
            host_cpu_percent=None if first else host_cpu,
            host_memory_used_bytes=int(memory.total - memory.available),
            host_memory_total_bytes=int(memory.total),
            run_queue_wait_s=waited,
            major_faults=None if stat is None else stat.major_faults,
            read_bytes=None if io is None else int(io.read_bytes),
            written_bytes=None if io is None else int(io.write_bytes),
            swap_bytes=kernel.swapped_bytes(kernel.read(Path(f"/proc/{self._pid}/status")) or ""),
            throttled_s=cpu_group.throttled_s,
            pressure=kernel.pressure(),
            minor_faults=None if stat is None else stat.minor_faults,
            user_s=None if stat is None else stat.user_s,
            system_s=None if stat is None else stat.system_s,
            cores=os.cpu_count(),
            cores_allowed=min((most for most in (allowed, quota) if most is not None), default=None),
            quota_cores=quota,
            periods=cpu_group.periods,
            throttled_periods=cpu_group.throttled_periods,
            memory_limit_bytes=memory_group.limit_bytes,
            memory_group_bytes=memory_group.used_bytes,
            oom_kills=memory_group.oom_kills,
            cgroup=version,
            tree_cpu_percent=None if below is None else below.cpu_percent,
            tree_rss_bytes=None if below is None else below.rss_bytes,
        )
        return replace(sample, missing=tuple(self._missing(sample, first=first, below=below)))

    def _missing(self, sample: HostSampled, *, first: bool, below: tree.Totals | None) -> list[tuple[str, str]]:
        """(field, why) of those that could not be read. None for no limit, and for no group, is an answer."""
        whys = dict(_WHYS)
        if first:
            whys |= dict.fromkeys(("cpu_percent", "host_cpu_percent"), TWO)
        if self._totals is None:
            whys |= dict.fromkeys(("tree_cpu_percent", "tree_rss_bytes"), "the processes below it are not read")
        elif below is not None:
            whys["tree_cpu_percent"] = TWO
        found = [(field, why) for field, why in whys.items() if getattr(sample, field) is None]
        return found if self._groups.why is None else [*found, ("cgroup", self._groups.why)]

    def _failed(self, error: BaseException) -> None:
        self._put(NotAvailable(time.monotonic_ns(), "host", f"reading the host failed: {type(error).__name__}: {error}"))


def _may_be_denied(read: Callable[[], T]) -> T | None:
    """What `read` gives, or None where the kernel does not let us see it."""
    try:
        return read()
    except (psutil.AccessDenied, PermissionError, NotImplementedError):
        return None


def _affinity(pid: int) -> float | None:
    """The cores on which a process may run."""
    try:
        return float(len(os.sched_getaffinity(pid)))
    except OSError:
        return None
