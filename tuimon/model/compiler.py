"""The fold over what the compiler did: compilations, graph breaks, guard failures, caches."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from tuimon import events as ev
from tuimon.model.identity import entry_number, frame_id, frame_key, is_library, plain_function, user_line
from tuimon.model.parts import Boundary, Compilation, Frame, FrameKey, Recompile, Running

if TYPE_CHECKING:
    from tuimon.model.model import Model

K = TypeVar("K")
V = TypeVar("V")

KEPT_COMPILATIONS = 4000
MOST_IDS = 20_000
"""Compile ids, frames and boundaries that are kept; a healthy job has a hundredth of it."""
MOST_NAMES = 10_000
"""Names of threads that are kept."""
MOST_COMPILING = 1_000
"""Threads that have compiled something."""
MOST_ENTRIES = 1_000
"""Cache entries of one frame that are kept; torch's own limit is 8, and 256 over all."""
MOST_PHASES = 64
"""Phases of one compilation that can be open, each within the one before."""
INTERVALS = 256
"""Finished compilations per thread that are still looked at when a call or a boundary is checked for compile time."""


class CompilerFold:
    """Fills in frames, compilations, recompiles, boundaries (their compile-time half) and what compiles now."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self._pending_guards: dict[tuple[int, str], tuple[tuple[str, str], ...]] = {}
        self._caches: dict[tuple[int, str], dict[str, str]] = {}
        self._intervals: dict[str, deque[tuple[int, int]]] = {}
        self._latest_end_ns = 0
        self._began: dict[tuple[int, str, str], int] = {}
        self._boundary_of: dict[tuple[int, str], Boundary] = {}
        self._counted_breaks: dict[tuple[int, str], None] = {}
        self._past_breaks = 0
        self._thread_number: dict[str, int] = {}
        self.handlers: dict[type[ev.Event], Callable[[Any], None]] = {
            ev.CompileStarted: self._started,
            ev.PhaseBegan: self._phase_began,
            ev.PhaseEnded: self._phase_ended,
            ev.GraphBroke: self._graph_broke,
            ev.GuardsFailed: self._guards_failed,
            ev.CacheLooked: self._cache_looked,
            ev.CompileFinished: self._finished,
            ev.FrameSeen: self._frame_seen,
        }

    # ------------------------------------------------------------------------------------------ for the other folds

    def overlap(self, thread: int | None, begin_ns: int, end_ns: int) -> int:
        """ns of [begin, end] that finished compilations of this thread (None: of any) cover, each instant once."""
        if begin_ns >= self._latest_end_ns:  # the steady state: nothing has compiled since, on no thread
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

    def began(self, generation: int, compile_id: str, direction: str) -> int | None:
        """When the compilation under this id began, None if it was not seen."""
        return self._began.get((generation, compile_id, direction))

    def boundary_of(self, generation: int, compile_id: str) -> Boundary | None:
        """The boundary that this compilation's graph break left."""
        return self._boundary_of.get((generation, compile_id))

    def adopt_boundary(self, generation: int, compile_id: str, instrument: ev.InstrumentAdded) -> Boundary:
        """The boundary for a resume function whose graph break was not seen (it is from before the attach)."""
        key = frame_key(generation, compile_id)
        boundary = self._boundary(key, instrument.file, instrument.line, plain_function(instrument.function))
        boundary.before_attach = True
        _keep(self._boundary_of, (generation, compile_id), boundary)
        return boundary

    def frame(self, generation: int, compile_id: str) -> Frame | None:
        """The frame that an id belongs to, made on first sight."""
        number = frame_id(compile_id)
        if number is None:
            return None
        key = f"{generation}:{number}"
        frame = self._model.frames.get(key)
        if frame is None:
            if not self._model.room("frames", self._model.frames, MOST_IDS):
                return None
            frame = Frame(key, number, generation, limit=self._model.target.recompile_limit)
            self._model.frames[key] = frame
        elif frame.limit is None:
            frame.limit = self._model.target.recompile_limit
        return frame

    # ------------------------------------------------------------------------------------------ handlers

    def _started(self, event: ev.CompileStarted) -> None:
        model = self._model
        if event.direction == "forward" and event.attempt == 0:
            generation = model.generations.enter(event.compile_id)
        else:
            generation = model.generations.current
        frame = self.frame(generation, event.compile_id)
        if frame is not None and event.direction == "forward":
            self._name_frame(frame, event.function, event.file, event.line, event.stack)
        self._note_began((generation, event.compile_id, event.direction), event.t_ns)
        running = model.running.get(event.thread)
        if running is not None and running.compile_id == event.compile_id and running.direction == event.direction:
            running.attempt = event.attempt
        elif running is not None or model.room("threads that compile", model.running, MOST_COMPILING):
            model.running[event.thread] = Running(
                compile_id=event.compile_id,
                direction=event.direction,
                function=frame.name if frame else event.function,
                file=frame.file if frame else event.file,
                line=frame.line if frame else event.line,
                thread=event.thread,
                attempt=event.attempt,
                since_ns=event.t_ns,
            )
        model.changed("now", "frames")

    def _note_began(self, identity: tuple[int, str, str], t_ns: int) -> None:
        if identity not in self._began:
            _keep(self._began, identity, t_ns)

    @staticmethod
    def _name_frame(frame: Frame, function: str, file: str, line: int, stack: tuple[tuple[str, int, str], ...]) -> None:
        if frame.file == "":
            frame.function, frame.file, frame.line = function, file, line
        if frame.display is None and is_library(frame.file):
            called_from, called_at = user_line(stack, frame.file, frame.line)
            if called_from != frame.file:
                frame.display = f"{frame.function} from {os.path.basename(called_from)}:{called_at}"

    def _phase_began(self, event: ev.PhaseBegan) -> None:
        running = self._model.running.get(event.thread)
        if running is not None and running.compile_id == event.compile_id and len(running.phases) < MOST_PHASES:
            running.phases.append((event.phase, event.t_ns))
            self._model.changed("now")

    def _phase_ended(self, event: ev.PhaseEnded) -> None:
        running = self._model.running.get(event.thread)
        if running is None:
            return
        for at in range(len(running.phases) - 1, -1, -1):
            if running.phases[at][0] == event.phase:
                del running.phases[at:]
                self._model.changed("now")
                return

    def _graph_broke(self, event: ev.GraphBroke) -> None:
        model = self._model
        generation = model.generations.current
        if event.compile_id is None:
            boundary = self._match_past(event)
        else:
            key = frame_key(generation, event.compile_id)
            boundary = self._boundary(key, event.file, event.line, event.function)
            if not event.skipped_frame:
                _keep(self._boundary_of, (generation, event.compile_id), boundary)
        if event.compile_id is None:
            self._past_breaks += 1
        counted = (generation, event.compile_id or f"past {self._past_breaks}")
        if counted not in self._counted_breaks:
            _keep(self._counted_breaks, counted, None)
            boundary.breaks += 1
        boundary.function = event.function or boundary.function
        boundary.reason, boundary.kind, boundary.gb_id = event.reason, event.kind, event.gb_id
        boundary.explanation, boundary.hints = event.explanation, event.hints
        boundary.requested = event.requested and not is_library(event.file)
        boundary.skipped_frame = boundary.skipped_frame or event.skipped_frame
        boundary.before_attach = boundary.before_attach or event.before_attach
        boundary.stack = event.stack
        boundary.user_file, boundary.user_line = user_line(event.stack, event.file, event.line)
        place = f"{os.path.basename(boundary.user_file)}:{boundary.user_line}"
        if not event.before_attach:
            model.say(event.t_ns, "break", f"graph break at {place}: {event.kind}")
        model.changed("boundaries")

    def _match_past(self, event: ev.GraphBroke) -> Boundary:
        """The boundary that a break from before the attach belongs to. Dynamo kept no id with it, so its line decides.

        A resume function bears the line of the code that goes on, which for a broken branch is not the line of the break;
        then the function's name decides, where it is not ambiguous.
        """
        candidates = [b for b in self._model.boundaries.values() if b.before_attach and b.file == event.file]
        same_line = [b for b in candidates if b.line == event.line]
        without_reason = [b for b in same_line if not b.reason]
        if without_reason or same_line:
            return (without_reason or same_line)[0]
        same_function = [b for b in candidates if not b.reason and b.function == event.function]
        if len(same_function) == 1:
            boundary = same_function[0]
            boundary.line = event.line
            return boundary
        return self._boundary(None, event.file, event.line, event.function)

    def _boundary(self, key: FrameKey | None, file: str, line: int, function: str) -> Boundary:
        name = f"{key or '?'}@{file}:{line}"
        boundary = self._model.boundaries.get(name)
        if boundary is None:
            frame = self._model.frames.get(key) if key else None
            boundary = Boundary(name, key, function or (frame.function if frame else ""), file, line, file, line)
            if self._model.room("boundaries", self._model.boundaries, MOST_IDS):
                self._model.boundaries[name] = boundary
        return boundary

    def _guards_failed(self, event: ev.GuardsFailed) -> None:
        _keep(self._pending_guards, (self._model.generations.current, event.compile_id), event.failed, KEPT_COMPILATIONS)

    def _cache_looked(self, event: ev.CacheLooked) -> None:
        if event.compile_id is not None:
            identity = (self._model.generations.current, event.compile_id)
            if identity not in self._caches:
                _keep(self._caches, identity, {})
            self._caches[identity][event.cache] = event.result

    def _finished(self, event: ev.CompileFinished) -> None:
        model = self._model
        if event.before_attach and event.direction == "forward" and not event.refused:
            generation = model.generations.enter(event.compile_id)
        else:
            generation = model.generations.current
            model.generations.note(event.compile_id)  # where its start was before the attach
        frame = self.frame(generation, event.compile_id)
        if frame is not None and event.function and event.file is not None:
            self._name_frame(frame, event.function, event.file, event.line or 0, ())
        identity = (generation, event.compile_id)
        guards = self._pending_guards.pop(identity, ())
        why = _why(event, bool(guards))
        compilation = Compilation(
            compile_id=event.compile_id,
            generation=generation,
            direction=event.direction,
            frame=frame.key if frame else None,
            function=frame.name if frame else (event.function or "?"),
            file=frame.file if frame else (event.file or ""),
            line=frame.line if frame else (event.line or 0),
            why=why,
            thread=event.thread,
            began_ns=event.began_ns,
            ended_ns=event.t_ns,
            total_s=event.total_s,
            dynamo_s=event.dynamo_s,
            aot_s=event.aot_s,
            inductor_s=event.inductor_s,
            triton_s=event.triton_s,
            cache=self._caches.pop(identity, {}),
            step=None if event.before_attach or model.steps.source is None else model.steps.n,
            failed=event.failed,
            refused=event.refused,
            before_attach=event.before_attach,
        )
        model.compilations.append(compilation)
        if len(model.compilations) > KEPT_COMPILATIONS:
            del model.compilations[0]
        self._note_began((generation, event.compile_id, event.direction), event.began_ns)
        if event.thread in self._intervals or model.room("threads that compile", self._intervals, MOST_COMPILING):
            intervals = self._intervals.setdefault(event.thread, deque(maxlen=INTERVALS))
            intervals.append((event.began_ns, event.t_ns))
        self._latest_end_ns = max(self._latest_end_ns, event.t_ns)
        running = model.running.get(event.thread)
        if running is not None and running.compile_id == event.compile_id:
            del model.running[event.thread]
        if frame is not None and event.direction == "forward":
            self._enter_cache(frame, compilation, guards)
        if not event.before_attach:
            self._tell(compilation, guards)
        model.changed("compiles", "frames", "now")

    def _enter_cache(self, frame: Frame, compilation: Compilation, guards: tuple[tuple[str, str], ...]) -> None:
        if compilation.refused:
            frame.refused_compile_id = compilation.compile_id
        elif (
            compilation.failed is None
            and compilation.compile_id not in frame.entries
            and self._model.room("cache entries of a frame", frame.entries, MOST_ENTRIES)
        ):
            frame.entries.append(compilation.compile_id)
        recompiles = self._model.recompiles
        if compilation.why in ("recompile", "refused"):
            if not self._model.room("recompiles", recompiles, KEPT_COMPILATIONS):
                del recompiles[0]
            recompiles.append(Recompile(compilation, guards))
            self._model.changed("recompiles")

    def _tell(self, compilation: Compilation, guards: tuple[tuple[str, str], ...]) -> None:
        what = f"{compilation.function} [{compilation.compile_id}]"
        took = "" if compilation.total_s is None else f" in {compilation.total_s:.2f} s"
        if compilation.refused:
            self._model.say(compilation.ended_ns, "limit", f"{what} refused: the recompile limit is reached")
        elif compilation.failed is not None:
            self._model.say(compilation.ended_ns, "compile", f"{what} not compiled: {compilation.failed}")
        elif compilation.why == "recompile":
            reason = Recompile(compilation, guards).guard
            self._model.say(compilation.ended_ns, "recompile", f"{what} recompiled{took}: {reason}")
        else:
            self._model.say(compilation.ended_ns, "compile", f"{what} {compilation.direction} compiled{took}")

    def _frame_seen(self, event: ev.FrameSeen) -> None:
        for compile_id in event.entries:
            self._model.generations.note(compile_id)
            frame = self.frame(self._model.generations.current, compile_id)
            if frame is None:
                continue
            if frame.file == "":
                frame.function, frame.file, frame.line = event.function, event.file, event.line
            frame.before_attach = event.before_attach
            if compile_id not in frame.entries and self._model.room("cache entries of a frame", frame.entries, MOST_ENTRIES):
                frame.entries.append(compile_id)
        self._model.changed("frames")


def _keep(held: dict[K, V], key: K, value: V, most: int = MOST_IDS) -> None:
    """Note something, and let go of what was noted first where there is too much: what is that old has been used."""
    if key not in held and len(held) >= most:
        del held[next(iter(held))]
    held[key] = value


def _why(event: ev.CompileFinished, guards_failed: bool) -> str:
    if event.refused:
        return "refused"
    if event.direction == "backward":
        return "backward"
    number = entry_number(event.compile_id)
    if guards_failed or (number is not None and number > 0 and (event.entries_before or 0) > 0):
        return "recompile"
    return "first" if number == 0 else "retry"
