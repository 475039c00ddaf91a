"""The fold over what runs: calls of regions and crossings of boundaries."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tuimon import events as ev
from tuimon.model.identity import entry_number, frame_key
from tuimon.model.instruments import TELLING, Entry, Instrument, Thread, has_older_entry
from tuimon.model.laps import Room, SizedCalls, Track, track
from tuimon.model.parts import Boundary, Frame, Region, Sizes
from tuimon.model.steps.lanes import LONG_NS, MOST_SPANS, Lane
from tuimon.model.steps.long import Long
from tuimon.model.steps.stepping import StepFold

if TYPE_CHECKING:
    from tuimon.model.model import Model

RAISED = 1
DEEPEST = 64
"""Crossings of one boundary that can be under way on one thread (recursion); older ones have left by an exception."""

MOST_INSTRUMENTS = 20_000
MOST_TELLING = 1_000
MOST_THREADS = 1_000
"""Instruments, those by which steps are told, and threads that run something compiled, that are kept; a healthy job has a
hundredth of it."""

_IN_TORCH_OPTIM = f"{os.sep}torch{os.sep}optim{os.sep}"


class CallFold:
    """Fills in regions and boundaries (their run-time half), and tells the steps."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self._instruments: dict[int, Instrument] = {}
        self._telling: set[int] = set()
        self._others: set[int] = set()
        """The numbers of those of TELLING, and of all others."""
        self._of_entry: dict[Entry, list[Instrument]] = {}
        self._threads: dict[int, Thread] = {}
        self._graphs: Counter[str] = Counter()
        self._tracks: dict[tuple[str, Sizes, bool], Track] = {}
        self._room_of_laps = Room()
        self._sized: dict[Entry, SizedCalls] = {}
        """Of entries whose forward calls have sizes."""
        self.steps = StepFold(model)
        self.handlers: dict[type[ev.Event], Callable[[Any], None]] = {
            ev.InstrumentAdded: self._added,
            ev.ThreadSeen: self._thread_seen,
            ev.Samples: self._samples,
            ev.LoopsSeen: self.steps.loops,
            ev.SiteSeen: self.steps.site,
            ev.StackSeen: self._look,
            ev.DeviceSamples: self._device_samples,
        }

    def _thread_seen(self, event: ev.ThreadSeen) -> None:
        self._model.name_thread(event.name, event.thread)
        self.steps.thread_seen(event, MOST_THREADS)

    def _look(self, event: ev.StackSeen) -> None:
        if self.steps.look(event):
            self._model.changed("steps")

    def _added(self, event: ev.InstrumentAdded) -> None:
        if event.instrument not in self._instruments and not self._room(event):
            return
        generation = self._model.generations.current
        entry = (generation, event.compile_id) if event.compile_id is not None else None
        instrument = Instrument(event.role, entry)
        self._instruments[event.instrument] = instrument
        if event.role in ("forward", "backward"):
            same = self._same_region(event)
            region = instrument.region = same or self._region(event, generation)
            instrument.is_alone = same is None
            instrument.is_forward = region.direction == "forward" and entry is not None
            instrument.sizes = event.sizes
            instrument.track = self._track(region, event.sizes)
            if event.sizes and entry is not None:
                self._sized.setdefault(entry, SizedCalls())
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
        instrument.timed = self.steps.added(event, called, of_frame or "", is_optimizer=instrument.is_optimizer)

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
        base = self._instruments.get(event.variant_of) if event.variant_of is not None else None
        if base is None:
            return None
        base.is_alone = base.is_plain = False
        return base.region

    def _track(self, region: Region, sizes: Sizes, *, device: bool = False) -> Track:
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

    def _samples(self, event: ev.Samples) -> None:
        boundaries = steps = frames = False
        model, instruments, told, latest_ns = self._model, self._instruments, self.steps, self._model.now_ns
        counting, tells_steps, compiled_until_ns = told.counting, not told.folded, model.compiled_until_ns
        lanes, row, shared, is_told = told.lanes.held, told.row, counting.shared, counting.is_told
        lane: Lane | None = None  # of the thread, where its next row may be one that only takes its time
        called: dict[int, Instrument] = {}
        thread: Thread | None = None
        thread_number = -1
        for one in event.rows:
            number, on_thread, flags, begin_ns, end_ns = one
            instrument = instruments.get(number)
            if instrument is None:
                continue
            if thread is None or on_thread != thread_number:
                thread, thread_number = self._threads.get(on_thread) or self._thread(on_thread), on_thread
                if thread is None:
                    continue
                lane = lanes.get(on_thread) if is_told and told.gap is None else None
            if instrument.is_counted:
                region = instrument.region
                if region is not None:
                    called[number] = instrument
                    if instrument.is_plain and begin_ns >= compiled_until_ns and not flags & RAISED:
                        instrument.calls.append(one)
                    else:
                        self._call(instrument, region, thread_number, flags, begin_ns, end_ns)
                    took = end_ns - begin_ns if end_ns > begin_ns else 0
                    thread.told_ns += took
                    if is_told:
                        shared.append((region.share, took))
                    else:
                        counting.share(region.share, took, end_ns)
                    if instrument.is_forward:
                        self._forward(instrument, region, thread, flags, end_ns)
                elif instrument.frame is not None:
                    instrument.frame.eager_calls = (instrument.frame.eager_calls or 0) + 1
                    frames = True
                elif instrument.skipped is not None:
                    boundaries |= self._passed(instrument, end_ns)
                elif instrument.boundary is not None:
                    self._crossing(instrument, instrument.boundary, thread, thread_number, begin_ns)
                    boundaries = True
            timed = instrument.timed
            if timed is None or not tells_steps:
                pass
            elif timed.is_usual and lane is not None and lane.quiet is None:
                if timed.tells:  # all this is the same as in `row`, of what most rows are
                    told.last_call = number
                    if not told.first_call:
                        told.first_call = number
                category = timed.counts_as
                if category is not None:
                    spans = lane.spans
                    if end_ns - begin_ns < LONG_NS:
                        spans.append((end_ns, -begin_ns, category, None))
                    else:
                        long = Long(timed, thread_number, flags, begin_ns, end_ns)
                        spans.append((end_ns, -begin_ns, category, long))
                        lane.long.append(long)
                        if lane.sites:
                            lane.find_site(long)
                    if len(spans) > MOST_SPANS:
                        told.make_room(lane)
            else:
                model.now_ns = latest_ns
                if row(timed, thread_number, flags, begin_ns, end_ns):
                    steps = True
                is_told = counting.is_told
                lane = lanes.get(thread_number) if is_told and told.gap is None else None
            if end_ns > latest_ns:
                latest_ns = end_ns
        model.now_ns = latest_ns
        for instrument in called.values():
            self._count(instrument)
        counting.put_off()
        for section, happened in (("regions", called), ("boundaries", boundaries), ("steps", steps), ("frames", frames)):
            if happened:
                model.changed(section)

    def _thread(self, number: int) -> Thread | None:
        """A thread that is seen for the first time; None where there is no room for it."""
        if len(self._threads) >= MOST_THREADS:
            # one that is within no boundary has nothing that would be missed
            idle = next((at for at, thread in self._threads.items() if not any(thread.open_at.values())), None)
            if idle is not None:
                del self._threads[idle]
        if not self._model.room("threads", self._threads, MOST_THREADS):
            return None
        thread = self._threads[number] = Thread()
        return thread

    def _call(self, instrument: Instrument, region: Region, thread_number: int, flags: int, begin_ns: int, end_ns: int) -> None:
        """A call of a region that is more than a plain one, or may be: how long it took, and of what kind it was."""
        model = self._model
        self._count(instrument)
        region.calls += 1
        if flags & RAISED:
            region.raised += 1
        took = end_ns - begin_ns if end_ns > begin_ns else 0
        steady = False
        if region.calls == 1 and not region.before_attach:
            began = begin_ns
            if instrument.entry is not None and region.direction == "forward":
                instrument.tail = model.tail_of(*instrument.entry)
                compile_began = model.compile_began(*instrument.entry, region.direction)
                began = begin_ns if compile_began is None else min(compile_began, begin_ns)
            region.initial.add(max(0, end_ns - began))
        elif begin_ns < model.compiled_until_ns and model.compiling_between(thread_number, begin_ns, end_ns):
            region.initial.add(took)
        else:
            steady = True
            (region.after_guard_change if instrument.changed_guard else region.steady).add(took)
        if self._sized and instrument.entry in self._sized:
            self._with_sizes(instrument, region, steady, flags, took, end_ns)
            return
        if steady and not flags & RAISED and instrument.track is not None:
            instrument.track.add(took, end_ns)
        instrument.is_plain = instrument.is_alone

    def _count(self, instrument: Instrument) -> None:
        """Count the plain calls that were put off."""
        calls, region = instrument.calls, instrument.region
        if not calls or region is None or instrument.track is None:
            return
        took = [end_ns - begin_ns if end_ns > begin_ns else 0 for _, _, _, begin_ns, end_ns in calls]
        region.calls += len(calls)
        (region.after_guard_change if instrument.changed_guard else region.steady).extend(took)
        instrument.track.extend(took, [row[4] for row in calls])
        calls.clear()

    def _forward(self, instrument: Instrument, region: Region, thread: Thread, flags: int, end_ns: int) -> None:
        """What a call of a forward region is to its frame, and to the boundary that it leads to."""
        frame = instrument.frame
        if frame is None and region.frame:
            frame = instrument.frame = self._model.frames.get(region.frame)
        if frame is not None:
            frame.compiled_calls += 1
        if instrument.tail is not None and not flags & RAISED:  # when the stretch ends is nobody's to say
            instrument.tail.crossings = (instrument.tail.crossings or 0) + 1
            self.steps.counting.share(instrument.tail.share, None, end_ns)
            self._model.changed("boundaries")
        if instrument.leads_to_boundary:
            assert instrument.entry is not None
            under_way = thread.open_at.get(instrument.entry)
            if under_way is None:
                under_way = thread.open_at[instrument.entry] = []
            under_way.append((end_ns, thread.told_ns))
            if len(under_way) > DEEPEST:
                del under_way[0]

    def _with_sizes(self, instrument: Instrument, region: Region, steady: bool, flags: int, took: int, end_ns: int) -> None:
        """A call of a graph with symbols."""
        assert instrument.entry is not None
        sized = self._sized[instrument.entry]
        if region.direction == "forward":
            sized.forward(instrument.sizes)
            counted = instrument.track
        else:
            sizes = sized.backward()
            counted = self._track(region, sizes)
        if steady and not flags & RAISED and counted is not None:
            counted.add(took, end_ns)

    def _device_samples(self, event: ev.DeviceSamples) -> None:
        """Calls that were timed on the device's clock. Those of before the steady ones are not told apart: they are few."""
        for number, begin_ns, took in event.rows:
            instrument = self._instruments.get(number)
            region = None if instrument is None else instrument.region
            if instrument is None or region is None or took < 0:
                continue
            region.device.add(took)
            sizes = instrument.sizes
            if not sizes and instrument.entry in self._sized:
                continue  # with which sizes a call of that time ran is not known any more
            self._track(region, sizes, device=True).add(took, begin_ns + took)
            self._model.changed("regions")

    def _passed(self, instrument: Instrument, at_ns: int) -> bool:
        """An instruction at which a frame is skipped whole was passed. When the stretch began and ended is nobody's to say."""
        boundary = self._model.boundaries.get(instrument.skipped or "")
        if boundary is None:
            return False
        boundary.crossings = (boundary.crossings or 0) + 1
        self.steps.counting.share(boundary.share, None, at_ns)
        return True

    def _crossing(self, instrument: Instrument, boundary: Boundary, thread: Thread, thread_number: int, at_ns: int) -> None:
        """A resume function is called. Where no region ran before the break, it is not known when the stretch began."""
        boundary.crossings = (boundary.crossings or 0) + 1
        assert instrument.entry is not None
        under_way = thread.open_at.get(instrument.entry)
        took = None
        if under_way:
            began, told = under_way.pop()
            compiling = 0
            if began < self._model.compiled_until_ns:
                compiling = self._model.compiling_between(thread_number, began, at_ns)
            took = max(0, at_ns - began - (thread.told_ns - told) - compiling)
            boundary.host.add(took)
            thread.told_ns += took
            self.steps.boundary(thread_number, boundary.key, boundary.function, boundary.file, boundary.line, began, at_ns)
        self.steps.counting.share(boundary.share, took, at_ns)
