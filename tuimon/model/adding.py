"""What is timed in the job: regions, resume functions and all else that has an instrument, as it is told of."""

from __future__ import annotations

import os
from collections import Counter
from typing import TYPE_CHECKING

from tuimon import events as ev
from tuimon.model.identity import entry_number, frame_key
from tuimon.model.instruments import TELLING, Entry, Instrument, has_older_entry
from tuimon.model.laps import Room, SizedCalls, Track, track
from tuimon.model.parts import Boundary, Frame, Region, Sizes
from tuimon.model.steps.stepping import StepFold

if TYPE_CHECKING:
    from tuimon.model.model import Model

MOST_INSTRUMENTS = 20_000
MOST_TELLING = 1_000
"""Instruments, and those by which steps are told, that are kept; a healthy job has a hundredth of it."""

_IN_TORCH_OPTIM = f"{os.sep}torch{os.sep}optim{os.sep}"


class Adding:
    """All instruments of the job, and what they time."""

    def __init__(self, model: Model, steps: StepFold) -> None:
        self._model = model
        self._steps = steps
        self.held: dict[int, Instrument] = {}
        """By their numbers."""
        self.sized: dict[Entry, SizedCalls] = {}
        """Of entries whose forward calls have sizes."""
        self._telling: set[int] = set()
        self._others: set[int] = set()
        """The numbers of those of TELLING, and of all others."""
        self._of_entry: dict[Entry, list[Instrument]] = {}
        self._graphs: Counter[str] = Counter()
        self._tracks: dict[tuple[str, Sizes, bool], Track] = {}
        self._room_of_laps = Room()

    def added(self, event: ev.InstrumentAdded) -> None:
        """Something is timed from now on."""
        if event.instrument not in self.held and not self._room(event):
            return
        generation = self._model.generations.current
        entry = (generation, event.compile_id) if event.compile_id is not None else None
        instrument = Instrument(event.role, entry)
        self.held[event.instrument] = instrument
        if event.role in ("forward", "backward"):
            same = self._same_region(event)
            region = instrument.region = same or self._region(event, generation)
            instrument.is_alone = same is None
            instrument.is_forward = region.direction == "forward" and entry is not None
            instrument.sizes = event.sizes
            instrument.track = self.track(region, event.sizes)
            if event.sizes and entry is not None:
                self.sized.setdefault(entry, SizedCalls())
                for other in self._of_entry.get(entry, ()):
                    other.is_plain = False
            frame = self._model.frames.get(instrument.region.frame or "")
            instrument.changed_guard = (
                has_older_entry(frame, event.compile_id)
                if frame is not None
                else event.before_attach
                and bool(entry_number((event.compile_id or "").partition("_")[0]))  # a file's: nothing tells of its frame
            )
            instrument.is_optimizer = (
                event.role == "forward" and frame is not None and frame.function == "step" and _IN_TORCH_OPTIM in frame.file
            )
            self._model.changed("regions")
        elif event.role == "resume" and entry is not None and event.compile_id is not None:
            boundary = self._model.boundary_of(generation, event.compile_id)
            instrument.boundary = boundary or self._model.adopt_boundary(generation, event.compile_id, event)
            if instrument.boundary.crossings is None:
                instrument.boundary.crossings = 0
            self._model.changed("boundaries")
        elif event.role == "eager":
            instrument.frame = self._frame_of(event, generation)
            if instrument.frame is not None and instrument.frame.eager_calls is None:
                instrument.frame.eager_calls = 0
                self._model.changed("frames")
        elif event.role == "crossing" and event.code is not None:
            instrument.skipped = f"skip@{event.code}:{event.offset}"
            self._find_skipped(instrument, event.counted)
        if entry is not None and event.role not in ("eager", "crossing"):
            self._tie_together(entry, instrument)
        called = "eager" if event.role == "eager" else f"{generation}:{event.compile_id or event.name}"
        of_frame = frame_key(generation, event.compile_id) if event.compile_id and event.role != "eager" else None
        counted = (instrument.region, instrument.frame, instrument.skipped, instrument.boundary)
        instrument.is_counted = any(one is not None for one in counted)
        timed = self._steps.added(event, called, of_frame or "", is_optimizer=instrument.is_optimizer)
        if timed is not None:
            instrument.timed, instrument.way, instrument.category = timed, timed.way, timed.counts_as

    def _room(self, event: ev.InstrumentAdded) -> bool:
        """Whether there is room for one more instrument; it has it then."""
        if event.role in TELLING:
            held, most, what = self._telling, MOST_TELLING, "things that steps are told by"
        else:
            held, most, what = self._others, MOST_INSTRUMENTS, "regions and other timed calls"
        if not self._model.room(what, held, most):
            return False
        held.add(event.instrument)
        return True

    def _same_region(self, event: ev.InstrumentAdded) -> Region | None:
        """The region that this instrument times other calls of, those of another size."""
        base = self.held.get(event.variant_of) if event.variant_of is not None else None
        if base is None:
            return None
        base.is_alone = base.is_plain = False
        return base.region

    def track(self, region: Region, sizes: Sizes, *, device: bool = False) -> Track:
        """Where calls of a region with these sizes are counted by the second."""
        key = (region.key, sizes, device)
        known = self._tracks.get(key)
        if known is None:
            known = self._tracks[key] = track(region, sizes, self._room_of_laps, self._model.versions, device=device)
        return known

    def _frame_of(self, event: ev.InstrumentAdded, generation: int) -> Frame | None:
        """The frame whose calls in eager an instrument counts: by its code object, which a reset does not change."""
        if event.code is not None:
            for frame in reversed(self._model.frames.values()):
                if frame.code == event.code:
                    return frame
        return self._model.frames.get(frame_key(generation, event.compile_id) or "") if event.compile_id else None

    def _find_skipped(self, instrument: Instrument, counted: str) -> Boundary | None:
        """The boundary of a frame that is skipped whole, told of before its crossings are counted."""
        boundary = self._model.boundaries.get(instrument.skipped or "")
        if boundary is not None:
            boundary.crossings = boundary.crossings or 0
            boundary.counted = counted or boundary.counted
            self._model.changed("boundaries")
        return boundary

    def _tie_together(self, entry: Entry, instrument: Instrument) -> None:
        """Regions of an entry that goes on with a resume function are where its boundary begins."""
        of_entry = self._of_entry.setdefault(entry, [])
        of_entry.append(instrument)
        if any(other.boundary is not None for other in of_entry):
            for other in of_entry:
                other.leads_to_boundary = other.role == "forward"

    def _region(self, event: ev.InstrumentAdded, generation: int) -> Region:
        compile_id = event.compile_id or event.name
        key = f"{generation}:{compile_id}:{event.role}"
        self._graphs[key] += 1
        if self._graphs[key] > 1:
            key = f"{key}#{self._graphs[key]}"
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
        self._model.graph_fold.region(region)
        return region
