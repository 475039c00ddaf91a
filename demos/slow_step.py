"""One step in fifteen is slow: the data loader stalls.

python demos/slow_step.py [--steps N]
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
from torch.utils.data import DataLoader, Dataset

WIDTH, BATCH, EVERY, STALL_S = 64, 32, 15, 0.2
WHAT_TO_PRESS = """\
slow_step: each fifteenth batch comes 0.2 s late. The first one is judged when twenty steps are known.
  in the monitor    n      the next slow step: its letter names the cause, D is data wait
                    enter  where its time went beside what is usual, what was seen, and the rule
                    y      copies it as one sentence for a ticket
                    esc    back; q leaves
"""


class Samples(Dataset[Tensor]):
    """Random samples, of which one in each fifteenth batch is slow to come."""

    def __len__(self) -> int:
        return BATCH * EVERY * 1000

    def __getitem__(self, at: int) -> Tensor:
        if at % (BATCH * EVERY) == BATCH * EVERY - 1:
            time.sleep(STALL_S)  # FAULT: as a file on a slow disk
        return torch.randn(WIDTH)


def train(options: argparse.Namespace) -> None:
    """Fit a small network; ends after `options.steps` steps, or never."""
    torch.manual_seed(0)
    torch.set_num_threads(1)
    network = nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.GELU(), nn.Linear(WIDTH, WIDTH))
    compiled = torch.compile(network, backend=options.backend)
    optimizer = torch.optim.SGD(network.parameters(), lr=0.05)
    loader = DataLoader(Samples(), batch_size=BATCH)
    batches = itertools.chain.from_iterable(itertools.repeat(loader))
    for inputs in batches if options.steps is None else itertools.islice(batches, options.steps):
        time.sleep(options.pace)  # before the work: what stands behind `step()` may be the next step's
        loss = F.mse_loss(compiled(inputs), inputs)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def main() -> None:
    """Read the command line and train."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--steps", type=int, metavar="N", help="end after N steps (default: never)")
    parser.add_argument("--pace", type=float, default=0.04, metavar="S", help="wait S seconds in each step (%(default)s)")
    parser.add_argument("--backend", default="aot_eager", help="of torch.compile (default: %(default)s)")
    options = parser.parse_args()
    sys.stdout.write(WHAT_TO_PRESS)
    sys.stdout.flush()
    with contextlib.suppress(KeyboardInterrupt):
        train(options)


if __name__ == "__main__":
    main()
