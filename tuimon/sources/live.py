"""The hook's frames as events: the decoder between the socket and the model."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tuimon import events as ev
from tuimon.hook import wire
from tuimon.sources import carried, trace_records
from tuimon.sources.inbox import weight

LONGEST_PAYLOAD = 256 * 1024
"""Characters of a trace record's payload that are looked at: torch's texts about one graph break take a tenth of it."""

MOST_WEIGHT = 2000
"""An event of more weight than this (some 500 kB) is none that a hook sends."""


class LiveDecoder:
    """Turns frames into events, one after the other. It keeps what the frames tell once: the command, the pid, the way in."""

    def __init__(self, pid: int | None, command: str, how: str) -> None:
        """`pid` and `command` as tuimon knows the target; `how` is the way it was attached to."""
        self._pid = pid
        self._command = command
        self._how = how
        self._readers: dict[str, Callable[[Mapping[str, Any]], list[ev.Event]]] = {
            "facts": self._facts,
            "added": self._added,
            "thread": lambda m: [ev.ThreadSeen(m["t"], m["thread"], m["name"])],
            "trace": self._trace,
            "status": self._status,
            "frame": self._frame,
            "past_compile": self._past_compile,
            "past_break": self._past_break,
            "event": carried.decode,
            "counted": lambda m: [ev.HistoryCounted(m["t"], m.get("compiles"), m.get("breaks"), m.get("graphs"))],
        }

    def frame(self, kind: int, body: bytes) -> list[ev.Event]:
        """The events in one frame. Raises `wire.WireError` where the frame is not what the hook sends.

        Whatever the frame holds: nothing else is raised, and the values of the events have the types that their fields say.
        """
        if kind == wire.SAMPLES_FRAME:
            rows = tuple((a, b, c, d, e) for a, b, c, d, e in wire.read_samples(body))
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
            )
        ]

    @staticmethod
    def _trace(message: Mapping[str, Any]) -> list[ev.Event]:
        payload = message.get("payload")
        if payload is not None:
            payload = payload[:LONGEST_PAYLOAD]
        return trace_records.record_events(message["t"], message["thread"], message["record"], payload)

    @staticmethod
    def _added(message: Mapping[str, Any]) -> list[ev.Event]:
        fields = ("instrument", "role", "compile_id", "name", "function", "file", "line", "backend", "before_attach")
        return [ev.InstrumentAdded(message["t"], **{field: message[field] for field in fields})]

    @staticmethod
    def _status(message: Mapping[str, Any]) -> list[ev.Event]:
        instruments = tuple(sorted((str(k), str(v)) for k, v in message["instruments"].items()))
        found: list[ev.Event] = [
            ev.HookStatus(message["t"], message["samples"], message["dropped"], message["hook_s"], instruments)
        ]
        found += [ev.NotAvailable(message["t"], name, state) for name, state in instruments if state != "on"]
        return found

    @staticmethod
    def _frame(message: Mapping[str, Any]) -> list[ev.Event]:
        entries = tuple(message["entries"])
        return [ev.FrameSeen(message["t"], message["function"], message["file"], message["line"], entries)]

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
        found.append(
            trace_records.finished(
                began + took, "", metrics, "forward" if forward else "backward", began_ns=began, before_attach=True
            )
        )
        return found

    @staticmethod
    def _past_break(message: Mapping[str, Any]) -> list[ev.Event]:
        stack = tuple((str(file), int(line or 0), str(name)) for file, line, name in message["stack"])
        return [trace_records.graph_broke(message["t"], None, 0, message["reason"], stack, before_attach=True)]


def _fit(event: ev.Event) -> ev.Event:
    """The event, checked. Raises ValueError for one that cannot be."""
    found = carried.checked(event)
    if not isinstance(found, ev.Samples) and weight(found) > MOST_WEIGHT:
        raise ValueError(f"a {type(event).__name__} larger than any is")
    return found
