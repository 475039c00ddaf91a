"""What the hook adds to a compilation: of a trifle and of a transformer block, with a cold and a warm cache. Prints a table.

    python -m tests.bench.compiling [--rounds N]

CPU seconds of this process and of the compilers that it starts, with the hook over without it, forward and backward. The trifle
(aot_eager, some 20 ms) is the worst case, as what the hook does is done once a graph; the block (inductor) is the usual one.
What the hook does once, when it comes, is no compilation's: it is told by itself.
"""

from __future__ import annotations

import os
import resource
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "1")  # in this process: their time is to be counted

from tests.bench import command, noise, table

WANTED = 1.03
SETTLED_S = 0.7
"""By then the hook has done what it does once."""


def used_s() -> float:
    """CPU seconds of this process and of its children that have ended."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]  # not in ticks of 10 ms
    return sum(one.ru_utime + one.ru_stime for one in used)


def own_s() -> float:
    """CPU seconds of this thread, to the nanosecond: what is short would be lost in the ticks of `used_s`."""
    return time.thread_time()


def trifle(number: int) -> float:
    """Seconds to compile a small function that is a new one for each number."""
    import torch

    torch._dynamo.reset()
    scope: dict[str, Any] = {"torch": torch}
    exec(f"def g(x):\n    y = x.sin() * {number}.0\n    return torch.relu(y @ y).sum()", scope)
    x = torch.ones(8, 8, requires_grad=True)
    began = own_s()
    torch.compile(scope["g"], backend="aot_eager")(x).backward()
    return own_s() - began


def block(cold: bool) -> Callable[[int], float]:
    """Compiles a transformer block; `cold`: with an empty cache each time."""
    import contextlib

    import torch
    from torch._inductor.utils import fresh_cache

    layer = torch.nn.TransformerEncoderLayer(64, 4, 128, dropout=0.0, batch_first=True)
    x = torch.randn(2, 16, 64)

    def once(_number: int) -> float:
        torch._dynamo.reset()
        with fresh_cache() if cold else contextlib.nullcontext():
            began = used_s()
            torch.compile(layer)(x).sum().backward()
            return used_s() - began

    return once


def ratios(once: Callable[[int], float], rounds: int, each: int) -> tuple[list[float], list[float], list[float], list[float]]:
    """(seconds without, with over without, without over without, seconds for the hook to come and settle), a value a round."""
    from tests.bench.hook_cost import hooked

    numbers = iter(range(1, 1 << 30))

    def several() -> float:
        return statistics.median(once(next(numbers)) for _ in range(each))

    several()
    bare, with_hook, same, coming = [], [], [], []
    for _ in range(rounds):
        off = several()
        before = used_s()
        with hooked():
            time.sleep(SETTLED_S)
            coming.append(used_s() - before)
            on = several()
        again = several()
        bare.append(off)
        with_hook.append(2 * on / (off + again))
        same.append(again / off)
    return bare, with_hook, same, coming


def measure(rounds: int) -> table.Section:
    """All of it; the short form has the trifle alone."""
    import torch

    torch.set_num_threads(1)
    short = rounds < noise.ROUNDS
    plan: list[tuple[str, Callable[[int], float], int, int]] = [("a trifle (aot_eager)", trifle, 2 if short else 5, rounds)]
    if not short:
        plan.append(("a transformer block, warm cache", block(False), 5, rounds))
        plan.append(("a transformer block, cold cache", block(True), 1, max(3, rounds // 3)))  # many seconds each
    rows, same, first = [], [], []
    gate = noise.Gate([os.getpid()])
    for name, once, each, times in plan:
        command.say(f"compiling: {name}")
        bare, with_hook, alike, coming = ratios(once, times, each)
        same += alike
        first += coming
        rows.append(table.row(f"{name}, without", bare, "CPU s"))
        most = WANTED if "block" in name else None
        rows.append(table.row(f"{name}, with / without", with_hook, "x", most=most))
    rows.append(table.row("the hook comes: what it does once", first, "CPU s"))
    return table.Section("Compiling", rows, gate.verdict(same if not short else same[:rounds], within=0.01))


if __name__ == "__main__":
    sys.exit(command.main("compiling", __doc__, measure))
