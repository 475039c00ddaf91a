"""The one place where the threads of the sources and the thread of the screen meet.

Sources put, the UI's timer drains. Nothing here waits for room: a screen that is frozen or slow must never hold up the
reading of the job, so what does not fit is thrown away and counted.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterable
from dataclasses import fields, replace
from typing import Any

from tuimon.events import Event, Samples, StepsFolded

ROW_BYTES = 256
"""About what one row of samples takes in memory; other events are weighed against it."""


def weight(event: Event) -> int:
    """What an event takes up, in rows: a batch of samples has them (an empty one counts as one), others weigh their texts."""
    if isinstance(event, Samples):
        return max(1, len(event.rows))
    if isinstance(event, StepsFolded):  # there are many of these
        return 1 + sum(map(len, event.rows)) // ROW_BYTES
    return 1 + sum(_bytes(getattr(event, field.name)) for field in fields(event)) // ROW_BYTES


def _bytes(value: Any) -> int:
    if isinstance(value, str):
        return len(value)
    if isinstance(value, tuple):
        return 64 * len(value) + sum(map(_bytes, value))
    return 0


class Inbox:
    """A bounded queue of events from many threads to one.

    `limit` is in rows (see `weight`). Samples may fill it to the limit; the seldom events may go over it by an eighth. They
    are what gives samples a meaning (which region, which compilation, that the job ended), and a flood of samples must not
    be what pushes them out.
    """

    def __init__(self, limit: int = 200_000) -> None:
        if limit < 1:
            raise ValueError(f"an inbox needs room for something, not {limit}")
        self._limit = limit
        self._hard_limit = limit + max(1, limit // 8)
        self._lock = threading.Lock()
        self._events: deque[Event] = deque()
        self._held = 0
        self._dropped = 0

    def put(self, event: Event) -> None:
        """Add one event; where there is no room, count it instead. Never blocks, never raises. Any thread."""
        with self._lock:
            self._add(event)

    def put_many(self, events: Iterable[Event]) -> None:
        """Add events in their order, with no other thread's between them. Any thread."""
        batch = list(events)  # outside the lock: an iterable may take its time
        with self._lock:
            for event in batch:
                self._add(event)

    def _add(self, event: Event) -> None:
        size = weight(event)
        limit = self._limit if isinstance(event, Samples) else self._hard_limit
        room = limit - self._held
        if size > room:
            if room <= 0 or not isinstance(event, Samples):
                self._dropped += size if isinstance(event, Samples) else 1
                return
            # the earlier part of a batch is kept, so that what is there has no hole before its end
            self._dropped += size - room
            event, size = replace(event, rows=event.rows[:room]), room
        self._events.append(event)
        self._held += size

    def drain(self, limit: int | None = None) -> list[Event]:
        """Take out what has come, oldest first.

        `limit` (in rows) bounds one call, so that a backlog cannot stop the screen: whole events are taken until it is
        reached or passed, and the rest stays for the next call. None takes everything.
        """
        with self._lock:
            if limit is None:
                taken = list(self._events)
                self._events.clear()
                self._held = 0
                return taken
            taken = []
            rows = 0
            while self._events and rows < limit:
                event = self._events.popleft()
                rows += weight(event)
                taken.append(event)
            self._held -= rows
            return taken

    @property
    def dropped(self) -> int:
        """Rows and events that did not fit, since the beginning."""
        with self._lock:
            return self._dropped

    @property
    def held(self) -> int:
        """The weight of what waits to be drained, in rows."""
        with self._lock:
            return self._held
