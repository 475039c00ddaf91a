"""What the monitor is fed from: a live job, a recording, a script in a test."""

from __future__ import annotations

from typing import Protocol

from tuimon.events import Event
from tuimon.model import Model


class Feed(Protocol):
    """The monitor's only link to the outside."""

    model: Model
    """What the monitor folds the events into and shows."""
    title: str
    """What is watched, in a few words: the terminal's title."""

    def drain(self) -> list[Event]:
        """The events that came since the last call. Never blocks."""

    def detach(self) -> None:
        """Let the job go. Called once, on a thread of its own, when the monitor is left; may take up to 5 s."""

    def nvml_waiting(self) -> float | None:
        """How long, in seconds, a call into the GPU driver has not come back; None if none is waiting."""
