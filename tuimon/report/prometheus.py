"""What is known of the watched processes as Prometheus text, for the folder that a node exporter reads.

Names begin with `tuimon_` and are in base units. What is not known is left out: there is no sample for it, never a 0. Totals
count from the attach; the last word of a process is `tuimon_up 0`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median

from tuimon import plain
from tuimon.draw.text import harmless
from tuimon.model import Model
from tuimon.model.statistics import Durations
from tuimon.model.steps.parts import CATEGORIES
from tuimon.report.ranks import Watched, state
from tuimon.report.steps import by_category, steady_steps

MOST_PLACES = 50
"""Boundaries, and regions, that have series of their own in each process: the most costly ones."""
MOST_TEXT = 200
SUFFIX = ".prom"
"""Of a file's name: the node exporter reads no others."""

Labels = tuple[tuple[str, str], ...]
Sample = tuple[str, Labels, float]
"""(what follows the metric's name, labels, value)"""


class Metrics:
    """Samples by metric, in the order in which the metrics came up."""

    def __init__(self) -> None:
        self._kinds: dict[str, tuple[str, str]] = {}
        self._samples: dict[str, list[Sample]] = {}

    def add(self, name: str, kind: str, told: str, labels: Labels, value: float | None, suffix: str = "") -> None:
        """One sample of a metric of this kind ("gauge", "counter", "summary"); None: it is not known, and left out."""
        if value is None or not math.isfinite(value):
            return
        self._kinds.setdefault(name, (kind, told))
        self._samples.setdefault(name, []).append((suffix, labels, value))

    def text(self) -> str:
        """In the text format of Prometheus: all samples of a metric together, behind its HELP and TYPE."""
        return "".join(line + "\n" for line in self._lines())

    def _lines(self) -> Iterator[str]:
        for name, (kind, told) in self._kinds.items():
            escaped = told.replace("\\", "\\\\").replace("\n", "\\n")
            yield f"# HELP {name} {escaped}"
            yield f"# TYPE {name} {kind}"
            seen: set[tuple[str, Labels]] = set()
            for suffix, labels, value in self._samples[name]:
                if (suffix, labels) in seen:  # a file with a series twice is refused whole
                    continue
                seen.add((suffix, labels))
                inside = ",".join(f'{label}="{_escaped(text)}"' for label, text in labels)
                yield f"{name}{suffix}{{{inside}}} {_number(value)}"


def exposition(watched: Sequence[Watched]) -> str:
    """All that is known of these processes, in the text format of Prometheus."""
    metrics = Metrics()
    several_hosts = any(one.host for one in watched)
    for one in watched:
        labels = _labels(one, with_host=several_hosts)
        _target(metrics, one, labels)
        if one.model.target.attached_ns is not None:
            _steps(metrics, one.model, labels)
            _compiler(metrics, one.model, labels)
            _places(metrics, one.model, labels)
            _machine(metrics, one.model, labels)
            _rank(metrics, one, labels)
    return metrics.text()


def write(path: Path, text: str) -> None:
    """Put `text` into the file at once: a reader finds the old or the new one, whole. Raises OSError."""
    # the exporter is another user, whatever our umask is; and it passes over a name that does not end in `.prom`
    plain.replace(path, text.encode("utf-8"), mode=0o644)


def _labels(one: Watched, *, with_host: bool) -> Labels:
    target = one.model.target
    rank = target.rank if target.rank is not None else one.rank
    pid = target.pid if target.pid is not None else one.pid
    found = [("pid", "" if pid is None else str(pid)), ("rank", "" if rank is None else str(rank)), ("job", target.command)]
    return tuple([*found, ("host", one.host or "")] if with_host else found)


def _target(metrics: Metrics, one: Watched, labels: Labels) -> None:
    target = one.model.target
    up = target.attached_ns is not None and target.ended is None
    metrics.add("tuimon_up", "gauge", "1 while tuimon watches the process, 0 before and after.", labels, float(up))
    told = (*labels, ("state", state(one.model)), ("how", target.how or ""), ("torch", target.torch or ""))
    about = (*told, ("python", target.python or ""))
    metrics.add("tuimon_target_info", "gauge", "Always 1; its labels tell about the process.", about, 1.0)
    status = target.status
    metrics.add("tuimon_exit_status", "gauge", "With what status the process has ended, where that is known.", labels, status)


def _steps(metrics: Metrics, model: Model, labels: Labels) -> None:
    steps = model.steps
    if steps.source is None:
        return
    sourced = (*labels, ("source", steps.source))
    metrics.add("tuimon_steps_info", "gauge", "Always 1; its label tells how steps are told.", sourced, 1.0)
    metrics.add("tuimon_steps_total", "counter", "Steps that have ended since the attach.", labels, steps.n)
    _durations(metrics, "tuimon_step_seconds", "Steps; quantiles over the last 512.", labels, steps.durations)
    steady = steady_steps(model)
    if steady:
        parts = by_category(steady, median)
        for category in CATEGORIES:
            told = "What a steady step is divided into: median over the last 512."
            metrics.add(
                "tuimon_step_category_seconds", "gauge", told, (*labels, ("category", category)), parts[category]
            )  # fmt: skip
    metrics.add("tuimon_slow_steps_total", "counter", "Steps that took much longer than the usual.", labels, steps.slow_n)
    phase = model.phases.now
    if phase is not None:
        told = "Always 1; its label is the phase that tuimon record has marked."
        metrics.add("tuimon_phase_info", "gauge", told, (*labels, ("phase", phase.name)), 1.0)


def _compiler(metrics: Metrics, model: Model, labels: Labels) -> None:
    done = [one for one in model.compilations if not one.before_attach]
    metrics.add("tuimon_compilations_total", "counter", "Compilations that ended since the attach.", labels, len(done))
    took = "Time that they took together."
    metrics.add("tuimon_compile_seconds_total", "counter", took, labels, sum(one.total_s or 0.0 for one in done))
    again = [one.compilation for one in model.recompiles if not one.compilation.before_attach]
    told = "Recompiles since the attach, those that the limit refused apart."
    for refused in (False, True):
        n = sum(1 for one in again if one.refused is refused)
        metrics.add("tuimon_recompiles_total", "counter", told, (*labels, ("refused", str(refused).lower())), n)
    breaks = sum(boundary.breaks for boundary in model.boundaries.values())
    metrics.add("tuimon_graph_breaks", "gauge", "Graph breaks that are known, those of before the attach too.", labels, breaks)
    told = "Samples that did not fit into the hook's buffer."
    metrics.add("tuimon_samples_dropped_total", "counter", told, labels, model.coverage.dropped)
    told = "Time that the hook has spent in the process, as far as it is counted."
    metrics.add("tuimon_hook_seconds_total", "counter", told, labels, model.coverage.hook_s)


def _places(metrics: Metrics, model: Model, labels: Labels) -> None:
    boundaries = sorted(model.boundaries.values(), key=lambda one: (-one.host.total_ns, -(one.crossings or 0)))
    for boundary in boundaries[:MOST_PLACES]:
        file, line = (boundary.user_file, boundary.user_line) if boundary.user_file else (boundary.file, boundary.line)
        at = (*labels, ("key", boundary.key), ("place", f"{file}:{line}"), ("reason", boundary.kind or boundary.reason))
        told = "Times that the eager stretch behind a graph break was crossed."
        metrics.add("tuimon_boundary_crossings_total", "counter", told, at, boundary.crossings)
        if boundary.host.n:
            told = "Host time within it, of the crossings that were timed."
            metrics.add("tuimon_boundary_host_seconds_total", "counter", told, at, boundary.host.total_ns / 1e9)
    regions = sorted(model.regions.values(), key=lambda one: -one.total_ns)
    for region in [] if "calls" in model.recorded.absent else regions[:MOST_PLACES]:
        at = (*labels, ("key", region.key), ("function", region.function), ("place", f"{region.file}:{region.line}"))
        metrics.add("tuimon_region_calls_total", "counter", "Calls of a compiled region.", at, region.calls)
        told = "Host time of these calls, the initial one with its compilation."
        metrics.add("tuimon_region_host_seconds_total", "counter", told, at, region.total_ns / 1e9)


def _machine(metrics: Metrics, model: Model, labels: Labels) -> None:
    host = model.surroundings.host
    if host is not None:
        metrics.add("tuimon_resident_memory_bytes", "gauge", "Of the process.", labels, host.rss_bytes)
        if host.user_s is not None and host.system_s is not None:
            told = "CPU time of the process, all its threads together."
            metrics.add("tuimon_cpu_seconds_total", "counter", told, labels, host.user_s + host.system_s)
        told = "Time that its threads were ready to run and no core was free."
        metrics.add("tuimon_run_queue_wait_seconds_total", "counter", told, labels, host.run_queue_wait_s)
    for gpu in model.surroundings.gpus.values():
        at = (*labels, ("gpu", str(gpu.index)), ("uuid", gpu.uuid or ""))
        busy = None if gpu.utilization is None else gpu.utilization / 100
        told = "Share of the driver's last period in which some kernel was resident. Not busy."
        metrics.add("tuimon_gpu_utilization_ratio", "gauge", told, at, busy)
        metrics.add("tuimon_gpu_memory_used_bytes", "gauge", "Of the whole GPU.", at, gpu.memory_used_bytes)
        metrics.add("tuimon_gpu_memory_bytes", "gauge", "What it has.", at, gpu.memory_total_bytes)
        metrics.add("tuimon_gpu_process_memory_bytes", "gauge", "Of the process.", at, gpu.process_memory_bytes)
        metrics.add("tuimon_gpu_power_watts", "gauge", "Power that it draws.", at, gpu.power_w)
        metrics.add("tuimon_gpu_temperature_celsius", "gauge", "Of its core.", at, gpu.temperature_c)


def _rank(metrics: Metrics, one: Watched, labels: Labels) -> None:
    found = one.lateness.of(one.key) if one.lateness is not None else None
    if found is None or found.median_ns is None or found.p90_ns is None:
        return
    told = "How late it is after the first rank at the same collective; over the last 256 steps."
    for quantile, ns in (("0.5", found.median_ns), ("0.9", found.p90_ns)):
        metrics.add("tuimon_rank_lateness_seconds", "gauge", told, (*labels, ("quantile", quantile)), ns / 1e9)


def _durations(metrics: Metrics, name: str, told: str, labels: Labels, durations: Durations) -> None:
    summary = durations.summary
    for quantile, value in (("0.1", summary.p10), ("0.5", summary.median), ("0.9", summary.p90)):
        metrics.add(name, "summary", told, (*labels, ("quantile", quantile)), value)
    metrics.add(name, "summary", told, labels, durations.total_ns / 1e9, "_sum")
    metrics.add(name, "summary", told, labels, durations.n, "_count")


def _escaped(text: str) -> str:
    """A label's value: cut, with nothing in it that a terminal would act on, and escaped as the format wants it."""
    text = harmless(text[:MOST_TEXT]).replace("\t", "?")
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _number(value: float) -> str:
    return str(int(value)) if float(value).is_integer() and abs(value) < 1e15 else repr(float(value))
