"""The threads that read the machine around one job: its GPUs, the host, the job's threads and its processes."""

from __future__ import annotations

import threading
import time

import psutil

from tuimon.sources import gpu_use
from tuimon.sources.host import HostSource
from tuimon.sources.nvml.shared import SharedGpus
from tuimon.sources.nvml.source import NvmlSource
from tuimon.sources.threads import ThreadSource
from tuimon.sources.ticker import Put
from tuimon.sources.tree import TreeSource


class Around:
    """What is read of a process of this host. `start`, then `stop`, which may be called more than once."""

    def __init__(self, put: Put, pid: int, shared: SharedGpus | None = None, *, pcie: bool = False) -> None:
        """`shared`: where the readings of the GPUs come from, if several jobs are watched. `pcie`: read what goes over PCIe,
        where these are read for this job alone."""
        self.pid = pid
        self._put = put
        self._shared = shared
        self._family, self._opened = gpu_use.family(pid), gpu_use.opened(pid)
        self._nvml: NvmlSource | None = None
        if shared is None:
            self._nvml = NvmlSource(put, pid, pcie=pcie, family=self._family, opened=self._opened)
        self._tree = TreeSource(put, pid)
        self.host = HostSource(put, pid, totals=self._tree.totals)
        self._threads = ThreadSource(put, pid)

    def start(self) -> None:
        """Start the threads; returns at once."""
        if self._shared is not None:
            self._shared.join(self.pid, self._put, self._family, self._opened)
        if self._nvml is not None:
            self._nvml.start()
        for source in (self._tree, self.host, self._threads):
            source.start()

    def stop(self) -> None:
        """End them; one that hangs in the driver is left to itself."""
        if self._shared is not None:
            self._shared.leave(self.pid, self._put)
        for source in (self._nvml, self.host, self._threads, self._tree):
            if source is not None:
                source.stop()

    def nvml_waiting(self) -> float | None:
        """Seconds that NVML has not answered, None where it does."""
        source = self._shared or self._nvml
        return source.waiting_since() if source is not None else None


def gone_within(pid: int, seconds: float) -> bool:
    """Whether the process ends, or is a zombie, within so many seconds."""
    deadline = time.monotonic() + seconds
    pause = threading.Event()
    while True:
        try:
            if psutil.Process(pid).status() in (psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD):
                return True
        except psutil.Error:
            return True
        if time.monotonic() >= deadline:
            return False
        pause.wait(0.02)


def halted(pid: int) -> str | None:
    """Why a process may say nothing, as far as the system tells: "stopped", "stopped by a debugger"; None: no idea."""
    try:
        status = psutil.Process(pid).status()
    except psutil.Error:
        return None
    words: dict[str, str] = {psutil.STATUS_STOPPED: "stopped", psutil.STATUS_TRACING_STOP: "stopped by a debugger"}
    return words.get(status)
