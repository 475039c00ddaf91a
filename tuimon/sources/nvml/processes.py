"""The processes on a GPU, as the driver lists them, and which of them are the target's."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tuimon.events import GpuProcess
from tuimon.sources.nvml import words
from tuimon.sources.nvml.readers import Absent, Calls, number

_NONE = 0xFFFFFFFF
_LAST_US = 1 << 62
"""A time that is none."""
_IDLE = (0, 6)
"""What the driver answers where no process has a sample: "found none", or success with an empty list, which the binding
turns into an error of that number."""


def listed(nvml: Any, calls: Calls, handle: Any) -> tuple[GpuProcess, ...]:
    """The driver's list. Raises Absent where it cannot be read, and the binding's NVMLError."""
    # the call without a version in its name is not used: the binding lets it fail with an exception of another family
    try:
        processes = calls(nvml.nvmlDeviceGetComputeRunningProcesses_v3, handle)
    except nvml.NVMLError as error:
        if error.value != words.FUNCTION_NOT_FOUND:
            raise
        processes = calls(nvml.nvmlDeviceGetComputeRunningProcesses_v2, handle)
    if any(process.pid in (0, _NONE) for process in processes):
        # drivers of the 535 line changed the structure without a new version: then every entry is shifted
        raise Absent("this driver's process list cannot be read")
    return tuple(
        GpuProcess(
            int(process.pid),
            _bytes(process.usedGpuMemory),
            None,
            _instance(process.gpuInstanceId),
            _instance(process.computeInstanceId),
        )
        for process in processes
    )


def _bytes(value: Any) -> int | None:
    try:
        return None if value is None else number(value)
    except Absent:
        return None


def _instance(value: Any) -> int | None:
    return None if value is None or int(value) == _NONE else int(value)


class Use:
    """How much of a GPU each process has had since the last look."""

    def __init__(self) -> None:
        self._newest_us = 0

    def read(self, nvml: Any, calls: Calls, handle: Any) -> tuple[dict[int, float]]:
        """({pid: percent of the time in which a kernel of it ran}). Raises NVMLError."""
        try:
            samples = calls(nvml.nvmlDeviceGetProcessUtilization, handle, self._newest_us)
        except nvml.NVMLError as error:
            if error.value not in _IDLE:
                raise
            return ({},)
        last, newest = self._newest_us, {}
        for sample in sorted(samples, key=lambda one: int(one.timeStamp)):
            # a stamp that stands for "none" would make all that follow look old
            if last < int(sample.timeStamp) < _LAST_US and sample.pid and int(sample.smUtil) <= 100:
                newest[int(sample.pid)] = float(sample.smUtil)
                self._newest_us = max(self._newest_us, int(sample.timeStamp))
        return (newest,)


def not_listed(pid: int) -> str:
    """Why it is not known what process `pid` holds on a GPU whose list can be read."""
    return f"process {pid} is not in the GPU's list (inside a container the list has the host's pids)"


_FIRST_NAMESPACE = "pid:[4026531836]"
"""That of the host: its number is fixed in the kernel (PROC_PID_INIT_INO)."""

UNSEEN = "whether the process has it open cannot be seen"
_UNTOLD = "the driver does not tell the memory of a process"


def held(processes: Sequence[GpuProcess]) -> tuple[tuple[int, int], ...]:
    """(pid, bytes) of each process. Raises Absent if the driver does not tell them of one."""
    of: dict[int, int] = {}
    for process in processes:
        if process.memory_bytes is None:
            raise Absent(_UNTOLD)
        of[process.pid] = of.get(process.pid, 0) + process.memory_bytes  # one entry for each GPU instance
    return tuple(of.items())


def _is_here(pid: int) -> bool:
    """Whether there is such a process in the namespace of this one; also one that /proc hides (hidepid)."""
    try:
        os.kill(pid, 0)  # no signal: it is only looked whether one could be sent
    except PermissionError:
        return True
    except (OSError, OverflowError):
        return Path(f"/proc/{pid}").exists()
    return True


def _sees_all() -> bool:
    """Whether pids here are those of the driver's list: then one that is not here is of nobody that lives."""
    try:
        return os.readlink("/proc/self/ns/pid") == _FIRST_NAMESPACE
    except OSError:
        return False


@dataclass(frozen=True, slots=True)
class Job:
    """The target: its pid, the pids of its family (itself too), and the minors of the GPUs that it has open."""

    pid: int
    family: Callable[[], frozenset[int]] | None = None
    opened: Callable[[], frozenset[int] | None] | None = None

    def here(self, minor: int | None) -> bool | None:
        """Whether it has the GPU with this minor open; None if that cannot be seen."""
        minors = self.opened() if self.opened is not None else None
        return None if minors is None or minor is None else minor in minors

    def pids(self) -> frozenset[int]:
        """Its own, and those of its children where they are asked for."""
        return (self.family() if self.family is not None else frozenset()) | {self.pid}

    def of_part(self, processes: Sequence[GpuProcess]) -> int | str:
        """The bytes that it holds on a MIG device with these processes, or why that is not known."""
        pids = self.pids()
        sizes = [process.memory_bytes for process in processes if process.pid in pids]
        if not sizes:
            return not_listed(self.pid)
        return _UNTOLD if None in sizes else sum(size for size in sizes if size is not None)

    def on(self, minor: int | None, processes: Sequence[GpuProcess]) -> tuple[dict[str, Any], dict[str, str]]:
        """Its fields of `GpuSampled` on the GPU with this minor and these processes, and the reasons for those it lacks."""
        pids = self.pids()
        ours = [process for process in processes if process.pid in pids]
        here = True if ours else self.here(minor)
        values: dict[str, Any] = {"job_here": here}
        missing = {} if here is not None else {"job_here": UNSEEN}
        how = "pid"
        alone = len({process.pid for process in processes}) == 1
        if not ours and here and alone and not _is_here(processes[0].pid) and not _sees_all():
            ours, how = list(processes), "only"
        if not ours:
            missing["process_memory_bytes"] = missing["job_sm_percent"] = not_listed(self.pid)
            return values, missing
        if how == "pid":
            values["job"] = tuple(sorted({process.pid for process in ours}))
        sizes = [process.memory_bytes for process in ours]
        if None in sizes:
            missing["process_memory_bytes"] = _UNTOLD
        else:
            values.update(process_memory_bytes=sum(size for size in sizes if size is not None), job_how=how)
        shares = {process.pid: process.sm_percent for process in ours if process.sm_percent is not None}
        if shares:
            values["job_sm_percent"] = min(100.0, sum(shares.values()))
        else:
            missing["job_sm_percent"] = "the driver has told no use of it"
        return values, missing
