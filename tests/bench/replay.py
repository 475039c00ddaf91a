"""How fast a recording is read and folded, and how long it takes to go to a place in it. Asserts nothing.

    python -m tests.bench.replay [--rows 1000000] [--step-ms 10] [--jumps 20] [--seed 8]

A recording of a made-up job with nine timed calls a step (tests.sources.recorded_streams.training) is written, then
read into a fresh model, and played: loaded by a `Playback`, which is sent to places all over it. Times are of the processor and
of the clock: they differ where the machine does other things as well. An event is a sample (a row), or any other event; a step
costs what some five rows cost, and a call of 1 ms or more is kept apart as well.
"""

from __future__ import annotations

import argparse
import random
import statistics
import sys
import tempfile
import time
from pathlib import Path

from tests.sources.recorded_streams import PLAN, record, training
from tuimon.model import Model
from tuimon.playback import Playback
from tuimon.playback.fold import weight
from tuimon.sources.files import no_progress, open_any


def say(text: str) -> None:
    """A line."""
    sys.stdout.write(text + "\n")


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.replay", description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--step-ms", type=float, default=10.0)
    parser.add_argument("--jumps", type=int, default=20)
    parser.add_argument("--seed", type=int, default=8)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "job.tuimon"
        steps = options.rows // len(PLAN)
        record(path, list(training(steps, per_batch=25, step_ns=int(options.step_ms * 1e6))), each=2)
        size = path.stat().st_size / options.rows
        say(f"{options.rows:,} rows, {steps:,} steps of {options.step_ms:g} ms, {size:.2f} bytes a row")
        _read_and_fold(path)
        _play(path, options.jumps, random.Random(options.seed))


def _read_and_fold(path: Path) -> None:
    opened = open_any(path)[0][0]
    assert opened.again is not None
    began = time.process_time()
    n = sum(weight(piece.events) for piece in opened.again(0, no_progress))
    read = time.process_time() - began
    model = Model()
    began, wall = time.process_time(), time.perf_counter()
    for piece in opened.again(0, no_progress):
        model.apply(piece.events)
    both, wall = time.process_time() - began, time.perf_counter() - wall
    say(f"read:          {n / read:12,.0f} events a second of the processor ({read / n * 1e6:.2f} us each)")
    say(f"read and fold: {n / both:12,.0f} events a second of the processor ({both / n * 1e6:.2f} us each)")
    say(f"               {n / wall:12,.0f} events a second of the clock (the processor was ours for {both / wall:.0%} of it)")


def _play(path: Path, jumps: int, rng: random.Random) -> None:
    feed = Playback(open_any(path)[0][0], paused=True)
    began, cpu = time.perf_counter(), time.process_time()
    feed.start()
    feed.wait()
    took, cpu = time.perf_counter() - began, time.process_time() - cpu
    states = feed._loading.states
    kept = sum(len(one.state) for one in states)
    say(f"loaded:        {took:12.2f} s of the clock, {cpu:.2f} s of the processor; {len(states)} states, {kept / 1e6:.1f} MB")
    last = max(feed._loading.counts) - 1
    times: list[float] = []
    cpu = time.process_time()
    for _ in range(jumps):
        step = rng.randrange(last)
        began = time.perf_counter()
        feed.go(str(step))
        while feed.position().going:
            time.sleep(0.001)
        feed.drain()
        times.append(time.perf_counter() - began)
        assert feed.position().step == step
    cpu = (time.process_time() - cpu) / jumps
    say(f"go to a step:  {cpu:12.2f} s of the processor on average")
    say(f"               {statistics.median(times):12.2f} s of the clock (median; longest {max(times):.2f} s, {jumps} places)")
    feed.detach()


if __name__ == "__main__":
    main()
