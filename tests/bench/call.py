"""What one timed call of each kind adds, in ns, and a record_function of the job's. Prints a table.

    python -m tests.bench.call [--rounds N]

In this process: the timer around a function that does nothing less the function alone, in batches of 20, as a region of a warm
job is hot, by CPU time of this thread. The
engine and record_function: a real backward of one node and a real record_function, with the hook in and out.
"""

from __future__ import annotations

import os
import statistics
import sys
import time
from collections.abc import Callable

from tests.bench import command, noise, table
from tuimon.hook import timers
from tuimon.hook.outbox import Outbox
from tuimon.hook.sizes import Sizes

BATCH, BATCHES = 20, 25
WANTED_NS = 1000.0


def added_ns(timed: Callable[..., object], bare: Callable[..., object], clear: Callable[[], object]) -> float:
    """Nanoseconds that one call of `timed` takes more than one of `bare`: the median over batches."""
    now = time.thread_time_ns
    costs = []
    for _ in range(BATCHES):
        begin = now()
        for _ in range(BATCH):
            timed(3)
        between = now()
        for _ in range(BATCH):
            bare(3)
        costs.append((2 * between - begin - now()) / BATCH)
        clear()
    return statistics.median(costs)


def timed_calls() -> dict[str, tuple[Callable[..., object], Callable[..., object], Callable[[], object]]]:
    """The kinds of timers around nothing: (timed, bare, what empties the outbox)."""

    def nothing(argument: int) -> int:
        return argument

    outbox = Outbox(None)
    sizes = Sizes(None, 0, [(0, "s0")])
    sizes.numbers.update((size, size + 1) for size in range(4))
    clear = outbox.queue.clear
    return {
        "nothing": (nothing, nothing, clear),
        "forward or backward": (timers.call_timer(nothing, 0, outbox), nothing, clear),
        "forward of one dynamic size": (timers.sized_timer(nothing, 0, outbox, sizes), nothing, clear),
        "resume": (timers.resume_timer(nothing, 0, outbox), nothing, clear),
    }


def real_calls() -> dict[str, Callable[[int], object]]:
    """What the hook times of torch's own: each a call, to be made with and without it."""
    import torch

    torch.set_num_threads(1)
    leaf = torch.ones(1, requires_grad=True)
    function = torch.autograd.profiler.record_function

    def engine(_: int) -> None:
        (leaf * 1.0).backward()

    def marked(_: int) -> None:
        with function("Optimizer.step#SGD.step"):
            pass

    def unmarked(_: int) -> None:
        with function("mine"):
            pass

    return {
        "engine (one backward)": engine,
        "record_function of an optimizer": marked,
        "record_function of the job's": unmarked,
    }


def each_ns(call: Callable[[int], object]) -> float:
    """Nanoseconds of one call, the median over batches."""
    now = time.thread_time_ns
    found = []
    for _ in range(BATCHES):
        begin = now()
        for _ in range(BATCH):
            call(3)
        found.append((now() - begin) / BATCH)
    return statistics.median(found)


def measure(rounds: int) -> table.Section:
    """All of it."""
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    from tests.bench.hook_cost import hooked

    kinds, real = timed_calls(), real_calls()
    found: dict[str, list[float]] = {name: [] for name in [*kinds, *real]}
    same = []
    gate = noise.Gate([os.getpid()])
    for _ in range(rounds):
        for name, parts in kinds.items():
            found[name].append(added_ns(*parts))
        without = {name: each_ns(call) for name, call in real.items()}
        again = {name: each_ns(call) for name, call in real.items()}
        same.append(again["record_function of the job's"] / without["record_function of the job's"])
        with hooked():
            for call in real.values():
                each_ns(call)
            for name, call in real.items():
                found[name].append(each_ns(call) - without[name])
    rows = [
        table.row(name, values, "ns more", most=WANTED_NS if name in kinds and name != "nothing" else None)
        for name, values in found.items()
    ]
    return table.Section("One timed call", rows, gate.verdict(same, within=0.05))


if __name__ == "__main__":
    sys.exit(command.main("call", __doc__, measure))
