"""Events about what the job computes: compiled graphs, and what a profiler's window or a trace file holds.

They carry shapes and counts, never a graph's text and never the user's source. Rows that are equal stand once, with how often.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tuimon.events.base import Event

Tensor = tuple[str, tuple[str, ...]]
"""(dtype as torch prints it in graphs: "f32", "bf16", "i64"; sizes). A size is digits or an expression of symbols: "2*s27"."""

GraphRow = tuple[str, tuple[Tensor, ...], tuple[Tensor, ...], str, int]
"""(operator, inputs, outputs, arguments, how often).

The operator is without its overload, and with its namespace where that is not aten: "addmm", "mkldnn._linear_pointwise",
"torch.linear" (Dynamo's own level). The arguments are JSON of those that a formula uses, {"is_causal": true}.
"""

Edge = tuple[str, tuple[str, ...], int]
"""(dtype, sizes, how often) of tensors that cross a graph's edge."""

KernelRow = tuple[str, str, tuple[tuple[str, tuple[int, ...]], ...], str, str | None, int, int, int, int, int]
"""(kernel, "" on a CPU; operator "aten::addmm", "" where none is linked; operands (dtype as Kineto prints it, sizes); arguments
as in GraphRow; compile id of the region around it or None; device, -1 a CPU; n; sum ns; least ns; most ns)."""


@dataclass(frozen=True, slots=True)
class GraphSeen(Event):
    """A compiled graph: what it computes, and what must cross its edge. Told once a graph, before or after its instrument."""

    compile_id: str
    direction: Literal["forward", "backward"]
    place: int
    """Which of several graphs of this compile id and direction it is: 0, 1, .. in the order in which they were made."""
    attempt: int
    level: Literal["aten", "torch"]
    """Whose graph it is: AOTAutograd's, or Dynamo's own where the backend takes that one."""
    rows: tuple[GraphRow, ...]
    reads: tuple[Edge, ...]
    """Distinct inputs that are read; of a table that is gathered from, what is gathered at most."""
    writes: tuple[Edge, ...]
    """Outputs that are new, and inputs that are written; views are none."""
    symbols: tuple[tuple[str, int], ...] = ()
    """Each symbol's size at compile time, where the log tells it."""
    cut: bool = False
    """Rows are missing: the operations of the whole are not known."""
    why: str = ""
    """Why rows are missing."""
    before_attach: bool = False
    kernels: tuple[tuple[str, tuple[Tensor, ...], int], ...] = ()
    """The calls of Inductor's code: (kernel, operands, how often)."""
    model_bytes: int | None = None
    """What Inductor's own model of reads and writes says of the whole graph, at the sizes of compile time."""


@dataclass(frozen=True, slots=True)
class WindowChanged(Event):
    """A profiler window: asked for, open, closed, refused, cancelled."""

    window: int
    state: Literal["waiting", "open", "closed", "refused", "cancelled"]
    why: str = ""
    steps: int = 0
    job_s: float | None = None
    """How long the job stood still for its start and its stop; told with "closed"."""
    slower: float | None = None
    """Median step in it over the median of those before; told with "closed"."""
    begin_ns: int | None = None
    end_ns: int | None = None


@dataclass(frozen=True, slots=True)
class KernelsSeen(Event):
    """What a window or a trace file holds: kernels, or a CPU's operators with their own time, by name, operator and shapes."""

    window: int
    rows: tuple[KernelRow, ...]
    """The largest sum first, at most 400; the rest in one row named "(others)"."""
    begin_ns: int
    end_ns: int
    busy: tuple[tuple[int, int], ...] = ()
    """(device, ns in which at least one kernel ran)."""
    regions: tuple[tuple[str, int, int], ...] = ()
    """(compile id, calls, ns) of the compiled regions in it; a backward's id ends in "<"."""
    device: str = ""
    """The device's name as the trace has it; "" on a CPU."""
    linked: float = 0.0
    """Share of the kernels' time that has an operator."""
    steps: int = 0
    """It is cut to so many whole steps: from the end of one to the end of the last. 0: it is all that was recorded."""


CounterRow = tuple[str, int, int, float | None, float | None, float | None, str, str]
"""(kernel; n; sum ns; operations; bytes from and to the device's memory; bytes through its L2 cache; "matrix", "vector" or ""
where that is mixed or not known; dtype as in `Tensor`, or ""). None: not counted in that file."""


@dataclass(frozen=True, slots=True)
class CountersSeen(Event):
    """What hardware counters say of kernels: a file that another profiler has written."""

    source: str
    """Who counted, in words: "Nsight Compute"."""
    rows: tuple[CounterRow, ...]
    """The largest sum first, at most 400."""
    device: str = ""
