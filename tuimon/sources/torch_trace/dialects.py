"""One record of a log after the other as events: what newer and older versions of torch write, told in the words of the newest.

A record that cannot be what it says it is gives no event and is counted, like one that cannot be read.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import takewhile
from typing import Any, Literal

from tuimon import events as ev
from tuimon.sources import carried, trace_records
from tuimon.sources.graph_messages import GraphMessages
from tuimon.sources.torch_trace.facts import Facts
from tuimon.sources.torch_trace.lines import Damage, Record
from tuimon.sources.torch_trace.payloads import chromium, parsed

COUNTED = "not in this file"
"""How the calls of a region of a log are counted."""
SKIPPED = "a graph break that cannot be resumed: the frame is skipped"
PHASES = frozenset(
    (
        "entire_frame_compile", "entire_backward_compile", "bytecode_tracing", "backend_compile", "build_guards", "code_gen",
        "create_aot_dispatcher_function", "aot_trace_joint_graph", "inductor_compile", "GraphLowering.run",
        "async_compile.wait",
    )
)  # fmt: skip
"""Phases that the screen names: the hook passes the same ones on."""
OF_AOT = ("aot_forward_graph", "aot_backward_graph", "aot_inference_graph")
OF_DYNAMO = "dynamo_output_graph"
CODE = "inductor_output_code"
METRICS = ("compilation_metrics", "bwd_compilation_metrics")
EXPORT = frozenset(
    ("exported_program", "expression_created", "guard_added", "create_unbacked_symbol", "propagate_real_tensors_provenance")
)
MOST_FILES = 100_000
"""Names of files that are remembered; a log tells each once and gives its number from then on."""
MOST_OPEN = 4096
MOST_EXECUTED = 4096

_BY_WHOM = "torch/_dynamo/convert_frame.py"
_CACHE = re.compile(r"(fx_graph_cache|aotautograd_cache)_(hit|miss|bypass|hash)")
_TEXTS = frozenset(("dynamo_graph_break_reason", "recompile_reasons", "torch_version"))
_ORDERS = frozenset(("graph_execution", "inductor_graph_execution"))


def wants(told: Mapping[str, Any]) -> bool:
    """Whether the payload of this record is read."""
    if "artifact" in told:
        artifact = told["artifact"]
        name = artifact.get("name") if isinstance(artifact, dict) else None
        return isinstance(name, str) and (name in _TEXTS or name in _ORDERS or _CACHE.fullmatch(name) is not None)
    return "chromium_event" in told or CODE in told or OF_DYNAMO in told or any(kind in told for kind in OF_AOT)


@dataclass(slots=True)
class _Compilation:
    """What is known of one that is under way."""

    began_ns: int | None = None
    began_us: float | None = None
    took_s: float | None = None
    """Of the phase that is all of it, where that is told."""
    graph: tuple[int, str, int] | None = None
    """(time, text, attempt) of Dynamo's own graph, where no other has come."""
    has_graph: bool = False
    broke: bool = False
    backward: bool = False
    codes: set[str] = field(default_factory=set)
    """Directions that Inductor has written code for."""


class Dialects:
    """Turns the records of one rank into events. It keeps what a log tells once."""

    def __init__(self, facts: Facts, damage: Damage) -> None:
        self.records = 0
        self.compilations = 0
        self.breaks = 0
        self.reasons = 0
        """Records of why a frame was compiled again."""
        self.again = 0
        """Frames that were compiled again."""
        self.restarts = 0
        """Compilations that began anew because of a graph break."""
        self.misnamed = 0
        """Compilations whose metrics bear another id than their record."""
        self.logs = 0
        """Begins of a table of names: each log has one."""
        self.lookups_untold = 0
        """Lookups in a cache of which no result is told."""
        self.export = self.ahead = 0
        """Records of torch.export, and compilations that bear no id."""
        self.executed: list[str] = []
        self.executed_cut = False
        self.open: OrderedDict[str, _Compilation] = OrderedDict()
        self._facts = facts
        self._damage = damage
        self._files: dict[int, str] = {}
        self._graphs = GraphMessages()
        self._number = 0
        self._failed: list[ev.GraphBroke] = []
        self._late: dict[str, bool] = {}
        """Compilations that are over, whose backward graph was still to be made -> whether it has been."""
        self._with_backward: set[str] = set()
        """Compilations whose backward graph has been told: with some versions both metrics tell of it."""
        self._who: int | None = None
        self._ends_in_itself: bool | None = None
        """Whether the stack of a compilation that begins ends in the frame that is compiled, and not (torch 2.4) in its caller
        or in torch's own: where it does, torch has looked up its own file first, to leave its own frames out."""

    def read(self, at: int, record: Record) -> list[ev.Event]:
        """The events in a record of this time."""
        self.records += 1
        told = record.told
        try:
            if record.payload is None and told.get("has_payload") and wants(told):
                raise _NoPayload
            return [carried.checked(event) for event in self._events(at, record, told)]
        except _NoPayload:
            self._damage.payloads += 1
        except Exception:  # noqa: BLE001 - what can be wrong with a record is as endless as JSON is
            self.records -= 1
            self._damage.records += 1
        self._damage.at(record.line)
        return []

    def _events(self, at: int, record: Record, told: dict[str, Any]) -> list[ev.Event]:
        thread = self._thread(record.who)
        if "str" in told:
            name, number = told["str"]
            self.logs += int(number) == 0
            if len(self._files) < MOST_FILES:
                self._files[int(number)] = str(name)
        elif "chromium_event" in told:
            return self._phase(at, thread, record)
        elif "dynamo_start" in told:
            return self._started(at, thread, told)
        elif "artifact" in told:
            return self._artifact(at, thread, record, told)
        elif "describe_tensor" in told:
            self._facts.tensor(told["describe_tensor"])
        elif OF_DYNAMO in told:
            self._dynamo_graph(at, record, told)
        elif CODE in told or any(kind in told for kind in OF_AOT):
            return self._graph(at, record, told)
        else:
            for kind in METRICS:
                if kind in told:
                    return self._finished(at, thread, told, kind)
                if f"{kind}_runtime" in told:
                    self._facts.metrics(told[f"{kind}_runtime"])
            self.export += not EXPORT.isdisjoint(told)
        return []

    def _thread(self, who: int) -> str:
        """The name of the thread: not told, apart from logs that number threads."""
        if self._who is None:
            self._who = who
        return "" if who == self._who else f"thread {who}"

    def _of(self, compile_id: str) -> _Compilation:
        found = self.open.get(compile_id)
        if found is None:
            found = self.open[compile_id] = _Compilation()
            if len(self.open) > MOST_OPEN:
                self.open.popitem(last=False)
        return found

    # ------------------------------------------------------------------------------------------ what it tells of time

    def _started(self, at: int, thread: str, told: dict[str, Any]) -> list[ev.Event]:
        stack = []
        for frame in told["dynamo_start"].get("stack") or ():
            file = frame.get("filename")
            name = self._files.get(file, "?") if isinstance(file, int) else str(file)
            stack.append([name, frame.get("line"), frame.get("name")])
        users = list(takewhile(lambda frame: not frame[0].endswith(_BY_WHOM), stack))
        if self._ends_in_itself is None or len(users) < len(stack):
            looked_up = any(file.endswith(_BY_WHOM) for file in self._files.values())
            self._ends_in_itself = looked_up and len(users) == len(stack)
        if not self._ends_in_itself:  # the metrics at its end name it
            stack = [*users, ["", 0, "?"]]
        found = trace_records.record_events(at, thread, {**told, "dynamo_start": {"stack": stack}}, None)
        for event in found:
            if isinstance(event, ev.CompileStarted):
                known = self.open.get(event.compile_id)
                before = _Compilation() if known is None else _Compilation(began_us=known.began_us)
                before.began_ns = at
                self.open[event.compile_id] = before
                self._with_backward.discard(event.compile_id)
                self._graphs.began(event.compile_id)
        return found

    def _phase(self, at: int, thread: str, record: Record) -> list[ev.Event]:
        event = chromium(record.payload)
        if event is None:
            raise _NoPayload
        name, way = event.get("name"), event.get("ph")
        if name not in PHASES or way not in ("B", "E"):
            return []
        told = record.told
        compile_id = trace_records.id_of(told)
        if compile_id is None:
            return []
        time = event.get("ts")
        if name == "entire_frame_compile" and isinstance(time, (int, float)):
            compilation = self._of(compile_id) if way == "B" else self.open.get(compile_id)
            if compilation is not None and way == "B":
                compilation.began_us = time
            elif compilation is not None and compilation.began_us is not None and time >= compilation.began_us:
                compilation.took_s = (time - compilation.began_us) / 1e6
        return trace_records.record_events(at, thread, {**told, "phase": name, "begins": way == "B"}, None)

    # ------------------------------------------------------------------------------------------ what is made

    def _artifact(self, at: int, thread: str, record: Record, told: dict[str, Any]) -> list[ev.Event]:
        name, payload = str(told["artifact"].get("name")), record.payload
        if name == "torch_version":
            self._facts.version(payload)
        elif name in _ORDERS:
            self._order(payload)
        elif name == "dynamo_graph_break_reason":
            self.breaks += 1
            broken = self.open.get(trace_records.id_of(told) or "")
            if broken is not None:
                broken.broke = True
        elif name == "recompile_reasons":
            self.reasons += 1
        cache = _CACHE.fullmatch(name)
        if cache is not None:
            self._facts.cache(payload)
            if cache[2] == "hash":  # up to 2.6, with the result beside the key, if at all
                state = parsed(payload)
                result = state.get("cache_state") if isinstance(state, dict) else None
                self.lookups_untold += result not in ("hit", "miss", "bypass")
                told = {**told, "artifact": {"name": f"{cache[1]}_{result}"}}
            payload = None
        return trace_records.record_events(at, thread, told, payload)

    def _order(self, payload: str | None) -> None:
        told = parsed(payload)
        if not isinstance(told, dict):
            raise _NoPayload
        rows = told.get("graph_execution_order")
        for row in rows if isinstance(rows, list) else [told]:
            name = row.get("compile_id") or row.get("graph") if isinstance(row, dict) else row
            if name is None:
                continue
            self.executed_cut = self.executed_cut or len(self.executed) >= MOST_EXECUTED
            if not self.executed_cut:
                self.executed.append(str(name)[:64])

    def _dynamo_graph(self, at: int, record: Record, told: dict[str, Any]) -> None:
        compile_id = trace_records.id_of(told)
        if compile_id is None:
            return
        compilation = self._of(compile_id)
        compilation.has_graph = True
        if record.payload is not None and not record.cut:
            compilation.graph = at, record.payload, int(told.get("attempt") or 0)

    def _graph(self, at: int, record: Record, told: dict[str, Any]) -> list[ev.Event]:
        compile_id = trace_records.id_of(told)
        if compile_id is None:
            return []
        kind = CODE if CODE in told else next(kind for kind in OF_AOT if kind in told)
        compilation = self._of(compile_id)
        if kind != CODE:
            compilation.graph = None
            compilation.backward |= kind == "aot_backward_graph"
            compilation.has_graph = True
        found = self._text(at, compile_id, int(told.get("attempt") or 0), kind, None if record.cut else record.payload)
        if kind == CODE:
            compilation.codes.update(self._graphs.coded(compile_id))
            if compile_id in self._late and "backward" in compilation.codes:
                self._late[compile_id] = True
        return found

    def _text(self, at: int, compile_id: str, attempt: int, kind: str, text: str | None) -> list[ev.Event]:
        return self._graphs.read(
            {"t": at, "kind": kind, "compile_id": compile_id, "attempt": attempt, "text": text, "cut": text is None}
        )

    # ------------------------------------------------------------------------------------------ what is over

    def _finished(self, at: int, thread: str, told: dict[str, Any], kind: str) -> list[ev.Event]:
        metrics = told[kind]
        self._facts.metrics(metrics)
        own = metrics.get("compile_id")
        compile_id = trace_records.id_of(told) or own
        self.misnamed += own is not None and own != compile_id
        if not isinstance(compile_id, str):
            self.ahead += 1
            return []
        self.compilations += 1
        forward = kind == "compilation_metrics" and metrics.get("is_forward") is not False
        compilation = self._of(compile_id)
        del self.open[compile_id]
        # what the record says counts: metrics of a recompile can bear the id of another
        metrics = {**metrics, "compile_id": compile_id}
        if metrics.get("duration_us") is None and metrics.get("entire_frame_compile_time_s") is None:
            metrics["entire_frame_compile_time_s"] = _took(compilation, metrics, at)
        event = trace_records.finished(at, thread, metrics, "forward" if forward else "backward")
        if event.empty and compilation.broke:  # up to 2.6 that is no failure
            event = replace(event, empty=False, failed=SKIPPED)
        self.restarts += event.restarts
        if forward and event.entries_before and (entry := compile_id.rpartition("/")[2]).isdecimal():
            self.again += int(entry[:9]) > 0
        broke = trace_records.failed_break(at, metrics) if forward and len(self._failed) < MOST_OPEN else None
        if broke is not None:
            self._failed.append(replace(broke, before_attach=False))
        found: list[ev.Event] = []
        if forward and event.failed is None and not event.refused:
            if compilation.graph is not None:
                when, text, attempt = compilation.graph
                found += self._text(when, compile_id, attempt, OF_DYNAMO, text)
            if compilation.has_graph or event.ops:
                found.append(self._region(event, "forward"))
            if compilation.backward and ("backward" in compilation.codes or not compilation.codes):
                found.append(self._region(event, "backward"))
                self._with_backward.add(compile_id)
            elif compilation.backward and len(self._late) < MOST_OPEN:
                self._late[compile_id] = False
        elif not forward and event.failed is None and compile_id not in self._with_backward:
            self._late.pop(compile_id, None)
            found.append(self._region(event, "backward"))
        return [*found, event]

    def under_way(self) -> list[str]:
        """The ids of compilations that have begun and not ended."""
        return [name for name, one in self.open.items() if one.began_ns is not None]

    def never_said(self, at: int) -> list[ev.Event]:
        """At the end: what a torch that is older (2.4) wrote no record of. Backward graphs that were made after their forward
        ones; where no break is told, those at which a frame was given up, which the metrics name."""
        backwards = [self._graph_of(at, name, "backward") for name, made in self._late.items() if made]
        return [*backwards, *(() if self.breaks else self._failed)]

    def _region(self, event: ev.CompileFinished, direction: Literal["forward", "backward"]) -> ev.InstrumentAdded:
        """A compiled graph. That it was called, and how often, no log tells."""
        ops = event.ops if direction == "forward" else None
        return self._graph_of(event.t_ns, event.compile_id, direction, event.function, event.file, event.line, ops)

    def _graph_of(
        self,
        at: int,
        compile_id: str,
        direction: Literal["forward", "backward"],
        function: str | None = None,
        file: str | None = None,
        line: int | None = None,
        ops: int | None = None,
    ) -> ev.InstrumentAdded:
        self._number += 1
        return ev.InstrumentAdded(
            at, self._number, direction, compile_id, "", function or "?", file or "", line or 0, ops=ops, counted=COUNTED
        )


def _took(compilation: _Compilation, metrics: Mapping[str, Any], at: int) -> float | None:
    """How long it took, in s, where its metrics (torch 2.5 and 2.6) do not say."""
    if compilation.took_s is not None:
        return compilation.took_s
    dynamo = metrics.get("dynamo_cumulative_compile_time_us")
    if isinstance(dynamo, (int, float)):
        return dynamo / 1e6
    return None if compilation.began_ns is None else max(0, at - compilation.began_ns) / 1e9


class _NoPayload(Exception):
    """What stands behind a record cannot be read."""
