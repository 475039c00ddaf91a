"""A Kineto trace, or a table of Nsight Compute, as the events of a job that is over."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from tuimon import events as ev
from tuimon.sources import kineto
from tuimon.sources.opened import Opened
from tuimon.sources.trace_file import Text

OLD = "the file is of an older profiler and does not tell the device: no ceiling of a data sheet can stand for it"
NO_DATE = "the file does not tell when it was recorded; the date is that of the file"
NO_CLOCK = "the file does not tell when it was recorded, so its times cannot be held against another rank's"
NO_COMPILES = "a profiler's trace does not tell what was compiled, nor why"
COMPILED = "steps.compile"
AMONG = "in the steps that time is not told apart; TORCH_TRACE=DIR has torch write what was compiled and why"
ONLY_KERNELS = "a table of counters tells only of kernels"
ONLY_RAN = "a profiler's trace tells what ran, not what was compiled, nor how the machine was"
NO_STEPS = "it has no ProfilerStep#n, which torch.profiler writes where the job calls its step()"
TELL_STEPS = ("mark", "optimizer", "forward")
LEAST_ROWS = 2
"""Roles of what steps can be told by, and how many calls it takes."""
BATCH = 8192
"""Samples of one batch."""

_RANK = re.compile(r"rank[-_ .]?(\d{1,6})(?!\d)", re.IGNORECASE)
_OF_TORCH = re.compile(r'"(?:aten::\w+|cpu_op|cuda_runtime|ProfilerStep#\d+)"')
_INFO = re.compile(r'"distributedInfo"\s*:\s*(?=\{)')


def of_trace(path: Path, trace: kineto.Trace, written_s: float) -> Iterator[list[ev.Event]]:
    """A Kineto trace as the events of a job that is over, in batches. `written_s`: the file's, for one without a date.

    Where the file tells its date, times are Unix times, so that the ranks of a job have one clock.
    """
    seen, base = trace.seen, trace.base_ns
    begin, end = seen.begin_ns + base, seen.end_ns + base
    gpu = any(row[5] >= 0 for row in seen.rows)
    names = (seen.device,) if seen.device else () if gpu else ("cpu",)
    rank = trace.rank if trace.rank is not None else rank_of_name(path.name)
    first: list[ev.Event] = [
        _target(path, begin, trace.wall_s or written_s, names, rank, trace.world_size, tuple(_options(trace))),
        *_untold(trace, begin, gpu),
        *(replace(one, t_ns=begin) for one in trace.threads),
        *(replace(one, t_ns=begin) for one in trace.added),
    ]
    yield first
    for at in range(0, len(trace.rows), BATCH):
        rows = tuple((number, thread, flags, b + base, e + base) for number, thread, flags, b, e in trace.rows[at : at + BATCH])
        yield [ev.Samples(rows[-1][4], rows)]
    last: list[ev.Event] = []
    if trace.device_rows:
        last.append(ev.DeviceSamples(end, tuple((number, b + base, ns) for number, b, ns in trace.device_rows)))
    last.append(replace(seen, t_ns=end, begin_ns=begin, end_ns=end))
    last.append(replace(trace.spans, t_ns=end))
    last.append(ev.TargetEnded(end, "detached", f"read to its end: {trace.events:,} events"))
    yield last


def of_counters(path: Path, seen: ev.CountersSeen, text: Text) -> list[ev.Event]:
    """A table of Nsight Compute likewise."""
    names = (seen.device,) if seen.device else ()
    found: list[ev.Event] = [
        _target(path, 0, text.written_s, names, None, None, ()),
        ev.NotAvailable(0, "target.attached_at", NO_DATE),
        ev.NotInFile(0, ("steps", "crossings", "compiles", "graphs", "gpu", "host"), ONLY_KERNELS),
    ]
    if not names:
        why = "the table does not name the device: no ceiling of a data sheet can stand for it (--page raw tells it)"
        found.append(ev.NotAvailable(0, "device", why))
    if text.note:
        found.append(ev.NotAvailable(0, "the whole file", f"the file {text.note}"))
    launches = sum(row[1] for row in seen.rows)
    return [*found, seen, ev.TargetEnded(0, "detached", f"read to its end: {launches:,} launches")]


def rank_of_name(name: str) -> int | None:
    """The rank that a file's name tells ("rank-3.pt.trace.json")."""
    found = _RANK.search(name)
    return int(found[1]) if found else None


def looks_like_trace(text: Text) -> bool:
    """Whether an open JSON file is one by its first chunk. A list of events may be one, too."""
    return '"traceEvents"' in text.first or (text.first.lstrip().startswith("[") and _OF_TORCH.search(text.first) is not None)


def ranks_apart(members: list[Opened]) -> tuple[list[Opened], list[str]]:
    """A folder's traces in the order of their ranks, and a sentence on those that tell the same one: they go by their names."""
    if any(one.kind != "kineto" for one in members):
        return members, []
    count = Counter(one.rank for one in members if one.rank is not None)
    twice = sorted(rank for rank, n in count.items() if n > 1)
    told = [f"{count[rank]} files tell that they are rank {rank}: they are told apart by their names" for rank in twice[:8]]
    apart = [replace(one, label=one.path.name, rank=None) if one.rank in twice else one for one in members]
    lone = sum(one.rank is None for one in apart) - sum(count[rank] for rank in twice)
    if lone > 1:
        told.append(f"{lone} files do not tell their rank: they are told apart by their names")
    return sorted(apart, key=lambda one: (one.rank is None, one.rank or 0)), told


def rank_of(path: Path, text: Text) -> int | None:
    """The rank of a trace that is open, by its first chunk, else by its name; None where neither tells."""
    info = _INFO.search(text.first)
    if info is not None:
        try:
            told, _ = json.JSONDecoder(strict=False).raw_decode(text.first, info.end())
        except (ValueError, RecursionError):
            told = {}
        rank = told.get("rank")
        if type(rank) is int and 0 <= rank < 10**7:
            return rank
    return rank_of_name(path.name)


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
    """What the file tells of the device and the steps, as `TargetSeen.options`."""
    found = []
    device = trace.devices[0] if trace.devices and trace.seen.device else {}
    memory, major, minor = (device.get(name) for name in ("totalGlobalMem", "computeMajor", "computeMinor"))
    if type(memory) is int and 0 < memory < 2**50:
        found.append(("device_memory_bytes", str(memory)))
    if type(major) is int and type(minor) is int:
        found.append(("device_compute_capability", f"{major}.{minor}"))
    if trace.steps:
        found.append(("profiler_steps", f"{trace.steps[0][0]}..{trace.steps[-1][0]}"))
    return found


def _untold(trace: kineto.Trace, begin: int, gpu: bool) -> list[ev.Event]:
    """What a trace of this kind does not tell, and what this one does not."""
    found: list[ev.Event] = [ev.NotInFile(begin, ("crossings", "compiles", "graphs", "gpu", "host"), ONLY_RAN)]
    if len(trace.rows) < LEAST_ROWS or not any(one.role in TELL_STEPS for one in trace.added):
        found.append(ev.NotInFile(begin, ("steps",), NO_STEPS))
    gaps = [("frames", NO_COMPILES)]
    stretches, ns = trace.compiling
    if stretches:
        worked = "once" if stretches == 1 else f"{stretches:,} times"
        gaps.append((COMPILED, f"the compiler worked {worked} while this was recorded, {ns / 1e9:.3g} s in all: {AMONG}"))
    if not trace.wall_s:
        gaps += [("target.attached_at", NO_DATE), ("ranks.lateness", NO_CLOCK)]
    if gpu and not trace.seen.device:
        gaps.append(("device", OLD))
    if gpu and trace.from_graphs >= 0.01:
        share = f"{trace.from_graphs:.0%} of the kernels' time"
        gaps.append(("operators of graph launches", f"{share}: a CUDA graph launched those, without operators"))
    if gpu and trace.seen.linked < 0.995 - trace.from_graphs:
        share = f"{1 - trace.seen.linked - trace.from_graphs:.0%} of the kernels' time"
        why = f"{share} has no operator in this file: what launched them was not recorded"
        gaps.append(("operators of some kernels", why))
    if trace.note:
        gaps.append(("the whole file", f"the file {trace.note}"))
    return found + [ev.NotAvailable(begin, what, why) for what, why in gaps]
