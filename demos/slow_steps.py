"""A training loop that is made slow in ten known ways, at random, with the truth logged: does the monitor name the cause?

    python demos/slow_steps.py [--only WAY]... [--log FILE] [--seed N]

Every sixteenth step or so is slowed, by one thing or by two at once; what was done is told on stderr and, with --log, as one
JSON object a line. Watch it with `tuimon attach`, or start both with `tuimon demo slow_steps`. Needs torch.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import itertools
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import IO, Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset
from train_small_gpt import say, usable_backend

WIDTH, LAYERS, BATCH, ROWS = 384, 4, 192, 1 << 20
WARM_UP = 24
"""So many steps are left alone at the beginning."""
TIMES = [3.0, 10.0]
"""A fault takes so many times a usual step, where it can be told how long to take: from, to."""
MOST_HOGS, MOST_SAVED = 12, 128
HOG = """
import select, sys
commands = sys.stdin.buffer.raw
while commands.read(1):  # one byte: take all of the core; the next byte: leave it
    while not select.select([commands], [], [], 0)[0]:
        pass
    commands.read(1)
"""


class Network(nn.Module):
    """Some linear layers, and a Python number that a compiled graph is specialised on."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(WIDTH, WIDTH) for _ in range(LAYERS))
        self.limit = 8

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            x = F.gelu(layer(x)).clamp(max=self.limit)
        return x


class Examples(Dataset[Tensor]):
    """Rows of random numbers, from a store that can be slow."""

    def __init__(self) -> None:
        self.rows = torch.randn(4096, WIDTH)
        self.delay_s = 0.0

    def __len__(self) -> int:
        return ROWS

    def __getitem__(self, index: int) -> Tensor:
        if self.delay_s:
            wait, self.delay_s = self.delay_s, 0.0
            time.sleep(wait)
        return self.rows[index % len(self.rows)]


class Job:
    """The loop, and all that can go wrong with it."""

    def __init__(self, options: argparse.Namespace, folder: Path) -> None:
        self.backend = usable_backend(options.backend)
        self.folder = folder
        self.examples = Examples()
        self.network = Network()
        self.optimizer = torch.optim.AdamW(self.network.parameters(), lr=1e-3)
        self.compiled = torch.compile(self.network, backend=self.backend, dynamic=False)
        self.rows = BATCH
        self.usual_s = 0.02
        self.counts: dict[str, int] = {}
        self.heap = [[number] for number in range(options.heap)]
        hogs = MOST_HOGS if "competitor" in (options.only or WAYS) else 0
        self.hogs = [subprocess.Popen([sys.executable, "-S", "-c", HOG], stdin=subprocess.PIPE) for _ in range(hogs)]
        # how long an .item() and a megabyte of a checkpoint take here
        value = self.examples.rows[0, 0]
        self.item_s = timed(lambda: [value.item() for _ in range(4096)]) / 4096
        self.state = [torch.zeros(1 << 18) for _ in range(MOST_SAVED)]
        self.megabyte_s = timed(lambda: self.save(32)) / 32

    def step(self, batches: Iterator[Tensor]) -> float:
        """All of a step but the optimizer's part."""
        loss = self.compiled(next(batches)[: self.rows]).square().mean()
        self.optimizer.zero_grad()
        loss.backward()
        return float(loss.detach())

    def save(self, megabytes: int) -> None:
        """A checkpoint that holds so much beside the network."""
        with open(self.folder / "checkpoint.pt", "wb") as file:
            torch.save({"network": self.network.state_dict(), "state": self.state[:megabytes]}, file)
            os.fsync(file.fileno())

    def close(self) -> None:
        """End the other processes."""
        for hog in self.hogs:
            hog.kill()
            hog.wait()


# ---------------------------------------------------------------- the ten ways: entered before a step, left when it ends


@contextmanager
def shape(job: Job, seconds: float) -> Iterator[None]:
    """recompile: a batch of a size that was never there"""
    job.rows = BATCH - 1 - job.counts["shape"] % (BATCH - 2)
    yield
    job.rows = BATCH


@contextmanager
def guard(job: Job, seconds: float) -> Iterator[None]:
    """recompile: another value of a Python number in the model"""
    job.network.limit = 8 + job.counts["guard"]
    yield
    job.network.limit = 8


@contextmanager
def cold(job: Job, seconds: float) -> Iterator[None]:
    """everything compiled again, with an empty cache"""
    torch._dynamo.reset()
    os.environ["TORCHINDUCTOR_CACHE_DIR"] = tempfile.mkdtemp(dir=job.folder)
    yield


@contextmanager
def loader(job: Job, seconds: float) -> Iterator[None]:
    """the loader's next batch comes late"""
    job.examples.delay_s = seconds
    yield


@contextmanager
def collect(job: Job, seconds: float) -> Iterator[None]:
    """a full garbage collection of a large heap"""
    gc.collect()
    yield


@contextmanager
def checkpoint(job: Job, seconds: float) -> Iterator[None]:
    """a checkpoint is written, and synced"""
    job.save(int(seconds / job.megabyte_s) + 1)
    yield


@contextmanager
def items(job: Job, seconds: float) -> Iterator[None]:
    """many .item() calls in eager code"""
    value, total = job.examples.rows[0, 0], 0.0
    for _ in range(int(seconds / job.item_s)):
        total += value.item()
    yield


@contextmanager
def competitor(job: Job, seconds: float) -> Iterator[None]:
    """other processes on the same core"""
    hogs = job.hogs[: max(2, round(seconds / job.usual_s))]
    for hog in hogs:
        command(hog)
    yield
    for hog in hogs:
        command(hog)


@contextmanager
def sleep(job: Job, seconds: float) -> Iterator[None]:
    """a sleep in the user's code"""
    time.sleep(seconds)
    yield


@contextmanager
def profiler(job: Job, seconds: float) -> Iterator[None]:
    """a window of the profiler, its trace written"""
    from torch.profiler import ProfilerActivity, profile

    def write(window: Any) -> None:
        window.export_chrome_trace(str(job.folder / "trace.json"))

    with profile(activities=[ProfilerActivity.CPU], record_shapes=True, with_stack=True, on_trace_ready=write):
        for row in job.examples.rows[:1000]:
            row.sum()
        yield


Way = Callable[[Job, float], AbstractContextManager[None]]
WAYS: dict[str, Way] = {
    way.__name__: way for way in (shape, guard, cold, loader, collect, checkpoint, items, competitor, sleep, profiler)
}
COMPILES = ("shape", "guard", "cold")
"""Two of these at once are one compilation."""
FIXED = (*COMPILES, "collect", "profiler")
"""They take as long as they take."""


class Plan:
    """Which steps are slowed, how, and for how long: by chance, each way as often as any other."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.random = random.Random(options.seed)
        self.deck: list[str] = []
        self.faults = 0
        self.took: dict[str, float] = {}
        """How long one of FIXED took when it was alone."""

    def ways(self, step: int, usual_s: float) -> dict[str, float]:
        """{way: seconds it should take}; mostly empty."""
        options = self.options
        if step < WARM_UP or self.faults == options.faults or self.random.random() * options.every >= 1:
            return {}
        self.faults += 1
        first = self.draw()
        if self.random.random() < options.pairs:
            second = self.draw()
            both = self.pair(first, second, usual_s)
            if both:
                return both
            self.deck.append(second)
        return {first: self.took.get(first, usual_s * self.random.uniform(*options.times))}

    def pair(self, first: str, second: str, usual_s: float) -> dict[str, float]:
        """The two with about the same length, for else one of them would explain it all; {} where that cannot be."""
        found = {way: self.took.get(way, 0.0) for way in (first, second)}
        fixed = [took for way, took in found.items() if way in FIXED]
        one_compilation = first in COMPILES and second in COMPILES
        if len(found) < 2 or one_compilation or 0.0 in fixed or (len(fixed) == 2 and max(fixed) > 3 * min(fixed)):
            return {}
        length = fixed[0] if fixed else usual_s * self.random.uniform(*self.options.times)
        for way in found:
            if way not in FIXED:
                found[way] = length * self.random.uniform(0.6, 1.6)
        if "competitor" in found and not found.keys() & {"sleep", "loader"}:
            found["competitor"] = usual_s * self.random.uniform(2, 4)  # it makes all that the other does longer, too
        if "profiler" in found:
            found["profiler"] = found.pop("profiler")  # last, or it would record the other one
        return found

    def draw(self) -> str:
        if not self.deck:
            self.deck = self.options.only or list(WAYS)
            self.deck = self.random.sample(self.deck, len(self.deck))
        return self.deck.pop()

    def took_alone(self, way: str, seconds: float) -> None:
        """A step that was slowed in one way only took so much longer than usual."""
        if way in FIXED:
            self.took[way] = max(0.0, seconds)


def command(hog: subprocess.Popen[bytes]) -> None:
    """Tell a competitor to begin, or to stop."""
    assert hog.stdin is not None
    os.write(hog.stdin.fileno(), b".")


def timed(act: Callable[[], object]) -> float:
    """Seconds of the CPU's time that it takes."""
    act()
    began = time.thread_time()
    act()
    return time.thread_time() - began


def train(job: Job, options: argparse.Namespace, log: IO[str] | None) -> None:
    """The loop. Ends after `options.steps` steps or some steps after `options.faults` faults, or never."""
    plan = Plan(options)
    recent: deque[float] = deque([job.usual_s], maxlen=32)
    batches = itertools.chain.from_iterable(itertools.repeat(DataLoader(job.examples, batch_size=BATCH)))
    left = WARM_UP
    for step in itertools.count() if options.steps is None else range(options.steps):
        ways = plan.ways(step, job.usual_s)
        for way in ways:
            job.counts[way] = job.counts.get(way, 0) + 1
        began, wall = time.perf_counter(), time.time()
        with contextlib.ExitStack() as faults:
            for way, seconds in ways.items():
                faults.enter_context(WAYS[way](job, seconds))
            loss = job.step(batches)
        job.optimizer.step()
        took = time.perf_counter() - began
        if not ways:
            recent.append(took)
            job.usual_s = statistics.median(recent)
        elif len(ways) == 1:
            plan.took_alone(*ways, took - job.usual_s)
        if log is not None:
            log.write(json.dumps({"step": step, "ways": ways, "began": wall, "ended": wall + took}) + "\n")
            log.flush()
        if ways and not options.quiet:
            say(f"step {step} took {took * 1e3:.0f} ms, usually {job.usual_s * 1e3:.0f}: {' and '.join(told(ways))}")
        elif step % 200 == 0:
            say(f"step {step}, loss {loss:.4f}, {job.usual_s * 1e3:.1f} ms a step")
        left -= plan.faults == options.faults
        if left == 0:
            return


def told(ways: dict[str, float]) -> Iterator[str]:
    """Each way, and what it does."""
    return (f"{way} ({WAYS[way].__doc__})" for way in ways)


def main() -> None:
    """Read the command line and train."""
    epilog = "ways:\n" + "\n".join(f"  {name:<12}{way.__doc__}" for name, way in WAYS.items())
    parser = argparse.ArgumentParser(description=__doc__, epilog=epilog, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, metavar="N", help="end after N steps (default: never)")
    parser.add_argument("--faults", type=int, metavar="N", help="end some steps after N slow ones (default: never)")
    parser.add_argument("--only", action="append", choices=WAYS, metavar="WAY", help="in this way alone (can be repeated)")
    parser.add_argument("--every", type=float, default=16.0, metavar="N", help="one step in so many is slowed (%(default)g)")
    parser.add_argument(
        "--pairs", type=float, default=0.2, metavar="SHARE", help="of the slow steps, by two ways (%(default)g)"
    )
    parser.add_argument(
        "--times", type=float, nargs=2, default=TIMES, metavar="N", help="a fault's length, in usual steps (3 10)"
    )
    parser.add_argument("--log", metavar="FILE", help="write each step and what was done to it, as one JSON object a line")
    parser.add_argument("--quiet", action="store_true", help="say nothing of what is done")
    parser.add_argument("--seed", type=int, default=0, help="of all chances (default: %(default)s)")
    parser.add_argument("--core", type=int, metavar="N", help="run on this core, with the competitors (default: any, alone)")
    parser.add_argument(
        "--heap", type=int, default=300_000, metavar="N", help="objects that a collection goes through (%(default)s)"
    )
    parser.add_argument("--backend", default="aot_eager", help="of torch.compile (default: %(default)s)")
    options = parser.parse_args()
    if options.core is None:  # competitors have to compete
        options.core = max(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {options.core})
    torch.manual_seed(options.seed)
    torch.set_num_threads(1)
    torch._dynamo.config.recompile_limit = torch._dynamo.config.accumulated_recompile_limit = 1 << 20
    with contextlib.ExitStack() as stack:
        log = stack.enter_context(open(options.log, "w", encoding="ascii")) if options.log else None
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="slow-steps-"))
        job = Job(options, Path(folder))
        stack.callback(job.close)
        stack.enter_context(contextlib.suppress(KeyboardInterrupt))
        train(job, options, log)


if __name__ == "__main__":
    main()
