"""What folding a job's rows into the model costs tuimon, in us of CPU time for each row. Asserts nothing.

    python -m tests.bench.fold_cost [--rounds N] [--profile]

The streams are the recorded jobs of tests/model/steps and a made-up training job (loader, region, backward, engine, collection,
optimizer: seven rows a step). Each is folded into a fresh model, in turns, N times; printed are the median and the least.
"""

from __future__ import annotations

import argparse
import cProfile
import pstats
import statistics
import sys
import time
from collections.abc import Iterator

from tests.model.test_inferring import RECORDED, read
from tuimon import events as ev
from tuimon.model import Model

STEPS = 3000
BATCH = 64


def training() -> list[ev.Event]:
    """A job with an optimizer, a loader and a collection a step."""
    plan = [
        ("data", 0, 20), ("forward", 30, 40), ("backward", 52, 60), ("engine", 50, 70), ("gc", 72, 75), ("loop", 78, 78),
        ("optimizer", 80, 95),
    ]  # fmt: skip
    events: list[ev.Event] = [
        ev.TargetSeen(0, 1, "train.py", "3.11.7", "2.13.0", "run", 1.7e9, ("cpu",)),
        ev.ThreadSeen(0, 1, "main", 77),
    ]
    for number, (role, _, _) in enumerate(plan):
        compile_id = "0/0" if role in ("forward", "backward") else None
        events.append(ev.InstrumentAdded(0, number, role, compile_id, "n", "f", "/w/model.py", 10))  # type: ignore[arg-type]
    rows = [
        (number, 1, 0, (step * 100 + begin) * 1000, (step * 100 + end) * 1000)
        for step in range(STEPS)
        for number, (_, begin, end) in enumerate(plan)
    ]
    events += [ev.Samples(rows[at][4], tuple(rows[at : at + BATCH])) for at in range(0, len(rows), BATCH)]
    return events


def rows_of(events: list[ev.Event]) -> int:
    """How many rows the events hold."""
    return sum(len(event.rows) for event in events if isinstance(event, ev.Samples))


def streams() -> Iterator[tuple[str, list[ev.Event]]]:
    """Name and events of each."""
    for path in RECORDED:
        yield path.stem[:36], read(path)[1]
    yield "a training job", training()


def _fold(events: list[ev.Event]) -> float:
    """CPU seconds."""
    model = Model()
    began = time.process_time()
    model.apply(events)
    return time.process_time() - began


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.fold_cost", description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--profile", action="store_true", help="where the time of the made-up job goes instead")
    options = parser.parse_args()
    if options.profile:
        profile = cProfile.Profile()
        events = training()
        profile.enable()
        _fold(events)
        profile.disable()
        pstats.Stats(profile, stream=sys.stdout).sort_stats("tottime").print_stats(22)
        return
    every = list(streams())
    took: dict[str, list[float]] = {name: [] for name, _ in every}
    for _ in range(options.rounds):
        for name, events in every:
            took[name].append(_fold(events))
    for name, events in every:
        rows = rows_of(events)
        median, least = statistics.median(took[name]) / rows * 1e6, min(took[name]) / rows * 1e6
        sys.stdout.write(f"{name:38}{rows:8} rows {median:7.2f} us a row (least {least:.2f})\n")


if __name__ == "__main__":
    main()
