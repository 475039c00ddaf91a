"""What must be told again so that the rest of a stream makes sense: all events that name or decide something.

Samples say "instrument 7 took so long"; what instrument 7 is was told once, at its begin. Whoever begins in the middle (a
later segment of a recording, a recording that is begun late) is told these events first.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tuimon import events as ev
from tuimon.sources.inbox import weight

HIGH_RATE = frozenset(
    {
        ev.Samples,
        ev.DeviceSamples,
        ev.StackSeen,
        ev.SiteSeen,
        ev.HostSampled,
        ev.GpuSampled,
        ev.ThreadSampled,
        ev.ProcessTreeSampled,
        ev.MigSampled,
        ev.PoolSampled,
        ev.GpuSilent,
        ev.Line,
        ev.StepsFolded,
        ev.RecordingGap,
    }
)
"""Readings, and what comes with each step: they are not repeated."""

MOST_WEIGHT = 65_536
"""Room for all of them, as the inbox weighs events: 16 MB. Then the oldest phases of compilations go, and after these the
oldest of all that do not name anything."""

_NAMING = (ev.TargetSeen, ev.ThreadSeen, ev.CodeSeen, ev.InstrumentAdded, ev.NotAvailable)


class Prelude:
    """Collects them."""

    def __init__(self, most: int = MOST_WEIGHT) -> None:
        self.segment = 0
        """The segment of a recording that goes on now; kept with each event."""
        self.left_out = 0
        """Events for which there was no room."""
        self._most = most
        self._held: dict[object, tuple[int, ev.Event]] = {}
        self._number = 0
        self._weight = 0

    def put(self, events: Iterable[ev.Event]) -> None:
        """Take a batch, in its order."""
        for event in events:
            if type(event) in HIGH_RATE:
                continue
            key = self._key(event)
            before = self._held.pop(key, None)  # what replaces something stands at its own place in the order
            self._held[key] = (self.segment, event)
            self._weight += weight(event) - (weight(before[1]) if before else 0)
            if self._weight > self._most:
                self._make_room()

    def events(self) -> list[ev.Event]:
        """All of them, oldest first."""
        return [event for _, event in self._held.values()]

    def by_segment(self) -> Iterator[tuple[int, ev.Event]]:
        """The same, each with the segment in which it was told."""
        return iter(self._held.values())

    def _key(self, event: ev.Event) -> object:
        """Of those of which only the last one counts: what it is about. Others have a number of their own."""
        if isinstance(event, ev.SyncLooked):
            return ("looked", event.instrument)
        if isinstance(event, ev.NotAvailable):
            return ("not available", event.what)
        if isinstance(event, (ev.HookStatus, ev.Attaching)):
            return type(event)
        self._number += 1
        return self._number

    def _make_room(self) -> None:
        """To half of it, so that this is seldom done."""
        for passed_over in ((ev.PhaseBegan, ev.PhaseEnded), ev.Event):
            for key, (_, event) in list(self._held.items()):
                if self._weight <= self._most // 2:
                    return
                if isinstance(event, passed_over) and not isinstance(event, _NAMING):
                    self._drop(key, event)
        for key, (_, event) in list(self._held.items()):  # nothing but names, and too many
            if self._weight <= self._most // 2:
                return
            if not isinstance(event, ev.TargetSeen):
                self._drop(key, event)

    def _drop(self, key: object, event: ev.Event) -> None:
        del self._held[key]
        self._weight -= weight(event)
        self.left_out += 1
