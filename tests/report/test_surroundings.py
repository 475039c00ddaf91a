"""What the report says of GPUs and host: each null in it has its reason."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.report.jobs import reported
from tuimon import events as ev
from tuimon.model import Model
from tuimon.report import machine, render

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
    report = reported(model)
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


def test_a_gpu_that_does_not_answer_is_a_row_and_its_readings_are_not_taken_for_new() -> None:
    silent = [ev.GpuSilent(9 * S, 0, 8.0, "nvmlDeviceGetHandleByIndex"), ev.GpuSilent(9 * S, 1, 4.0, "")]
    report, whys = report_of(gpu(5, index=1), gpu(9, index=2), host(9), *silent)
    rows = report["gpu"]
    assert [(row["index"], row["silent_s"]) for row in rows] == [(0, 8.0), (1, 4.0), (2, None)]
    assert rows[0]["utilization"] is None and rows[1]["utilization"]["last"] == 97.0
    assert whys["gpu[0].utilization"] == "NVML had not answered for 8 s (nvmlDeviceGetHandleByIndex)"
    assert whys["gpu[1]"] == "NVML had not answered for 4 s: its readings are older"
    told = [machine.gpu(row)[0] for row in rows]
    assert told[0] == "GPU 0, utilization not readable, not answering for 8 s"
    assert "not answering for 4 s, the rest is older" in told[1] and "answering" not in told[2]


def test_the_part_of_periods_that_a_quota_held_back() -> None:
    first = host(1, cgroup="v2", quota_cores=2.0, periods=100, throttled_periods=10, throttled_s=1.0)
    last = host(11, cgroup="v2", quota_cores=2.0, periods=200, throttled_periods=60, throttled_s=9.0)
    report, _ = report_of(first, last)
    assert report["host"]["cgroup"]["throttled_share"] == 0.5


def told_by(*events: ev.Event) -> dict[str, str]:
    """The forms for people, each as one line."""
    report, _ = report_of(*events)
    return {form: " ".join(render(report, form).replace("`", "").split()) for form in ("text", "md")}


def test_people_are_told_what_is_known_of_the_machine_in_a_few_lines() -> None:
    pool = ev.PoolSampled(S, 0, "GPU-a", None, 30 * GIB, 40 * GIB, inactive_split_bytes=4 * GIB, allocated_peak_bytes=35 * GIB)
    more: dict[str, Any] = {
        "uuid": "GPU-a", "sm_activity": 41.0, "tensor_activity": 18.0, "power_w": 610.0, "power_limit_w": 700.0,
        "job_how": "only", "process_memory_bytes": 42 * GIB, "processes": (ev.GpuProcess(8, 5 * GIB),), "ecc_uncorrected": 2,
        "sm_clock_mhz": 1410.0, "sm_clock_max_mhz": 1980.0, "temperature_c": 71.0, "pcie_rx_bytes_s": 3.0 * GIB,
        "mig_mode": True,
    }  # fmt: skip
    first, last = gpu(1, energy_j=0.0, throttle=("idle",), **more), gpu(2, energy_j=4000.0, throttle=("power cap",), **more)
    part = ev.MigSampled(2 * S, 0, 1, "H200 MIG 1g.18gb", "1g.18gb", None, 3, 0, 5 * GIB, 16 * GIB)
    rows = [ev.TreeRow(7, 1, "job", "python", 90.0, GIB, "running")]
    rows += [ev.TreeRow(at, 7, "loader worker", "pt_data_worker", 50.0, GIB, "running") for at in (8, 9)]
    rows += [ev.TreeRow(10, 7, "other", "sh", None, None, "")]
    group = {"cgroup": "v2", "quota_cores": 2.0, "memory_limit_bytes": 10 * GIB, "memory_group_bytes": 4 * GIB, "cores": 64,
             "cores_allowed": 2.0}  # fmt: skip
    hosts = [host(1, periods=0, throttled_periods=0, throttled_s=0.0, **group),
             host(2, periods=10, throttled_periods=5, throttled_s=9.0, run_queue_wait_s=12.0, **group)]  # fmt: skip
    threads = [ev.ThreadSampled(at * S, 7, 0.0, 0.5 * at, name="python") for at in (1, 2, 3, 4)]
    tree = ev.ProcessTreeSampled(S, tuple(rows))
    for form, told in told_by(first, last, part, pool, ev.XidSeen(S, 0, 79), tree, *threads, *hosts).items():
        for words in (
            "SM activity 41.0%, tensor activity 18.0%", "610 of 700 W",
            "~42.0 GiB (the only process there)", "30.0 GiB allocated, 35.0 GiB at most, 40.0 GiB reserved",
            "10.0% of it free in pieces", "2.00 GiB beside the pool", "SM clock 1410 of 1980 MHz", "4.00 kJ while watched",
            "power cap in 50.0% of the readings", "PCIe 3.00 GiB/s in", "other processes there: 8 5.00 GiB", "2 memory errors",
            "XID 79", "MIG 1 1g.18gb, memory 5.00 GiB", "may use 2 of 64 cores", "waited 12.0 s for a core",
            "CPU quota 2 cores, held back for 9.00 s (in 50.0% of its periods)",
            "memory 4.00 GiB of 10.0 GiB", "busiest threads, in cores: python 0.50", "2 loader workers (100% CPU, 2.00 GiB)",
            "1 other process",
        ):  # fmt: skip
            assert words in told, (form, words, told)
        assert "idle" not in told


def test_people_are_not_told_of_what_is_not_there() -> None:
    for told in told_by(gpu(1), host(1)).values():
        machine = told[told.index("GPU 0 NVIDIA H200") :].partition("60.0 GiB of 140 GiB")[2][:40]
        assert machine.startswith((" Watching", " - 0 samples")), machine
