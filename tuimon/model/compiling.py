"""The fold over what compiles now, and over when each thread compiled."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, TypeVar

from tuimon import events as ev
from tuimon.model.parts import Frame, Running

if TYPE_CHECKING:
    from tuimon.model.model import Model

K = TypeVar("K")
V = TypeVar("V")

Identity = tuple[int, str, str]
"""(generation, compile id, direction) of a compilation."""

MOST_IDS = 20_000
"""Compile ids, frames and boundaries that are kept; a healthy job has a hundredth of it."""
MOST_NAMES = 10_000
"""Names of threads that are kept."""
MOST_COMPILING = 1_000
"""Threads that have compiled something."""
MOST_PHASES = 64
"""Phases of one compilation that can be open, each within the one before."""
INTERVALS = 256
"""Finished compilations per thread that are still looked at when a call or a boundary is checked for compile time."""

_WHOLE = ("entire_frame_compile", "entire_backward_compile")
"""The phases that end with the compilation itself; its metrics follow at once."""


def keep(held: dict[K, V], key: K, value: V, most: int = MOST_IDS) -> None:
    """Note something, and let go of what was noted first where there is too much: what is that old has been used."""
    if key not in held and len(held) >= most:
        del held[next(iter(held))]
    held[key] = value


class CompilingFold:
    """Fills in what compiles now, and remembers when each thread did."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self._began: dict[Identity, int] = {}
        self._intervals: dict[str, deque[tuple[int, int]]] = {}
        self._thread_number: dict[str, int] = {}

    # ------------------------------------------------------------------------------------------ when

    def overlap(self, thread: int | None, begin_ns: int, end_ns: int) -> int:
        """ns of [begin, end] that finished compilations of this thread (None: of any) cover, each instant once."""
        if begin_ns >= self._model.compiled_until_ns:  # the steady state: nothing has compiled since, on no thread
            return 0
        if thread is None:
            spans = [span for intervals in self._intervals.values() for span in intervals]
        else:
            names = [name for name, number in self._thread_number.items() if number == thread]
            spans = [span for name in names for span in self._intervals.get(name, ())]
        total = 0
        reached = begin_ns
        for began, ended in sorted(spans):
            low, high = max(began, reached), min(ended, end_ns)
            if high > low:
                total += high - low
                reached = high
        return total

    def name_thread(self, name: str, number: int) -> None:
        """Tie a thread's name to its number."""
        names = self._thread_number
        if name not in names and len(names) >= MOST_NAMES:
            # pools give every thread a new name: those that never compiled anything are not asked for
            idle = next((one for one in names if one not in self._intervals), None)
            if idle is not None:
                del names[idle]
        if name in names or self._model.room("names of threads", names, MOST_NAMES):
            names[name] = number

    def began(self, identity: Identity) -> int | None:
        """When the compilation began, None if that was not seen."""
        return self._began.get(identity)

    def took(self, identity: Identity, thread: str, began_ns: int, ended_ns: int) -> None:
        """A compilation is over: it held up its thread from here to there."""
        if identity not in self._began:
            keep(self._began, identity, began_ns)
        if ended_ns <= began_ns:
            return
        if thread in self._intervals or self._model.room("threads that compile", self._intervals, MOST_COMPILING):
            intervals = self._intervals.setdefault(thread, deque(maxlen=INTERVALS))
            intervals.append((began_ns, ended_ns))
        self._model.compiled_until_ns = max(self._model.compiled_until_ns, ended_ns)

    # ------------------------------------------------------------------------------------------ now

    def started(self, event: ev.CompileStarted, generation: int, frame: Frame | None, name: str) -> None:
        """A compilation began, or an attempt at it; `name` is what it is a compilation of."""
        model = self._model
        identity = (generation, event.compile_id, event.direction)
        if event.since_known and identity not in self._began:
            keep(self._began, identity, event.t_ns)
        running = model.running.get(event.thread)
        if running is not None and (running.compile_id, running.direction) == (event.compile_id, event.direction):
            running.attempt = max(running.attempt, event.attempt)
            running.owner, running.code = event.owner or running.owner, running.code if event.code is None else event.code
        elif running is not None or model.room("threads that compile", model.running, MOST_COMPILING):
            model.running[event.thread] = Running(
                compile_id=event.compile_id,
                direction=event.direction,
                function=name,
                file=frame.file if frame and frame.file else event.file,
                line=frame.line if frame and frame.file else event.line,
                thread=event.thread,
                attempt=event.attempt,
                since_ns=event.t_ns,
                since_known=event.since_known,
                owner=event.owner,
                code=event.code,
            )
        model.changed("now")

    def attempt(self, compile_id: str, attempt: int) -> None:
        """A record of this attempt at a compilation came by."""
        for running in self._model.running.values():
            if running.compile_id == compile_id and running.attempt < attempt:
                running.attempt = attempt
                self._model.changed("now")

    def direction(self, compile_id: str, thread: str) -> str | None:
        """The direction in which a compilation that runs on this thread goes; None where none of that id does."""
        running = self._model.running.get(thread)
        return running.direction if running is not None and running.compile_id == compile_id else None

    def phase_began(self, event: ev.PhaseBegan) -> None:
        """A phase of what compiles on a thread began."""
        running = self._model.running.get(event.thread)
        if running is not None and running.compile_id == event.compile_id and len(running.phases) < MOST_PHASES:
            running.phases.append((event.phase, event.t_ns))
            self._model.changed("now")

    def phase_ended(self, event: ev.PhaseEnded) -> None:
        """A phase is over, and with it all that began within it."""
        running = self._model.running.get(event.thread)
        if running is None or running.compile_id != event.compile_id:
            return
        if event.phase in _WHOLE:
            del self._model.running[event.thread]  # also where the record of its end is lost
            self._model.changed("now")
            return
        for at in range(len(running.phases) - 1, -1, -1):
            if running.phases[at][0] == event.phase:
                del running.phases[at:]
                self._model.changed("now")
                return

    def over(self, compile_id: str, direction: str, thread: str) -> None:
        """A compilation is no longer running."""
        running = self._model.running.get(thread)
        if running is not None and (running.compile_id, running.direction) == (compile_id, direction):
            del self._model.running[thread]
            self._model.changed("now")
