"""The fold over what runs: calls of regions and crossings of boundaries."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tuimon import events as ev
from tuimon.model.adding import Adding
from tuimon.model.instruments import Instrument, Thread
from tuimon.model.parts import Boundary, Region
from tuimon.model.steps.lanes import LONG_NS, MOST_SPANS, Lane
from tuimon.model.steps.long import Long
from tuimon.model.steps.stepping import StepFold
from tuimon.model.steps.timing import ENCLOSES, IS_CALL, TURNS

if TYPE_CHECKING:
    from tuimon.model.model import Model

RAISED = 1
DEEPEST = 64
"""Crossings of one boundary that can be under way on one thread (recursion); older ones have left by an exception."""

MOST_THREADS = 1_000
"""Threads that run something compiled, that are kept; a healthy job has a hundredth of it."""


_NOBODY, _NO_LANE = Thread(), Lane(0, None)


class CallFold:
    """Fills in regions and boundaries (their run-time half), and tells the steps."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self._threads: dict[int, Thread] = {}
        self.steps = StepFold(model)
        self._adding = Adding(model, self.steps)
        self.handlers: dict[type[ev.Event], Callable[[Any], None]] = {
            ev.InstrumentAdded: self._adding.added,
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

    def _samples(self, event: ev.Samples) -> None:
        boundaries = steps = frames = False
        model, instruments, told, latest_ns = self._model, self._adding.held, self.steps, self._model.now_ns
        counting, tells_steps, compiled_until_ns = told.counting, not told.folded, model.compiled_until_ns
        lanes, row, gaps, shared, is_told = told.lanes.held, told.row, told.gaps, counting.shared, counting.is_told
        lane, spans, crowded = _NO_LANE, _NO_LANE.spans, False
        most_way = -1  # with a row of its thread whose way is no later, there is nothing to do but what is done here
        thread = _NOBODY
        thread_number: int | None = None  # None: what is known of the thread is to be looked up anew
        called: dict[int, Instrument] = {}
        for one in event.rows:
            number, on_thread, flags, begin_ns, end_ns = one
            try:
                instrument = instruments[number]
            except KeyError:
                continue
            if on_thread != thread_number:
                known = self._threads.get(on_thread) or self._thread(on_thread)
                if known is None:
                    thread_number = None
                    continue
                thread, thread_number = known, on_thread
                found = lanes.get(on_thread) if is_told and tells_steps and gaps.open is None else None
                if found is None or found.quiet is not None:
                    most_way = -1
                else:
                    lane, spans, most_way = found, found.spans, ENCLOSES if len(lanes) == 1 else TURNS
                    crowded = len(spans) + 2 * len(event.rows) > MOST_SPANS
            took = end_ns - begin_ns if end_ns > begin_ns else 0
            region = instrument.region
            if region is not None:
                called[number] = instrument
                if instrument.is_plain and begin_ns >= compiled_until_ns and not flags & RAISED:
                    instrument.calls.append(one)
                else:
                    self._call(instrument, region, on_thread, flags, begin_ns, end_ns)
                thread.told_ns += took
                if is_told:
                    shared.append((region.share, took))
                else:
                    counting.share(region.share, took, end_ns)
                if instrument.is_forward:
                    self._forward(instrument, region, thread, flags, end_ns)
            elif instrument.is_counted:
                if instrument.frame is not None:
                    instrument.frame.eager_calls = (instrument.frame.eager_calls or 0) + 1
                    frames = True
                elif instrument.skipped is not None:
                    boundaries |= self._passed(instrument, end_ns)
                elif instrument.boundary is not None:
                    self._crossing(instrument, instrument.boundary, thread, on_thread, begin_ns)
                    boundaries = True
            way = instrument.way
            if way <= most_way:  # all this is the same as in `row`, of what most rows are
                if way == IS_CALL:
                    gaps.last_call = number
                    if not gaps.first_call:
                        gaps.first_call = number
                elif way == TURNS and lane is gaps.optimizers.lane:
                    gaps.optimizers.turned += 1
                category = instrument.category
                if category is not None:
                    if took < LONG_NS:
                        spans.append((end_ns, begin_ns, category, None))
                    else:
                        assert instrument.timed is not None
                        long = Long()
                        long.timed, long.told, long.own_ns = instrument.timed, one, 0
                        spans.append((end_ns, begin_ns, category, long))
                        lane.long.append(long)
                        if lane.sites:
                            lane.find_site(long)
                    if crowded and len(spans) > MOST_SPANS:
                        told.make_room(lane)
                        spans = lane.spans
            elif tells_steps and instrument.timed is not None:
                model.now_ns = latest_ns
                if row(instrument.timed, on_thread, flags, begin_ns, end_ns):
                    steps = True
                is_told, thread_number = counting.is_told, None
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
        if self._adding.sized and instrument.entry in self._adding.sized:
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
        sized = self._adding.sized[instrument.entry]
        if region.direction == "forward":
            sized.forward(instrument.sizes)
            counted = instrument.track
        else:
            sizes = sized.backward()
            counted = self._adding.track(region, sizes)
        if steady and not flags & RAISED and counted is not None:
            counted.add(took, end_ns)

    def _device_samples(self, event: ev.DeviceSamples) -> None:
        """Calls that were timed on the device's clock. Those of before the steady ones are not told apart: they are few."""
        for number, begin_ns, took in event.rows:
            instrument = self._adding.held.get(number)
            region = None if instrument is None else instrument.region
            if instrument is None or region is None or took < 0:
                continue
            region.device.add(took)
            sizes = instrument.sizes
            if not sizes and instrument.entry in self._adding.sized:
                continue  # with which sizes a call of that time ran is not known any more
            self._adding.track(region, sizes, device=True).add(took, begin_ns + took)
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
            took = at_ns - began - (thread.told_ns - told) - compiling
            took = took if took > 0 else 0
            boundary.host.add(took)
            thread.told_ns += took
            self.steps.boundary(thread_number, boundary.key, boundary.function, boundary.file, boundary.line, began, at_ns)
        self.steps.counting.share(boundary.share, took, at_ns)
