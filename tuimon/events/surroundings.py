"""Events about the GPU and the host."""

from __future__ import annotations

from dataclasses import dataclass

from tuimon.events.base import Event


@dataclass(frozen=True, slots=True)
class GpuSampled(Event):
    """One reading of one GPU. A value that could not be read is None and its reason is in `missing`."""

    index: int
    name: str
    utilization: float | None
    """Percent of the driver's last period in which some kernel was resident. Not "busy"."""
    memory_used_bytes: int | None
    memory_total_bytes: int | None
    power_w: float | None = None
    power_limit_w: float | None = None
    temperature_c: float | None = None
    sm_clock_mhz: float | None = None
    sm_clock_max_mhz: float | None = None
    memory_clock_mhz: float | None = None
    throttle: tuple[str, ...] = ()
    process_memory_bytes: int | None = None
    """What the attached process holds on this GPU."""
    missing: tuple[tuple[str, str], ...] = ()
    held: tuple[tuple[int, int], ...] = ()
    """(pid, bytes) of each process with memory on this GPU; only where one reading serves several targets."""
    sm_activity: float | None = None
    """Percent, of the whole device, by GPM (Hopper and newer), as are the next ones: cycles in which an SM had a warp."""
    tensor_activity: float | None = None
    """Cycles in which the tensor pipe was active, percent."""
    dram_activity: float | None = None
    """Share of the memory's bandwidth that was used, percent."""
    fp64_activity: float | None = None
    fp32_activity: float | None = None
    fp16_activity: float | None = None
    memory_clock_max_mhz: float | None = None
    memory_bus_bits: int | None = None
    cores: int | None = None
    compute_capability: str | None = None
    """"9.0"."""


@dataclass(frozen=True, slots=True)
class GpuUnavailable(Event):
    """There is no GPU to read, and why; one sentence for the panel."""

    why: str


@dataclass(frozen=True, slots=True)
class HostSampled(Event):
    """One reading of the host and of the target's process."""

    cpu_percent: float | None
    """Of the target, 100 = one core."""
    rss_bytes: int | None
    threads: int | None
    host_cpu_percent: float | None
    """Of all cores, 0-100."""
    host_memory_used_bytes: int | None
    host_memory_total_bytes: int | None
    run_queue_wait_s: float | None = None
    """Total time the target's threads were runnable but not running, since it started."""
    major_faults: int | None = None
    read_bytes: int | None = None
    written_bytes: int | None = None
    swap_bytes: int | None = None
    """The target's memory that is swapped out."""
    throttled_s: float | None = None
    """Total time for which the container's CPU quota held it back, where the control group tells."""
    pressure: tuple[tuple[str, float], ...] = ()
    """("cpu" | "memory" | "io", percent of the last ten seconds in which some task waited for it), from /proc/pressure."""


@dataclass(frozen=True, slots=True)
class ThreadSampled(Event):
    """One reading of a thread of the target, from outside."""

    native: int
    """Its id in the kernel."""
    wait_s: float | None
    """Total time for which it was ready to run and no core was free for it (/proc/PID/task/TID/schedstat)."""
    run_s: float | None
    """Total time on a core."""
    major_faults: int | None = None
    minor_faults: int | None = None
    io_wait_s: float | None = None
    """Total time it waited for block devices (delayacct_blkio_ticks), None where the kernel does not count it."""
