"""The report's part about GPUs: one dict a device."""

from __future__ import annotations

from collections.abc import Iterable
from statistics import median
from typing import Any

from tuimon.events import GpuSampled, GpuSilent, MigSampled
from tuimon.model import Model
from tuimon.model.gpus import JobGpu, fragmentation, of_job
from tuimon.model.surroundings import GpuTracks
from tuimon.model.xids import xid_words
from tuimon.report.gaps import Gaps

UTILIZATION = "the part of the driver's last period in which a kernel was resident; not how busy the GPU was"
IDLE = "idle"
"""A reason for low clocks, as the driver counts them; nothing is held back by it."""
UNREAD = "no reading of it had come in"

_FIELDS = {
    "uuid": "uuid", "utilization": "utilization", "memory": "memory_used_bytes", "memory_total": "memory_total_bytes",
    "process_memory": "process_memory_bytes", "power": "power_w", "power_limit": "power_limit_w",
    "temperature": "temperature_c", "clocks.sm": "sm_clock_mhz", "clocks.memory": "memory_clock_mhz",
    "sm_clock_max": "sm_clock_max_mhz", "sm_activity": "sm_activity", "tensor_activity": "tensor_activity",
    "dram_activity": "dram_activity", "energy_j": "energy_j", "fan": "fan_percent", "ecc.corrected": "ecc_corrected",
    "ecc.uncorrected": "ecc_uncorrected", "pcie.rx": "pcie_rx_bytes_s", "pcie.tx": "pcie_tx_bytes_s",
    "nvlink.rx": "nvlink_rx_bytes_s", "nvlink.tx": "nvlink_tx_bytes_s", "throttle_share": "throttle",
}  # fmt: skip
"""Key -> the field of the reading, by which its reason is known."""
_PARENTS = {"ecc": "ecc_uncorrected", "pcie": "pcie_rx_bytes_s", "nvlink": "nvlink_rx_bytes_s"}
_OTHERS = {
    "pool": "no pool of the job's on this GPU has been told: it uses another one, or its allocator does not tell",
    "process_memory_how": "the job's memory on this GPU is not known",
    "lost": "it was not lost",
    "silent_s": "NVML answered for it",
}


def readings(values: Iterable[float | None]) -> dict[str, float] | None:
    """{last, median, max} of readings, those that failed left out; None where there is none."""
    known = [value for value in values if value is not None]
    if not known:
        return None
    return {"last": known[-1], "median": median(known), "max": max(known)}


def gpu(model: Model, gaps: Gaps) -> list[dict[str, Any]] | None:
    """`gpu`: one dict a device, or None with the reason."""
    found = model.surroundings
    silent = {index: one for index, one in found.silents.items() if index is not None}
    if not found.gpus and not silent:
        waits = _waits(found.silent) if found.silent is not None else None
        gaps.add("gpu", found.gpu_why_not or waits or "no reading of a GPU had come in")
        return None
    used = {one.index: one for one in of_job(found)}
    # one that has not answered yet is there all the same
    samples = {index: _unread(one) for index, one in silent.items()} | found.gpus
    rows: list[dict[str, Any]] = []
    for index, sample in sorted(samples.items()):
        row = _gpu(model, sample, found.gpu_tracks.get(index) or GpuTracks(), used.get(index))
        late = found.silents.get(index) or found.silents.get(None)
        row["silent_s"] = None if late is None else late.since_s
        place = f"gpu[{len(rows)}]"
        if late is not None and index in found.gpus:
            gaps.add(place, f"{_waits(late)}: its readings are older")
        _explain(place, row, sample, gaps)
        rows.append(row)
    return rows


def _waits(silent: GpuSilent) -> str:
    call = f" ({silent.call})" if silent.call else ""
    return f"NVML had not answered for {silent.since_s or 0:.0f} s{call}"


def _unread(silent: GpuSilent) -> GpuSampled:
    """In place of a reading."""
    index = silent.index or 0
    return GpuSampled(silent.t_ns, index, f"GPU {index}", None, None, None, missing=(("gpu", _waits(silent)),))


def _gpu(model: Model, sample: GpuSampled, tracks: GpuTracks, job: JobGpu | None) -> dict[str, Any]:
    around = model.surroundings
    parts = [part for (gpu_index, _), part in sorted(around.mig.items()) if gpu_index == sample.index]
    reasons = dict(sample.missing)
    memory = readings(tracks.process_memory)
    how: str = sample.job_how or ("pid" if memory is not None else "")
    if memory is None and job is not None and job.memory_bytes is not None:  # matched here, by the latest reading
        memory, how = readings([job.memory_bytes]), job.how
    return {
        "index": sample.index,
        "name": sample.name,
        "uuid": sample.uuid,
        "lost": sample.lost,
        "utilization": readings(tracks.utilization),
        "utilization_means": UTILIZATION,
        "sm_activity": readings(tracks.sm),
        "tensor_activity": readings(tracks.tensor),
        "dram_activity": readings(tracks.dram),
        "memory": readings(tracks.memory),
        "memory_total": sample.memory_total_bytes,
        "process_memory": memory,
        "process_memory_how": (how or None) if memory is not None else None,
        "power": readings(tracks.power),
        "power_limit": sample.power_limit_w,
        "energy_j": tracks.energy_j,
        "temperature": readings(tracks.temperature),
        "fan": readings(tracks.fan),
        "clocks": {"sm": readings(tracks.sm_clock), "memory": readings(tracks.memory_clock)},
        "sm_clock_max": sample.sm_clock_max_mhz,
        "throttle": [why for why in sample.throttle if why != IDLE],
        "throttle_share": {why: count / tracks.reasoned for why, count in sorted(tracks.reasons.items()) if why != IDLE}
        if tracks.reasoned
        else None,
        "ecc": _pair(corrected=sample.ecc_corrected, uncorrected=sample.ecc_uncorrected),
        "pcie": _pair(rx=readings(tracks.pcie_rx), tx=readings(tracks.pcie_tx)),
        "nvlink": _pair(rx=readings(tracks.nvlink_rx), tx=readings(tracks.nvlink_tx)),
        "mig": [_part(part) for part in parts] or None,
        "processes": None if not sample.processes and "processes" in reasons else _processes(sample),
        "pool": None if job is None or job.pool is None else _pool(job),
        "xids": _xids(model, sample.index),
    }


def _pair(**values: Any) -> dict[str, Any] | None:
    return None if all(value is None for value in values.values()) else values


def _part(part: MigSampled) -> dict[str, Any]:
    return {
        "number": part.number,
        "name": part.name,
        "profile": part.profile,
        "uuid": part.uuid,
        "memory": part.memory_used_bytes,
        "memory_total": part.memory_total_bytes,
        "process_memory": part.process_memory_bytes,
        "sms": part.sms,
        "sm_activity": part.sm_activity,
        "tensor_activity": part.tensor_activity,
        "dram_activity": part.dram_activity,
        "missing": dict(part.missing),
    }


def _processes(sample: GpuSampled) -> list[dict[str, Any]]:
    return [
        {"pid": one.pid, "memory": one.memory_bytes, "sm": one.sm_percent, "job": one.pid in sample.job}
        for one in sample.processes
    ]


def _pool(job: JobGpu) -> dict[str, Any]:
    pool = job.pool
    assert pool is not None
    return {
        "device": pool.device,
        "allocated": pool.allocated_bytes,
        "reserved": pool.reserved_bytes,
        "peak": pool.allocated_peak_bytes,
        "fragmentation": fragmentation(pool),
        "retries": pool.retries,
        "ooms": pool.ooms,
        "outside": job.outside_pool_bytes,
    }


def _xids(model: Model, index: int) -> list[dict[str, Any]]:
    """Those of this GPU, and those of which it is not known whose they are."""
    attached, wall = model.target.attached_ns, model.target.attached_wall_s
    offset = None if attached is None or wall is None else wall - attached / 1e9
    return [
        {
            "at": None if offset is None else one.t_ns / 1e9 + offset,
            "xid": one.xid,
            "words": xid_words(one.xid),
            "gpu_known": one.index is not None,
        }
        for one in model.surroundings.xids
        if one.index in (index, None)
    ]


def _explain(place: str, row: dict[str, Any], sample: GpuSampled, gaps: Gaps) -> None:
    """Say why of each null in a device's dict."""
    reasons = dict(sample.missing)
    own = reasons.get("gpu") or sample.lost or UNREAD
    for what, why in sample.missing:
        gaps.add(f"{place}.{what}", why)  # by the field: so it has always been
    for key, value in row.items():
        if isinstance(value, dict) and key != "throttle_share":
            for inner in [inner for inner, one in value.items() if one is None]:
                gaps.add(f"{place}.{key}.{inner}", _why(f"{key}.{inner}", reasons, own))
        elif value is None and key == "mig":
            undivided = "this GPU is not in MIG mode" if sample.mig_mode is False else "no part of it had been read"
            gaps.add(f"{place}.mig", reasons.get("mig") or reasons.get("mig_mode") or reasons.get("gpu") or undivided)
        elif value is None:
            gaps.add(f"{place}.{key}", _OTHERS.get(key) or _why(key, reasons, own))
    for at, part in enumerate(row["mig"] or ()):
        told = part.pop("missing")
        for key in [key for key, value in part.items() if value is None]:
            gaps.add(f"{place}.mig[{at}].{key}", told.get(_FIELDS.get(key, key)) or UNREAD)
    for at, process in enumerate(row["processes"] or ()):
        for key in [key for key, value in process.items() if value is None]:
            why = reasons.get("processes_sm" if key == "sm" else "processes") or "the driver did not tell it of this process"
            gaps.add(f"{place}.processes[{at}].{key}", why)
    for at, xid in enumerate(row["xids"]):
        if xid["at"] is None:
            gaps.add(f"{place}.xids[{at}].at", "the wall clock of the attach is not known")


def _why(key: str, reasons: dict[str, str], own: str) -> str:
    if key.startswith("pool."):
        listed = "what the driver lists for the job on this GPU is not known"
        return listed if key == "pool.outside" else "the job's allocator does not tell it"
    field = _FIELDS.get(key) or _PARENTS.get(key) or key
    activity = reasons.get("activity") if key.endswith("_activity") else None
    return reasons.get(field) or activity or reasons.get(key.partition(".")[0]) or own
