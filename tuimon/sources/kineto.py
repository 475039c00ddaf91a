"""What PyTorch's profiler writes (a Kineto chrome trace): kernels and operators, added up; steps, regions, waits and gaps.

A kernel belongs to the operator that was open on the thread which launched it, at that moment: by the kernel's correlation to
the runtime's call, and from there by time. That holds for old files and new ones, and for CUDA and HIP alike.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tuimon import events as ev
from tuimon.sources import arguments, kineto_calls, spans
from tuimon.sources.kineto_calls import Sample, Step
from tuimon.sources.operators import Open, Operators, Signature
from tuimon.sources.trace_entries import Entry, Events, without_operators
from tuimon.sources.trace_file import MOST_UNPACKED, Text, Unreadable, kind

MOST_ROWS = 400
OTHERS = "(others)"
MOST_OPERANDS, MOST_OPERANDS_AT_ALL = 2000, 6000
"""Operands of a row (an optimizer's takes hundreds), and of all rows together."""
LONGEST_NAME = 300
LONGEST_KEY = 4096
"""Bytes of what a file says of operands that are kept to know the same again."""
MOST_KEPT = 2_000_000
"""Events of one file that are kept for linking."""
_OPERATOR, _RUNTIME, _KERNEL = 1, 2, 3
_KINDS: Mapping[str, int] = {
    "cpu_op": _OPERATOR,
    "Operator": _OPERATOR,
    "user_annotation": _OPERATOR,
    "cuda_runtime": _RUNTIME,
    "cuda_driver": _RUNTIME,
    "hip_runtime": _RUNTIME,
    "privateuse1_runtime": _RUNTIME,
    "xpu_runtime": _RUNTIME,
    "Runtime": _RUNTIME,
    "kernel": _KERNEL,
    "Kernel": _KERNEL,
}
_HEADER = {"deviceProperties", "distributedInfo", "baseTimeNanoseconds", "schema", "nodes", "record_shapes", "string_table"}


@dataclass(slots=True)
class Trace:
    """What a file holds."""

    seen: ev.KernelsSeen
    devices: tuple[Mapping[str, Any], ...] = ()
    """The properties of the devices, that of the kernels first."""
    rank: int | None = None
    world_size: int | None = None
    wall_s: float = 0.0
    """Unix time at `seen.begin_ns`; 0 where the file does not tell."""
    events: int = 0
    note: str = ""
    """What was amiss with the file, without its name; "" where all was read."""
    cut: bool = False
    """Whether it holds only what began in the span that was asked for."""
    from_graphs: float = 0.0
    """Share of the kernels' time that graph launches (CUDA graphs) account for: no operator launched those."""
    base_ns: int = 0
    """Unix time of the file's time 0, ns; 0 where it does not tell."""
    steps: tuple[Step, ...] = ()
    """The profiler's own, `ProfilerStep#n`."""
    added: tuple[ev.InstrumentAdded, ...] = ()
    threads: tuple[ev.ThreadSeen, ...] = ()
    rows: tuple[Sample, ...] = ()
    """Calls of regions, loaders, optimizers and collectives, and the steps themselves."""
    compiling: tuple[int, int] = (0, 0)
    """Stretches of work of torch's compiler while it was recorded, and their ns."""
    device_rows: tuple[tuple[int, int, int], ...] = ()
    """(instrument, begin of the call on the host, ns from its first kernel's begin to its last one's end)."""
    spans: ev.SpansSeen = field(default_factory=lambda: ev.SpansSeen(0, 0, (), ()))


@dataclass(slots=True)
class _Call:
    """The kernels of one call of an operator."""

    ns: int = 0
    longest: int = -1
    name: int = 0
    device: int = 0


@dataclass(slots=True)
class _Row:
    n: int = 0
    ns: int = 0
    least: int = 2**62
    most: int = 0

    def add(self, ns: int) -> None:
        self.n += 1
        self.ns += ns
        self.least = min(self.least, ns)
        self.most = max(self.most, ns)


_Key = tuple[str, int, str | None, int]
"""(kernel, signature, compile id, device)."""


@dataclass(slots=True)
class _Kept:
    """What is kept of a file's events."""

    operators: Operators = field(default_factory=Operators)
    runtime: dict[Hashable, list[tuple[int, int, bool]]] = field(default_factory=lambda: defaultdict(list))
    """Thread -> (time, correlation, whether it launches a graph)."""
    kernels: list[tuple[int, int, int, int, int]] = field(default_factory=list)
    """(correlation, name, device, begin, ns)."""
    names: dict[str, int] = field(default_factory=dict)
    known: dict[tuple[str, bytes, bool], int] = field(default_factory=dict)
    """The numbers of signatures by what the file says of them: most calls are of one that was read before."""
    waits: list[spans.Wait] = field(default_factory=list)
    is_wait: dict[str, bool] = field(default_factory=dict)
    count: int = 0

    def take(self, event: Entry, what: int) -> None:
        """One event of a kind. Raises TypeError, ValueError, OverflowError or AttributeError for one that is malformed."""
        begin, ns = _ns(event.ts), _ns(event.dur)
        if ns < 0:
            raise ValueError("ends before it begins")
        thread = (event.pid, event.tid)
        hash(thread)  # raises where it cannot be told from others
        if what == _OPERATOR:
            annotation = event.cat == "user_annotation"
            operands, sequence = event.operands()
            number = None if operands is None else self.known.get((event.name, operands, annotation))
            if number is None:
                number = self.operators.number(event.name, event.arguments(), annotation=annotation)
                if operands is not None and len(operands) < LONGEST_KEY:
                    self.known[event.name, operands, annotation] = number
            self.operators.add(thread, begin, ns, number, sequence)
        elif what == _RUNTIME:
            (correlation, _), name = event.launch(), event.name
            if type(correlation) is int:
                self.runtime[thread].append((begin, correlation, "GraphLaunch" in name))
            wait = self.is_wait.get(name)
            if wait is None:
                wait = self.is_wait[name] = spans.waits(name)
            if wait:
                self.waits.append((thread, begin, begin + ns, name))
        else:
            correlation, device = event.launch()
            name = self.names.setdefault(str(event.name)[:LONGEST_NAME], len(self.names))
            self.kernels.append(
                (
                    correlation if type(correlation) is int else -1,
                    name,
                    device if type(device) is int and 0 <= device < 1024 else 0,
                    begin,
                    ns,
                )
            )
        self.count += 1

    def cut(self, begin: int, end: int) -> bool:
        """Leave only what began in that span, kernels by their launch; whether that is anything, else all is left."""
        launched = {one[1]: begin <= one[0] < end for calls in self.runtime.values() for one in calls}
        kernels = [one for one in self.kernels if launched.get(one[0], begin <= one[3] < end)]
        if self.kernels and not kernels:
            return False
        if not self.operators.cut(begin, end) and not kernels:
            return False
        self.kernels = kernels
        self.waits = [one for one in self.waits if begin <= one[1] < end]
        return True


def _ns(microseconds: Any) -> int:
    found = int(microseconds * 1000)
    if not -(2**62) < found < 2**62:
        raise ValueError("no time")
    return found


def read(path: Path, *, window: int = 0, most: int = MOST_UNPACKED, span: tuple[int, int] | None = None) -> Trace:
    """What the file holds; part of it where it is damaged (`note`). Raises Unreadable where it is no such trace.

    `span`: ns on the wall clock. Only what began in it is taken, a kernel by its launch; all, where that would be nothing.
    """
    text = Text(path, most)
    try:
        if kind(text) != "json":
            raise Unreadable("is no Kineto trace: it is not JSON")
        return read_text(text, window=window, span=span)
    finally:
        text.close()


def read_text(text: Text, *, window: int = 0, span: tuple[int, int] | None = None) -> Trace:
    """The same, of a file that is open already."""
    kept, events = _Kept(), Events(text, _HEADER.__contains__)
    take = kept.take
    malformed = 0
    for batch in events:
        for event in batch:
            try:
                what = _KINDS.get(event.cat)
                if what is not None and event.ph == "X":
                    take(event, what)
            except (TypeError, ValueError, OverflowError, AttributeError):
                malformed += 1  # not worth more than passing over
        if kept.count >= MOST_KEPT:
            text.note = f"holds more than {MOST_KEPT:,} events: the rest was not read"
            break
    if not kept.kernels and not len(kept.operators):
        if text.note:
            raise Unreadable(text.note)
        raise Unreadable(without_operators(events.seen, text.first))
    if malformed and not text.note:
        many = "an event" if malformed == 1 else f"{malformed:,} events"
        text.note = f"holds {many} without a name, a time or a duration that can be: passed over"
    base = events.header.get("baseTimeNanoseconds")
    base = base if type(base) is int and abs(base) < 2**62 else 0
    cut = span is not None and kept.cut(span[0] - base, span[1] - base)
    trace = _made(kept, events, window, base)
    trace.cut = cut
    return trace


def _made(kept: _Kept, events: Events, window: int, base: int) -> Trace:
    operators = kept.operators
    operators.holds_open = bool(kept.kernels)
    rows: dict[_Key, _Row] = defaultdict(_Row)
    linked, total, from_graphs = _of_kernels(kept, rows)
    if not kept.kernels:
        for signature, compile_id, ns in operators.times():
            rows["", signature, compile_id, -1].add(ns)
        linked = total = 1
    ran = [(begin, begin + ns) for *_, begin, ns in kept.kernels]
    begin = min([one[0] for one in ran] + [one for one in (operators.begin,) if one is not None])
    end = max([one[1] for one in ran] + [one for one in (operators.end,) if one is not None])
    busy = _busy(kept.kernels)
    main = max(busy, key=lambda one: one[1])[0] if busy else -1
    devices = _devices(events.header.get("deviceProperties"), main)
    info = events.header.get("distributedInfo")
    info = info if isinstance(info, dict) else {}
    seen = ev.KernelsSeen(
        t_ns=end,
        window=window,
        rows=_rows(rows, kept),
        begin_ns=begin,
        end_ns=end,
        busy=busy,
        regions=operators.regions(),
        device=str(devices[0].get("name") or "")[:LONGEST_NAME] if devices and kept.kernels else "",
        linked=linked / total if total else 0.0,
    )
    wall = (begin + base) / 1e9
    calls = kineto_calls.calls(operators, begin)
    launched = spans.launched(calls, kept.runtime, kept.kernels)
    return Trace(
        seen,
        devices,
        rank=_number(info.get("rank")),
        world_size=_number(info.get("world_size")),
        wall_s=wall if 1e9 < wall < 4e9 else 0.0,
        events=events.seen,
        note=events.note,
        from_graphs=from_graphs / total if total else 0.0,
        base_ns=base if 10**18 < base < 2**62 else 0,
        steps=calls.steps,
        added=calls.added,
        threads=calls.threads,
        rows=calls.rows,
        compiling=kineto_calls.compiling(operators),
        device_rows=tuple((calls.numbers[ran.region], ran.begin, last - first) for ran, (_, first, last) in launched.items()),
        spans=spans.spans(operators, calls, kept.waits, launched, kept.kernels, window=window, end_ns=end),
    )


def _number(value: Any) -> int | None:
    return value if type(value) is int and 0 <= value < 10**7 else None


def _of_kernels(kept: _Kept, rows: dict[_Key, _Row]) -> tuple[int, int, int]:
    """Add up the kernels. Gives their time that has an operator, all of their time, and that of graph launches, ns."""
    launched: dict[int, tuple[Open, bool]] = {}
    if kept.kernels:
        for thread, calls in kept.runtime.items():
            calls.sort()
            at = kept.operators.open_at(thread, (one[0] for one in calls))
            for (_, correlation, graph), where in zip(calls, at, strict=True):
                launched[correlation] = where, graph
    names = list(kept.names)
    by_call: dict[int, _Call] = defaultdict(_Call)
    linked = total = graphs = 0
    nowhere = Open(-1, None)
    for correlation, name, device, _, ns in kept.kernels:
        where, graph = launched.get(correlation, (nowhere, False))
        total += ns
        graphs += ns if graph else 0
        if graph or where.call < 0:
            rows[names[name], -1, where.region, device].add(ns)
            continue
        linked += ns
        call = by_call[where.call]
        call.ns += ns
        if ns > call.longest:
            call.longest, call.name, call.device = ns, name, device
    for number, call in by_call.items():
        signature, region = kept.operators.of_call(number)
        rows[names[call.name], signature, region, call.device].add(call.ns)
    return linked, total, graphs


def _rows(rows: Mapping[_Key, _Row], kept: _Kept) -> tuple[ev.KernelRow, ...]:
    ordered = sorted(rows.items(), key=lambda one: -one[1].ns)
    if len(ordered) > MOST_ROWS:
        ordered, rest = ordered[: MOST_ROWS - 1], ordered[MOST_ROWS - 1 :]
    else:
        rest = []
    told: list[ev.KernelRow] = []
    room = MOST_OPERANDS_AT_ALL
    for (kernel, number, region, device), row in ordered:
        signature = kept.operators.signature(number) if number >= 0 else Signature("")
        operands, given = _operands(signature)
        room -= len(operands)
        if room < 0:
            operands, given = (), arguments.UNKNOWN
        name = signature.name[:LONGEST_NAME]
        told.append((kernel, name, operands, given, region, device, row.n, row.ns, row.least, row.most))
    if rest:
        n, ns = sum(row.n for _, row in rest), sum(row.ns for _, row in rest)
        least, most = min(row.least for _, row in rest), max(row.most for _, row in rest)
        told.append((OTHERS, OTHERS, (), "", None, rest[0][0][3], n, ns, least, most))
    return tuple(told)


_NO_TENSOR = {"", "Scalar", "ScalarList", "GenericList", "Int", "Double", "Bool", "String", "None", "Device", "Stream"}


def _operands(signature: Signature) -> tuple[tuple[tuple[str, tuple[int, ...]], ...], str]:
    """The tensors that an operator took, and the arguments that count."""
    dims, types, concrete = signature.dims, signature.types, signature.concrete
    operands: list[tuple[str, tuple[int, ...]]] = []
    tensors: set[int] = set()
    lists: list[int] = []
    for place, sizes in enumerate(dims):
        dtype = types[place] if place < len(types) else None
        if not isinstance(sizes, list):
            continue
        if sizes and all(isinstance(one, list) for one in sizes):
            operands += [(str(dtype or ""), told) for one in sizes if (told := _sizes(one)) is not None]
            lists.append(len(sizes))
            tensors.add(place)
        elif dtype == "TensorList":
            tensors.add(place)  # an old file: of how many and what sizes is not told
        elif (dtype not in _NO_TENSOR if isinstance(dtype, str) else bool(sizes)) and (told := _sizes(sizes)) is not None:
            operands.append((str(dtype or "")[:40], told))
            tensors.add(place)
    plain = signature.name.removeprefix("aten::").replace("::", ".")
    if len(operands) > MOST_OPERANDS:  # a part of them would be counted as if it were all
        return (), arguments.UNKNOWN
    if not concrete:
        return tuple(operands), arguments.UNKNOWN if arguments.counts(plain) else ""

    def find(place: int, _: str) -> str | None:
        text = concrete[place] if place < len(concrete) and place not in tensors else None
        return text if isinstance(text, str) and text else None

    more = {"lists": lists} if len(lists) > 1 else None
    return tuple(operands), arguments.told(plain, find, tensors.__contains__, bare=True, more=more)


def _sizes(value: list[Any]) -> tuple[int, ...] | None:
    return tuple(value) if len(value) <= 64 and all(type(one) is int and 0 <= one < 2**62 for one in value) else None


def _busy(kernels: Iterable[tuple[int, int, int, int, int]]) -> tuple[tuple[int, int], ...]:
    """(device, time in which at least one kernel ran) of each device."""
    spans: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for _, _, device, begin, ns in kernels:
        spans[device].append((begin, begin + ns))
    found = []
    for device, runs in sorted(spans.items()):
        runs.sort()
        busy, until = 0, runs[0][0]
        for begin, end in runs:
            if end > until:
                busy += end - max(begin, until)
                until = end
        found.append((device, busy))
    return tuple(found[:64])


def _devices(told: Any, main: int) -> tuple[Mapping[str, Any], ...]:
    """The devices' properties, that of the number `main` first."""
    if not isinstance(told, list):
        return ()
    found = [one for one in told[:64] if isinstance(one, dict) and isinstance(one.get("name"), str)]
    return tuple(sorted(found, key=lambda one: one.get("id") != main))
