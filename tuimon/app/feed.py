"""What the monitor is fed from: a live job, a recording, a script in a test."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol, runtime_checkable

if TYPE_CHECKING:
    from tuimon.events import Event
    from tuimon.model import Model
    from tuimon.model.ranks.jobs import Jobs


class Where(Protocol):
    """Where a replay stands."""

    @property
    def step(self) -> int | None:
        """The index of the latest step that is over; None before the first."""

    @property
    def at_s(self) -> float:
        """Seconds since the recording began."""

    @property
    def of_s(self) -> float:
        """How long it is, as far as it is read."""

    @property
    def speed(self) -> float | None:
        """Times the job's own pace; None: as fast as it goes."""

    @property
    def paused(self) -> bool:
        """Whether it stands still, until it is told to go on."""

    @property
    def over(self) -> bool:
        """Whether it stands at the end."""

    @property
    def loaded(self) -> float:
        """The share of it that has been read, 0 to 1."""

    @property
    def rows(self) -> int:
        """Samples that have been read."""

    @property
    def of_rows(self) -> int | None:
        """Samples in it."""

    @property
    def going(self) -> str:
        """Where it is going at the moment, in words; "": nowhere."""


@runtime_checkable
class Played(Protocol):
    """A feed that is a recording: a job that can be paused, and gone through."""

    began_s: float | None
    """When it began, as Unix time."""
    restarted: int
    """How often its model became another one, or was moved on by itself."""

    def clock(self) -> int:
        """The time in the recording, in ns: it stands still while nothing is played."""

    def position(self) -> Where:
        """Where it stands."""

    def play(self, on: bool) -> None:
        """Play, or pause. At the end: from the begin again."""

    def speed(self, way: int) -> float | None:
        """The next faster (1) or slower (-1) speed; gives it, None: as fast as it goes."""

    def step(self, count: int) -> str | None:
        """So many steps on or back; it pauses. Gives a sentence where that cannot be."""

    def go(self, text: str, utc_offset_s: int = 0) -> str | None:
        """Go to a place that somebody has typed. Gives a sentence where that is none."""

    def finding(self, way: int) -> str:
        """Go to where the next or the previous thing to look at came up. Gives what it is, or that there is none."""

    def follow(self, at_ns: int) -> None:
        """Be at this time (`clock`) as well, as another recording of the same job is."""


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
