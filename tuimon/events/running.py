"""Events about what runs: instruments and their samples."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tuimon.events.base import Event

Role = Literal["forward", "backward", "resume", "optimizer", "eager", "crossing"]
"""What an instrument times or counts. "resume" marks the end of a boundary: the moment a resume function is called. "eager" is
one call of a frame that ran in eager (past the limit, or because the frame is skipped whole); "crossing" one passage of the
instruction at which a frame that is skipped whole would have been broken. These three have begin == end."""


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


@dataclass(frozen=True, slots=True)
class ThreadSeen(Event):
    """A thread of the job: its ident, by which samples name it, and its name in compile events."""

    thread: int
    name: str


@dataclass(frozen=True, slots=True)
class Samples(Event):
    """A batch of timed calls, in the order in which they ended on each thread."""

    rows: tuple[tuple[int, int, int, int, int], ...]
    """(instrument, thread, flags, begin_ns, end_ns). Flag 1: the call raised. Where only an instant is
    told ("resume", "eager", "crossing"), begin_ns == end_ns."""


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
