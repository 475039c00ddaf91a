"""A recording is folded once from begin to end, on a thread of its own: its places, and states to go on from.

From one of these states to the place that somebody wants is a fraction of a second of folding.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from tuimon import events as ev
from tuimon.model import Model
from tuimon.model.findings import findings
from tuimon.playback.fold import Fold, weight
from tuimon.sources.files import Opened, Stopped
from tuimon.sources.trace_file import Unreadable

EVERY = 30_000
"""Rows between two kept states: about a quarter of a second to fold on a slow machine."""
MOST_BYTES = 64 << 20
"""Kept states together; beyond it every second one goes."""
MOST_MARKS = 16_384
LOOK_EVERY = 500
"""Rows between two looks at what is found in the job, at least."""
LOOKS = 0.05
"""And no more of the time is spent on looking."""
_AT_ONCE = threading.Semaphore(2)
"""So many ranks are read side by side: more would only take the processor from each other, and from the screen."""


@dataclass(frozen=True, slots=True)
class Mark:
    """Before a block of the recording."""

    block: int
    at_ns: int
    """When the events before it were taken in."""
    steps: tuple[int, int]
    """`Fold.steps` there."""
    state: bytes = b""
    """The fold as it is there; empty: it is not kept."""


@dataclass(frozen=True, slots=True)
class Found:
    """Something to look at came up."""

    at_ns: int
    words: str


class Loading:
    """What is known of a recording so far. Filled on a thread; all it holds only grows, under `changed`."""

    def __init__(self, opened: Opened, judge: Callable[[Model], None]) -> None:
        assert opened.again is not None
        self.again = opened.again
        self.opened = opened
        self.judge = judge
        self.changed = threading.Condition()
        self.marks: list[Mark] = []
        self.states: list[Mark] = [Mark(0, 0, (0, 0), bytes(Fold.new(judge)))]
        self.counts: list[int] = [0]
        """How many steps there are, by how often they were counted anew before."""
        self.found: list[Found] = []
        self.at_ns = 0
        self.rows = 0
        self.share = 0.0
        self.whole = False
        """All of it is read."""
        self.refused: str | None = None
        """Why nothing of it could be read."""
        self.last: Fold | None = None
        """The state at its end, once it is whole."""
        self.free = threading.Event()
        """Not set while somebody waits for a place: then the processor is theirs."""
        self.free.set()
        self._stop = False
        self._every = EVERY
        self._known: set[tuple[str, str]] = set()
        self._thread = threading.Thread(target=self._load, name=f"tuimon-load {opened.label}", daemon=True)

    def start(self) -> None:
        """Begin to read."""
        self._thread.start()

    def stop(self) -> None:
        """Read no further."""
        self._stop = True
        self.free.set()

    def wait(self, seconds: float | None) -> bool:
        """Until all is read, or for so long; gives whether it is."""
        self._thread.join(seconds)
        return not self._thread.is_alive()

    def count_of(self, step: int) -> int | None:
        """In which count of steps there is one with this index: the latest such; None where none is known."""
        return next((at for at in range(len(self.counts) - 1, -1, -1) if self.counts[at] > step), None)

    def state_before(self, steps: tuple[int, int] | None, at_ns: int) -> Mark:
        """The nearest kept state before so many steps are over, or before that time."""
        usable = [one for one in self.states if (one.steps < steps if steps is not None else one.at_ns <= at_ns)]
        return usable[-1] if usable else self.states[0]

    def block_of(self, steps: tuple[int, int]) -> int:
        """The first block in which that many steps may be over."""
        before = [one.block for one in self.marks if one.steps < steps]
        return before[-1] if before else 0

    # ------------------------------------------------------------------------------------------ on its thread

    def _load(self) -> None:
        try:
            with _AT_ONCE:
                self._fold()
        except Stopped:
            pass
        except Unreadable as error:
            self.refused = f"{self.opened.path} {error}"
        except Exception as error:  # noqa: BLE001 - it would be lost with this thread
            self.refused = f"{self.opened.path} could not be read, which is a fault of tuimon: {type(error).__name__}: {error}"
        with self.changed:
            self.whole = True
            self.share = 1.0
            self.changed.notify_all()

    def _progress(self, read: int, of: int) -> None:
        self.share = min(1.0, read / of) if of > 0 else self.share
        if self._stop:
            raise Stopped

    def _fold(self) -> None:
        fold = Fold.new(self.judge)
        block, kept, looked, next_look_s = 0, 0, 0, 0.0
        for piece in self.again(0, self._progress):
            if piece.block != block:
                self.free.wait()
                if self._stop:
                    raise Stopped
                block = piece.block
                keep, look = kept >= self._every, looked >= LOOK_EVERY and time.thread_time() >= next_look_s
                kept, looked = 0 if keep else kept, 0 if look else looked
                self._note(block, fold, keep=keep)
                if look:
                    began_s = time.thread_time()
                    self._look(fold)
                    next_look_s = time.thread_time() + (time.thread_time() - began_s) / LOOKS
            fold.model.apply(piece.events)
            more = weight(piece.events)
            kept, looked = kept + more, looked + more
            with self.changed:
                self.at_ns = piece.at_ns
                self.rows += sum(len(event.rows) for event in piece.events if type(event) is ev.Samples)
                self._count(fold)
                self.changed.notify_all()
        self._look(fold)
        with self.changed:
            self.last = fold

    def _count(self, fold: Fold) -> None:
        anew, steps = fold.steps
        self.counts += [0] * (anew + 1 - len(self.counts))
        self.counts[anew] = steps

    def _note(self, block: int, fold: Fold, *, keep: bool) -> None:
        mark = Mark(block, self.at_ns, fold.steps)
        state = Mark(block, self.at_ns, fold.steps, bytes(fold)) if keep else None
        with self.changed:
            self.marks.append(mark)
            if len(self.marks) > MOST_MARKS:
                del self.marks[1::2]
            if state is not None:
                self.states.append(state)
                if sum(len(one.state) for one in self.states) > MOST_BYTES:
                    del self.states[1::2]
                    self._every *= 2

    def _look(self, fold: Fold) -> None:
        """What is found now that was not before."""
        fresh = []
        for one in findings(fold.model):
            key = (one.kind, one.where)
            if key not in self._known:
                self._known.add(key)
                fresh.append(Found(self.at_ns, one.title))
        with self.changed:
            self.found += fresh
