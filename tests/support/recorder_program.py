"""A process that records: until it is killed, or until there is no room. `python -m tests.support.recorder_program FILE ..`"""

from __future__ import annotations

import json
import resource
import sys
import time
from itertools import chain, count
from pathlib import Path

from tests.model.dump import dump
from tests.sources.recorded_streams import fold, replayed, training
from tuimon import events as ev
from tuimon.model import Model
from tuimon.recorder import Recorder
from tuimon.sources.recording import Recording


def say(line: str) -> None:
    """To whoever started it."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def endless(file: Path) -> None:
    """Record a batch of numbered lines and samples each few ms; say on stdout which one was put."""
    recorder = Recorder(file, tell=lambda _: None)
    model = Model()
    model.tap = recorder.put
    began = time.monotonic()
    for number in count():
        model.apply([ev.Line(number, f"batch {number}"), ev.Samples(number, ((1, 2, 0, number, number + 1),) * 7)])
        say(f"{number} {time.monotonic() - began:.3f}")
        time.sleep(0.003)


def no_room(file: Path, limit: int) -> None:
    """Record until the disk will not take more; then see what was told, what the model has and what can be replayed."""
    if limit:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
    told: list[ev.Event] = []
    recorder = Recorder(file, tell=told.append)
    model = Model()
    model.tap = recorder.put
    given: list[list[ev.Event]] = []
    for batch in chain.from_iterable(training(5000, seed=seed) for seed in count()):
        model.apply(batch)
        given.append(batch)
        if recorder.state != "on":
            break
        time.sleep(0.001)
    before = model.steps.n
    model.apply(list(training(500))[-1])  # it goes on
    size = file.stat().st_size
    found = replayed(file)
    say(
        json.dumps(
            {
                "state": recorder.state,
                "why": recorder.why,
                "told": [type(event).__name__ for event in told],
                "last": getattr(told[-1], "what", ""),
                "closing": recorder.close(),
                "size": size,
                "bytes": recorder.bytes,
                "batches": len(found),
                "same": found == given[: len(found)] and dump(fold(found)) == dump(fold(given[: len(found)])),
                "note": Recording(file).note,
                "went_on": model.steps.n >= before,
            }
        )
    )


if __name__ == "__main__":
    if len(sys.argv) == 2:
        endless(Path(sys.argv[1]))
    else:
        no_room(Path(sys.argv[1]), int(sys.argv[2]))
