"""The vocabulary: everything that any source can tell the model.

Every source (a live job, a recording, a TORCH_TRACE log, a Kineto trace, NVML, the host) speaks in these events and in
nothing else; the model is a fold over them. An event is a fact with a time, never an instruction.

Units. A field that ends in `_ns` is a whole number of nanoseconds; `t_ns` and the times in samples are on CLOCK_MONOTONIC of
the job's host. A field that ends in `_s` is seconds as a float, `_bytes` is bytes. What is not known is None, never 0.

Compile ids are Dynamo's own, "frame/compile" (for instance "2/1"), without the attempt: a restart is not a recompile. They
repeat after `torch._dynamo.reset()`; the model counts the generations.
"""

from __future__ import annotations

from tuimon.events.base import SCHEMA, Event
from tuimon.events.compiler import (
    BoundaryAccepted,
    CacheLooked,
    CodeSeen,
    CompileFinished,
    CompileStarted,
    FrameSeen,
    GraphBroke,
    GuardsFailed,
    HistoryCounted,
    PhaseBegan,
    PhaseEnded,
)
from tuimon.events.graphs import (
    CounterRow,
    CountersSeen,
    Edge,
    GraphRow,
    GraphSeen,
    KernelRow,
    KernelsSeen,
    Tensor,
    WindowChanged,
)
from tuimon.events.recorded import (
    Gap,
    GraphsExecuted,
    Lookup,
    NotInFile,
    PhaseMarked,
    RecordingGap,
    Span,
    SpansSeen,
)
from tuimon.events.running import (
    DeviceSamples,
    InstrumentAdded,
    LoopsSeen,
    Role,
    Samples,
    SiteSeen,
    SourceSeen,
    StackSeen,
    StepsFolded,
    SyncLooked,
    ThreadSeen,
)
from tuimon.events.surroundings import (
    GpuProcess,
    GpuSampled,
    GpuSilent,
    GpuUnavailable,
    HostSampled,
    MigSampled,
    PoolSampled,
    ProcessTreeSampled,
    ThreadSampled,
    TreeRow,
    XidSeen,
)
from tuimon.events.target import Attaching, EndKind, HookStatus, Line, NotAvailable, TargetEnded, TargetSeen

__all__ = [
    "SCHEMA",
    "Attaching",
    "BoundaryAccepted",
    "CacheLooked",
    "CodeSeen",
    "CompileFinished",
    "CompileStarted",
    "CounterRow",
    "CountersSeen",
    "DeviceSamples",
    "Edge",
    "EndKind",
    "Event",
    "FrameSeen",
    "Gap",
    "GpuProcess",
    "GpuSampled",
    "GpuSilent",
    "GpuUnavailable",
    "GraphBroke",
    "GraphRow",
    "GraphSeen",
    "GraphsExecuted",
    "GuardsFailed",
    "HistoryCounted",
    "HookStatus",
    "HostSampled",
    "InstrumentAdded",
    "KernelRow",
    "KernelsSeen",
    "Line",
    "Lookup",
    "LoopsSeen",
    "MigSampled",
    "NotAvailable",
    "NotInFile",
    "PhaseBegan",
    "PhaseEnded",
    "PhaseMarked",
    "PoolSampled",
    "ProcessTreeSampled",
    "RecordingGap",
    "Role",
    "Samples",
    "SiteSeen",
    "SourceSeen",
    "Span",
    "SpansSeen",
    "StackSeen",
    "StepsFolded",
    "SyncLooked",
    "TargetEnded",
    "TargetSeen",
    "Tensor",
    "ThreadSampled",
    "ThreadSeen",
    "TreeRow",
    "WindowChanged",
    "XidSeen",
]
