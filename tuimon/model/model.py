"""The model: a fold over events. No clock, no I/O, no screen in it, so a replay gives what the live run gave.

`Model.apply` is the only way in. Readers (the app, the reports) look at the public attributes and at `versions`: a section
whose number has not changed has not changed.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Sequence, Sized
from functools import partial
from typing import Any

from tuimon import events as ev
from tuimon.model.about import About
from tuimon.model.calls import CallFold
from tuimon.model.compiler import CompilerFold
from tuimon.model.graphs import GraphFold, GraphKey
from tuimon.model.identity import Generations
from tuimon.model.parts import (
    Boundary,
    Compilation,
    Coverage,
    Frame,
    FrameKey,
    LogLine,
    Recompile,
    Region,
    Running,
    Steps,
    Target,
)
from tuimon.model.phases_marked import MarkedPhases
from tuimon.model.ranks.digest import Digester
from tuimon.model.ranks.folded import FoldedSteps
from tuimon.model.recorded import Recorded
from tuimon.model.slow.fold import Slowness
from tuimon.model.steps.counting import Told
from tuimon.model.surroundings import Surroundings
from tuimon.model.warmup import Warmup
from tuimon.model.windows import MOST_WINDOWS, Window, WindowFold

LOG_LINES = 2000
"""Lines of the event log that are kept."""

MOST_GPUS = 256
MOST_GAPS = 256
"""Things not available, by name, that are kept."""


class Model:
    """Everything that is known about one target."""

    def __init__(self) -> None:
        self.target = Target()
        self.frames: dict[FrameKey, Frame] = {}
        self.regions: dict[str, Region] = {}
        self.boundaries: dict[str, Boundary] = {}
        self.compilations: list[Compilation] = []
        self.recompiles: list[Recompile] = []
        self.running: dict[str, Running] = {}
        """What compiles now, by thread name."""
        self.steps = Steps()
        self.warmup = Warmup()
        self.coverage = Coverage()
        self.surroundings = Surroundings()
        self.history: ev.HistoryCounted | None = None
        self.graphs: dict[GraphKey, list[ev.GraphSeen]] = {}
        """What compiled graphs compute, in the order in which torch made them."""
        self.windows: deque[Window] = deque(maxlen=MOST_WINDOWS)
        """Profiler windows, oldest first."""
        self.closed_windows = 0
        """Windows that were opened and are over, those that fell out included."""
        self.kernels: dict[int, ev.KernelsSeen] = {}
        """Window -> what it holds, oldest first; 0 for a trace file."""
        self.counters: ev.CountersSeen | None = None
        """What hardware counters say of kernels, from a file."""
        self.log: deque[LogLine] = deque(maxlen=LOG_LINES)
        self.logged = 0
        """Lines ever logged, those that fell out included."""
        self.now_ns = 0
        """The time of the latest event: the model's only clock."""
        self.compiled_until_ns = 0
        """No compilation that is over ended later, on no thread: behind it there is nothing to ask `compiling_between`."""
        self.versions: Counter[str] = Counter()
        """Section name -> a number that grows with each change: "target", "now", "steps", "regions", "boundaries",
        "recompiles", "compiles", "frames", "coverage", "gpu", "host", "log", "roofline" (graphs,
        windows, kernels, and once a second what regions did in it)."""
        self.overflow: Counter[str] = Counter()
        """What there was no room for, by name; `Coverage.not_available` says the same in words."""
        self.generations = Generations()
        self.graph_fold = GraphFold(self)
        windows = WindowFold(self)
        self._compiler = CompilerFold(self)
        self._calls = CallFold(self)
        self.slowness = Slowness(self)
        self.each_step(self.slowness)
        self.digester = Digester(self)
        self.each_step(self.digester)
        self.folded = FoldedSteps(self, self._calls.steps)
        self.recorded = Recorded(self)
        self.phases = MarkedPhases(self)
        self.tap: Callable[[Sequence[ev.Event]], None] | None = None
        """Who is shown all that comes in, in its order, before it is folded: a recorder."""
        self._handlers: dict[type[ev.Event], Callable[[Any], None]] = {
            ev.Attaching: self._attaching,
            ev.TargetSeen: self._target_seen,
            ev.TargetEnded: self._target_ended,
            ev.HookStatus: self._hook_status,
            ev.NotAvailable: self._not_available,
            ev.Line: self._line,
            ev.HistoryCounted: self._history_counted,
            ev.GpuSampled: self._gpu_sampled,
            ev.GpuUnavailable: self._gpu_unavailable,
            ev.HostSampled: self._host_sampled,
            ev.MigSampled: partial(self._about_gpus, self.surroundings.part),
            ev.GpuSilent: partial(self._about_gpus, self.surroundings.silence),
            ev.XidSeen: self._xid_seen,
            ev.PoolSampled: partial(self._about_gpus, self.surroundings.pool),
            ev.ProcessTreeSampled: self._tree_sampled,
            ev.GraphSeen: self.graph_fold.seen,
            ev.WindowChanged: windows.changed,
            ev.KernelsSeen: windows.kernels,
            ev.CountersSeen: windows.counters,
            **self._compiler.handlers,
            **self._calls.handlers,
            **self.slowness.handlers,
            **self.recorded.handlers,
            **self.phases.handlers,
            ev.ThreadSampled: self._thread_sampled,
            ev.InstrumentAdded: self._instrument_added,
            ev.Samples: self._samples,
            ev.StepsFolded: self.folded.take,
            ev.CompileFinished: self._compile_finished,
        }

    def apply(self, events: Iterable[ev.Event]) -> None:
        """Fold events in, in their order. An event of a type that this version does not know is passed over."""
        if self.tap is not None:
            events = list(events)
            self.tap(events)
        for event in events:
            handler = self._handlers.get(type(event))
            if handler is None:
                continue
            if event.t_ns > self.now_ns:
                self.now_ns = event.t_ns
            handler(event)

    def changed(self, *sections: str) -> None:
        """Note a change; for the folds."""
        for section in sections:
            self.versions[section] += 1

    def say(self, t_ns: int, kind: str, text: str, about: About | None = None) -> None:
        """A line for the event log, and what it is about; for the folds."""
        self.log.append(LogLine(t_ns, kind, text, about))
        self.logged += 1
        self.versions["log"] += 1

    def room(self, what: str, held: Sized, most: int) -> bool:
        """Whether one more of these fits. Where it does not, that is counted and said: a model is bounded; for the folds."""
        if len(held) < most:
            return True
        self.overflow[what] += 1
        self.coverage.not_available[f"more {what}"] = f"{most} are kept; {self.overflow[what]} more were left out"
        self.changed("coverage")
        return False

    @property
    def wall_offset_s(self) -> float | None:
        """What to add to a monotonic time in seconds to get Unix time; None before the target is known."""
        if self.target.attached_ns is None or self.target.attached_wall_s is None:
            return None
        return self.target.attached_wall_s - self.target.attached_ns / 1e9

    def compiling_between(self, thread: int | None, begin_ns: int, end_ns: int) -> int:
        """How many ns of [begin, end] the thread, or with None any thread, spent in finished compilations; for the folds."""
        return self._compiler.overlap(thread, begin_ns, end_ns)

    def compile_began(self, generation: int, compile_id: str, direction: str) -> int | None:
        """When the compilation behind a region began, where it was seen; for the folds."""
        return self._compiler.began(generation, compile_id, direction)

    def boundary_of(self, generation: int, compile_id: str) -> Boundary | None:
        """The boundary that a compilation's graph break left; for the folds."""
        return self._compiler.boundary_of(generation, compile_id)

    def tail_of(self, generation: int, compile_id: str) -> Boundary | None:
        """The boundary that each call of a compilation's graph ends in, where nothing goes on behind it; for the folds."""
        return self._compiler.tail_of(generation, compile_id)

    def adopt_boundary(self, generation: int, compile_id: str, instrument: ev.InstrumentAdded) -> Boundary:
        """The boundary of a resume function whose graph break was not seen; for the folds."""
        return self._compiler.adopt_boundary(generation, compile_id, instrument)

    def _instrument_added(self, event: ev.InstrumentAdded) -> None:
        self._compiler.instrument_added(event)
        self._calls.handlers[ev.InstrumentAdded](event)
        self.digester.added(event)

    def _samples(self, event: ev.Samples) -> None:
        self.digester.samples(event)  # first: the steps that end here want them
        self._calls.handlers[ev.Samples](event)

    def _compile_finished(self, event: ev.CompileFinished) -> None:
        self._compiler.handlers[ev.CompileFinished](event)
        if not event.before_attach and self._calls.steps.compiled(self.compilations[-1]):
            self.changed("steps")

    def each_step(self, told: Told) -> None:
        """Have this told of each step that is over; for the folds."""
        self._calls.steps.counting.listeners.append(told)

    @property
    def steps_since(self) -> str:
        """In words, from where on steps are counted: "the job's begin", "the attach"."""
        return self._calls.steps.counting.since

    @property
    def step_thread(self) -> int | None:
        """The ident of the thread that steps run on; None while there is none."""
        return self._calls.steps.thread

    def native(self, thread: int) -> int | None:
        """The id in the kernel of the thread with this ident, where it was told."""
        return self._calls.steps.lanes.native(thread)

    def code(self, number: int) -> ev.CodeSeen | None:
        """The code object that has this number in events."""
        return self._compiler.code(number)

    def name_thread(self, name: str, number: int) -> None:
        """Tie a thread's name in compile events to its number in samples; for the folds."""
        self._compiler.name_thread(name, number)

    # ------------------------------------------------------------------------------------------ target

    def _attaching(self, event: ev.Attaching) -> None:
        target = self.target
        if target.attached_ns is not None or target.ended is not None:
            return
        target.attaching, target.attaching_since_s, target.attaching_ns = event.sentence, event.since_s, event.t_ns
        self.changed("target")

    def _target_seen(self, event: ev.TargetSeen) -> None:
        target = self.target
        if target.attaching is not None:
            target.attaching = None
            self.now_ns = event.t_ns  # what was said before is on the clock of tuimon's own host
        if target.attached_ns is None:
            target.attached_ns = event.t_ns
            target.attached_wall_s = event.wall_s
            verb = "opened" if event.how == "file" else "attached to"
            self.say(event.t_ns, "target", f"{verb} {event.command or 'the target'} ({event.how})")
        target.pid, target.command, target.how = event.pid, event.command, event.how
        target.python, target.torch = event.python, event.torch
        target.devices = event.devices
        if event.rank is not None:  # once its process group is destroyed it does not know that any more
            target.rank, target.world_size = event.rank, event.world_size
        target.recompile_limit = event.recompile_limit
        if event.recompile_limit is not None:
            for frame in self.frames.values():
                if not frame.own_limit:
                    frame.limit = event.recompile_limit
        target.options = event.options
        self.changed("target")

    def _target_ended(self, event: ev.TargetEnded) -> None:
        if self.target.ended is not None and not (self.target.status is None and event.status is not None):
            return
        self.target.ended, self.target.ended_detail = event.how, event.detail
        self.target.attaching = None
        self.target.ended_ns, self.target.status = event.t_ns, event.status
        self.running.clear()
        self.say(event.t_ns, "target", event.detail)
        if self._calls.steps.ended(event):
            self.changed("steps")
        self.changed("target", "now")

    def _hook_status(self, event: ev.HookStatus) -> None:
        self._calls.steps.counting.status(event)
        coverage = self.coverage
        coverage.samples, coverage.dropped, coverage.hook_s = event.samples, event.dropped, event.hook_s
        coverage.instruments = dict(event.instruments)
        self.changed("coverage")

    def _not_available(self, event: ev.NotAvailable) -> None:
        gaps = self.coverage.not_available
        if event.what in gaps or self.room("things that are not available", gaps, MOST_GAPS):
            gaps[event.what] = event.why
        self.changed("coverage")

    def _line(self, event: ev.Line) -> None:
        self.say(event.t_ns, event.origin, event.text)

    def _history_counted(self, event: ev.HistoryCounted) -> None:
        self.history = event
        if event.steps is not None:
            self.steps.before_attach = event.steps
        self.changed("target")

    # ------------------------------------------------------------------------------------------ surroundings

    def _gpu_sampled(self, event: ev.GpuSampled) -> None:
        gpus = self.surroundings.gpus
        if event.index not in gpus and not self.room("GPUs", gpus, MOST_GPUS):
            return
        self.surroundings.gpu(event)
        self.slowness.gpu(event)
        self.changed("gpu")

    def _gpu_unavailable(self, event: ev.GpuUnavailable) -> None:
        if self.surroundings.gpu_why_not != event.why:
            self.surroundings.gpu_why_not, self.surroundings.gpu_kind = event.why, event.kind
            self.changed("gpu")

    def _about_gpus(self, take: Callable[[Any], None], event: ev.Event) -> None:
        take(event)
        self.changed("gpu")

    def _xid_seen(self, event: ev.XidSeen) -> None:
        self.surroundings.xid(event)
        where = "a GPU" if event.index is None else f"GPU {event.index}"
        about = None if event.index is None else About("gpu", f"gpu {event.index}")
        self.say(event.t_ns, "tuimon", f"the driver reports XID {event.xid} on {where}", about)
        self.changed("gpu")

    def _host_sampled(self, event: ev.HostSampled) -> None:
        self.surroundings.take_host(event)
        if self.warmup.rss_first is None:
            self.warmup.rss_first = event.rss_bytes
        self.slowness.host(event)
        self.changed("host")

    def _tree_sampled(self, event: ev.ProcessTreeSampled) -> None:
        self.surroundings.tree = event
        self.changed("host")

    def _thread_sampled(self, event: ev.ThreadSampled) -> None:
        self.surroundings.thread(event)  # ten a second: the next reading of the host says that it has changed
        self.slowness.handlers[ev.ThreadSampled](event)
