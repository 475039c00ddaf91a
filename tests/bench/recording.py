"""What a recording takes: megabytes an hour, time a sample, time to open and to read. Asserts nothing.

    python -m tests.bench.recording [--minutes 60] [--step-ms 10] [--gpus 8] [--kills 0]

The hour is made up: a step of so many ms with nine timed calls whose times scatter as those of a real job do, the readings of
the GPUs, the host, four threads and the processes at the rates at which tuimon takes them, and a block each half second. Sizes
do not depend on the machine; times are CPU time of this process. `--kills N`: a recorder is killed so often (SIGKILL) while it
is given a batch each 3 ms; printed is how much of what it had been given is not in its file.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from tests.sources.recorded_streams import replayed, training
from tests.support.gpu_scenes import gpu, host, processes
from tuimon import events as ev
from tuimon.sources.recording import Recording, Writer

S = 1_000_000_000
FLUSHES = 2
"""Blocks a second."""


def machine(second: int, gpus: int, rng: random.Random) -> list[ev.Event]:
    """The readings of one second, with values that move as they do."""
    t = 10**14 + second * S
    found: list[ev.Event] = []
    for index in range(gpus):
        found.append(
            replace(
                gpu(t + index * 3_137, index, second),
                power_w=round(rng.uniform(550, 700), 3),
                utilization=float(rng.randrange(85, 100)),
                sm_activity=rng.uniform(30, 60),
                tensor_activity=rng.uniform(10, 30),
                dram_activity=rng.uniform(40, 60),
                energy_j=round(1e6 + 611.0 * second + rng.random(), 3),
                took_s=rng.uniform(0.002, 0.004),
            )
        )
    found.append(
        replace(
            host(t, second),
            cpu_percent=round(rng.uniform(290, 330), 1),
            rss_bytes=rng.randrange(9 << 30, 10 << 30),
            minor_faults=10**6 + second * 531,
            user_s=round(second * 2.9 + rng.random(), 2),
            system_s=round(second * 0.2 + rng.random(), 2),
        )
    )
    if second % 2 == 0:
        found.append(processes(t))
    for tenth in range(10):
        for thread in range(4):
            ran, waited = round(second + tenth / 10 + rng.uniform(0, 0.01), 9), round(rng.uniform(0, 0.001) + second * 0.004, 9)
            found.append(
                ev.ThreadSampled(
                    t + tenth * S // 10 + thread * 41_233, 4242 + thread, waited, ran, 12,
                    10**5 + second * 17 + tenth, None, f"pt_thread_{thread}", rng.randrange(64),
                )
            )  # fmt: skip
    found.append(ev.HookStatus(t, second * 900, 0, second * 0.002))
    return found


def job(minutes: float, step_ms: float, gpus: int) -> Iterator[tuple[int, list[ev.Event]]]:
    """(ns since the begin, what a model is given then), twice a second."""
    per_block = max(1, round(1000 / step_ms / FLUSHES))
    rng = random.Random(5)
    blocks = round(minutes * 60 * FLUSHES)
    for number, batch in enumerate(training(blocks * per_block, per_batch=per_block, step_ns=round(step_ms * 1e6))):
        if number % FLUSHES == 0:
            batch = [*batch, *machine(number // FLUSHES, gpus, rng)]
        yield number * S // FLUSHES, batch


def megabytes_an_hour(minutes: float, step_ms: float, gpus: int, path: Path) -> tuple[float, int, float]:
    """(MB an hour, samples, CPU seconds in the writer)."""
    writer = Writer(path, most=1 << 40)
    spent = 0.0
    for at, batch in job(minutes, step_ms, gpus):
        began = time.process_time()
        writer.put(at, batch)
        writer.flush(0)
        spent += time.process_time() - began
    writer.close()
    return path.stat().st_size / 1e6 * 60 / minutes, writer.rows, spent


def killed(path: Path, rng: random.Random) -> float:
    """Seconds of what a recorder had been given that are not in its file when it was killed."""
    child = subprocess.Popen([sys.executable, "-m", "tests.support.recorder_program", path], stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    lines = [child.stdout.readline() for _ in range(rng.randrange(400, 1500))]
    os.kill(child.pid, signal.SIGKILL)
    lines += child.stdout.read().splitlines()
    child.wait()
    child.stdout.close()
    put = [float(line.split()[1]) for line in lines if len(line.split()) == 2]
    kept = len(replayed(path))
    return put[-1] - put[min(kept, len(put)) - 1] if kept else put[-1]


def main() -> None:
    """Print it all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--step-ms", type=float, default=10.0)
    parser.add_argument("--gpus", type=int, default=8)
    parser.add_argument("--kills", type=int, default=0)
    options = parser.parse_args()
    say = sys.stdout.write
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run.tuimon"
        size, rows, spent = megabytes_an_hour(options.minutes, options.step_ms, options.gpus, path)
        rate = rows / options.minutes / 60
        say(f"{rate:,.0f} samples a second, {options.gpus} GPUs, host, threads, processes: {size:.1f} MB an hour\n")
        say(f"writing: {spent / options.minutes / 60 * 100:.2f} % of a core, in the recorder's thread\n")
        began = time.process_time()
        recording = Recording(path)
        opened = time.process_time() - began
        say(f"opening: {opened * 1e3:.1f} ms for {len(recording.blocks):,} blocks\n")
        began = time.process_time()
        n = sum(len(event.rows) if isinstance(event, ev.Samples) else 1 for one in recording.read() for event in one.events)
        took = time.process_time() - began
        say(f"reading: {n / took:,.0f} samples and events a second, all of it in {took:.1f} s\n")
        rng = random.Random(9)
        for number in range(options.kills):
            say(f"killed: {killed(Path(folder) / f'{number}.tuimon', rng) * 1e3:.0f} ms are not in the file\n")
    say(f"load average {os.getloadavg()[0]:.1f}\n")


if __name__ == "__main__":
    main()
