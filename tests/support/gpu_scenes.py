"""The machine around a made-up job: GPUs, parts of them, pools, the host, its control group, threads and processes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tests.support.fake_feed import S, busy
from tuimon import events as ev

GIB = 1 << 30
READINGS = 60
WHY_NO_GPM = "not on this GPU: Hopper and newer have it"


def _base() -> tuple[list[ev.Event], int]:
    """The busy job without what it says of GPUs and its host, and when it ends."""
    events = [event for event in busy() if not isinstance(event, (ev.GpuUnavailable, ev.HostSampled))]
    return events, max(event.t_ns for event in events)


def host(t: int, at: int = 0, **more: Any) -> ev.HostSampled:
    """The job's process and its host in the `at`-th second."""
    values: dict[str, Any] = {
        "cpu_percent": 310.0 + 40 * (at % 5),
        "rss_bytes": 9 * GIB + at * (1 << 20),
        "threads": 143,
        "host_cpu_percent": 41.0,
        "host_memory_used_bytes": 212 * GIB,
        "host_memory_total_bytes": 503 * GIB,
        "run_queue_wait_s": 1.25 + 0.04 * at,
        "major_faults": 12,
        "minor_faults": 1_840_000,
        "read_bytes": 412 * GIB,
        "written_bytes": 3 * GIB,
        "cores": 64,
        "cores_allowed": 64.0,
    }
    return ev.HostSampled(t, **{**values, **more})


def processes(t: int, loaders: int = 8, compilers: int = 2) -> ev.ProcessTreeSampled:
    """The job with loader workers, a pool of compile workers, and what one of them has started."""
    rows = [ev.TreeRow(4242, 4200, "job", "python", 352.0, 9 * GIB, "running", 3.6, 0.0)]
    for at in range(loaders):
        rows.append(
            ev.TreeRow(4301 + at, 4242, "loader worker", "pt_data_worker", 88.0 - 9 * at, 900 << 20, "sleeping", 0.2 * at, 61e6)
        )
    for at in range(compilers):
        rows.append(ev.TreeRow(4400 + at, 4242, "compile worker", "python", 0.0, 380 << 20, "sleeping", 0.01, 0.0))
    rows.append(ev.TreeRow(4500, 4400, "other", "ptxas", 97.0, 120 << 20, "running", 0.0, 0.0))
    return ev.ProcessTreeSampled(t, tuple(rows))


def threads(t: int, second: int) -> list[ev.Event]:
    """Its busiest threads, as they stand in that second."""
    known = (
        (4242, "python", 0.97, 0.01),
        (4250, "pt_autograd_0", 0.81, 0.02),
        (4261, "pin_memory", 0.22, 0.6),
        (4270, "tensorboard", 0.01, 0.0),
    )
    return [
        ev.ThreadSampled(t, tid, wait * second, run * second, name=name, core=3 + tid % 7) for tid, name, run, wait in known
    ]


def around(end: int, **more: Any) -> list[ev.Event]:
    """Host, tree and threads over the readings."""
    out: list[ev.Event] = []
    for second in range(READINGS):
        t = end + second * S
        out += threads(t, second)
        out.append(host(t, second, **{name: value(second) if callable(value) else value for name, value in more.items()}))
        if second % 2 == 0:
            out.append(processes(t))
    return out


def gpu(t: int, index: int = 0, at: int = 0, **more: Any) -> ev.GpuSampled:
    """One reading of an H100 that the job uses."""
    values: dict[str, Any] = {
        "name": "NVIDIA H100 80GB HBM3",
        "utilization": float(99 - (index * 5 + at * 7) % 13),
        "memory_used_bytes": (62 + index) * GIB,
        "memory_total_bytes": 80 * GIB,
        "power_w": 611.0 + index,
        "power_limit_w": 700.0,
        "temperature_c": 64.0 + index,
        "sm_clock_mhz": 1980.0,
        "sm_clock_max_mhz": 1980.0,
        "memory_clock_mhz": 2619.0,
        "memory_clock_max_mhz": 2619.0,
        "process_memory_bytes": 59 * GIB,
        "sm_activity": 41.0 + (at * 3) % 9,
        "tensor_activity": 18.0 + at % 5,
        "dram_activity": 55.0 - at % 7,
        "sm_occupancy": 33.0,
        "cores": 16896,
        "compute_capability": "9.0",
        "uuid": f"GPU-0000000{index}-1111-2222-3333-444444444444",
        "minor": index,
        "pci_bus_id": f"00000000:{0x3B + index:02X}:00.0",
        "memory_reserved_bytes": 600 << 20,
        "energy_j": 1.0e6 + 611.0 * at,
        "ecc_corrected": 0,
        "ecc_uncorrected": 0,
        "nvlink_rx_bytes_s": 120e9,
        "nvlink_tx_bytes_s": 118e9,
        "mig_mode": False,
        "processes": (ev.GpuProcess(4242, 59 * GIB, 96.0), ev.GpuProcess(7011, 2 * GIB, 1.0)),
        "job": (4242,),
        "job_how": "pid",
        "job_here": True,
        "took_s": 0.0032,
        "missing": (
            ("fan_percent", "not supported on this GPU"),
            ("pcie_rx_bytes_s", "only with --pcie: it blocks the driver"),
        ),
    }
    return ev.GpuSampled(t, index, **{**values, **more})


def _with(change: Callable[[int, int], dict[str, Any] | None], count: int, **of_host: Any) -> list[ev.Event]:
    """So many GPUs over the readings; `change(index, reading)` gives what differs, None: no reading."""
    events, end = _base()
    for at in range(READINGS):
        for index in range(count):
            differs = change(index, at)
            if differs is not None:
                events.append(gpu(end + at * S, index, at, **differs))
    return [*events, *around(end, **of_host)]


def pool_event(t: int, index: int = 0, **more: Any) -> ev.PoolSampled:
    """The job's pool on that GPU."""
    values: dict[str, Any] = {
        "device": index,
        "uuid": f"0000000{index}-1111-2222-3333-444444444444",
        "pci_bus_id": None,
        "allocated_bytes": 41 * GIB,
        "reserved_bytes": 57 * GIB,
        "active_bytes": 43 * GIB,
        "inactive_split_bytes": 6 * GIB,
        "allocated_peak_bytes": 55 * GIB,
        "retries": 0,
        "ooms": 0,
        "backend": "native",
    }
    return ev.PoolSampled(t, **{**values, **more})


def no_gpu() -> list[ev.Event]:
    """A host without a GPU: the job in a container with a quota that holds it back."""
    events, end = _base()
    events.append(ev.GpuUnavailable(end, "no NVIDIA driver on this machine (libnvidia-ml.so.1 not found)", "no driver"))
    return [
        *events,
        *around(
            end,
            cores_allowed=4.0,
            quota_cores=4.0,
            periods=lambda second: 6000 + 10 * second,
            throttled_periods=lambda second: 900 + 3 * second,
            throttled_s=lambda second: 12.0 + 0.3 * second,
            memory_limit_bytes=16 * GIB,
            memory_group_bytes=14 * GIB,
            oom_kills=0,
            cgroup="v2",
        ),
    ]


def one() -> list[ev.Event]:
    """One GPU with everything that can be told, and the job's pool."""
    events = _with(lambda index, at: {}, 1)
    return [*events, pool_event(events[-1].t_ns)]


def eight() -> list[ev.Event]:
    """Eight: the job on the first four, one hot, one held back, one nearly full, one at rest."""

    def change(index: int, at: int) -> dict[str, Any]:
        if index == 7:
            return {
                "utilization": 0.0,
                "sm_activity": 0.0,
                "tensor_activity": 0.0,
                "dram_activity": 0.0,
                "power_w": 71.0,
                "memory_used_bytes": 4 << 20,
                "processes": (),
                "job": (),
                "job_how": "",
                "process_memory_bytes": None,
                "job_here": False,
                "throttle": ("idle",),
                "sm_clock_mhz": 345.0,
                "temperature_c": 31.0,
            }
        out: dict[str, Any] = {}
        if index >= 4:
            out |= {"job": (), "job_how": "", "process_memory_bytes": None, "job_here": False}
        if index == 2:
            out |= {"temperature_c": 91.0}
        if index == 3:
            out |= {"throttle": ("power cap",), "sm_clock_mhz": 1395.0, "power_w": 699.0}
        if index == 5:
            out |= {"memory_used_bytes": 79 * GIB}
        return out

    return _with(change, 8)


def mig() -> list[ev.Event]:
    """A GPU in MIG mode with four parts, of which the job uses one."""
    no_use = "not told of a GPU in MIG mode; see its parts"
    none = dict.fromkeys(("sm_activity", "tensor_activity", "dram_activity", "sm_occupancy", "utilization"))
    events = _with(
        lambda index, at: {
            **none,
            "mig_mode": True,
            "name": "NVIDIA A100-SXM4-80GB",
            "missing": (("utilization", no_use),),
            "power_w": 214.0,
            "power_limit_w": 400.0,
            "sm_clock_mhz": 1410.0,
            "sm_clock_max_mhz": 1410.0,
            "memory_used_bytes": 29 * GIB,
            "process_memory_bytes": 17 * GIB,
            "compute_capability": "8.0",
        },
        1,
    )
    last = events[-1].t_ns
    profiles: Sequence[tuple[str, int, int]] = (("3g.40gb", 39, 18), ("2g.20gb", 19, 9), ("1g.10gb", 9, 1), ("1g.10gb", 9, 0))
    for number, (profile, total, used) in enumerate(profiles):
        events.append(
            ev.MigSampled(
                last,
                0,
                number,
                f"NVIDIA A100-SXM4-80GB MIG {profile}",
                profile,
                f"MIG-{number}",
                number + 1,
                0,
                used * GIB,
                total * GIB,
                14 * int(profile[0]),
                process_memory_bytes=17 * GIB if number == 0 else None,
                missing=(("sm_activity", WHY_NO_GPM),),
            )
        )
    return events


def lost() -> list[ev.Event]:
    """Four GPUs, of which the third falls off the bus half way, with its XID."""
    why = "GPU lost: it fell off the bus (see dmesg for its XID)"
    known = ("utilization", "power_w", "power_limit_w", "temperature_c", "sm_clock_mhz", "energy_j", "took_s")
    sizes = ("memory_used_bytes", "memory_total_bytes", "process_memory_bytes")
    gone = dict.fromkeys((*known, *sizes, "sm_activity", "tensor_activity", "dram_activity"))
    events = _with(
        lambda index, at: (
            {**gone, "lost": why, "missing": (("gpu", why),), "processes": (), "job": ()} if index == 2 and at > 30 else {}
        ),
        4,
    )
    last = events[-1].t_ns
    return [*events, ev.XidSeen(last - 29 * S, 2, 79)]


def silent() -> list[ev.Event]:
    """Two GPUs, of which the second has not answered for twelve seconds."""
    events = _with(lambda index, at: {} if index == 0 or at < 48 else None, 2)
    last = events[-1].t_ns
    return [
        *events,
        *(ev.GpuSilent(last - (10 - second) * S, 1, 2.0 + second, "nvmlDeviceGetPowerUsage") for second in range(11)),
    ]


def container() -> list[ev.Event]:
    """An Ampere card in a container that shows the host's pids: what the job holds is taken from the only process there."""
    none = dict.fromkeys(
        ("sm_activity", "tensor_activity", "dram_activity", "sm_occupancy", "nvlink_rx_bytes_s", "nvlink_tx_bytes_s")
    )
    return _with(
        lambda index, at: {
            **none,
            "name": "NVIDIA A100-SXM4-80GB",
            "job": (),
            "job_how": "only",
            "process_memory_bytes": 61 * GIB,
            "processes": (ev.GpuProcess(1_832_004, 61 * GIB),),
            "missing": (("activity", WHY_NO_GPM),),
        },
        1,
        cores_allowed=8.0,
        quota_cores=8.0,
        memory_limit_bytes=64 * GIB,
        memory_group_bytes=62 * GIB,
        cgroup="v2",
    )


def pool() -> list[ev.Event]:
    """Two GPUs of which the job uses the first; its pool is fragmented and had to be emptied."""
    apart = {"job": (), "job_how": "", "process_memory_bytes": None, "job_here": False, "processes": ()}
    events = _with(lambda index, at: {} if index == 0 else apart, 2)
    return [*events, pool_event(events[-1].t_ns, inactive_split_bytes=19 * GIB, retries=3, ooms=1)]


MACHINES: dict[str, Callable[[], list[ev.Event]]] = {
    "no-gpu": no_gpu,
    "one": one,
    "eight": eight,
    "mig": mig,
    "lost": lost,
    "silent": silent,
    "container": container,
    "pool": pool,
}
"""Name -> events."""
