"""The vocabulary: everything that any source can tell the model.

Every source (a live job, a recording, a TORCH_TRACE log, a Kineto trace, NVML, the host) speaks in these events and in
nothing else; the model is a fold over them. An event is a fact with a time, never an instruction.

Units. A field that ends in `_ns` is a whole number of nanoseconds; `t_ns` and the times in samples are on CLOCK_MONOTONIC of
the job's host. A field that ends in `_s` is seconds as a float, `_bytes` is bytes. What is not known is None, never 0.

Compile ids are Dynamo's own, "frame/compile" (for instance "2/1"), without the attempt: a restart is not a recompile. They
repeat after `torch._dynamo.reset()`; the model counts the generations.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

SCHEMA = 1
"""Raised by one when an event changes its meaning. Adding a field with a default is no change."""

Role = Literal["forward", "backward", "resume", "optimizer"]
"""What an instrument times. "resume" marks the end of a boundary: the moment a resume function is called."""

EndKind = Literal["exited", "lost", "detached", "refused"]
"""How the watching came to its end. "refused": it never began, tuimon could not attach."""


@dataclass(frozen=True, slots=True)
class Event:
    """A fact about the target or its surroundings."""

    t_ns: int
    """When it happened, CLOCK_MONOTONIC of the job's host."""


# ---------------------------------------------------------------------------------------------------- the target


@dataclass(frozen=True, slots=True)
class Attaching(Event):
    """tuimon is about to attach: what happens, or what it waits for. Before `TargetSeen`, and on the clock of tuimon's host."""

    sentence: str
    since_s: float | None = None
    """Where something is waited for: how long it has been like that."""


@dataclass(frozen=True, slots=True)
class TargetSeen(Event):
    """The target has been attached to (or a file opened). Comes first; comes again when a fact was learnt late."""

    pid: int | None
    command: str
    python: str | None
    torch: str | None
    """None while the job has not imported torch."""
    how: str
    """"run", "injected", "file", ..: how tuimon got at it."""
    wall_s: float
    """Unix time at `t_ns`: ties the monotonic clock to the calendar."""
    devices: tuple[str, ...] = ()
    rank: int | None = None
    world_size: int | None = None
    recompile_limit: int | None = None
    options: tuple[tuple[str, str], ...] = ()
    """Settings that change what the numbers mean: ("compile_threads", "2"), .."""


@dataclass(frozen=True, slots=True)
class TargetEnded(Event):
    """No more comes from the target. The model keeps everything it has."""

    how: EndKind
    detail: str
    """A sentence: "exited with status 0", "killed by signal 9", "connection closed"."""
    status: int | None = None
    """The exit status where it is known (negative: the signal)."""


@dataclass(frozen=True, slots=True)
class HookStatus(Event):
    """What the hook says of itself, about once a second."""

    samples: int
    """Samples taken since the attach."""
    dropped: int
    """Samples and events that did not fit and were thrown away."""
    hook_s: float
    """Time that the hook's own code took in the job, estimated: calls x the cost of one call, plus the sender's CPU time."""
    instruments: tuple[tuple[str, str], ...] = ()
    """(name, "on" | why it is not) for each instrument."""


@dataclass(frozen=True, slots=True)
class NotAvailable(Event):
    """Something that cannot be told of this target, with the reason."""

    what: str
    why: str


@dataclass(frozen=True, slots=True)
class Line(Event):
    """A line for the event log that no other event carries (the job's own output, a warning of a source)."""

    text: str
    origin: Literal["job", "tuimon"] = "tuimon"


# ---------------------------------------------------------------------------------------------------- run-time samples


@dataclass(frozen=True, slots=True)
class InstrumentAdded(Event):
    """A timer was put on something that runs: a region, a resume function, the optimizer."""

    instrument: int
    """The number that samples carry. Never used twice in one session."""
    role: Role
    compile_id: str | None
    name: str
    """The name in the job's globals, for instance `__compiled_fn_3_<uuid>`."""
    function: str
    """The code's name: the frame's function; for "resume" the resume function."""
    file: str
    line: int
    """First line of the code; for "resume" the line of the code that goes on."""
    backend: str | None = None
    ops: int | None = None
    before_attach: bool = False


@dataclass(frozen=True, slots=True)
class ThreadSeen(Event):
    """A thread of the job: its ident, by which samples name it, and its name in compile events."""

    thread: int
    name: str


@dataclass(frozen=True, slots=True)
class Samples(Event):
    """A batch of timed calls, in the order in which they ended on each thread."""

    rows: tuple[tuple[int, int, int, int, int], ...]
    """(instrument, thread, flags, begin_ns, end_ns). Flag 1: the call raised. "resume": begin_ns == end_ns."""


# ---------------------------------------------------------------------------------------------------- the compiler


@dataclass(frozen=True, slots=True)
class CompileStarted(Event):
    """Dynamo began to compile a frame (one event per attempt)."""

    compile_id: str
    attempt: int
    function: str
    file: str
    line: int
    """First line of the frame's function, as far as the record tells."""
    thread: str
    direction: Literal["forward", "backward"] = "forward"
    stack: tuple[tuple[str, int, str], ...] = ()
    """The user's stack, outermost first: (file, line, function)."""


@dataclass(frozen=True, slots=True)
class PhaseBegan(Event):
    """A phase of a compilation began: "entire_frame_compile", "bytecode_tracing", "inductor_compile", .."""

    compile_id: str
    phase: str
    thread: str


@dataclass(frozen=True, slots=True)
class PhaseEnded(Event):
    """The phase that `PhaseBegan` opened is over."""

    compile_id: str
    phase: str
    thread: str


@dataclass(frozen=True, slots=True)
class GraphBroke(Event):
    """Dynamo's decision to stop a graph at a user line. A decision at compile time; it says nothing about cost."""

    compile_id: str | None
    """None for a break from before the attach, of which Dynamo keeps no id."""
    attempt: int
    reason: str
    """Dynamo's text, first line."""
    kind: str
    """Dynamo's graph-break type (gb_type), or the first line of the reason where there is none."""
    gb_id: str | None
    function: str
    file: str
    line: int
    explanation: str = ""
    hints: tuple[str, ...] = ()
    requested: bool = False
    """The user asked for it (compiler.disable, graph_break())."""
    skipped_frame: bool = False
    """The graph could not be resumed: the whole frame runs in eager and no boundary exists."""
    stack: tuple[tuple[str, int, str], ...] = ()
    """The user's stack, outermost first: (file, line, function)."""
    before_attach: bool = False


@dataclass(frozen=True, slots=True)
class GuardsFailed(Event):
    """No cache entry of the frame fitted: why each one did not. A recompile follows, or the limit refuses it."""

    compile_id: str
    """The id of the compilation that this led to."""
    failed: tuple[tuple[str, str], ...]
    """(compile id of the entry, guard text), newest entry first."""
    before_attach: bool = False


@dataclass(frozen=True, slots=True)
class CacheLooked(Event):
    """An artifact cache was asked during a compilation."""

    compile_id: str | None
    cache: Literal["fx_graph", "aot_autograd", "triton"]
    result: Literal["hit", "miss", "bypass"]


@dataclass(frozen=True, slots=True)
class CompileFinished(Event):
    """A compilation is over, with its phase times as torch's own compilation metrics give them."""

    compile_id: str
    direction: Literal["forward", "backward"]
    function: str | None
    """None where torch does not say (a backward, or an attempt that was refused)."""
    file: str | None
    line: int | None
    thread: str
    began_ns: int
    """Start of the compilation on the job's monotonic clock."""
    total_s: float | None
    dynamo_s: float | None = None
    aot_s: float | None = None
    inductor_s: float | None = None
    triton_s: float | None = None
    backward_s: float | None = None
    guard_count: int | None = None
    ops: int | None = None
    entries_before: int | None = None
    """Cache entries that the frame had when this compilation began."""
    failed: str | None = None
    """Type and text of the failure, None if it went well."""
    refused: bool = False
    """The recompile limit refused it: nothing was compiled."""
    restarts: int = 0
    before_attach: bool = False


@dataclass(frozen=True, slots=True)
class FrameSeen(Event):
    """A frame with cache entries, found at attach in Dynamo's own tables."""

    function: str
    file: str
    line: int
    entries: tuple[str, ...]
    """Compile ids of its cache entries, oldest first."""
    before_attach: bool = True


@dataclass(frozen=True, slots=True)
class HistoryCounted(Event):
    """Dynamo's own totals at the moment of attach."""

    compiles: int | None
    breaks: int | None
    graphs: int | None
    steps: int | None = None


# ---------------------------------------------------------------------------------------------------- surroundings


@dataclass(frozen=True, slots=True)
class GpuSampled(Event):
    """One reading of one GPU. A value that could not be read is None and its reason is in `missing`."""

    index: int
    name: str
    utilization: float | None
    """Percent of the driver's last period in which some kernel was resident. Not "busy"."""
    memory_used_bytes: int | None
    memory_total_bytes: int | None
    power_w: float | None = None
    power_limit_w: float | None = None
    temperature_c: float | None = None
    sm_clock_mhz: float | None = None
    sm_clock_max_mhz: float | None = None
    memory_clock_mhz: float | None = None
    throttle: tuple[str, ...] = ()
    process_memory_bytes: int | None = None
    """What the attached process holds on this GPU."""
    missing: tuple[tuple[str, str], ...] = ()
    held: tuple[tuple[int, int], ...] = ()
    """(pid, bytes) of each process with memory on this GPU; only where one reading serves several targets."""


@dataclass(frozen=True, slots=True)
class GpuUnavailable(Event):
    """There is no GPU to read, and why; one sentence for the panel."""

    why: str


@dataclass(frozen=True, slots=True)
class HostSampled(Event):
    """One reading of the host and of the target's process."""

    cpu_percent: float | None
    """Of the target, 100 = one core."""
    rss_bytes: int | None
    threads: int | None
    host_cpu_percent: float | None
    """Of all cores, 0-100."""
    host_memory_used_bytes: int | None
    host_memory_total_bytes: int | None
    run_queue_wait_s: float | None = None
    """Total time the target's threads were runnable but not running, since it started."""
    major_faults: int | None = None
    read_bytes: int | None = None
    written_bytes: int | None = None
