"""A small compiled training program with nothing wrong: no graph break, no recompile. What healthy looks like.

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
        inputs = torch.randn(BATCH, INPUTS)
        loss = F.mse_loss(compiled(inputs), inputs @ wanted)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 200 == 0:
            say(f"step {step}, loss {loss.item():.4f}, {time.monotonic() - began:.1f} s")
        if options.pace:
            time.sleep(options.pace)


def main() -> None:
    """Read the command line and train."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--steps", type=int, metavar="N", help="end after N steps (default: never)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--pace", type=float, default=0.01, metavar="S", help="wait S seconds after each step (%(default)s)")
    parser.add_argument("--backend", default="inductor", help="of torch.compile (default: %(default)s)")
    with contextlib.suppress(KeyboardInterrupt):
        train(parser.parse_args())


if __name__ == "__main__":
    sys.exit(main())
