"""What the fold over calls remembers of each instrument, and of each thread of the job."""

from __future__ import annotations

from dataclasses import dataclass, field

from tuimon.model.identity import entry_number
from tuimon.model.laps import Track
from tuimon.model.parts import Boundary, Frame, Region, Sizes
from tuimon.model.steps.timing import NOTHING, Timed

Row = tuple[int, int, int, int, int]
"""As in `events.Samples`."""

Entry = tuple[int, str]
"""(generation, compile id)."""

TELLING = ("optimizer", "mark", "engine", "data", "loop", "gc", "profiler", "cpu")
"""Roles of what steps, and where their time went, are told by. They have a room of their own: however many regions there are,
an optimizer that comes behind them ends steps."""


@dataclass(slots=True)
class Thread:
    """What the fold remembers of one thread of the job."""

    open_at: dict[Entry, list[tuple[int, int]]] = field(default_factory=dict)
    """Boundaries that have begun: when the region before them returned, and `told_ns` then. The innermost is last."""
    told_ns: int = 0
    """Time that regions and boundaries of this thread have been given so far, a running total. What callees inside an eager
    stretch were given is not the stretch's own."""


@dataclass(slots=True)
class Instrument:
    role: str
    entry: Entry | None = None
    region: Region | None = None
    boundary: Boundary | None = None
    changed_guard: bool = False
    leads_to_boundary: bool = False
    tail: Boundary | None = None
    """For a region: the boundary that each of its calls ends in, where no function goes on behind that."""
    is_optimizer: bool = False
    """A region that is the step of an optimizer which the job compiled."""
    frame: Frame | None = None
    """For "eager": the frame whose calls these are; for a forward region that of its graph, once it is known."""
    skipped: str | None = None
    """For "crossing": the key of the boundary whose crossings these are."""
    track: Track | None = None
    """For a region: where its calls are counted by the second."""
    sizes: Sizes = ()
    """Of a forward graph with symbols: what they are in these calls."""
    is_counted: bool = False
    """Whether its calls are counted one by one, beside what they are to steps."""
    is_plain: bool = False
    """For a region: of a call that did not raise, while nothing compiles, there is nothing to say but how long it took."""
    is_forward: bool = False
    """For a region: of a forward graph, and it is known of which compilation."""
    is_alone: bool = True
    """For a region: no other instrument times calls of it."""
    calls: list[Row] = field(default_factory=list)
    """For a region: plain calls, counted all at once behind the samples that they came with."""
    timed: Timed | None = None
    """What its calls are to steps; None for nothing."""
    way: int = NOTHING
    category: int | None = None
    """Its `Timed.way` and `counts_as`, where it has them."""


def has_older_entry(frame: Frame, compile_id: str | None) -> bool:
    """Whether the frame has a cache entry from before this one: then it was made because a guard failed."""
    number = entry_number(compile_id) if compile_id is not None else None
    if number is None:
        return False
    return any((entry_number(entry) or 0) < number for entry in frame.entries)
