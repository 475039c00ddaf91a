"""Short ways to write down events for the tests of the fold. Times are in microseconds there."""

from __future__ import annotations

from typing import Any

from tuimon import events as ev
from tuimon.model import Model

US = 1000


def target(how: str = "run", limit: int | None = 8) -> ev.TargetSeen:
    return ev.TargetSeen(0, 1, "train.py", "3.11.7", "2.13.0", how, 1.7e9, ("cpu",), recompile_limit=limit)


def compiled(compile_id: str, begin: int, end: int, *, attempt: int = 0, thread: str = "main", **more: Any) -> list[ev.Event]:
    """A forward compilation of `f` at model.py:10 from its start to its end."""
    line, function, file = more.pop("line", 10), more.pop("function", "f"), more.pop("file", "/w/model.py")
    return [
        ev.CompileStarted(begin * US, compile_id, attempt, function, file, line, thread),
        ev.CompileFinished(
            end * US, compile_id, "forward", function, file, line, thread, begin * US, (end - begin) / 1e6, **more
        ),
    ]


def added(instrument: int, role: ev.Role, compile_id: str | None, **more: Any) -> ev.InstrumentAdded:
    fields: dict[str, Any] = {"name": "n", "function": "f", "file": "/w/model.py", "line": 10, **more}
    return ev.InstrumentAdded(0, instrument, role, compile_id, **fields)


def samples(*rows: tuple[int, int, int]) -> ev.Samples:
    """(instrument, begin us, end us) on thread 0."""
    return ev.Samples(rows[-1][2] * US, tuple((i, 0, 0, b * US, e * US) for i, b, e in rows))


def broke(compile_id: str | None, line: int, **more: Any) -> ev.GraphBroke:
    fields: dict[str, Any] = {
        "attempt": 0,
        "reason": "print",
        "kind": "print",
        "gb_id": None,
        "function": "f",
        "file": "/w/model.py",
        **more,
    }
    return ev.GraphBroke(0, compile_id, line=line, **fields)


def model_of(*events: ev.Event | list[ev.Event]) -> Model:
    """A model with thread 0 named "main" and these events folded in."""
    model = Model()
    model.apply([target(), ev.ThreadSeen(0, 0, "main")])
    for event in events:
        model.apply(event if isinstance(event, list) else [event])
    return model
