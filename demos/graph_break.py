"""An .item() in a hot loop: what a graph break costs.

python demos/graph_break.py [--steps N]
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

WIDTH, PIECES, LIMIT = 48, 48, 1.0
WHAT_TO_PRESS = """\
graph_break: one compiled function asks the host for a value, at the line that says FAULT.
  in the monitor    2      the boundaries, the costliest first: how often a step crosses it, and what that takes
                    enter  its reason, the source line, and what to do about it
                    esc    back; q leaves
"""


def clip(row: Tensor) -> Tensor:
    """Scale a row down where it is too long, asking the host whether it is."""
    length = row.norm()
    if length.item() > LIMIT:  # FAULT: the graph ends here, and a value crosses to Python
        row = row * (LIMIT / length)
    return row


def train(options: argparse.Namespace) -> None:
    """Fit a linear map whose rows are clipped after each step; ends after `options.steps` steps, or never."""
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = nn.Linear(WIDTH, PIECES)
    compiled = torch.compile(clip, backend=options.backend)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for _ in itertools.count() if options.steps is None else range(options.steps):
        time.sleep(options.pace)  # before the work: what stands behind `step()` may be the next step's
        inputs = torch.randn(64, WIDTH)
        loss = F.mse_loss(model(inputs), inputs)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            for row in model.weight:
                row.copy_(compiled(row))


def main() -> None:
    """Read the command line and train."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--steps", type=int, metavar="N", help="end after N steps (default: never)")
    parser.add_argument("--pace", type=float, default=0.002, metavar="S", help="wait S seconds in each step (%(default)s)")
    parser.add_argument("--backend", default="aot_eager", help="of torch.compile (default: %(default)s)")
    options = parser.parse_args()
    sys.stdout.write(WHAT_TO_PRESS)
    sys.stdout.flush()
    with contextlib.suppress(KeyboardInterrupt):
        train(options)


if __name__ == "__main__":
    main()
