"""Attach to the demo and detach again, many times, and say what it cost the job. Prints figures; asserts nothing.

    python -m tests.bench.attach_cycles [--cycles N] [--steps N]

The demo runs twice with the same seed: once with a tuimon that comes and goes, once alone. The losses of both are compared to
the bit; resident memory, threads and open files are read before the cycles (after one to warm up), in the middle, and at the
end.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil

from tuimon.attach.session import attach

DEMO = Path(__file__).parents[2] / "demos" / "train_small_gpt.py"


def start(folder: Path, name: str, steps: int) -> tuple[subprocess.Popen[bytes], Path]:
    """The demo with its losses going to a file."""
    losses = folder / name
    command = [sys.executable, str(DEMO), "--steps", str(steps), "--losses", str(losses)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "TORCHINDUCTOR_CACHE_DIR": str(folder / "cache")}
    return subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL), losses


def lines(path: Path) -> int:
    """Steps written so far."""
    return path.read_bytes().count(b"\n") if path.exists() else 0


def wait_for_steps(process: subprocess.Popen[bytes], losses: Path, steps: int) -> None:
    """Until the job has made so many steps. Raises RuntimeError if it ends before."""
    while lines(losses) < steps:
        if process.poll() is not None:
            raise RuntimeError(f"the demo ended with status {process.returncode}")
        time.sleep(0.02)


def state(process: psutil.Process) -> str:
    """Resident memory, threads and open files."""
    with process.oneshot():
        memory = process.memory_info().rss / 2**20
        return f"{memory:.1f} MiB resident, {process.num_threads()} threads, {process.num_fds()} open files"


def spread(values: list[float], unit: float, name: str) -> str:
    """median, p99 and most."""
    ordered = sorted(values)
    p99 = ordered[min(len(ordered) - 1, int(0.99 * len(ordered)))]
    return f"median {statistics.median(ordered) * unit:.2f} {name}, p99 {p99 * unit:.2f}, most {ordered[-1] * unit:.2f}"


def cycle(pid: int, steps_on: float) -> tuple[float, float, list[float], list[str]]:
    """One attach and detach; gives seconds to the first answer, to the first samples, the stops, and what was left."""
    begin = time.monotonic()
    session = attach(pid, {})
    attached = time.monotonic() - begin
    first: list[float] = []

    def sink(kind: int, _body: bytes) -> None:
        if kind == 2 and not first:
            first.append(time.monotonic() - begin)

    session.start(sink, lambda _reason: None)
    deadline = time.monotonic() + 5
    while not first and time.monotonic() < deadline:
        time.sleep(0.005)
    time.sleep(steps_on)
    answer = session.detach()
    session.settled(3.0)
    left = [*session.report.left, *(str(name) for name in (answer or {"left": ["no goodbye"]})["left"])]
    stops = list(session.report.stops)
    session.close()
    return attached, first[0] if first else float("nan"), stops, left


def main() -> int:
    """Run it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cycles", type=int, default=50)
    parser.add_argument("--steps", type=int, default=3000)
    options = parser.parse_args()
    out = sys.stdout.write
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        process, losses = start(folder, "watched", options.steps)
        try:
            wait_for_steps(process, losses, 60)
            job = psutil.Process(process.pid)
            cycle(process.pid, 0.05)
            out(f"before:            {state(job)}\n")
            attaches, firsts, stops, left = [], [], [], []
            for number in range(options.cycles):
                attached, first, paused, kept = cycle(process.pid, 0.05)
                attaches.append(attached)
                firsts.append(first)
                stops += paused
                left += kept
                if number + 1 == options.cycles // 2:
                    out(f"after {number + 1:4} cycles: {state(job)}\n")
            out(f"after {options.cycles:4} cycles: {state(job)}\n")
            out(f"attach to the hook's first answer: {spread(attaches, 1e3, 'ms')}\n")
            out(f"attach to the first samples:       {spread(firsts, 1e3, 'ms')}\n")
            out(
                f"one stop of one thread:            {spread(stops, 1e3, 'ms')} ({len(stops) / options.cycles:.1f} an attach)\n"
            )
            out(f"left behind: {left or 'nothing'}\n")
            seen = lines(losses)
            if process.wait() != 0:
                raise RuntimeError(f"the demo ended with status {process.returncode}")
        finally:
            process.kill()
        alone, others = start(folder, "alone", options.steps)
        if alone.wait() != 0:
            raise RuntimeError(f"the demo alone ended with status {alone.returncode}")
        same = losses.read_bytes() == others.read_bytes()
        out(f"{options.steps} losses, {seen} of them by the end of the cycles: {'equal to the bit' if same else 'DIFFERENT'}\n")
        return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())
