"""How to get at a process, wherever it runs: what a feed needs to attach, and what it gets."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from tuimon.attach.connection import OnEnd, Report, Sink


class Session(Protocol):
    """A hook that is in place, here or on another host: what `tuimon.attach.connection.Session` has."""

    pid: int
    hello: dict[str, Any]
    how: str
    report: Report
    brings_sources: bool
    """Whether the readings of the machine come along with the frames."""

    def clock(self) -> int:
        """The time now in ns on the clock of the job's host."""

    def start(self, sink: Sink, on_end: OnEnd) -> None:
        """Begin reading, on another thread."""

    def send(self, message: dict[str, Any]) -> bool:
        """Send a command to the hook; False when the connection is gone."""

    def trace_folder(self) -> int | None:
        """Where the job puts the files of its profiler windows, opened, if that is on this host; the caller closes it."""

    def pass_on(self, *, whole: bool) -> None:
        """Where the calls are folded on the job's node: whether to have them all the same."""

    def detach(self) -> dict[str, Any] | None:
        """Have the hook taken out; gives its goodbye."""

    def close(self) -> None:
        """Close the connection."""


class Contact:
    """An attach that is under way: through it the attach says what happens, and is told to stop. For any thread."""

    def __init__(self, tell: Callable[[str, float | None], None]) -> None:
        self.cancelled = threading.Event()
        """Set when nobody wants the attach any more: it has to raise Refused("cancelled", ..) within a second."""
        self._tell = tell

    def say(self, sentence: str) -> None:
        """What happens now: "attaching to process 4711, Python 3.12"."""
        self._tell(sentence, None)

    def waiting(self, sentence: str, since_s: float) -> None:
        """What is waited for ("the main thread waits in futex") and for how many seconds it has been like that."""
        self._tell(sentence, since_s)


@dataclass(frozen=True)
class Way:
    """How to get at one process."""

    label: str
    """What to call it in a sentence and in a list: "rank 3", "4711"."""
    title: str
    """What it runs, as far as is known before the attach: its command."""
    rank: int | None
    host: str | None
    """Where it runs; None: on this host."""
    open: Callable[[Contact], Session]
    """Attach. Blocks, for as long as it takes, on a thread of the feed; raises Refused."""
    pid: int | None = None
    """The process id on its host."""
    job: str | None = None
    """The name of the job that it is part of, where it has one."""
