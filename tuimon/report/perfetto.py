"""What was seen of jobs as a trace in Chrome's JSON, which Perfetto (ui.perfetto.dev) and chrome://tracing open.

Written as the events come, so that a long recording needs no memory: calls, boundaries, compilations with their phases, graph
breaks, recompiles, and readings of the machine at once; steps at the end, for only then is it sure how they are told. One
process is one process of the trace, its steps the first track. Times are the host's: a region's slice is its call, not its
work on the device.
"""

from __future__ import annotations

import json
import tempfile
from collections import deque
from collections.abc import Iterable
from operator import itemgetter
from typing import IO, Any

from tuimon import events as ev
from tuimon.model import Model
from tuimon.model.steps.parts import CATEGORIES, StepAccount
from tuimon.report.found import findings
from tuimon.report.seen import StepsSeen

MOST_BEHIND = 4096
"""So many closed slices of a track are remembered, to see that the next one nests."""
DEEPEST = 64
SORTED = 20_000
"""So many calls are sorted at a time: one that holds others is written before them where they begin at once."""

SLICES = {
    "forward": "forward region", "backward": "backward region", "optimizer": "optimizer", "data": "data wait",
    "engine": "autograd engine", "gc": "gc", "profiler": "profiler", "communication": "communication",
}  # fmt: skip
"""Roles of instruments whose samples are stretches of time. Others are instants, or (as "cpu") no time of the host at all."""
INSTANTS = {"eager": "call in eager", "crossing": "boundary passed"}


class Perfetto:
    """A trace under way. `member` for each process, then `close`."""

    def __init__(self, out: IO[str]) -> None:
        self._out = out
        self._first = True
        self._left_out: list[str] = []
        out.write('{"displayTimeUnit":"ns","traceEvents":[')

    def member(self, number: int, label: str, model: Model, zero_ns: int) -> Member:
        """A process: its place among them, and the time on its clock that is 0 in the trace."""
        return Member(self, number, label, model, zero_ns)

    def put(self, text: str) -> None:
        """One event, as JSON."""
        self._out.write(text if self._first else f",\n{text}")
        self._first = False

    def leave_out(self, what: str) -> None:
        """Note what is not in the trace."""
        self._left_out.append(what)

    def close(self) -> None:
        """Write the end."""
        other = {"written by": "tuimon", "left out": self._left_out}
        self._out.write(f'\n],"otherData":{json.dumps(other)}}}\n')


class Lanes:
    """Tracks side by side, on each of which slices nest: one that would cut into another goes onto the next."""

    def __init__(self) -> None:
        self._lanes: list[deque[tuple[int, int]]] = []
        self._floors: list[int] = []

    def of(self, begin: int, end: int) -> int:
        """The number of the track that has room for it; slices come in the order of their ends, as far as can be."""
        for number, tops in enumerate(self._lanes):
            if self._fits(number, tops, begin, end):
                return number
        self._lanes.append(deque([(begin, end)]))
        self._floors.append(-(1 << 63))
        return len(self._lanes) - 1

    def _fits(self, number: int, tops: deque[tuple[int, int]], begin: int, end: int) -> bool:
        last_end = tops[-1][1]
        if begin < last_end:
            if end < last_end or begin < self._floors[number]:
                return False
            at = len(tops)
            while at and tops[at - 1][0] >= begin:
                at -= 1
            if at and tops[at - 1][1] > begin:
                return False
            while len(tops) > at:
                tops.pop()
        tops.append((begin, end))
        if len(tops) > MOST_BEHIND:
            self._floors[number] = tops.popleft()[1]
        return True


class Member:
    """One process of the trace. `take` before the model is given the same events, `fed` after it, `close` at the end."""

    def __init__(self, trace: Perfetto, number: int, label: str, model: Model, zero_ns: int) -> None:
        self._trace = trace
        self._label = label
        self._model = model
        self._zero = zero_ns
        self._pid = number + 1
        self._tracks: dict[str, int] = {}
        self._lanes: dict[str, Lanes] = {}
        self._threads: dict[int, str] = {}
        self._instruments: dict[int, tuple[str, str, str | None]] = {}
        """Number -> (role, name of its slices as JSON, compile id)."""
        self._boundaries: dict[str, str] = {}
        """Compile id of the region before it -> name as JSON."""
        self._ends: dict[tuple[int, str], list[int]] = {}
        """When the regions before a boundary ended, by thread and compile id; innermost last."""
        self._slices: list[tuple[int, int, str]] = []
        self._compiling: dict[tuple[str, str], tuple[int, str]] = {}
        self._phases: dict[str, list[tuple[str, str, int]]] = {}
        self._phase: tuple[str, int] | None = None
        self._latest = zero_ns
        self._early = 0
        self._steps_file = tempfile.TemporaryFile("w+", encoding="utf-8")  # noqa: SIM115 - closed with the member
        self._steps = StepsSeen(model, self._step, self._no_steps)
        self._track("steps")
        self._track("phases")
        self._handlers: dict[type[ev.Event], Any] = {
            ev.InstrumentAdded: self._added,
            ev.ThreadSeen: self._thread,
            ev.Samples: self._samples,
            ev.CompileStarted: self._compile_began,
            ev.CompileFinished: self._compile_over,
            ev.PhaseBegan: self._phase_began,
            ev.PhaseEnded: self._phase_over,
            ev.GraphBroke: self._broke,
            ev.GuardsFailed: self._guards_failed,
            ev.PhaseMarked: self._marked,
            ev.RecordingGap: self._gap,
            ev.HostSampled: self._host,
            ev.GpuSampled: self._gpu,
            ev.TargetEnded: self._target_ended,
        }

    def take(self, events: Iterable[ev.Event]) -> None:
        """Write what these tell."""
        for event in events:
            handler = self._handlers.get(type(event))
            if handler is not None:
                self._latest = max(self._latest, event.t_ns)
                handler(event)

    def fed(self) -> None:
        """The model was given what was taken."""
        self._steps.fed()

    def close(self) -> None:
        """Write what can only be written at the end."""
        for (thread, compile_id), (began, name) in self._compiling.items():
            self._slice(f"compiling: {thread}", name, "compile", began, self._latest, {"compile id": compile_id, "over": False})
        if self._phase is not None:
            self._slice("phases", self._phase[0], "phase", self._phase[1], self._latest)
        self._steps.finish()
        self._steps_file.seek(0)
        for line in self._steps_file:
            begin, end, told = json.loads(line)
            self._slice("steps", told.pop("name"), "step", begin, end, told)
        self._steps_file.close()
        self._flush()
        for slow in self._model.steps.slow:
            told = {"took s": slow.account.took_ns / 1e9, "detail": slow.causes[0].detail}
            self._instant("slow steps", f"slow step {slow.account.index}: {slow.causes[0].cause}", slow.account.end_ns, told)
        for finding in findings(self._model):
            told = {"evidence": finding["evidence"], "next step": finding["next_step"], "cost s": finding["cost"]}
            self._instant("findings", f"{finding['title']} ({finding['where']})", self._latest, told)
        self._name_tracks()
        if self._early:
            self._trace.leave_out(f"{self._label}: {self._early} from before the attach")

    # ------------------------------------------------------------------------------------------ writing

    def _track(self, name: str) -> int:
        number = self._tracks.get(name)
        if number is None:
            number = self._tracks[name] = len(self._tracks) + 1
        return number

    def _ts(self, t_ns: int) -> str:
        """Microseconds since the trace's 0, exact to the ns."""
        since = t_ns - self._zero
        return f"{since // 1000}.{since % 1000:03d}"

    def _slice(self, track: str, name: str, category: str, begin: int, end: int, args: dict[str, Any] | None = None) -> None:
        self._put(track, json.dumps(name), category, begin, end, self._args(args))

    def _put(self, track: str, name: str, category: str, begin: int, end: int, args: str) -> None:
        """A slice of a track, where it is in time; `name` and `args` are JSON already. Written by `_flush`."""
        if begin < self._zero:
            self._early += 1
            return
        end = max(begin, end)
        lane = self._lanes.setdefault(track, Lanes()).of(begin, end)
        tid = self._track(track if not lane else f"{track} ({lane + 1})")
        took = end - begin
        text = (
            f'{{"ph":"X","name":{name},"cat":"{category}","pid":{self._pid},"tid":{tid},"ts":{self._ts(begin)},'
            f'"dur":{took // 1000}.{took % 1000:03d}{args}}}'
        )
        self._slices.append((begin, -end, text))
        if len(self._slices) > SORTED:
            self._flush()

    def _instant(self, track: str, name: str, at: int, args: dict[str, Any] | None = None) -> None:
        if at < self._zero:
            self._early += 1
            return
        self._trace.put(
            f'{{"ph":"i","s":"t","name":{json.dumps(name)},"cat":"tuimon","pid":{self._pid},"tid":{self._track(track)},'
            f'"ts":{self._ts(at)}{self._args(args)}}}'
        )

    def _counter(self, name: str, at: int, values: dict[str, float | None]) -> None:
        known = {key: value for key, value in values.items() if value is not None}
        if known and at >= self._zero:
            counted = f'"pid":{self._pid},"ts":{self._ts(at)},"args":{json.dumps(known)}'
            self._trace.put(f'{{"ph":"C","name":{json.dumps(name)},{counted}}}')

    @staticmethod
    def _args(args: dict[str, Any] | None) -> str:
        return f',"args":{json.dumps(args)}' if args else ""

    def _name_tracks(self) -> None:
        target = self._model.target
        shown = f"{self._label}: {target.command}" if target.command not in ("", self._label) else self._label
        metadata: list[tuple[str, int, dict[str, Any]]] = [
            ("process_name", 0, {"name": shown}),
            ("process_labels", 0, {"labels": f"pid {target.pid}, torch {target.torch}"}),
            ("process_sort_index", 0, {"sort_index": self._pid}),
        ]
        for name, tid in self._tracks.items():
            metadata += [("thread_name", tid, {"name": name}), ("thread_sort_index", tid, {"sort_index": tid})]
        for name, tid, args in metadata:
            self._trace.put(f'{{"ph":"M","name":"{name}","pid":{self._pid},"tid":{tid},"args":{json.dumps(args)}}}')

    # ------------------------------------------------------------------------------------------ calls

    def _added(self, event: ev.InstrumentAdded) -> None:
        place = f"{event.function} {event.file.rsplit('/', 1)[-1]}:{event.line}" if event.file else event.function or event.name
        if event.role == "resume" and event.compile_id is not None:
            self._boundaries[event.compile_id] = json.dumps(f"boundary before {place}")
        name = place if event.compile_id is None else f"{place} [{event.compile_id}]"
        kind = SLICES.get(event.role, INSTANTS.get(event.role, event.role))
        if event.role not in ("forward", "backward"):
            name = f"{kind}: {event.name or name}"
        self._instruments[event.instrument] = (event.role, json.dumps(name), event.compile_id)

    def _thread(self, event: ev.ThreadSeen) -> None:
        others = {name for thread, name in self._threads.items() if thread != event.thread}
        name = event.name or "thread"
        self._threads[event.thread] = name if name not in others else f"{name} {event.native or event.thread}"

    def _samples(self, event: ev.Samples) -> None:
        for number, thread, flags, begin, end in event.rows:
            role, name, compile_id = self._instruments.get(number, ("", "", None))
            if role in SLICES:
                raised = ',"args":{"raised":true}' if flags & 1 and role != "gc" else ""
                self._put(self._track_of(thread), name, SLICES[role], begin, end, raised)
                if role == "forward" and compile_id in self._boundaries:
                    ends = self._ends.setdefault((thread, compile_id), [])
                    ends.append(end)
                    del ends[:-DEEPEST]
            elif role == "resume" and compile_id is not None:
                ends = self._ends.get((thread, compile_id), [])
                if ends:
                    self._put(self._track_of(thread), self._boundaries[compile_id], "boundary", ends.pop(), begin, "")
            elif role in INSTANTS:
                self._instant(self._track_of(thread), json.loads(name), end)

    def _track_of(self, thread: int) -> str:
        return self._threads.get(thread) or f"thread {thread}"

    def _flush(self) -> None:
        self._slices.sort(key=itemgetter(0, 1))
        for _, _, text in self._slices:
            self._trace.put(text)
        self._slices.clear()

    # ------------------------------------------------------------------------------------------ steps

    def _step(self, account: StepAccount) -> None:
        told: dict[str, Any] = {"name": f"step {account.index}", "compiled": account.compiled}
        if account.waited_ns:
            told["waited for a core ms"] = account.waited_ns / 1e6
        if not account.complete:
            told["samples dropped"] = True
        told |= {f"{name} ms": ns / 1e6 for name, ns in zip(CATEGORIES, account.parts, strict=False) if ns}
        self._steps_file.write(json.dumps([account.begin_ns, account.end_ns, told]) + "\n")

    def _no_steps(self) -> None:
        self._steps_file.seek(0)
        self._steps_file.truncate()

    # ------------------------------------------------------------------------------------------ the compiler

    def _compile_began(self, event: ev.CompileStarted) -> None:
        if event.before_attach and not event.since_known:
            return
        self._compiling[event.thread, event.compile_id] = (event.t_ns, f"{event.function} [{event.compile_id}]")

    def _compile_over(self, event: ev.CompileFinished) -> None:
        self._compiling.pop((event.thread, event.compile_id), None)
        if event.before_attach:
            self._early += 1
            return
        args = {
            "compile id": event.compile_id, "total s": event.total_s, "dynamo s": event.dynamo_s, "aot s": event.aot_s,
            "inductor s": event.inductor_s, "ops": event.ops, "failed": event.failed, "refused": event.refused or None,
        }  # fmt: skip
        name = f"{event.function or event.direction} [{event.compile_id}]" + (" refused" if event.refused else "")
        known = {key: value for key, value in args.items() if value is not None}
        track = f"compiling: {event.thread}" if event.thread else "compiling"
        self._slice(track, name, f"{event.direction} compile", event.began_ns, event.t_ns, known)

    def _phase_began(self, event: ev.PhaseBegan) -> None:
        under_way = self._phases.setdefault(event.thread, [])
        under_way.append((event.compile_id, event.phase, event.t_ns))
        del under_way[:-DEEPEST]

    def _phase_over(self, event: ev.PhaseEnded) -> None:
        under_way = self._phases.get(event.thread, [])
        for at in range(len(under_way) - 1, -1, -1):
            if under_way[at][:2] == (event.compile_id, event.phase):
                began = under_way[at][2]
                del under_way[at:]  # those within it that never ended are none
                track = f"compile phases: {event.thread}" if event.thread else "compile phases"
                self._slice(track, event.phase, "compile phase", began, event.t_ns)
                return

    def _broke(self, event: ev.GraphBroke) -> None:
        if event.before_attach:
            return
        args = {"reason": event.reason, "compile id": event.compile_id}
        name = f"graph break: {event.kind} at {event.file.rsplit('/', 1)[-1]}:{event.line}"
        self._instant("graph breaks and recompiles", name, event.t_ns, args)

    def _guards_failed(self, event: ev.GuardsFailed) -> None:
        if event.before_attach:
            return
        args = {"failed": [f"{entry}: {guard}" for entry, guard in event.failed], "now": dict(event.now)}
        self._instant("graph breaks and recompiles", f"guards failed: [{event.compile_id}]", event.t_ns, args)

    # ------------------------------------------------------------------------------------------ around it

    def _marked(self, event: ev.PhaseMarked) -> None:
        if self._phase is not None:
            self._slice("phases", self._phase[0], "phase", self._phase[1], event.t_ns)
        self._phase = (event.name, event.t_ns) if event.name else None

    def _gap(self, event: ev.RecordingGap) -> None:
        self._slice("not in the recording", event.why, "gap", event.from_ns, event.until_ns)

    def _host(self, event: ev.HostSampled) -> None:
        self._counter("resident memory (bytes)", event.t_ns, {"rss": event.rss_bytes})
        self._counter("CPU of the process (%)", event.t_ns, {"cpu": event.cpu_percent})

    def _gpu(self, event: ev.GpuSampled) -> None:
        self._counter(f"GPU {event.index} utilization (%)", event.t_ns, {"gpu": event.utilization})
        self._counter(f"GPU {event.index} memory (bytes)", event.t_ns, {"used": event.memory_used_bytes})

    def _target_ended(self, event: ev.TargetEnded) -> None:
        self._instant("phases", event.detail or event.how, event.t_ns)
