"""The fold over what the compiler did: compilations, recompiles, caches. Frames, graph breaks and what compiles now have folds
of their own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tuimon import events as ev
from tuimon.model.about import About
from tuimon.model.breaking import BreakingFold
from tuimon.model.compiling import CompilingFold, Identity, keep
from tuimon.model.framing import FrameFold, called
from tuimon.model.identity import entry_number, frame_id, frame_key
from tuimon.model.parts import Boundary, Compilation, Frame, Recompile
from tuimon.model.reading import reading
from tuimon.model.warmup import warm

if TYPE_CHECKING:
    from tuimon.model.model import Model

KEPT_COMPILATIONS = 4000
SAME_NS = 100_000_000
"""A compilation that ends while tuimon attaches is told twice: by its record, and by Dynamo's list of the past, whose clock
is the calendar's. So near to each other two begins under one id are one."""

RAISED = (
    "BackendCompilerFailed", "FailOnRecompileLimitHit", "UncapturedHigherOrderOpError", "ResumePrologueTracingError",
    "InternalTorchDynamoError", "TorchRuntimeError",
)  # fmt: skip
"""Failures that go to the job as an exception: its frame is not skipped, and is tried again at its next call."""

NOTHING_IN_IT = "Dynamo found nothing in it to compile: its calls run as they are, and pass no timer"


@dataclass(slots=True)
class _Told:
    """What is told of a compilation before its end."""

    owner: str = ""
    attempt: int = 0
    caches: dict[str, dict[str, int]] = field(default_factory=dict)


class CompilerFold:
    """Fills in compilations and recompiles; and with its helpers frames, boundaries and what compiles now."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self._now = CompilingFold(model)
        self._breaks = BreakingFold(model)
        self._frames = FrameFold(model, self._breaks)
        self._pending_guards: dict[tuple[int, str], ev.GuardsFailed] = {}
        self._told: dict[Identity, _Told] = {}
        self._ended: dict[Identity, int] = {}
        """Compilations that are over -> their begin."""
        self._with_graph: dict[tuple[int, str], None] = {}
        self._without_begin = 0
        self.handlers: dict[type[ev.Event], Callable[[Any], None]] = {
            ev.CodeSeen: self._frames.code,
            ev.CompileStarted: self._started,
            ev.PhaseBegan: self._now.phase_began,
            ev.PhaseEnded: self._now.phase_ended,
            ev.GraphBroke: self._graph_broke,
            ev.GuardsFailed: self._guards_failed,
            ev.CacheLooked: self._cache_looked,
            ev.CompileFinished: self._finished,
            ev.FrameSeen: self._frames.seen,
            ev.SyncLooked: self._breaks.synced,
            ev.BoundaryAccepted: self._breaks.accepted,
        }

    # ------------------------------------------------------------------------------------------ for the other folds

    def overlap(self, thread: int | None, begin_ns: int, end_ns: int) -> int:
        """ns of [begin, end] that finished compilations of this thread (None: of any) cover, each instant once."""
        return self._now.overlap(thread, begin_ns, end_ns)

    def code(self, number: int) -> ev.CodeSeen | None:
        """The code object that has this number."""
        return self._frames.numbered(number)

    def name_thread(self, name: str, number: int) -> None:
        """Tie a thread's name to its number."""
        self._now.name_thread(name, number)

    def began(self, generation: int, compile_id: str, direction: str) -> int | None:
        """When the compilation under this id began, None if it was not seen."""
        return self._now.began((generation, compile_id, direction))

    def boundary_of(self, generation: int, compile_id: str) -> Boundary | None:
        """The boundary that this compilation's graph break left."""
        return self._breaks.of((generation, compile_id))

    def tail_of(self, generation: int, compile_id: str) -> Boundary | None:
        """The boundary that each call of this compilation's graph ends in, where its frame has nothing left behind it."""
        return self._breaks.tail((generation, compile_id))

    def adopt_boundary(self, generation: int, compile_id: str, instrument: ev.InstrumentAdded) -> Boundary:
        """The boundary for a resume function whose graph break was not seen (it is from before the attach)."""
        return self._breaks.adopt((generation, compile_id), frame_key(generation, compile_id), instrument)

    def instrument_added(self, event: ev.InstrumentAdded) -> None:
        """Something that runs is timed or counted from now on: what that says about the compiler's half. Before the calls'."""
        generation = self._model.generations.current
        key = frame_key(generation, event.compile_id) if event.compile_id else None
        frame = self._model.frames.get(key) if key else None
        if event.role == "forward" and event.compile_id is not None:
            keep(self._with_graph, (generation, event.compile_id), None)
            if frame is not None and event.compile_id in frame.without_graph:
                frame.without_graph.remove(event.compile_id)
        elif event.role == "eager" and frame is not None and event.why == "skipped":
            frame.skipped = True
            frame.code = frame.code if event.code is None else event.code
            self._model.changed("frames")
        self._breaks.instrument(event, generation, key)

    # ------------------------------------------------------------------------------------------ compilations

    def _started(self, event: ev.CompileStarted) -> None:
        model = self._model
        forward = event.direction == "forward"
        if forward and event.attempt == 0:
            generation = model.generations.enter(event.compile_id, event.code)
        else:
            generation = self._generation(event.compile_id, event.code)
        frame = self._frames.of(generation, event.compile_id)
        name = event.function
        if frame is not None and forward:
            self._frames.name(
                frame, event.function, event.file, event.line, code=event.code, owner=event.owner, stack=event.stack
            )
            frame.skipped = False  # it is tried again
            name = called(frame, event.owner)
        elif frame is not None:
            name = frame.name
        told = self._of((generation, event.compile_id, event.direction))
        told.owner, told.attempt = event.owner or told.owner, max(told.attempt, event.attempt)
        self._now.started(event, generation, frame, name)
        model.changed("frames")

    def _of(self, identity: Identity) -> _Told:
        if identity not in self._told:
            keep(self._told, identity, _Told())
        return self._told[identity]

    def _generation(self, compile_id: str, code: int | None) -> int:
        """The generation of a compilation whose begin was some time before."""
        current = self._model.generations.current
        number = frame_id(compile_id)
        if code is None or number is None:
            return current
        for generation in range(current, -1, -1):
            frame = self._model.frames.get(f"{generation}:{number}")
            if frame is not None and (frame.code == code or (generation == current and frame.code is None)):
                return generation
        return self._model.generations.enter(compile_id, code) if f"{current}:{number}" in self._model.frames else current

    def _graph_broke(self, event: ev.GraphBroke) -> None:
        generation = self._model.generations.current
        if event.compile_id is None:
            self._breaks.broke(event, generation, None)
            return
        key = frame_key(generation, event.compile_id)
        if event.before_attach:
            self._frames.of(generation, event.compile_id)
        if event.attempt:
            told = self._of((generation, event.compile_id, "forward"))
            told.attempt = max(told.attempt, event.attempt)
            self._now.attempt(event.compile_id, event.attempt)
        self._breaks.broke(event, generation, key)

    def _guards_failed(self, event: ev.GuardsFailed) -> None:
        keep(self._pending_guards, (self._model.generations.current, event.compile_id), event, KEPT_COMPILATIONS)

    def _cache_looked(self, event: ev.CacheLooked) -> None:
        if event.compile_id is None:
            return
        entry = (self._model.generations.current, event.compile_id)
        direction = self._now.direction(event.compile_id, event.thread)
        if direction is None:
            direction = "backward" if (*entry, "forward") in self._ended else "forward"
        counts = self._of((*entry, direction)).caches.setdefault(event.cache, {})
        counts[event.result] = counts.get(event.result, 0) + 1

    def _finished(self, event: ev.CompileFinished) -> None:
        model = self._model
        forward = event.direction == "forward"
        compile_id = event.compile_id
        last = self._ended.get((model.generations.current, compile_id, event.direction))
        if last is not None and event.before_attach and abs(last - event.began_ns) < SAME_NS:
            return
        if forward and not event.refused and (event.before_attach or last is not None):
            generation = model.generations.enter(compile_id, event.code)  # no id ends twice between two resets
        else:
            generation = self._generation(compile_id, event.code)
            if generation == model.generations.current:
                model.generations.note(compile_id, event.code)  # where its start was before the attach
        frame = self._frames.of(generation, compile_id)
        if frame is not None and event.before_attach:
            frame.before_attach = True
        identity = (generation, compile_id, event.direction)
        told = self._told.pop(identity, None) or _Told()
        guards = self._pending_guards.pop((generation, compile_id), None) if forward else None
        if frame is not None and event.function and event.file is not None:
            self._frames.name(frame, event.function, event.file, event.line or 0, code=event.code)
        if guards is not None and frame is not None and guards.owner:
            self._frames.name(frame, frame.function, frame.file, frame.line, code=event.code, owner=guards.owner)
        if forward and not event.refused and not event.before_attach and self._now.began(identity) is None:
            self._without_begin += 1
            model.coverage.not_available["compilations.begin"] = (
                f"of {self._without_begin} compilations the begin was not seen: it is taken from their length"
            )
            model.changed("coverage")
        compilation = self._compilation(event, generation, frame, told, guards)
        model.compilations.append(compilation)
        if len(model.compilations) > KEPT_COMPILATIONS:
            del model.compilations[0]
        keep(self._ended, identity, event.began_ns)
        self._now.took(identity, event.thread, event.began_ns, event.t_ns)
        self._now.over(compile_id, event.direction, event.thread)
        if frame is not None and forward:
            self._enter_cache(frame, compilation, event)
        if compilation.why in ("recompile", "refused"):
            self._recompiled(compilation, guards)
        if not event.before_attach:
            self._tell(compilation, guards)
        model.changed("compiles", "frames", "now")

    def _compilation(
        self,
        event: ev.CompileFinished,
        generation: int,
        frame: Frame | None,
        told: _Told,
        guards: ev.GuardsFailed | None,
    ) -> Compilation:
        model = self._model
        owner = told.owner or (guards.owner if guards is not None else "")
        caches = told.caches or _counts(event.caches)
        return Compilation(
            compile_id=event.compile_id,
            generation=generation,
            direction=event.direction,
            frame=frame.key if frame else None,
            function=called(frame, owner) if frame else (event.function or "?"),
            file=frame.file if frame else (event.file or ""),
            line=frame.line if frame else (event.line or 0),
            why=_why(event, guards is not None),
            thread=event.thread,
            began_ns=event.began_ns,
            ended_ns=event.t_ns,
            total_s=event.total_s,
            dynamo_s=event.dynamo_s,
            aot_s=event.aot_s,
            inductor_s=event.inductor_s,
            triton_s=event.triton_s,
            cache={cache: _worst(results) for cache, results in caches.items()},
            step=None if event.before_attach or model.steps.source is None else model.steps.n,
            failed=event.failed,
            refused=event.refused,
            before_attach=event.before_attach,
            owner=owner,
            restarts=max(event.restarts, told.attempt),
            restart_reasons=event.restart_reasons,
            caches=caches,
            late=not event.before_attach and warm(model),
            steady_before=model.warmup.in_a_row,
            gc_s=event.gc_s,
            autotune_s=event.autotune_s,
        )

    def _enter_cache(self, frame: Frame, compilation: Compilation, event: ev.CompileFinished) -> None:
        """What the end of a forward compilation makes of its frame."""
        entry = (compilation.generation, compilation.compile_id)
        if event.refused:
            frame.refused_compile_id, frame.refused_limit = compilation.compile_id, event.limit
            if frame.entries and not event.before_attach and (frame.limit is None or len(frame.entries) < frame.limit):
                frame.limit, frame.own_limit = len(frame.entries), True
        elif event.failed is not None:
            suppressed = any(name == "suppress_errors" for name, _ in self._model.target.options)
            raised = event.raised
            if raised is None:
                raised = event.failed.startswith(RAISED) and not suppressed
            if raised:
                self._breaks.done(entry, None)
                return
            frame.skipped = True
            frame.skipped_why = self._breaks.given_up(entry, frame.key) or event.failed
        elif event.empty:
            frame.eager_why_not = NOTHING_IN_IT if not frame.entries else frame.eager_why_not
            self._breaks.done(entry, None)
        else:
            frame.skipped = False
            self._breaks.done(entry, frame, entry in self._with_graph)
            self._frames.enter(frame, compilation.compile_id)
            no_graph = not event.ops and (event.ops is not None or event.guard_count is not None)
            if no_graph and entry not in self._with_graph and compilation.compile_id not in frame.without_graph:
                frame.without_graph.append(compilation.compile_id)

    def _recompiled(self, compilation: Compilation, guards: ev.GuardsFailed | None) -> None:
        recompiles = self._model.recompiles
        if not self._model.room("recompiles", recompiles, KEPT_COMPILATIONS):
            del recompiles[0]
        recompiles.append(_recompile(compilation, guards))
        self._model.changed("recompiles")

    def _tell(self, compilation: Compilation, guards: ev.GuardsFailed | None) -> None:
        what = f"{compilation.function} [{compilation.compile_id}]"
        took = "" if compilation.total_s is None else f" in {compilation.total_s:.2f} s"
        if compilation.refused:
            text = f"{what} refused: the recompile limit is reached"
            self._model.say(compilation.ended_ns, "limit", text, About("recompile", _recompile(compilation, guards).key))
        elif compilation.failed is not None:
            text = f"{what} not compiled: {compilation.failed}"
            self._model.say(compilation.ended_ns, "compile", text, About("compilation", compilation.key))
        elif compilation.why == "recompile":
            recompile = _recompile(compilation, guards)
            told = reading(recompile.reason, dict(recompile.now), owner=compilation.owner)
            text = f"{what} recompiled{took}: {told.sentence}"
            self._model.say(compilation.ended_ns, "recompile", text, About("recompile", recompile.key))
        else:
            text = f"{what} {compilation.direction} compiled{took}"
            self._model.say(compilation.ended_ns, "compile", text, About("compilation", compilation.key))


def _recompile(compilation: Compilation, guards: ev.GuardsFailed | None) -> Recompile:
    return Recompile(compilation, guards.failed if guards else (), guards.now if guards else ())


def _counts(caches: tuple[tuple[str, str, int], ...]) -> dict[str, dict[str, int]]:
    found: dict[str, dict[str, int]] = {}
    for cache, result, count in caches:
        if count > 0:
            found.setdefault(cache, {})[result] = count
    return found


def _worst(results: dict[str, int]) -> str:
    """The result that cost most: a miss compiles, and so does a bypass."""
    return next((result for result in ("miss", "bypass") if results.get(result)), "hit")


def _why(event: ev.CompileFinished, guards_failed: bool) -> str:
    if event.refused:
        return "refused"
    if event.direction == "backward":
        return "backward"
    number = entry_number(event.compile_id)
    if guards_failed or (number is not None and number > 0 and (event.entries_before or 0) > 0):
        return "recompile"
    return "first" if number == 0 else "retry"
