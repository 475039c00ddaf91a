"""The report's part about the host of the job."""

from __future__ import annotations

from typing import Any

from tuimon.events import HostSampled
from tuimon.model import Model
from tuimon.report.gaps import Gaps
from tuimon.report.gpus import gpu, readings

__all__ = ["gpu", "host", "readings"]

MOST_THREADS = 16
UNREAD = "the kernel did not let it be read, or there was no time for a second reading"

_FIELDS = {
    "rss": "rss_bytes", "run_queue_wait": "run_queue_wait_s", "page_faults": "major_faults",
    "page_faults_minor": "minor_faults", "cpu": "cpu_percent", "io": "read_bytes", "host_cpu": "host_cpu_percent",
    "memory_used": "host_memory_used_bytes", "memory_total": "host_memory_total_bytes", "swap": "swap_bytes",
    "io.read_bytes": "read_bytes", "io.written_bytes": "written_bytes", "cgroup.throttled_s": "throttled_s",
    "cgroup.memory_used": "memory_group_bytes",
}  # fmt: skip
"""Key -> the field of the reading, by which its reason is known, where it has another name."""
_NONE = {
    "cgroup": "the job is in no control group that could be read",
    "cgroup.quota_cores": "no group of the job has a CPU quota",
    "cgroup.throttled_share": "no group of the job has a CPU quota, or not all its periods were seen",
    "cgroup.memory_limit": "no group of the job has a memory limit",
    "cgroup.memory_used": "no group of the job has a memory limit, by which it would be read",
    "pressure": "the kernel has no /proc/pressure",
    "tree": "the job's processes had not been read yet",
    "threads_busy": "no thread of the job had been read twice yet; folded on another host, threads are not sent",
}


def host(model: Model, gaps: Gaps) -> dict[str, Any]:
    """`host`: CPU of the job in percent of a core, memory in bytes, totals since the job started."""
    around = model.surroundings
    sample = around.host
    tree = around.tree
    if sample is None:
        gaps.add("host", "no reading of the host had come in")
        return {"cpu": None, "rss": None, "run_queue_wait": None, "page_faults": None, "io": None}
    io = None
    if sample.read_bytes is not None or sample.written_bytes is not None:
        io = {"read_bytes": sample.read_bytes, "written_bytes": sample.written_bytes}
    found: dict[str, Any] = {
        "cpu": readings(around.cpu_history),
        "rss": sample.rss_bytes,
        "threads": sample.threads,
        "run_queue_wait": sample.run_queue_wait_s,
        "page_faults": sample.major_faults,
        "io": io,
        "host_cpu": sample.host_cpu_percent,
        "memory_used": sample.host_memory_used_bytes,
        "memory_total": sample.host_memory_total_bytes,
        "page_faults_minor": sample.minor_faults,
        "cores": sample.cores,
        "cores_allowed": sample.cores_allowed,
        "swap": sample.swap_bytes,
        "pressure": dict(sample.pressure) or None,
        "cgroup": _cgroup(sample, around.host_first or sample) if sample.cgroup else None,
        "threads_busy": _threads(model),
        "tree": None if tree is None else [
            {"pid": one.pid, "parent": one.parent, "kind": one.kind, "name": one.name, "cpu": one.cpu_percent,
             "rss": one.rss_bytes, "state": one.state or None}
            for one in tree.rows
        ],
    }  # fmt: skip
    _explain(found, dict(sample.missing), gaps)
    return found


def _cgroup(sample: HostSampled, first: HostSampled) -> dict[str, Any]:
    share = None
    if None not in (sample.periods, first.periods, sample.throttled_periods, first.throttled_periods):
        periods = (sample.periods or 0) - (first.periods or 0)
        held = (sample.throttled_periods or 0) - (first.throttled_periods or 0)
        share = held / periods if periods > 0 and 0 <= held <= periods else None
    return {
        "version": sample.cgroup,
        "quota_cores": sample.quota_cores,
        "throttled_s": sample.throttled_s,
        "throttled_share": share,
        "memory_limit": sample.memory_limit_bytes,
        "memory_used": sample.memory_group_bytes,
        "oom_kills": sample.oom_kills,
    }


def _threads(model: Model) -> list[dict[str, Any]] | None:
    known = [one for one in model.surroundings.threads.values() if one.share is not None]
    busiest = sorted(known, key=lambda one: -(one.share or 0.0))[:MOST_THREADS]
    return [
        {"native": one.native, "name": one.name or None, "cpu": one.share, "wait": one.wait_share} for one in busiest
    ] or None


def _explain(found: dict[str, Any], reasons: dict[str, str], gaps: Gaps) -> None:
    """Say why of each null."""

    def why(key: str) -> str:
        return reasons.get(_FIELDS.get(key, key.rpartition(".")[2])) or _NONE.get(key) or UNREAD

    for key, value in found.items():
        if value is None:
            gaps.add(f"host.{key}", why(key))
        elif isinstance(value, dict):
            for inner in [inner for inner, one in value.items() if one is None]:
                gaps.add(f"host.{key}.{inner}", why(f"{key}.{inner}"))
        elif isinstance(value, list):
            for at, row in enumerate(value):
                for inner in [inner for inner, one in row.items() if one is None]:
                    gaps.add(f"host.{key}[{at}].{inner}", "the kernel did not let it be read, or it was read once so far")
