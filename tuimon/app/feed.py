"""What the monitor is fed from: a live job, a recording, a script in a test."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from tuimon.events import Event
from tuimon.model import Model
from tuimon.model.ranks.jobs import Jobs

LET_GO_S = 12.0
"""A feed bounds its own `detach`, and says what came of it; this only keeps a broken one from holding the way out for ever."""


class Feed(Protocol):
    """The monitor's only link to the outside."""

    model: Model
    """What the monitor folds the events into and shows."""
    title: str
    """What is watched, in a few words: the terminal's title."""
    label: str
    """What to call it among others: "rank 3", "4711"."""
    rank: int | None
    host: str | None
    """None: this host."""
    pid: int | None
    """None while it is not known."""
    job: str | None
    """The name of the job that it is part of, where it has one."""

    def drain(self) -> list[Event]:
        """The events that came since the last call. Never blocks."""

    def show(self, on: bool) -> None:
        """The panels show this one now, or no more. Never blocks."""

    def command(self, message: dict[str, object]) -> str | None:
        """Send a command to the hook ({"cmd": "window", ..}). Never blocks. None, or a sentence on why it cannot be sent."""

    def detach(self) -> None:
        """Let the job go. Called once, on a thread of its own, when the monitor is left; takes less than `LET_GO_S`."""

    def nvml_waiting(self) -> float | None:
        """How long, in seconds, a call into the GPU driver has not come back; None if none is waiting."""

    def silence(self) -> tuple[float, str | None] | None:
        """For how many seconds nothing has come from the job, and what its process does ("stopped") where that explains it.

        None where nothing can come: before the attach, and when it is over.
        """


@runtime_checkable
class Group(Protocol):
    """Several feeds, watched at once."""

    title: str
    """What they are as a whole."""

    @property
    def members(self) -> Sequence[Feed]:
        """At least one, in the order in which they are shown."""

    @property
    def jobs(self) -> Jobs:
        """What is known of ranks beside each other, by their places among the members."""

    def compare(self) -> None:
        """Compare them by what has been taken in since the last time."""

    def detach(self) -> None:
        """Let all go, as for one."""


def members_of(feed: Feed | Group) -> tuple[Feed, ...]:
    """The feeds behind what the monitor was given."""
    return tuple(feed.members) if isinstance(feed, Group) else (feed,)
