"""Streams of real jobs, and made-up ones, to be recorded and read back."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

from tuimon import events as ev
from tuimon.model import Model
from tuimon.sources import carried
from tuimon.sources.recording import Recording, Writer

MODEL = Path(__file__).parent.parent / "model"
STREAMS = sorted([*(MODEL / "streams").glob("*.json"), *(MODEL / "steps").glob("*.json")])

Batches = list[list[ev.Event]]


@lru_cache
def stream(path: Path) -> tuple[ev.Event, ...]:
    """The events in one of these files."""
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return tuple(event for line in lines if line.get("k") == "event" for event in carried.decode(line))


def batches(events: tuple[ev.Event, ...], seed: int = 8) -> Batches:
    """The stream as a live feed might have drained it: some events at once, some batches of samples in pieces."""
    rng = random.Random(seed)
    found: Batches = [[]]
    for event in events:
        pieces: list[ev.Event] = [event]
        if isinstance(event, ev.Samples) and len(event.rows) > 3:
            at = rng.randrange(1, len(event.rows))
            pieces = [ev.Samples(event.t_ns, event.rows[:at]), ev.Samples(event.t_ns, event.rows[at:])]
        for piece in pieces:
            if found[-1] and rng.random() < 0.4:
                found.append([])
            found[-1].append(piece)
    return found


def record(
    path: Path, told: Batches, *, each: int = 3, source: bool = True, most: int = 512 << 20, close: bool = True
) -> Writer:
    """Record batches that come 100 ms apart, with a block every `each` of them."""
    writer = Writer(path, source=source, most=most)
    for number, batch in enumerate(told):
        writer.put(number * 100_000_000, batch)
        if number % each == each - 1:
            writer.flush(number)
    if close:
        writer.close()
    else:
        writer.flush(len(told))
    return writer


def replayed(path: Path) -> Batches:
    """All batches of a recording."""
    return [batch.events for batch in Recording(path).read()]


def fold(told: Batches) -> Model:
    """A model that was given these batches."""
    model = Model()
    for batch in told:
        model.apply(batch)
    return model


def training(steps: int, seed: int = 1, per_batch: int = 20, step_ns: int = 10_000_000) -> Iterator[list[ev.Event]]:
    """A made-up job of a step with nine timed calls, a batch for every so many steps."""
    rng = random.Random(seed)
    began, thread = 10**14, 140_234_567_890_112
    yield [
        ev.TargetSeen(began, 1, "train.py", "3.11.7", "2.13.0", "run", 1.7e9, ("cpu",)),
        ev.ThreadSeen(began, thread, "MainThread", 77),
        *(
            ev.InstrumentAdded(
                began, number, role, "0/0" if role in COMPILED else None, f"n{number}", "f", "/w/model.py", number
            )
            for number, (role, _, _) in enumerate(PLAN, 1)
        ),
    ]
    at, rows = began, []
    for step in range(1, steps + 1):
        for number, (_, begin, end) in enumerate(PLAN, 1):
            low = at + int(begin * step_ns // 100 * rng.gauss(1, 0.02))
            rows.append((number, thread, 0, low, low + int((end - begin) * step_ns // 100 * rng.gauss(1, 0.02)) + 1))
        at += int(step_ns * rng.gauss(1, 0.05))
        if step % per_batch == 0 or step == steps:
            yield [ev.Samples(rows[-1][4], tuple(rows))]
            rows = []


COMPILED = ("forward", "backward", "resume")
PLAN: list[tuple[ev.Role, int, int]] = [
    ("data", 0, 20),
    ("forward", 30, 40),
    ("resume", 42, 42),
    ("forward", 43, 50),
    ("backward", 52, 60),
    ("engine", 50, 70),
    ("gc", 72, 75),
    ("loop", 78, 78),
    ("optimizer", 80, 95),
]
"""(role, begin, end) of each call of a step, in hundredths of it."""
