"""What the report says of GPUs and host: each null in it has its reason."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tuimon import events as ev
from tuimon.model import Model
from tuimon.report import build

S = 1_000_000_000
GIB = 2**30


def gpu(t_s: float, index: int = 0, **more: Any) -> ev.GpuSampled:
    """A reading."""
    return ev.GpuSampled(int(t_s * S), index, "NVIDIA H200", **{
        "utilization": 97.0, "memory_used_bytes": 60 * GIB, "memory_total_bytes": 140 * GIB, **more
    })  # fmt: skip


def host(t_s: float, **more: Any) -> ev.HostSampled:
    """A reading."""
    return ev.HostSampled(int(t_s * S), 150.0, 2 * GIB, 9, 40.0, 8 * GIB, 64 * GIB, **more)


def nulls(value: object, place: str) -> Iterator[str]:
    """The places of all nulls below."""
    if value is None:
        yield place
    elif isinstance(value, dict):
        for key, one in value.items():
            yield from nulls(one, f"{place}.{key}")
    elif isinstance(value, list):
        for at, one in enumerate(value):
            yield from nulls(one, f"{place}[{at}]")


def report_of(*events: ev.Event) -> tuple[dict[str, Any], dict[str, str]]:
    """The report, and its reasons; fails where a null has none."""
    model = Model()
    model.apply(events)
    report = build(model)
    whys = {gap["what"]: gap["why"] for gap in report["coverage"]["not_available"]}
    if report["gpu"] is not None and model.surroundings.host is not None:
        for place in [*nulls(report["gpu"], "gpu"), *nulls(report["host"], "host")]:
            assert whys.get(place), place
    return report, whys


def test_each_null_has_its_reason_where_nothing_but_the_least_is_read() -> None:
    bare = gpu(1, utilization=None, memory_used_bytes=None, missing=(("fan_percent", "no fan"), ("processes", "hidden")))
    _, whys = report_of(bare, ev.HostSampled(S, None, None, None, None, None, None))
    assert whys["gpu[0].fan"] == "no fan" and whys["gpu[0].processes"] == "hidden"


def test_each_null_has_its_reason_where_a_part_of_everything_is_read() -> None:
    pool = ev.PoolSampled(S, 0, "GPU-a", None, 30 * GIB, 40 * GIB, inactive_split_bytes=4 * GIB)
    sample = gpu(
        1, uuid="GPU-a", ecc_corrected=0, pcie_rx_bytes_s=1.0, mig_mode=True, job=(7,), job_how="pid",
        process_memory_bytes=42 * GIB,
        processes=(ev.GpuProcess(7, 42 * GIB, 90.0), ev.GpuProcess(8, None)),
    )  # fmt: skip
    part = ev.MigSampled(S, 0, 1, "H200 MIG 1g.18gb", "1g.18gb", None, 3, 0, 5, 6)
    tree = ev.ProcessTreeSampled(S, (ev.TreeRow(7, 1, "job", "python", None, None, ""),))
    threads = [ev.ThreadSampled(at * S, 7, None, float(at)) for at in (1, 2, 3, 4)]
    report, _ = report_of(sample, part, pool, ev.XidSeen(S, 0, 79), tree, *threads, host(4, cgroup="v2", quota_cores=2.0))
    found = report["gpu"][0]
    assert found["processes"][0] == {"pid": 7, "memory": 42 * GIB, "sm": 90.0, "job": True}
    assert found["process_memory_how"] == "pid"
    assert found["pool"]["fragmentation"] == 0.1 and found["pool"]["outside"] == 2 * GIB
    assert found["mig"][0]["profile"] == "1g.18gb" and found["xids"][0]["xid"] == 79
    assert report["host"]["threads_busy"][0]["cpu"] == 1.0


def test_readings_are_told_by_last_median_and_most() -> None:
    report, whys = report_of(*[gpu(at, power_w=watts) for at, watts in enumerate((100.0, 300.0, 200.0))], host(3))
    assert report["gpu"][0]["power"] == {"last": 200.0, "median": 200.0, "max": 300.0}
    assert "gpu.median" not in whys


def test_energy_is_what_was_spent_while_watched_also_where_the_counter_ran_back() -> None:
    report, _ = report_of(*[gpu(at, energy_j=joules) for at, joules in enumerate((500.0, 800.0, 10.0, 60.0))], host(3))
    assert report["gpu"][0]["energy_j"] == 350.0


def test_the_share_of_a_reason_leaves_out_readings_that_did_not_tell() -> None:
    unread = gpu(3, missing=(("throttle", "no permission"),))
    report, _ = report_of(gpu(1, throttle=("power cap",)), gpu(2), unread, host(3))
    assert report["gpu"][0]["throttle_share"] == {"power cap": 0.5}


def test_without_a_gpu_there_is_the_sentence() -> None:
    report, whys = report_of(ev.GpuUnavailable(S, "no NVIDIA driver on this machine", "no driver"), host(1))
    assert report["gpu"] is None and whys["gpu"] == "no NVIDIA driver on this machine"


def test_a_driver_that_has_not_answered_is_said_so() -> None:
    _, whys = report_of(ev.GpuSilent(S, None, 5.0, "nvmlInit_v2"))
    assert whys["gpu"] == "NVML had not answered for 5 s (nvmlInit_v2)"


def test_the_part_of_periods_that_a_quota_held_back() -> None:
    first = host(1, cgroup="v2", quota_cores=2.0, periods=100, throttled_periods=10, throttled_s=1.0)
    last = host(11, cgroup="v2", quota_cores=2.0, periods=200, throttled_periods=60, throttled_s=9.0)
    report, _ = report_of(first, last)
    assert report["host"]["cgroup"]["throttled_share"] == 0.5
