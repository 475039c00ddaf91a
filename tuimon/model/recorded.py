"""What is known only because the events come from a file, or cannot be known for that reason."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tuimon import events as ev
from tuimon.model.windows import MOST_WINDOWS

if TYPE_CHECKING:
    from tuimon.model.model import Model

MOST_RECORDING_GAPS = 64
NOT_IN_FILE = "not in this file"


class Recorded:
    """The part of the model that only files fill."""

    def __init__(self, model: Model) -> None:
        self.absent: dict[str, str] = {}
        """What a file of this kind does not tell ("calls", "steps", ..: `NotInFile.what`), with the sentence why."""
        self.spans: dict[int, ev.SpansSeen] = {}
        """Window -> its syncs, lookups and gaps, oldest first; 0 for a trace file."""
        self.executed: tuple[str, ...] = ()
        """The order in which a log says that graphs were run."""
        self.gaps: list[ev.RecordingGap] = []
        """Stretches of a recording that are not there."""
        self._model = model
        self.handlers: dict[type[ev.Event], Callable[[Any], None]] = {
            ev.NotInFile: self._not_in_file,
            ev.SpansSeen: self._spans,
            ev.GraphsExecuted: self._executed,
            ev.RecordingGap: self._gap,
        }

    def missing(self, what: str) -> str:
        """Why a file of this kind does not tell this, in words that begin with `NOT_IN_FILE`; "" where it may."""
        why = self.absent.get(what)
        return "" if why is None else f"{NOT_IN_FILE}: {why}"

    def _not_in_file(self, event: ev.NotInFile) -> None:
        self.absent.update(dict.fromkeys(event.what, event.why))
        self._model.changed("coverage")

    def _spans(self, event: ev.SpansSeen) -> None:
        self.spans[event.window] = event
        while len(self.spans) > MOST_WINDOWS:
            self.spans.pop(next(iter(self.spans)))
        self._model.changed("roofline")

    def _executed(self, event: ev.GraphsExecuted) -> None:
        self.executed = event.names
        self._model.changed("compiles")

    def _gap(self, event: ev.RecordingGap) -> None:
        if self._model.room("gaps of the recording", self.gaps, MOST_RECORDING_GAPS):
            self.gaps.append(event)
        self._model.changed("coverage")
