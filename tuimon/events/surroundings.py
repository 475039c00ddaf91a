"""Events about the GPUs, the host and the processes of the job, as they are seen from outside.

A value that could not be read is None and its reason stands in `missing` under the name of its field.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

from tuimon.events.base import Event


class GpuProcess(NamedTuple):
    """A process that the driver lists on a GPU. Its pid is one of the driver's namespace: seen from a container, the host's."""

    pid: int
    memory_bytes: int | None
    sm_percent: float | None = None
    """Percent of the driver's last period in which a kernel of it ran."""
    gpu_instance: int | None = None
    compute_instance: int | None = None


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
    uuid: str | None = None
    """"GPU-..": the same in every process, which the index is not."""
    minor: int | None = None
    """The N of /dev/nvidiaN."""
    pci_bus_id: str | None = None
    memory_reserved_bytes: int | None = None
    """What the driver keeps for itself; not in `memory_used_bytes`."""
    energy_j: float | None = None
    """Since the driver was loaded."""
    power_mean_w: float | None = None
    """Energy by time since the reading before."""
    fan_percent: float | None = None
    ecc_corrected: int | None = None
    """Since the driver was loaded, as the next."""
    ecc_uncorrected: int | None = None
    pcie_rx_bytes_s: float | None = None
    pcie_tx_bytes_s: float | None = None
    nvlink_rx_bytes_s: float | None = None
    """All links together, as the next."""
    nvlink_tx_bytes_s: float | None = None
    sm_occupancy: float | None = None
    """Warps that were resident on the SMs, percent of the most, by GPM."""
    mig_mode: bool | None = None
    virtual: Literal["", "vgpu", "passthrough", "wsl"] = ""
    processes: tuple[GpuProcess, ...] = ()
    """All that the driver lists; where the list could not be read, "processes" is in `missing`."""
    job: tuple[int, ...] = ()
    """Those pids of `processes` that are the target or its children."""
    job_sm_percent: float | None = None
    """`GpuProcess.sm_percent` of these, together; at most 100."""
    job_how: Literal["", "pid", "only", "pool"] = ""
    """How `process_memory_bytes` was had: the pid is listed; it is the only process of a GPU that the job has open; by the size
    of the job's own pool. The latter two are inferences."""
    job_here: bool | None = None
    """Whether the job has this GPU open."""
    lost: str | None = None
    """Why it is gone for good."""
    took_s: float | None = None
    """What this reading took in the driver."""


@dataclass(frozen=True, slots=True)
class GpuUnavailable(Event):
    """There is no GPU to read, and why; one sentence for the panel."""

    why: str
    kind: Literal["", "no driver", "not loaded", "mismatch", "no permission", "no gpu", "lost", "binding", "wsl"] = ""


@dataclass(frozen=True, slots=True)
class MigSampled(Event):
    """One reading of one MIG device, a part of a GPU. It follows its GPU's `GpuSampled`."""

    gpu: int
    number: int
    name: str
    profile: str
    """"1g.10gb", or empty."""
    uuid: str | None
    gpu_instance: int | None
    compute_instance: int | None
    memory_used_bytes: int | None
    memory_total_bytes: int | None
    sms: int | None = None
    process_memory_bytes: int | None = None
    sm_activity: float | None = None
    """By GPM, of this GPU instance, percent, as the next ones."""
    tensor_activity: float | None = None
    dram_activity: float | None = None
    missing: tuple[tuple[str, str], ...] = ()
    """"part" in it: this one is no longer there; it is told once."""
    held: tuple[tuple[int, int], ...] = ()
    """As `GpuSampled.held`."""


@dataclass(frozen=True, slots=True)
class GpuSilent(Event):
    """A call into the driver has not come back, or calls take so long that a reading is late; told once a second by a thread
    that does not wait for it."""

    index: int | None
    """None: while NVML is started or GPUs are counted."""
    since_s: float | None
    """For how long; None: it answers again."""
    call: str
    """The name of the function; empty between two calls."""


@dataclass(frozen=True, slots=True)
class XidSeen(Event):
    """The driver has reported an XID error."""

    index: int | None
    xid: int
    gpu_instance: int | None = None


@dataclass(frozen=True, slots=True)
class PoolSampled(Event):
    """The caching allocator of the job on one of its devices, as torch tells it."""

    device: int
    """The number by which the job calls it; not the driver's index."""
    uuid: str | None
    pci_bus_id: str | None
    allocated_bytes: int
    reserved_bytes: int
    active_bytes: int | None = None
    inactive_split_bytes: int | None = None
    """In blocks that are free but cannot be given back, as a part of them is in use."""
    allocated_peak_bytes: int | None = None
    retries: int | None = None
    """Times that an allocation had to give all cached blocks back first."""
    ooms: int | None = None
    backend: str = ""


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
    minor_faults: int | None = None
    user_s: float | None = None
    """Time on a core since it started, all its threads together, as the next."""
    system_s: float | None = None
    cores: int | None = None
    """Of the host."""
    cores_allowed: float | None = None
    """For the target: by its affinity and by the quotas of all control groups above it."""
    quota_cores: float | None = None
    """The least CPU quota of these groups; None: none."""
    periods: int | None = None
    """Periods of that quota so far, and those in which it held the group back."""
    throttled_periods: int | None = None
    memory_limit_bytes: int | None = None
    """The least memory limit of these groups; None: none."""
    memory_group_bytes: int | None = None
    """What is in use in that group."""
    oom_kills: int | None = None
    cgroup: Literal["", "v1", "v2"] = ""
    tree_cpu_percent: float | None = None
    """Of the target and all processes below it."""
    tree_rss_bytes: int | None = None
    """The same; pages that they share are counted in each."""
    missing: tuple[tuple[str, str], ...] = ()


class TreeRow(NamedTuple):
    """A process of the job's tree."""

    pid: int
    parent: int
    kind: Literal["job", "loader worker", "compile worker", "worker", "other"]
    name: str
    cpu_percent: float | None
    """100 = one core; None in its first reading."""
    rss_bytes: int | None
    state: Literal["running", "sleeping", "disk", "stopped", "zombie", "idle", ""]
    run_queue_wait_s: float | None = None
    """For which its threads were ready to run and had no core, since they started; of threads that ended before it was first
    seen nothing is known."""
    io_bytes_s: float | None = None


@dataclass(frozen=True, slots=True)
class ProcessTreeSampled(Event):
    """The target and the processes below it, itself first, then the busiest."""

    rows: tuple[TreeRow, ...]
    left_out: int = 0
    """Further ones that are not told."""


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
    name: str = ""
    """Its name in the kernel, at most 15 characters."""
    core: int | None = None
    """The one it was on last."""
    stopped: str = ""
    """By what it was held when this was read: "signal" (SIGSTOP, Ctrl-Z) or "tracer" (a debugger); empty where by nothing."""
