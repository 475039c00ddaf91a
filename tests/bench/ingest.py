"""How many rows a second tuimon takes in: decoded, folded by the kind of job, and end to end. Prints a table; asserts nothing.

    python -m tests.bench.ingest [--rounds N]

By CPU time of this process. End to end: frames as the hook sends them, through the decoder, the inbox and the model.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

from tests.bench import command, noise, streams, table
from tests.bench.fold_cost import rows_of, training
from tuimon import events as ev
from tuimon.hook import wire
from tuimon.model import Model
from tuimon.sources.inbox import Inbox
from tuimon.sources.live import LiveDecoder

CHUNK = 65536
RATE = 200_000.0
STEPS_US, NO_STEPS_US = 4.2, 6.0


def kinds(small: bool) -> list[tuple[str, list[ev.Event], float]]:
    """(name, events, microseconds that a row may take)."""
    part = 10 if small else 1
    return [
        ("optimizer, 7 rows a step", training(), STEPS_US),
        ("marked, 8 rows a step", streams.ended(7, 3000 // part, "mark"), STEPS_US),
        ("inferred, 4 calls in order", streams.inferred(4, 5000 // part), STEPS_US),
        ("inferred, 20 calls in order", streams.inferred(20, 1000 // part), STEPS_US),
        ("20 calls in no order", streams.inferred(20, 1000 // part, 1), NO_STEPS_US),
        ("200 calls in no order", streams.inferred(200, 200 // part, 1), NO_STEPS_US),
        ("optimizer, 1 region", streams.ended(1, 10_000 // part, "optimizer"), STEPS_US),
        ("optimizer, 200 regions", streams.ended(200, 100 // part, "optimizer"), STEPS_US),
        ("optimizer, 10,000 regions", streams.ended(200, 200 // part, "optimizer", 10_000), STEPS_US),
    ]


def fold(events: list[ev.Event]) -> tuple[float, int]:
    """(CPU seconds that the rows take, steps found)."""
    model = Model()
    model.apply([event for event in events if not isinstance(event, ev.Samples)])
    rows = [event for event in events if isinstance(event, ev.Samples)]
    began = time.process_time()
    model.apply(rows)
    return time.process_time() - began, model.steps.n


def frames(events: list[ev.Event]) -> bytes:
    """The rows as the hook sends them."""
    return b"".join(wire.samples_frame(event.rows) for event in events if isinstance(event, ev.Samples))


def decode(data: bytes) -> float:
    """CPU seconds from bytes to events."""
    decoder, live = wire.Decoder(), LiveDecoder(1, "x", "run")
    began = time.process_time()
    for at in range(0, len(data), CHUNK):
        for kind, body in decoder.feed(data[at : at + CHUNK]):
            live.frame(kind, body)
    return time.process_time() - began


def end_to_end(events: list[ev.Event], data: bytes) -> float:
    """CPU seconds from bytes to a model that has them; the inbox is drained a chunk at a time. Raises ValueError at a loss."""
    decoder, live, inbox, model = wire.Decoder(), LiveDecoder(1, "x", "run"), Inbox(), Model()
    model.apply([event for event in events if not isinstance(event, ev.Samples)])
    began = time.process_time()
    for at in range(0, len(data), CHUNK):
        for kind, body in decoder.feed(data[at : at + CHUNK]):
            inbox.put_many(live.frame(kind, body))
        model.apply(inbox.drain())
    took = time.process_time() - began
    if inbox.dropped:
        raise ValueError("rows were dropped")
    return took


def measure(rounds: int) -> table.Section:
    """All of it; less than five rounds with a tenth of the rows."""
    every = kinds(rounds < noise.ROUNDS)
    events = every[0][1]
    data, n = frames(events), rows_of(events)
    gate = noise.Gate()
    names = ["decode", "end to end"]
    took: dict[str, list[float]] = {name: [] for name in [*names, *(name for name, _, _ in every)]}
    steps: dict[str, int] = {}
    same = []
    jobs: list[tuple[str, Callable[[], float], int]] = [
        ("decode", lambda: decode(data), n),
        ("end to end", lambda: end_to_end(events, data), n),
    ]
    for _ in range(rounds):
        first = fold(events)[0]
        for name, job, count in jobs:
            took[name].append(job() / count * 1e6)
        for name, stream, _ in every:
            seconds, steps[name] = fold(stream)
            took[name].append(seconds / rows_of(stream) * 1e6)
        same.append(took[every[0][0]][-1] * n / 1e6 / first)
    rows = [
        table.row("decode", took["decode"], "us a row"),
        table.row("end to end", [1e6 / one for one in took["end to end"]], "rows/s", least=RATE),
    ]
    for name, _, most in every:
        rows.append(table.row(f"fold: {name}", took[name], "us a row", most=most, note=f"{steps[name]:,} steps"))
    return table.Section("Ingest", rows, gate.verdict(same, within=0.03))


if __name__ == "__main__":
    sys.exit(command.main("ingest", __doc__, measure))
