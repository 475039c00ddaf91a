"""Measures a compiled function by a stated protocol: initial call, steady calls, then inputs that change a guard.

    python demos/guard_protocol.py [--repetitions R] [--steady N] [--changed M] [--boundary inside|outside]
    tuimon record -o run.tuimon --phases "$(python demos/guard_protocol.py --plan)" -- python demos/guard_protocol.py

The protocol, which it prints with its numbers:

* *initial*: the first call, which compiles. *steady*: N calls with inputs that fit what was compiled. *guard*: M calls with
  inputs of another length, for which a guard fails: the first of them compiles again, the others run what that made. These
  populations are never mixed.
* Each input is made before its call is timed, in the same way for all. A call is over when its result has been read on the
  host, which on a GPU waits for the device: that is the measurement boundary. What the host does beside (one line to a logger
  that nobody listens to) is done in every call.
* All of it is repeated R times from torch._dynamo.reset() on. The median of each repetition is told, with p10 and p90, and
  never the fastest call alone. The first repetition also fills caches of compiled code, memory pools and the device's
  libraries, which the others find filled: so they stand apart.

With `--boundary inside` the logger is called in the middle of the compiled function, which leaves its graph for it; with
`outside` (before the function) the same line is logged, and only the boundary is gone: `tuimon compare` of two such recordings
shows what it cost. Needs torch.
"""

from __future__ import annotations

import argparse
import contextlib
import logging
import sys
import time
from collections.abc import Callable
from statistics import median, quantiles

import torch
from torch import Tensor
from train_small_gpt import say, usable_backend

WIDTH, LENGTH, OTHER_LENGTH = 256, 64, 96
RULE = "median [p10-p90] over the calls of one repetition; host time until the result was read"

requests = logging.getLogger("requests")  # nothing listens below WARNING


def tell(text: str) -> None:
    """A line of the result, on stdout, at once."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def mark() -> None:
    """A step begins: told to tuimon, where that is installed here. It costs nothing while nobody watches."""


with contextlib.suppress(ImportError):
    from tuimon import step as mark


def answer(x: Tensor, up: Tensor, down: Tensor, logged: bool) -> Tensor:
    """Two products; the request is logged between them, where whoever calls this has not done it."""
    hidden = torch.relu(x @ up)
    if not logged:
        requests.info("an input of %d rows", x.shape[0])  # FAULT: a logger inside the compiled function
    return torch.softmax(hidden @ down, dim=-1)


def timed(call: Callable[[Tensor], Tensor], x: Tensor) -> tuple[float, float]:
    """(seconds, a value of the result). The value is read on the host: the result is there when the clock is read."""
    mark()
    began = time.perf_counter()
    value = call(x).sum().item()
    return time.perf_counter() - began, value


def repetition(options: argparse.Namespace, device: torch.device, weights: tuple[Tensor, Tensor]) -> dict[str, list[float]]:
    """One round of the protocol: seconds of each call, by population."""
    torch._dynamo.reset()
    compiled = torch.compile(answer, backend=options.backend)
    outside = options.boundary == "outside"

    def call(x: Tensor) -> Tensor:
        if outside:
            requests.info("an input of %d rows", x.shape[0])
        result: Tensor = compiled(x, *weights, logged=outside)
        return result

    generator = torch.Generator().manual_seed(options.seed)
    found: dict[str, list[float]] = {}
    for population, calls, length in (
        ("initial", 1, LENGTH),
        ("steady", options.steady, LENGTH),
        ("first after the change", 1, OTHER_LENGTH),
        ("after the change", options.changed - 1, OTHER_LENGTH),
    ):
        for _ in range(calls):
            x = torch.randn(length, WIDTH, generator=generator).to(device)
            if device.type == "cuda":
                torch.cuda.synchronize()  # the input has arrived: its way is no part of the call
            seconds, value = timed(call, x)
            assert abs(value - length) < 1e-2 * length  # each row of a softmax adds up to 1
            found.setdefault(population, []).append(seconds)
    return found


def spread(seconds: list[float]) -> str:
    """A population in words, by `RULE`."""
    if len(seconds) < 3:
        return f"n={len(seconds)}  " + ", ".join(f"{1e3 * one:.3f} ms" for one in seconds)
    tenths = quantiles(seconds, n=10, method="inclusive")
    return f"n={len(seconds)}  {1e3 * median(seconds):.3f} ms [{1e3 * tenths[0]:.3f}-{1e3 * tenths[-1]:.3f} ms]"


def plan(options: argparse.Namespace) -> str:
    """What `tuimon record --phases` is to be told."""
    rounds = (f"{'' if number == 1 else f' {number}'}" for number in range(1, options.repetitions + 1))
    return ",".join(f"initial{n}=1,steady{n}={options.steady},guard{n}={options.changed}" for n in rounds)


def measure(options: argparse.Namespace) -> None:
    """All repetitions; protocol and numbers go to stdout."""
    torch.manual_seed(options.seed)
    torch.set_num_threads(1)
    device = torch.device(options.device)
    options.backend = usable_backend(options.backend)
    weights = (torch.randn(WIDTH, 4 * WIDTH) / WIDTH**0.5).to(device), (torch.randn(4 * WIDTH, WIDTH) / WIDTH).to(device)
    tell(f"protocol: 1 initial call, {options.steady} steady calls with {LENGTH} rows, then {options.changed} calls with")
    tell(f"          {OTHER_LENGTH} rows, which fail a guard; repetitions: {options.repetitions}; logger {options.boundary}")
    tell(f"          torch {torch.__version__}, {device}, backend {options.backend}, one thread")
    tell(f"rule:     {RULE}")
    for number in range(1, options.repetitions + 1):
        found = repetition(options, device, weights)
        note = "fills the caches of compiled code" if number == 1 else "finds the caches filled"
        tell(f"repetition {number} ({note})")
        for population, seconds in found.items():
            tell(f"  {population:<24}{spread(seconds)}")
    mark()  # the last call is over
    say("done; only the same rows of two such tables can be compared, and only with the same protocol")


def main() -> None:
    """Read the command line and measure."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--repetitions", type=int, default=3, metavar="R", help="of the whole (default: %(default)s)")
    parser.add_argument("--steady", "--steps", type=int, default=200, metavar="N", help="steady calls (default: %(default)s)")
    parser.add_argument("--changed", type=int, default=50, metavar="M", help="calls after the change (default: %(default)s)")
    parser.add_argument("--boundary", choices=("inside", "outside"), default="inside", help="where the logger is called")
    parser.add_argument("--device", default="cpu", help="cpu or cuda (default: %(default)s)")
    parser.add_argument("--backend", default="inductor", help="of torch.compile (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--plan", action="store_true", help="only print the phases, as `tuimon record --phases` takes them")
    options = parser.parse_args()
    if min(options.repetitions, options.steady, options.changed) < 1:
        parser.error("at least one of each: repetitions, steady calls, calls after the change")
    if options.plan:
        tell(plan(options))
        return
    with contextlib.suppress(KeyboardInterrupt):
        measure(options)


if __name__ == "__main__":
    sys.exit(main())
