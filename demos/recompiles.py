"""A list that grows: recompiles up to the limit, and past it.

python demos/recompiles.py [--steps N]
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import sys
import time

import torch
from torch import Tensor, nn
from torch.nn import functional as F

WIDTH, EVERY, MOST = 32, 10, 12
WHAT_TO_PRESS = """\
recompiles: each tenth step the model keeps one more tensor in a list, and is compiled anew; past the limit it is not.
  in the monitor    3      every recompile: what changed, from what to what, and how much of the limit is used
                    enter  the guard that failed, in Dynamo's words, and the cost by phase
                    w      what to look at first: the frame past its limit, and the calls that run in eager
                    esc    back; q leaves
"""


class Remembering(nn.Module):
    """A linear layer that adds what it has kept of earlier batches."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(WIDTH, WIDTH)
        self.kept: list[Tensor] = []

    def forward(self, x: Tensor) -> Tensor:
        x = torch.tanh(self.layer(x))
        for old in self.kept:  # FAULT: how many there are is part of the compiled code
            x = x + 0.1 * old
        return x


def train(options: argparse.Namespace) -> None:
    """Fit the layer, keeping a mean in the list now and then; ends after `options.steps` steps, or never."""
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = Remembering()
    compiled = torch.compile(model, backend=options.backend)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for step in itertools.count() if options.steps is None else range(options.steps):
        time.sleep(options.pace)  # before the work: what stands behind `step()` may be the next step's
        inputs = torch.randn(16, WIDTH)
        loss = F.mse_loss(compiled(inputs), inputs)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % EVERY == EVERY - 1 and len(model.kept) < MOST:
            model.kept.append(inputs.mean(0))


def main() -> None:
    """Read the command line and train."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--steps", type=int, metavar="N", help="end after N steps (default: never)")
    parser.add_argument("--pace", type=float, default=0.1, metavar="S", help="wait S seconds in each step (%(default)s)")
    parser.add_argument("--backend", default="aot_eager", help="of torch.compile (default: %(default)s)")
    options = parser.parse_args()
    sys.stdout.write(WHAT_TO_PRESS)
    sys.stdout.flush()
    with contextlib.suppress(KeyboardInterrupt):
        train(options)


if __name__ == "__main__":
    main()
