"""Nothing is wrong: what healthy looks like.

python demos/clean.py [--steps N]
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import sys
import time

import torch
from torch import nn
from torch.nn import functional as F
from train_small_gpt import say, usable_backend

INPUTS, HIDDEN, OUTPUTS, BATCH = 64, 256, 8, 128
WHAT_TO_PRESS = """\
clean: nothing is wrong. No boundary, no recompile, two regions, steps that take the same time.
  in the monitor    4      the regions: forward and backward of the one compiled graph
                    w      what to look at first: nothing
                    esc    back; q leaves
"""


def train(options: argparse.Namespace) -> None:
    """Fit a small network to a random linear map; ends after `options.steps` steps, or never."""
    torch.manual_seed(options.seed)
    torch.set_num_threads(1)
    network = nn.Sequential(nn.Linear(INPUTS, HIDDEN), nn.GELU(), nn.Linear(HIDDEN, OUTPUTS))
    compiled = torch.compile(network, backend=usable_backend(options.backend), fullgraph=True)
    optimizer = torch.optim.SGD(network.parameters(), lr=0.05)
    wanted = torch.randn(INPUTS, OUTPUTS) / INPUTS**0.5
    began = time.monotonic()
    for step in itertools.count() if options.steps is None else range(options.steps):
        time.sleep(options.pace)
        inputs = torch.randn(BATCH, INPUTS)
        loss = F.mse_loss(compiled(inputs), inputs @ wanted)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 200 == 0:
            say(f"step {step}, loss {loss.item():.4f}, {time.monotonic() - began:.1f} s")


def main() -> None:
    """Read the command line and train."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--steps", type=int, metavar="N", help="end after N steps (default: never)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--pace", type=float, default=0.01, metavar="S", help="wait S seconds in each step (%(default)s)")
    parser.add_argument("--backend", default="inductor", help="of torch.compile (default: %(default)s)")
    options = parser.parse_args()
    sys.stdout.write(WHAT_TO_PRESS)
    sys.stdout.flush()
    with contextlib.suppress(KeyboardInterrupt):
        train(options)


if __name__ == "__main__":
    main()
