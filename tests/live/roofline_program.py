"""A job with three compiled regions whose operations are known by hand: a triad, a linear layer with its backward, one with a
dynamic size. Prints their sizes as JSON.

    python tests/live/roofline_program.py CALLS
"""

from __future__ import annotations

import json
import sys

import torch

TRIAD = 65_536
ROWS, IN, OUT = 48, 64, 32
SIZES = (16, 24, 40)


def triad(b: torch.Tensor, c: torch.Tensor) -> torch.Tensor:
    """Two operations for each element; b and c are read, a is written."""
    return b + 3.0 * c


def linear(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    """One product forward, two backward."""
    return x @ w


def dynamic(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    """The same with rows that change."""
    return x @ w


def main() -> None:
    """Call each so many times."""
    calls = int(sys.argv[1])
    torch.set_num_threads(1)
    torch._dynamo.config.automatic_dynamic_shapes = False
    b, c = torch.ones(TRIAD), torch.ones(TRIAD)
    x, w = torch.ones(ROWS, IN, requires_grad=True), torch.ones(IN, OUT, requires_grad=True)
    one, two = torch.compile(triad, backend="aot_eager"), torch.compile(linear, backend="aot_eager")
    three = torch.compile(dynamic, backend="aot_eager", dynamic=True)
    for at in range(calls):
        one(b, c)
        two(x, w).sum().backward()
        with torch.no_grad():
            three(torch.ones(SIZES[at % len(SIZES)], IN), w.detach())
    sys.stdout.write(json.dumps({"calls": calls}) + "\n")


if __name__ == "__main__":
    main()
