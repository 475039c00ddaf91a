"""The fold over what runs: calls of regions, crossings of boundaries, steps."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tuimon import events as ev
from tuimon.model.identity import entry_number, frame_key
from tuimon.model.parts import Boundary, Region, StepShare

if TYPE_CHECKING:
    from tuimon.model.model import Model

RAISED = 1
_IN_TORCH_OPTIM = f"{os.sep}torch{os.sep}optim{os.sep}"


@dataclass(slots=True)
class _Thread:
    """What the fold remembers of one thread of the job."""

    region_end: dict[tuple[int, str], int] = field(default_factory=dict)
    """(generation, compile id) -> when the region of that entry last returned: where a boundary begins."""
    region_ns: int = 0
    """Time spent in regions so far, a running total."""
    region_ns_at: dict[tuple[int, str], int] = field(default_factory=dict)
    """The running total at that moment: regions of callees inside the eager stretch are not the stretch's time."""


@dataclass(slots=True)
class _Instrument:
    role: str
    generation: int
    compile_id: str | None
    region: Region | None = None
    boundary: Boundary | None = None
    changed_guard: bool = False
    compiled_optimizer: str | None = None
    """The frame, where the region is the step of an optimizer that the job compiled."""


class CallFold:
    """Fills in regions, boundaries (their run-time half) and steps."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self._instruments: dict[int, _Instrument] = {}
        self._threads: dict[int, _Thread] = {}
        self._touched: list[StepShare] = []
        self._step_marker: int | str | None = None
        """What marks the end of a step: the number of an optimizer's instrument, or the frame of a compiled optimizer."""
        self._first_ns: int | None = None
        self.handlers: dict[type[ev.Event], Callable[[Any], None]] = {
            ev.InstrumentAdded: self._added,
            ev.ThreadSeen: self._thread_seen,
            ev.Samples: self._samples,
        }

    def _thread_seen(self, event: ev.ThreadSeen) -> None:
        self._model.name_thread(event.name, event.thread)

    def _added(self, event: ev.InstrumentAdded) -> None:
        generation = self._model.generations.current
        instrument = _Instrument(event.role, generation, event.compile_id)
        self._instruments[event.instrument] = instrument
        if event.role in ("forward", "backward"):
            instrument.region = self._region(event, generation)
            number = entry_number(event.compile_id) if event.compile_id else None
            instrument.changed_guard = number is not None and number > 0
            frame = self._model.frames.get(instrument.region.frame or "")
            if event.role == "forward" and frame and frame.function == "step" and _IN_TORCH_OPTIM in frame.file:
                instrument.compiled_optimizer = frame.key
        elif event.role == "resume" and event.compile_id is not None:
            boundary = self._model.boundary_of(generation, event.compile_id)
            instrument.boundary = boundary or self._model.adopt_boundary(generation, event.compile_id, event)
            if instrument.boundary.crossings is None:
                instrument.boundary.crossings = 0
            self._model.changed("boundaries")

    def _region(self, event: ev.InstrumentAdded, generation: int) -> Region:
        compile_id = event.compile_id or event.name
        key = f"{generation}:{compile_id}:{event.role}"
        region = self._model.regions.get(key)
        if region is None:
            frame = frame_key(generation, event.compile_id) if event.compile_id else None
            known = self._model.frames.get(frame) if frame else None
            region = Region(
                key=key,
                compile_id=compile_id,
                generation=generation,
                direction=event.role,
                frame=frame,
                function=known.name if known and known.file else event.function,
                file=known.file if known and known.file else event.file,
                line=known.line if known and known.file else event.line,
                backend=event.backend,
                ops=event.ops,
                before_attach=event.before_attach,
            )
            self._model.regions[key] = region
            self._model.changed("regions")
        return region

    def _samples(self, event: ev.Samples) -> None:
        regions = boundaries = steps = False
        for number, thread_number, flags, begin_ns, end_ns in event.rows:
            instrument = self._instruments.get(number)
            if instrument is None:
                continue
            thread = self._threads.get(thread_number)
            if thread is None:
                thread = self._threads[thread_number] = _Thread()
            if instrument.region is not None:
                self._call(instrument, thread, thread_number, flags, begin_ns, end_ns)
                regions = True
                if instrument.compiled_optimizer is not None:
                    steps |= self._optimizer(instrument.compiled_optimizer, thread_number, end_ns)
            elif instrument.boundary is not None:
                self._crossing(instrument, instrument.boundary, thread, thread_number, begin_ns)
                boundaries = True
            elif instrument.role == "optimizer":
                steps |= self._optimizer(number, thread_number, end_ns)
            if end_ns > self._model.now_ns:
                self._model.now_ns = end_ns
        for section, happened in (("regions", regions), ("boundaries", boundaries), ("steps", steps)):
            if happened:
                self._model.changed(section)

    def _call(
        self, instrument: _Instrument, thread: _Thread, thread_number: int, flags: int, begin_ns: int, end_ns: int
    ) -> None:
        region = instrument.region
        assert region is not None
        first = region.calls == 0 and not region.before_attach
        region.calls += 1
        if flags & RAISED:
            region.raised += 1
        took = end_ns - begin_ns
        if first:
            began = None
            if instrument.compile_id is not None and region.direction == "forward":
                began = self._model.compile_began(region.generation, instrument.compile_id, region.direction)
            began = begin_ns if began is None else min(began, begin_ns)
            if self._first_ns is None:
                self._first_ns = began
            region.initial.add(end_ns - began)
        elif self._model.compiling_between(thread_number, begin_ns, end_ns):
            region.initial.add(took)
        elif instrument.changed_guard:
            region.after_guard_change.add(took)
        else:
            region.steady.add(took)
        if self._first_ns is None:
            self._first_ns = begin_ns
        self._share(region.share, took)
        if instrument.compile_id is not None and region.direction == "forward":
            entry = (instrument.generation, instrument.compile_id)
            thread.region_ns += took
            thread.region_end[entry] = end_ns
            thread.region_ns_at[entry] = thread.region_ns
            frame = self._model.frames.get(region.frame) if region.frame else None
            if frame is not None:
                frame.compiled_calls += 1
        else:
            thread.region_ns += took

    def _crossing(self, instrument: _Instrument, boundary: Boundary, thread: _Thread, thread_number: int, at_ns: int) -> None:
        boundary.crossings = (boundary.crossings or 0) + 1
        assert instrument.compile_id is not None
        entry = (instrument.generation, instrument.compile_id)
        began = thread.region_end.pop(entry, None)
        took = 0
        if began is not None and at_ns >= began:
            inner = thread.region_ns - thread.region_ns_at[entry]
            took = max(0, at_ns - began - inner - self._model.compiling_between(thread_number, began, at_ns))
            boundary.host.add(took)
        self._share(boundary.share, took)

    def _share(self, share: StepShare, took_ns: int) -> None:
        if share.pending_count == 0:
            self._touched.append(share)
        share.note(took_ns)

    def _optimizer(self, marker: int | str, thread_number: int, end_ns: int) -> bool:
        """The end of an optimizer's step. The first optimizer seen marks the job's steps; a second one is part of them."""
        if self._step_marker is None:
            self._step_marker = marker
        if marker != self._step_marker:
            return False
        steps = self._model.steps
        steps.source = "optimizer"
        begin = steps.last_end_ns
        if begin is None and self._model.target.how == "run":
            begin = self._first_ns
        steps.last_end_ns = end_ns
        steady = False
        if begin is not None:
            took = end_ns - begin
            compiled = self._model.compiling_between(thread_number, begin, end_ns) > 0
            steady = not compiled
            steps.durations.add(took)
            steps.recent.append((steps.n, took, compiled))
            if steady:
                steps.steady_n += 1
                steps.steady_ns += took
        steps.n += 1
        for share in self._touched:
            share.close(steady)
        self._touched.clear()
        return True
