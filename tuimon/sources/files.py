"""A file of another tool as the events of a job that is over: what `tuimon replay` and `tuimon report` are fed with."""

from __future__ import annotations

from pathlib import Path

from tuimon import events as ev
from tuimon.sources import kineto, ncu
from tuimon.sources.trace_file import Text, Unreadable, kind

OLD = "the file is of an older profiler and does not tell the device: no ceiling of a data sheet can stand for it"
NO_DATE = "the file does not tell when it was recorded; the date is that of the file"
NO_TABLE = "is neither a Kineto trace nor the CSV of Nsight Compute, which are what this version reads"


def events(path: Path) -> list[ev.Event]:
    """All that the file tells. Raises Unreadable, with a sentence that says what it is instead."""
    text = Text(path)
    try:
        what = kind(text)
        if what == "json":
            return _of_trace(path, kineto.read_text(text), text.written_s)
        if what == "ncu" or text.first.count(",") > 2:
            return _of_counters(path, ncu.read_text(text), text)
        raise Unreadable(NO_TABLE)
    finally:
        text.close()


def _of_trace(path: Path, trace: kineto.Trace, written_s: float) -> list[ev.Event]:
    seen = trace.seen
    begin = seen.begin_ns
    gpu = any(row[5] >= 0 for row in seen.rows)
    names = (seen.device,) if seen.device else () if gpu else ("cpu",)
    found: list[ev.Event] = [
        _target(path, begin, trace.wall_s or written_s, names, trace.rank, trace.world_size, tuple(_options(trace))),
    ]
    if not trace.wall_s:
        found.append(ev.NotAvailable(begin, "target.attached_at", NO_DATE))
    if gpu and not seen.device:
        found.append(ev.NotAvailable(begin, "device", OLD))
    found += [ev.NotAvailable(begin, what, why) for what, why in _gaps(trace, gpu)]
    if trace.note:
        found.append(ev.NotAvailable(begin, "the whole file", f"the file {trace.note}"))
    return [*found, seen, ev.TargetEnded(seen.end_ns, "detached", f"read to its end: {trace.events:,} events")]


def _of_counters(path: Path, seen: ev.CountersSeen, text: Text) -> list[ev.Event]:
    names = (seen.device,) if seen.device else ()
    found: list[ev.Event] = [
        _target(path, 0, text.written_s, names, None, None, ()),
        ev.NotAvailable(0, "target.attached_at", NO_DATE),
    ]
    if not names:
        why = "the table does not name the device: no ceiling of a data sheet can stand for it (--page raw tells it)"
        found.append(ev.NotAvailable(0, "device", why))
    if text.note:
        found.append(ev.NotAvailable(0, "the whole file", f"the file {text.note}"))
    launches = sum(row[1] for row in seen.rows)
    return [*found, seen, ev.TargetEnded(0, "detached", f"read to its end: {launches:,} launches")]


def _target(
    path: Path,
    begin: int,
    wall_s: float,
    devices: tuple[str, ...],
    rank: int | None,
    world_size: int | None,
    options: tuple[tuple[str, str], ...],
) -> ev.TargetSeen:
    return ev.TargetSeen(
        t_ns=begin,
        pid=None,
        command=path.name,
        python=None,
        torch=None,
        how="file",
        wall_s=wall_s,
        devices=devices,
        rank=rank,
        world_size=world_size,
        options=options,
    )


def _options(trace: kineto.Trace) -> list[tuple[str, str]]:
    """What the file tells of the device, as `TargetSeen.options`."""
    found = []
    device = trace.devices[0] if trace.devices and trace.seen.device else {}
    memory, major, minor = (device.get(name) for name in ("totalGlobalMem", "computeMajor", "computeMinor"))
    if type(memory) is int and 0 < memory < 2**50:
        found.append(("device_memory_bytes", str(memory)))
    if type(major) is int and type(minor) is int:
        found.append(("device_compute_capability", f"{major}.{minor}"))
    return found


def _gaps(trace: kineto.Trace, gpu: bool) -> list[tuple[str, str]]:
    """What a trace of this kind does not tell."""
    found = [
        ("frames", "a profiler's trace tells nothing of compilations"),
        ("steps", "the steps of a trace are not read in this version"),
    ]
    if gpu and trace.from_graphs >= 0.01:
        share = f"{trace.from_graphs:.0%} of the kernels' time"
        found.append(("operators of graph launches", f"{share}: a CUDA graph launched those, without operators"))
    if gpu and trace.seen.linked < 0.995 - trace.from_graphs:
        share = f"{1 - trace.seen.linked - trace.from_graphs:.0%} of the kernels' time"
        why = f"{share} has no operator in this file: what launched them was not recorded"
        found.append(("operators of some kernels", why))
    return found
