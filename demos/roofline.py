"""A matrix product, a chain of three, and the chain fused.

python demos/roofline.py [--steps N]
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import sys
import time

import torch
from torch import Tensor
from train_small_gpt import usable_backend

SIZE, ELEMENTS = 256, 1 << 20
WHAT_TO_PRESS = """\
roofline: `product` does many operations for each byte; `multiply`, `add`, `subtract` one in 12; `fused` all three in 16.
  in the monitor    6      the points; left and right select one
                    h      its intensity into the lab: predict the ceiling, then trace the roof to it
                    esc    back; q leaves
  `tuimon calibrate` (15 s, once for a machine) gives the roof of this one.
"""


def product(a: Tensor, b: Tensor) -> Tensor:
    """2 x SIZE operations for each element of the result: far right on the chart."""
    return a @ b


def multiply(x: Tensor, y: Tensor) -> Tensor:
    """One operation; two numbers are read and one is written, 12 bytes: intensity 1/12."""
    return x * y


def add(x: Tensor, y: Tensor) -> Tensor:
    """The same intensity."""
    return x + y


def subtract(x: Tensor, y: Tensor) -> Tensor:
    """The same again."""
    return x - y


def fused(x: Tensor, y: Tensor, z: Tensor) -> Tensor:
    """All three in one region: 3 operations, 16 bytes; what is between them never reaches the memory."""
    return x * y + z - x


def work(options: argparse.Namespace) -> None:
    """Call each of them once a step; ends after `options.steps` steps, or never."""
    torch.manual_seed(0)
    torch.set_num_threads(1)
    backend = usable_backend(options.backend)
    parts = (product, multiply, add, subtract, fused)
    matmul, times, plus, minus, at_once = (torch.compile(part, backend=backend) for part in parts)
    a, b = torch.randn(SIZE, SIZE), torch.randn(SIZE, SIZE)
    x, y, z = (torch.randn(ELEMENTS) for _ in range(3))
    for _ in itertools.count() if options.steps is None else range(options.steps):
        time.sleep(options.pace)
        with torch.no_grad():
            matmul(a, b)
            minus(plus(times(x, y), z), x)
            at_once(x, y, z)


def main() -> None:
    """Read the command line and work."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--steps", type=int, metavar="N", help="end after N steps (default: never)")
    parser.add_argument("--pace", type=float, default=0.05, metavar="S", help="wait S seconds in each step (%(default)s)")
    parser.add_argument("--backend", default="inductor", help="of torch.compile (default: %(default)s)")
    options = parser.parse_args()
    sys.stdout.write(WHAT_TO_PRESS)
    sys.stdout.flush()
    with contextlib.suppress(KeyboardInterrupt):
        work(options)


if __name__ == "__main__":
    main()
