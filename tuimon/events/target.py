"""Events about the target: that it is there, what it is, how it ends, what cannot be told of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tuimon.events.base import Event

EndKind = Literal["exited", "lost", "detached", "refused"]
"""How the watching came to its end. "refused": it never began, tuimon could not attach."""


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
