"""Events of what lies in files: what a trace or a log alone can tell, what it cannot, and the phases of an experiment."""

from __future__ import annotations

from dataclasses import dataclass

from tuimon.events.base import Event

Span = tuple[str, str, str | None, int, int, int, int]
"""(kind, name, region it begins in or None, n, sum ns, least ns, most ns). Kind: "sync": the host waited for the device, or a
value was taken from it."""

Gap = tuple[str, str, int, int, int | None, int]
"""(region before, region after, n, host ns in all, ns in all in which the device had no kernel or None where the file holds no
kernel, how many of them had a sync in them). A region is its compile id, with "<" behind a backward's."""

Lookup = tuple[str, int, int]
"""(compile id of the region that it led to, "" where none follows; n; ns in all)."""


@dataclass(frozen=True, slots=True)
class SpansSeen(Event):
    """What a trace file or a profiler window says of syncs, cache lookups and the gaps between regions. `t_ns` is its end."""

    window: int
    """The window's number; 0 for a file."""
    spans: tuple[Span, ...]
    """Largest sum first, at most 400."""
    gaps: tuple[Gap, ...]
    """Largest host time first, at most 400."""
    lookups: tuple[Lookup, ...] = ()


@dataclass(frozen=True, slots=True)
class GraphsExecuted(Event):
    """The order in which a log says that graphs were run, which must be the same on all ranks of a job."""

    names: tuple[str, ...]
    """At most 4,096."""
    cut: bool = False
    """Whether there were more."""


@dataclass(frozen=True, slots=True)
class NotInFile(Event):
    """What a file of this kind cannot tell: these say "not in this file", never 0."""

    what: tuple[str, ...]
    """Of "calls", "steps", "crossings", "device", "gpu", "host", "compiles", "graphs"."""
    why: str
    """A sentence about the kind of file."""


@dataclass(frozen=True, slots=True)
class PhaseMarked(Event):
    """A phase of an experiment begins, and the one before it is over."""

    name: str
    """"initial", "steady", "guard", ..; "": no phase any more."""
    step: int
    """How many steps were over."""
    planned: str = ""
    """How long it was to be: "200 steps", "30 s"."""


@dataclass(frozen=True, slots=True)
class RecordingGap(Event):
    """A stretch of a recording that is not there: dropped to keep its size, or damaged."""

    from_ns: int
    until_ns: int
    rows: int | None
    """Samples that were in it; None where nobody knows."""
    why: str
