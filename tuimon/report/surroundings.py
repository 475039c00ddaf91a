"""The report's part about what is around the job: GPUs and host."""

from __future__ import annotations

from collections.abc import Iterable
from statistics import median
from typing import Any

from tuimon.events import GpuSampled
from tuimon.model import Model
from tuimon.report.gaps import Gaps


def readings(values: Iterable[float | None]) -> dict[str, float] | None:
    """{last, median, max} of readings, those that failed left out; None where there is none."""
    known = [value for value in values if value is not None]
    if not known:
        return None
    return {"last": known[-1], "median": median(known), "max": max(known)}


def _single(value: float | None) -> dict[str, float | None] | None:
    """A value of which only the latest reading is kept."""
    return None if value is None else {"last": value, "median": None, "max": None}


def gpu(model: Model, gaps: Gaps) -> list[dict[str, Any]] | None:
    """`gpu`: one dict a device, or None with the reason."""
    found = model.surroundings
    if not found.gpus:
        gaps.add("gpu", found.gpu_why_not or "no reading of a GPU had come in")
        return None
    gaps.add("gpu.median", "of memory, power and clocks only the latest reading is kept")
    for sample in found.gpus.values():
        for what, why in sample.missing:
            gaps.add(f"gpu[{sample.index}].{what}", why)
    return [_gpu(sample, found.gpu_history.get(sample.index, ())) for sample in found.gpus.values()]


def _gpu(sample: GpuSampled, utilization: Iterable[float | None]) -> dict[str, Any]:
    return {
        "index": sample.index,
        "name": sample.name,
        "utilization": readings(utilization),
        "memory": _single(sample.memory_used_bytes),
        "memory_total": sample.memory_total_bytes,
        "process_memory": _single(sample.process_memory_bytes),
        "power": _single(sample.power_w),
        "power_limit": sample.power_limit_w,
        "temperature": _single(sample.temperature_c),
        "clocks": {"sm": _single(sample.sm_clock_mhz), "memory": _single(sample.memory_clock_mhz)},
        "throttle": list(sample.throttle),
    }


def host(model: Model, gaps: Gaps) -> dict[str, Any]:
    """`host`: CPU of the job in percent of a core, memory in bytes, totals since the job started."""
    sample = model.surroundings.host
    cpu = readings(model.surroundings.cpu_history)
    if sample is None:
        gaps.add("host", "no reading of the host had come in")
        return {"cpu": None, "rss": None, "run_queue_wait": None, "page_faults": None, "io": None}
    unread = {
        "cpu": cpu,
        "rss": sample.rss_bytes,
        "run_queue_wait": sample.run_queue_wait_s,
        "page_faults": sample.major_faults,
        "io": sample.read_bytes,
    }
    for name, value in unread.items():
        if value is None:
            gaps.add(f"host.{name}", "the kernel did not let it be read, or there was no time for a second reading")
    io = None
    if sample.read_bytes is not None or sample.written_bytes is not None:
        io = {"read_bytes": sample.read_bytes, "written_bytes": sample.written_bytes}
    return {
        "cpu": cpu,
        "rss": sample.rss_bytes,
        "threads": sample.threads,
        "run_queue_wait": sample.run_queue_wait_s,
        "page_faults": sample.major_faults,
        "io": io,
        "host_cpu": sample.host_cpu_percent,
        "memory_used": sample.host_memory_used_bytes,
        "memory_total": sample.host_memory_total_bytes,
    }
