"""What the hook costs a job: per timed region call, per step, and while compiling. Prints ratios; asserts nothing.

    python -m tests.bench.hook_cost [--rounds N]

One process, one job; rounds without the hook and with it take turns (A B A B), so that what else the machine does falls on
both. For each step length the table gives the ratio of medians for the wall clock and for the CPU time of the job's own
thread (which other programs disturb less), each as median [p10-p90] over the pairs of rounds.
"""

from __future__ import annotations

import argparse
import os
import socket
import statistics
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import cycle

os.environ.setdefault("OMP_NUM_THREADS", "1")

import torch

from tuimon.hook import session as hook_session
from tuimon.hook import timers, wire
from tuimon.hook.outbox import Outbox
from tuimon.hook.sizes import Sizes


@contextmanager
def hooked() -> Iterator[None]:
    """The hook in this very process, its bytes read and thrown away by a thread, as tuimon's process would read them."""
    job_end, monitor_end = socket.socketpair()
    session = hook_session.Session(job_end, {}, {})
    session.install()
    server = threading.Thread(target=session.serve)
    reader = threading.Thread(target=_discard, args=(monitor_end,))
    server.start()
    reader.start()
    try:
        yield
    finally:
        monitor_end.sendall(wire.json_frame({"cmd": "detach"}))
        server.join()
        job_end.close()
        reader.join()
        monitor_end.close()


def _discard(end: socket.socket) -> None:
    while end.recv(1 << 20):
        pass


def make_job(regions: int, work_s: float, *, dynamic: bool = False) -> Callable[[], None]:
    """A step that calls `regions` compiled graphs and then works for about `work_s` seconds of CPU time in C.

    `dynamic`: the graphs take their sizes as arguments, of which there are four in turn.
    """
    weights = torch.nn.Linear(8, 8)
    optimizer = torch.optim.SGD(weights.parameters(), lr=0.0)
    weights.weight.grad = torch.zeros_like(weights.weight)
    functions = []
    for number in range(regions):
        scope: dict[str, object] = {}
        exec(f"def f{number}(x):\n    return x * {number + 1}.0 + 1.0", scope)
        functions.append(torch.compile(scope[f"f{number}"], backend="eager", dynamic=True if dynamic else None))
    inputs = [torch.ones(4 + size) for size in range(4)] if dynamic else [torch.ones(4)]
    turn = cycle(inputs)
    block = torch.ones(64, 64)
    begin = time.perf_counter()
    for _ in range(200):
        torch.mm(block, block)
    repeats = max(0, int(work_s / ((time.perf_counter() - begin) / 200)))

    def step() -> None:
        x = next(turn)
        for function in functions:
            function(x)
        for _ in range(repeats):
            torch.mm(block, block)
        optimizer.step()

    for _ in range(5):
        step()
    return step


def round_of(step: Callable[[], None], steps: int) -> tuple[float, float]:
    """Median wall and CPU seconds of a step over a round."""
    walls, cpus = [], []
    for _ in range(steps):
        wall, cpu = time.perf_counter(), time.thread_time()
        step()
        cpus.append(time.thread_time() - cpu)
        walls.append(time.perf_counter() - wall)
    return statistics.median(walls), statistics.median(cpus)


def compare(step: Callable[[], None], rounds: int, steps: int) -> tuple[float, list[float], list[float]]:
    """(wall seconds of a step without the hook, ratios by wall, ratios by CPU), one ratio for each pair of rounds."""
    base, by_wall, by_cpu = [], [], []
    for _ in range(rounds):
        wall_off, cpu_off = round_of(step, steps)
        with hooked():
            wall_on, cpu_on = round_of(step, steps)
        base.append(wall_off)
        by_wall.append(wall_on / wall_off)
        by_cpu.append(cpu_on / cpu_off)
    return statistics.median(base), by_wall, by_cpu


def spread(values: list[float]) -> str:
    """median [p10-p90]"""
    ordered = sorted(values)
    low, high = ordered[len(ordered) // 10], ordered[-1 - len(ordered) // 10]
    return f"{statistics.median(ordered):.3f} [{low:.3f}-{high:.3f}]"


def compile_ratio(rounds: int) -> list[float]:
    """Seconds to compile one small function with the hook over without it, for fresh functions of the same shape."""
    ratios = []
    number = 0

    def once() -> float:
        nonlocal number
        number += 1
        torch._dynamo.reset()
        scope: dict[str, object] = {"torch": torch}
        exec(f"def g(x):\n    y = x.sin() * {number}.0\n    return torch.relu(y @ y).sum()", scope)
        begin = time.thread_time()
        torch.compile(scope["g"], backend="aot_eager")(torch.ones(8, 8, requires_grad=True))
        return time.thread_time() - begin

    once()
    for _ in range(rounds):
        off = statistics.median(once() for _ in range(3))
        with hooked():
            on = statistics.median(once() for _ in range(3))
        ratios.append(on / off)
    return ratios


def sized_cost() -> float:
    """As `timers.cost_of_a_call`, for a graph that takes one size of four."""
    outbox = Outbox(None)
    sizes = Sizes(None, 0, [(0, "s0")])
    sizes.numbers.update((size, size + 1) for size in range(4))

    def nothing(argument: int) -> int:
        return argument

    timed = timers.sized_timer(nothing, 0, outbox, sizes)
    now = time.perf_counter_ns
    costs = []
    for _ in range(9):
        begin = now()
        for _ in range(20):
            timed(3)
        middle = now()
        for _ in range(20):
            nothing(3)
        costs.append((2 * middle - begin - now()) / 20)
    return max(0.0, statistics.median(costs))


def main() -> int:
    """Run all of it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=10, help="pairs of rounds for each row (default 10)")
    rounds = parser.parse_args().rounds
    out = sys.stdout.write
    costs = sorted(timers.cost_of_a_call(Outbox) for _ in range(25))
    out(f"one timed region call: +{costs[12]:.0f} ns (median of 25 batches, {costs[2]:.0f}-{costs[-3]:.0f})\n")
    hot = sorted(sized_cost() for _ in range(25))
    out(f"the same for a graph of one dynamic size: +{hot[12]:.0f} ns ({hot[2]:.0f}-{hot[-3]:.0f})\n\n")
    out("| step without hook | regions a step | wall, with / without | CPU of the job's thread, with / without |\n")
    out("| --- | --- | --- | --- |\n")
    rows = ((0.0, 2, 400), (0.0008, 2, 300), (0.0008, 20, 200), (0.0095, 2, 60), (0.0095, 20, 60))
    for work_s, regions, steps in rows:
        base, by_wall, by_cpu = compare(make_job(regions, work_s), rounds, steps)
        out(f"| {base * 1e3:.2f} ms | {regions} | {spread(by_wall)} | {spread(by_cpu)} |\n")
    base, by_wall, by_cpu = compare(make_job(20, 0.0008, dynamic=True), rounds, 200)
    out(f"| {base * 1e3:.2f} ms | 20, of dynamic sizes | {spread(by_wall)} | {spread(by_cpu)} |\n")
    out(f"\ncompiling a small function (aot_eager), CPU time with / without: {spread(compile_ratio(rounds))}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
