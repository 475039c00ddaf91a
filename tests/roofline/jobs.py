"""Jobs and machines by hand, small enough to know every number of their roofline."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tuimon import events as ev
from tuimon.model import Model
from tuimon.roofline.inforce import Known
from tuimon.roofline.machines import Bandwidth, Machine, Peak, PeakKey

MIB = 1 << 20
SECOND = 1_000_000_000

CPU = Machine(
    name="Test CPU",
    peaks={
        ("matrix", "f32", "dense"): (Peak(100e9, "calibrated", "by hand", spread=0.03, threads=1),),
        ("matrix", "f64", "dense"): (Peak(50e9, "calibrated", "by hand", threads=1),),
    },
    bandwidths={
        "DRAM": (Bandwidth(20e9, "calibrated", "by hand", threads=1),),
        "LLC": (Bandwidth(80e9, "calibrated", "by hand", threads=1),),
    },
    cache_bytes=32 * MIB,
    key="cpu test",
)
HOST = Known(host=CPU)


def gpu(**peaks: float) -> Machine:
    """A GPU "Test GPU" with tensor cores and 1 MHz as its clock's unit; `peaks`: by "matrix_bf16" and so on."""
    figures: dict[PeakKey, tuple[Peak, ...]] = {}
    for name, flops in {"matrix_bf16": 1000e12, "matrix_tf32": 500e12, "vector_f32": 60e12, **peaks}.items():
        unit, dtype = name.split("_")
        figures[unit, dtype, "dense"] = (Peak(flops, "datasheet", "by hand", 1800.0),)  # type: ignore[index]
    return Machine("Test GPU", figures, {"HBM": (Bandwidth(3e12, "datasheet", "by hand"),)}, 50 * MIB, "gpu", "Test GPU")


def row(
    operator: str, inputs: Sequence[Sequence[Any]], outputs: Sequence[Sequence[Any]], n: int = 1, **more: Any
) -> ev.GraphRow:
    """A row of a graph; a tensor is (size, size, ..), of f32 unless its first entry is a dtype."""
    import json

    return (
        operator,
        tuple(map(_tensor, inputs)),
        tuple(map(_tensor, outputs)),
        json.dumps(more, sort_keys=True) if more else "",
        n,
    )


def _tensor(sizes: Sequence[Any]) -> ev.Tensor:
    if sizes and isinstance(sizes[0], str) and sizes[0][:1].isalpha() and sizes[0][0] in "fbiu" and sizes[0][-1].isdigit():
        return str(sizes[0]), tuple(map(str, sizes[1:]))
    return "f32", tuple(map(str, sizes))


def mm(m: Any, k: Any, n: Any, **more: Any) -> ev.GraphRow:
    """A product of f32 matrices."""
    return row("mm", [(m, k), (k, n)], [(m, n)], **more)


def graph(
    compile_id: str = "0/0",
    rows: Sequence[ev.GraphRow] = (),
    reads: Sequence[Sequence[Any]] = (),
    writes: Sequence[Sequence[Any]] = (),
    *,
    direction: Any = "forward",
    place: int = 0,
    attempt: int = 0,
    **more: Any,
) -> ev.GraphSeen:
    """A graph as it is told."""
    edges = [tuple((*_tensor(one), 1) for one in few) for few in (reads, writes)]
    return ev.GraphSeen(0, compile_id, direction, place, attempt, "aten", tuple(rows), edges[0], edges[1], **more)


def product(m: int = 1000, k: int = 1000, n: int = 1000, **more: Any) -> ev.GraphSeen:
    """The graph of one product: 2 GFLOP and 12 MB for the sizes given."""
    return graph(rows=[mm(m, k, n)], reads=[(m, k), (k, n)], writes=[(m, n)], **more)


def added(number: int, compile_id: str = "0/0", role: Any = "forward", **more: Any) -> ev.InstrumentAdded:
    """A region's timer."""
    return ev.InstrumentAdded(0, number, role, compile_id, "n", "f", "/w/model.py", 10, "inductor", **more)


def calls(number: int, took_ms: float, n: int, begin_s: float = 1.0, every_ms: float | None = None) -> ev.Samples:
    """`n` calls of an instrument, one behind the other (or one each `every_ms`)."""
    took = round(took_ms * 1e6)
    every = took if every_ms is None else round(every_ms * 1e6)
    begin = round(begin_s * SECOND)
    rows = tuple((number, 1, 0, begin + at * every, begin + at * every + took) for at in range(n))
    return ev.Samples(rows[-1][4], rows)


def cpu_target(threads: int = 1, devices: tuple[str, ...] = ("cpu",)) -> ev.TargetSeen:
    """A job, with as many threads."""
    return ev.TargetSeen(0, 1, "train.py", "3.11.7", "2.13.0", "run", 1.7e9, devices, options=(("num_threads", str(threads)),))


def model_of(*events: ev.Event) -> Model:
    """The model after these events, in a job with one thread on the CPU unless a target is among them."""
    model = Model()
    first: list[ev.Event] = [] if any(isinstance(event, ev.TargetSeen) for event in events) else [cpu_target()]
    model.apply([*first, ev.ThreadSeen(0, 1, "main"), *events])
    return model
