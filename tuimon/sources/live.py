"""The hook's frames as events: the decoder between the socket and the model."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, cast

from tuimon import events as ev
from tuimon.hook import wire
from tuimon.sources import break_texts, carried, trace_records, windows
from tuimon.sources.graph_messages import MOST_WEIGHT as MOST_ROWS_WEIGHT
from tuimon.sources.graph_messages import GraphMessages
from tuimon.sources.inbox import weight

MOST_COLD = 256
"""Threads on which a compilation was under way at the attach that are remembered."""

_Rows = tuple[tuple[int, int, int, int, int], ...]

MOST_WEIGHT = 2000
"""An event of more weight than this (some 500 kB) is none that a hook sends."""


class LiveDecoder:
    """Turns frames into events, one after the other. It keeps what the frames tell once: the command, the pid, the way in."""

    def __init__(self, pid: int | None, command: str, how: str, *, folder: windows.Folder | None = None) -> None:
        """`pid` and `command` as tuimon knows the target; `how` is the way it was attached to.

        `folder`: where the files of its profiler windows lie, if that is on this host.
        """
        self._pid = pid
        self._graphs = GraphMessages()
        self._command = command
        self._how = how
        self._cold: dict[str, tuple[str, str]] = {}
        """Thread -> (compile id, phase) of a compilation that tuimon came into the middle of, as its stack shows it."""
        self._looks: dict[int, tuple[tuple[int, int, int, int], ...]] = {}
        """Thread -> the frames that the latest look at it showed."""
        self._readers: dict[str, Callable[[Mapping[str, Any]], list[ev.Event]]] = {
            "facts": self._facts,
            "added": self._added,
            "thread": lambda m: [ev.ThreadSeen(m["t"], m["thread"], m["name"], m.get("native"))],
            "site": self._site,
            "look": self._look,
            "loops": self._loops,
            "trace": self._trace,
            "status": self._status,
            "frame": self._frame,
            "past_compile": self._past_compile,
            "past_break": self._past_break,
            "code": self._code,
            "compiling": self._compiling,
            "gap": lambda m: [ev.NotAvailable(m["t"], m["what"], m["why"])],
            "device": lambda m: [ev.DeviceSamples(m["t"], m["rows"])],
            "sync": lambda m: [ev.SyncLooked(m["t"], *row) for row in m["rows"]],
            "pool": _pool,
            "event": carried.decode,
            "graph": self._graphs.read,
            "window": lambda m: windows.events(m, folder),
            "counted": lambda m: [ev.HistoryCounted(m["t"], m.get("compiles"), m.get("breaks"), m.get("graphs"))],
        }

    def frame(self, kind: int, body: bytes) -> list[ev.Event]:
        """The events in one frame. Raises `wire.WireError` where the frame is not what the hook sends.

        Whatever the frame holds: nothing else is raised, and the values of the events have the types that their fields say.
        """
        if kind == wire.SAMPLES_FRAME:
            rows = cast(_Rows, tuple(wire.read_samples(body)))
            return [ev.Samples(rows[-1][4] if rows else 0, rows)]
        message = wire.read_json(body)
        reader = self._readers.get(str(message.get("k")))
        if reader is None:
            return []
        try:
            return [_fit(event) for event in reader(message)]
        except Exception as error:  # what can be wrong with a message is as endless as JSON is
            raise wire.WireError(f"message {message.get('k')!r}: {str(error)[:200]} ({type(error).__name__})") from error

    def _facts(self, message: Mapping[str, Any]) -> list[ev.Event]:
        return [
            ev.TargetSeen(
                t_ns=message["t"],
                pid=self._pid if self._pid is not None else message.get("pid"),
                command=self._command,
                python=message.get("python"),
                torch=message.get("torch"),
                how=self._how,
                wall_s=message["wall"],
                devices=tuple(message.get("devices") or ()),
                rank=message.get("rank"),
                world_size=message.get("world_size"),
                recompile_limit=message.get("recompile_limit"),
                options=tuple((str(name), str(value)) for name, value in message.get("options") or ()),
            )
        ]

    @staticmethod
    def _code(message: Mapping[str, Any]) -> list[ev.Event]:
        return [ev.CodeSeen(message["t"], **{field: message[field] for field in _CODE})]

    def _trace(self, message: Mapping[str, Any]) -> list[ev.Event]:
        thread = message["thread"]
        found = trace_records.record_events(message["t"], thread, message["record"], message.get("payload"), message)
        for event in found:
            if isinstance(event, ev.CompileStarted) and event.direction == "forward":
                self._graphs.began(event.compile_id)
        if thread in self._cold and any(
            isinstance(event, (ev.PhaseBegan, ev.PhaseEnded, ev.CompileFinished)) for event in found
        ):
            # from now on the records tell the phase
            compile_id, phase = self._cold.pop(thread)
            found.insert(0, ev.PhaseEnded(message["t"], compile_id, phase, thread))
        return found

    def _compiling(self, message: Mapping[str, Any]) -> list[ev.Event]:
        """A compilation that was under way at the attach, or the phase that its stack shows now."""
        at, thread, compile_id, phase = message["t"], message["thread"], _id(message.get("compile_id")), message["phase"]
        known = self._cold.get(thread)
        found: list[ev.Event] = []
        if known is not None and known[0] == compile_id:
            found.append(ev.PhaseEnded(at, compile_id, known[1], thread))
        else:
            since = message.get("since_wall")
            began = at if since is None else at - max(0, int((message["wall"] - since) * 1e9))
            found.append(
                ev.CompileStarted(
                    began,
                    compile_id,
                    0,
                    message.get("function") or "?",
                    message.get("file") or "",
                    message.get("line") or 0,
                    thread,
                    message["direction"],
                    stack=_stack(message.get("stack") or ()),
                    code=message.get("code"),
                    owner=message.get("owner") or "",
                    before_attach=True,
                    since_known=since is not None,
                )
            )
        found.append(ev.PhaseBegan(at, compile_id, phase, thread))
        if thread in self._cold or len(self._cold) < MOST_COLD:
            self._cold[thread] = (compile_id, phase)
        return found

    @staticmethod
    def _added(message: Mapping[str, Any]) -> list[ev.Event]:
        told = {field: message[field] for field in _ADDED}
        told.update((field, message[field]) for field in _ADDED_SELDOM if message.get(field) is not None)
        return [ev.InstrumentAdded(message["t"], **told)]

    @staticmethod
    def _site(message: Mapping[str, Any]) -> list[ev.Event]:
        stack = _stack(message.get("stack") or ())
        told = {field: message[field] for field in ("instrument", "code", "line", "lasti", "thread")}
        path = tuple((code, offset) for code, offset in message.get("path") or ())
        return [ev.SiteSeen(message["t"], stack=stack, path=path, **told)]

    def _look(self, message: Mapping[str, Any]) -> list[ev.Event]:
        """A look at a thread; one that shows what the one before it showed says only so."""
        thread = message["thread"]
        if message.get("same"):
            rows = self._looks.get(thread, ())
        else:
            rows = tuple((code, line, offset, int(generator)) for code, line, offset, generator in message["rows"])
            if thread in self._looks or len(self._looks) < MOST_COLD:
                self._looks[thread] = rows
        return [ev.StackSeen(message["t"], thread, message["since"], rows)]

    @staticmethod
    def _loops(message: Mapping[str, Any]) -> list[ev.Event]:
        heads = tuple((instrument, code, head, jump) for instrument, code, head, jump in message["heads"])
        site = tuple((code, offset) for code, offset in message["site"])
        return [ev.LoopsSeen(message["t"], message["thread"], message["anchor"], heads, site)]

    @staticmethod
    def _status(message: Mapping[str, Any]) -> list[ev.Event]:
        instruments = tuple(sorted((str(k), str(v)) for k, v in message["instruments"].items()))
        found: list[ev.Event] = [
            ev.HookStatus(message["t"], message["samples"], message["dropped"], message["hook_s"], instruments)
        ]
        found += [ev.NotAvailable(message["t"], name, state) for name, state in instruments if not state.startswith("on")]
        return found

    @staticmethod
    def _frame(message: Mapping[str, Any]) -> list[ev.Event]:
        return [
            ev.FrameSeen(
                message["t"],
                message["function"],
                message["file"],
                message["line"],
                tuple(message["entries"]),
                code=message.get("code"),
                breaks=tuple((entry, line) for entry, line in message.get("breaks") or ()),
                owners=tuple(str(owner) for owner in message.get("owners") or ()),
            )
        ]

    @staticmethod
    def _past_compile(message: Mapping[str, Any]) -> list[ev.Event]:
        metrics = message["metrics"]
        forward = metrics.get("is_forward") is not False
        began = message["t"]
        if metrics.get("start_time") is not None:
            began = message["t"] - int((message["wall"] - float(metrics["start_time"])) * 1e9)
        took = int(float(metrics.get("duration_us") or 0) * 1e3)
        compile_id = str(metrics.get("compile_id"))
        found: list[ev.Event] = []
        if metrics.get("recompile_reason"):
            failed = trace_records.failed_guards(str(metrics["recompile_reason"]), compile_id)
            found.append(ev.GuardsFailed(began, compile_id, failed, True))
        finished = trace_records.finished(
            began + took, "", metrics, "forward" if forward else "backward", began_ns=began, before_attach=True
        )
        broke = trace_records.failed_break(began + took, metrics) if forward else None
        return [*found, finished] if broke is None else [*found, broke, finished]

    @staticmethod
    def _past_break(message: Mapping[str, Any]) -> list[ev.Event]:
        stack = _stack(message["stack"])
        return [break_texts.graph_broke(message["t"], None, 0, message["reason"], stack, before_attach=True)]


_TELLS_THE_PHASE = (ev.PhaseBegan, ev.PhaseEnded, ev.CompileFinished)
_CODE = ("code", "function", "qualname", "file", "line")
_ADDED = ("instrument", "role", "compile_id", "name", "function", "file", "line", "backend", "before_attach")
_ADDED_SELDOM = ("code", "offset", "why", "counted", "ops", "group", "variant_of", "sizes")


def _pool(message: Mapping[str, Any]) -> list[ev.Event]:
    return [
        ev.PoolSampled(
            t_ns=message["t"],
            device=message["device"],
            uuid=message.get("uuid"),
            pci_bus_id=message.get("pci"),
            allocated_bytes=message["allocated"],
            reserved_bytes=message["reserved"],
            active_bytes=message.get("active"),
            inactive_split_bytes=message.get("inactive_split"),
            allocated_peak_bytes=message.get("peak"),
            retries=message.get("retries"),
            ooms=message.get("ooms"),
            backend=message.get("backend") or "",
        )
    ]


def _id(compile_id: Any) -> str:
    """A compile id, or what stands for one that is not known."""
    return "?" if compile_id is None else str(compile_id)


def _stack(rows: Any) -> tuple[tuple[str, int, str], ...]:
    return tuple((str(file), int(line or 0), str(name)) for file, line, name in rows)


def _fit(event: ev.Event) -> ev.Event:
    """The event, checked. Raises ValueError for one that cannot be."""
    found = carried.checked(event)
    most = MOST_ROWS_WEIGHT if isinstance(found, (ev.GraphSeen, ev.KernelsSeen)) else MOST_WEIGHT
    if not isinstance(found, ev.Samples) and weight(found) > most:
        raise ValueError(f"a {type(event).__name__} larger than any is")
    return found
