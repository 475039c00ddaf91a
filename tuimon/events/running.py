"""Events about what runs: instruments and their samples."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tuimon.events.base import Event

Role = Literal[
    "forward", "backward", "resume", "optimizer", "eager", "crossing",
    "data", "engine", "gc", "profiler", "communication", "loop", "mark", "cpu",
]  # fmt: skip
"""What an instrument times or counts. "resume" marks the end of a boundary: the moment a resume function is called. "eager" is
one call of a frame that ran in eager (past the limit, or because the frame is skipped whole); "crossing" one passage of the
instruction at which a frame that is skipped whole would have been broken. These three have begin == end.

"data": a wait for the next batch of a loader; "engine": a run of the autograd engine; "gc": a collection; "profiler": start,
stop or step of a profiler; "communication": a collective, or the wait for one. "loop" is a passage of a loop's head, "mark"
the begin of a step that the user has marked; both have begin == end. "cpu" is no stretch of time: its begin is an instant, and
its end the CPU time in ns that the thread had used by then."""


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
    code: int | None = None
    """For "eager" and "crossing": the number of the code object (`CodeSeen`) whose calls or instruction this is."""
    offset: int | None = None
    """For "crossing": the instruction's offset in that code object."""
    why: Literal["", "limit", "skipped", "stance"] = ""
    """For "eager": why its calls run in eager."""
    counted: str = ""
    """How it is counted where that is not plain: "by line", "all its calls", ..; a few words for a person."""
    group: str = ""
    """For "communication": the name of the process group, the same on all of its ranks."""
    variant_of: int | None = None
    """This number stands for those calls of that instrument that have these sizes; it is the same region."""
    sizes: tuple[tuple[str, int], ...] = ()
    """("s77", 20): what the symbols of the graph are in those calls."""


@dataclass(frozen=True, slots=True)
class ThreadSeen(Event):
    """A thread of the job: its ident, by which samples name it, and its name in compile events."""

    thread: int
    name: str
    native: int | None = None
    """Its id in the kernel (the TID under /proc/PID/task)."""


@dataclass(frozen=True, slots=True)
class Samples(Event):
    """A batch of timed calls, in the order in which they ended on each thread."""

    rows: tuple[tuple[int, int, int, int, int], ...]
    """(instrument, thread, flags, begin_ns, end_ns). Flag 1: the call raised. Bits 8 to 15 of a "gc": its generation; bits 8 to
    31 of a "communication": the number of the collective in its group, as all ranks count it, or 0. Where only an instant is
    told ("resume", "eager", "crossing"), begin_ns == end_ns."""


@dataclass(frozen=True, slots=True)
class SiteSeen(Event):
    """Where a long call of an instrument was made from: told for some of those above a millisecond. `t_ns` is its end."""

    instrument: int
    code: int
    """The code object of the innermost frame that is not the library's own (`CodeSeen`)."""
    line: int
    lasti: int
    """The instruction's offset in it, bytes."""
    stack: tuple[tuple[str, int, str], ...] = ()
    """The innermost frames, outermost first: (file, line, function)."""
    thread: int = 0
    path: tuple[tuple[int, int], ...] = ()
    """(code, offset of the instruction) of all its frames that are the user's, outermost first: a loop's is among them."""


@dataclass(frozen=True, slots=True)
class StackSeen(Event):
    """A look at a thread's stack, taken by the hook's own thread while no timed call of that thread began or ended."""

    thread: int
    since_ns: int
    """Nothing had been timed on the thread since then."""
    rows: tuple[tuple[int, int, int, int], ...]
    """(code, line, offset of the instruction, 1 where it is a generator's frame) of each frame, outermost first, `CodeSeen`."""


@dataclass(frozen=True, slots=True)
class SourceSeen(Event):
    """The text of a line that a `SiteSeen` or a `StackSeen` names, as the file had it when it was looked up."""

    file: str
    line: int
    text: str
    """Stripped."""


@dataclass(frozen=True, slots=True)
class LoopsSeen(Event):
    """The loops in which a timed call stands, and which instruments tell the passages of their heads."""

    thread: int
    anchor: int
    """The instrument whose call this is."""
    heads: tuple[tuple[int, int, int, int], ...]
    """(instrument of role "loop", or 0 where its passages cannot be told; code; offset of the head; offset of the jump back) of
    each, outermost first."""
    site: tuple[tuple[int, int], ...]
    """(code, offset) of the instruction at which each of the user's frames stood, outermost first."""


@dataclass(frozen=True, slots=True)
class StepsFolded(Event):
    """Steps of a job whose calls are counted elsewhere: on its own node, by the tuimon there."""

    source: str
    """Where steps come from: "optimizer", "marked", "inferred"."""
    how: str
    """The same in words."""
    rows: tuple[str, ...]
    """Each as JSON: a step, or why one was slow, as `model.digest.pack` writes them; in their order."""


@dataclass(frozen=True, slots=True)
class DeviceSamples(Event):
    """Calls of regions that were timed on the device, a sampled share of all. Told later than they happened."""

    rows: tuple[tuple[int, int, int], ...]
    """(instrument, begin_ns of the call on the host, ns that the device took)."""


@dataclass(frozen=True, slots=True)
class SyncLooked(Event):
    """What was seen of waiting for the device within crossings of one boundary, since the attach."""

    instrument: int
    """The number of the boundary's "resume" instrument."""
    looked: int
    """Crossings that were looked at: those at whose begin the device still had work."""
    waited: int
    """Those of them at whose end it had none: somebody within had waited."""
