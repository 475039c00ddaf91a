"""Records what a model is given, on a thread of its own: neither the fold nor the screen ever waits for a disk."""

from __future__ import annotations

import contextlib
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal

from tuimon import events as ev
from tuimon.sources.inbox import weight
from tuimon.sources.recording import Prelude, Writer

__all__ = ["Prelude", "Recorder"]

EACH_S = 0.5
"""A block is written so often: what a kill takes with it."""

SYNC_S = 5.0
"""The disk is told to hold it so often: what a loss of power takes with it."""

MOST_WAITING = 400_000
"""Weight (`sources.inbox`) of what may wait for the disk; about 100 MB. Beyond it, samples are left out and counted; events
that name something may take as much again."""

BEGUN_LATE = "the recording was begun then: of what ran before it holds compilations and names, and no calls"


class Recorder:
    """One recording that is going on. `put` is for one thread, the one that folds; everything else is for any."""

    def __init__(
        self,
        path: Path,
        *,
        source: bool = False,
        most: int = 512 << 20,
        force: bool = False,
        local: bool = False,
        earlier: Sequence[ev.Event] = (),
        tell: Callable[[ev.Event], None],
        steps: Callable[[], int] = lambda: 0,
    ) -> None:
        """`local`: the job runs on this machine. `earlier`: what a recording that is begun late begins with (`Prelude.events`).
        `tell` is given what the model should be told of the recording itself, on another thread: an inbox's `put`. `steps`: how
        many are over, asked in `put`.

        Raises OSError where the file cannot be made, ValueError for a size that is none.
        """
        self.path = path
        self.state: Literal["on", "stopped", "closed"] = "on"
        """"stopped": the disk would not take any more; `why` tells."""
        self.why = ""
        self.bytes = 0
        """Of its files, as they are now."""
        self.dropped = 0
        """Samples and events that came faster than the disk took them."""
        self._writer = Writer(path, source=source, most=most, force=force, local=local)
        self._began_ns = self._writer.began_ns
        self._tell = tell
        self._steps = steps
        self._first_step: int | None = None
        self._last_step = 0
        self._lock = threading.Lock()
        self._waiting: deque[tuple[int, int, int, list[ev.Event]]] = deque()
        """(at_ns, steps, weight, events)."""
        self._weight = 0
        self._hole: tuple[int, int, int] | None = None
        """Times of the first and the last event that found no room, and how many samples that were."""
        self._closing = threading.Event()
        self._last_t = 0
        if earlier:
            gap = ev.RecordingGap(earlier[-1].t_ns, earlier[0].t_ns, earlier[-1].t_ns, None, BEGUN_LATE)
            self._waiting.append((0, 0, 0, [*earlier, gap]))
        self._thread = threading.Thread(target=self._run, name="tuimon-recorder", daemon=True)
        self._thread.start()

    def put(self, events: Sequence[ev.Event]) -> None:
        """Take what is applied to the model now. Never waits, never raises; `Model.tap`."""
        if self.state != "on" or not events:
            return
        at, steps = time.monotonic_ns() - self._began_ns, self._steps()
        weights = [weight(event) for event in events]
        with self._lock:
            kept, size = list(events), sum(weights)
            if self._hole is not None or self._weight + size > MOST_WAITING:
                kept, size = self._what_fits(kept, weights)
            if kept:
                self._waiting.append((at, steps, size, kept))
                self._weight += size
        if self._first_step is None:
            self._first_step = steps
        self._last_step = steps

    def _what_fits(self, events: list[ev.Event], weights: Sequence[int]) -> tuple[list[ev.Event], int]:
        """Of a batch for which there is no room: what there is room for, with its weight. What is left out is remembered as
        one hole, until half of the room is free again."""
        kept: list[ev.Event] = []
        taken = 0
        if self._hole is not None and self._weight <= MOST_WAITING // 2:
            kept.append(self._gap(self._hole))
            self._hole = None
        for event, size in zip(events, weights, strict=True):
            rows = len(event.rows) if isinstance(event, ev.Samples) else None
            room = (2 * MOST_WAITING if rows is None else 0 if self._hole else MOST_WAITING) - self._weight - taken
            if size <= room:
                kept.append(event)
                taken += size
                continue
            first, _, n = self._hole or (event.t_ns, 0, 0)
            self._hole = (first, event.t_ns, n + (rows or 0))
            self.dropped += rows or 1
        return kept, taken

    @staticmethod
    def _gap(hole: tuple[int, int, int]) -> ev.RecordingGap:
        first, last, rows = hole
        why = f"{rows:,} samples came faster than the disk took them and are not in the recording"
        return ev.RecordingGap(last, first, last, rows, why)

    def close(self, timeout: float = 3.0) -> str:
        """Write what is left, and give a sentence on what was recorded. Waits so many seconds for the disk at most. For the
        thread that puts."""
        with contextlib.suppress(Exception):
            self._last_step = max(self._last_step, self._steps())
        self._closing.set()
        self._thread.join(timeout)
        size = _size(self.bytes)
        if self._thread.is_alive():
            self.state = "stopped"
            self.why = f"the disk has not answered for {timeout:.0f} s"
            return f"the recording ends early: {self.why}; {size} were written: {self.path}"
        if self.state == "stopped":
            return f"the recording ends early: {self.why}: {self.path}"
        n = self._last_step - (self._first_step or 0)
        lost = f", {self.dropped:,} samples and events left out as the disk was slow" if self.dropped else ""
        return f"recorded {n:,} step{'s' * (n != 1)}, {size}{lost}: {self.path}"

    def _run(self) -> None:
        try:
            synced = time.monotonic()
            over = False
            while not over:
                over = self._closing.wait(EACH_S)
                self._write()
                if time.monotonic() - synced > SYNC_S:
                    self._writer.sync()
                    synced = time.monotonic()
            self._writer.close()
            self.bytes = self._writer.bytes
            self.state = "closed"
        except OSError as error:
            self._stop(error.strerror or str(error))
        except Exception as error:  # noqa: BLE001  # whatever is wrong with a recording, the monitor goes on
            self._stop(f"{type(error).__name__}: {error}")

    def _write(self) -> None:
        while True:
            with self._lock:
                if not self._waiting:
                    break
                at, steps, size, events = self._waiting.popleft()
                self._weight -= size
            unfit = self._writer.unfit
            self._writer.steps = steps
            self._writer.put(at, events)
            if self._writer.unfit > unfit == 0:
                why = f"an event could not be recorded ({self._writer.unfit_why})"
                self._say(ev.NotAvailable(events[-1].t_ns, "part of the recording", why))
            self._last_t = events[-1].t_ns
        with self._lock:
            hole = self._hole if self._closing.is_set() else None
        if hole is not None:
            self._writer.put(time.monotonic_ns() - self._began_ns, [self._gap(hole)])
        self._writer.flush(self._last_step)
        self.bytes = self._writer.bytes

    def _stop(self, why: str) -> None:
        """The disk would not: say so, and let everything else go on."""
        self._writer.abandon()
        self.bytes = self._writer.bytes
        at = time.strftime("%H:%M:%S")
        self.why = f"stopped at {at}: {why[:1].lower()}{why[1:]}; {_size(self.bytes)} were written and can be replayed"
        self.state = "stopped"
        with self._lock:
            self._waiting.clear()
            self._weight = 0
        self._say(ev.Line(self._last_t, f"the recording {self.why}"))
        self._say(ev.NotAvailable(self._last_t, "recording", self.why))

    def _say(self, event: ev.Event) -> None:
        with contextlib.suppress(Exception):
            self._tell(event)


def _size(n: int) -> str:
    return f"{n / 2**20:.1f} MiB" if n >= 2**20 else f"{n / 1024:.0f} KiB"
