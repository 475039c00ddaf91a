"""Events about what the compiler does: compilations, graph breaks, guard failures, caches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tuimon.events.base import Event


@dataclass(frozen=True, slots=True)
class CodeSeen(Event):
    """A code object of the job, under the number by which other events name it. Code objects are told apart by identity."""

    code: int
    function: str
    qualname: str
    """`co_qualname` ("Block.forward") where Python has it (3.11+), else the name."""
    file: str
    line: int
    """Its first line."""


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
    code: int | None = None
    """The frame's code object, as a number (`CodeSeen`)."""
    owner: str = ""
    """What the frame's function belongs to, by type names alone: "Block" for a method of a module, "Sequential(Linear, Tanh)"
    for a library's wrapper around one. Empty where it is not known or there is none."""
    before_attach: bool = False
    """It was under way when tuimon attached."""
    since_known: bool = True
    """Whether `t_ns` is when it began. Otherwise it began at some time before."""


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
    """The graph could not be resumed: the whole frame runs in eager and no boundary exists. Often known only when the
    compilation ends (`CompileFinished.failed`)."""
    stack: tuple[tuple[str, int, str], ...] = ()
    """The user's stack, outermost first: (file, line, function)."""
    before_attach: bool = False
    headline: str = ""
    """Dynamo's own sentence about what it did, where it writes one before the type ("Failed to handle graph break..")."""
    also: str = ""
    """A second graph-break type in the same text: what kept Dynamo from resuming after the first ("graph break in loop")."""
    code: int | None = None
    """The code object in which the instruction that broke lies (`CodeSeen`): the frame's own, or that of an inlined callee."""
    offset: int | None = None
    """The instruction's offset in it, bytes."""
    source: str = ""
    """The text of the line, stripped, where Dynamo quotes it."""


@dataclass(frozen=True, slots=True)
class GuardsFailed(Event):
    """No cache entry of the frame fitted: why each one did not. A recompile follows, or the limit refuses it."""

    compile_id: str
    """The id of the compilation that this led to."""
    failed: tuple[tuple[str, str], ...]
    """(compile id of the entry, guard text), newest entry first."""
    before_attach: bool = False
    now: tuple[tuple[str, str], ...] = ()
    """(expression of a guard, its value in the call that failed), as far as it could be read without running any code of the
    job: numbers, bools, None, short strings, type names."""
    owner: str = ""
    """As `CompileStarted.owner`, of the call that failed."""


@dataclass(frozen=True, slots=True)
class CacheLooked(Event):
    """An artifact cache was asked during a compilation."""

    compile_id: str | None
    cache: Literal["fx_graph", "aot_autograd", "triton"]
    result: Literal["hit", "miss", "bypass"]
    thread: str = ""


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
    code: int | None = None
    """The frame's code object, as a number (`CodeSeen`)."""
    restart_reasons: tuple[str, ...] = ()
    fail_file: str | None = None
    fail_line: int | None = None
    """The user's line at which it failed."""
    breaks: int | None = None
    """Graph breaks in it."""
    caches: tuple[tuple[str, str, int], ...] = ()
    """(cache, "hit" | "miss" | "bypass", how often) as torch's metrics count them; for what was compiled before the attach."""
    gc_s: float | None = None
    """Garbage collection within it."""
    autotune_s: float | None = None
    """Timing kernel candidates within it."""
    limit: str = ""
    """Of a refused one: which limit ("recompile_limit", "accumulated_recompile_limit")."""
    empty: bool = False
    """Dynamo found nothing in the frame to compile: it made no cache entry, and the frame runs as it is."""
    raised: bool | None = None
    """Of a failed one: whether the failure went to the job as an exception. None: not told."""


@dataclass(frozen=True, slots=True)
class FrameSeen(Event):
    """A frame with cache entries, found at attach in Dynamo's own tables."""

    function: str
    file: str
    line: int
    entries: tuple[str, ...]
    """Compile ids of its cache entries, oldest first. Empty for a code object that Dynamo has looked at and left to eager."""
    before_attach: bool = True
    code: int | None = None
    breaks: tuple[tuple[str, int | None], ...] = ()
    """(compile id, line) for each entry that goes on with a resume function: the line of the instruction before the break."""
    owners: tuple[str, ...] = ()
    """As `CompileStarted.owner`, of its entries."""


@dataclass(frozen=True, slots=True)
class BoundaryAccepted(Event):
    """The user has looked at a boundary and lives with it; or, with `note` None, no longer does."""

    file: str
    """The last parts of the path; compared from its end."""
    function: str
    kind: str
    """Dynamo's graph-break type. File, function and kind survive edits; a line number does not."""
    source: str = ""
    """The text of the line, stripped: tells two of one kind in one function apart."""
    note: str | None = ""


@dataclass(frozen=True, slots=True)
class HistoryCounted(Event):
    """Dynamo's own totals at the moment of attach."""

    compiles: int | None
    breaks: int | None
    graphs: int | None
    steps: int | None = None
