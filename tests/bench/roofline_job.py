"""A compiled transformer block, forward and backward, on one thread of the CPU: the job of `roofline_block`.

python tests/bench/roofline_job.py [--steps N] [--seconds S] [--width D] [--tokens T] [--batch B] [--backend NAME]
"""

from __future__ import annotations

import argparse
import sys
import time

import torch
import torch.nn.functional as F
from torch import nn


class Block(nn.Module):
    """Norm, causal attention, norm, two linear layers; each half with its residual."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, tokens, width = x.shape
        parts = self.qkv(self.first(x)).chunk(3, -1)
        q, k, v = (one.view(batch, tokens, self.heads, width // self.heads).transpose(1, 2) for one in parts)
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).reshape(batch, tokens, width))
        return x + self.down(F.gelu(self.up(self.second(x))))


def hand_count(batch: int, tokens: int, width: int) -> tuple[int, int]:
    """(forward, backward) operations of the contractions, by hand: two for each multiply and add.

    The backward of a product is two products. Attention's backward computes its scores again: five products for two.
    """
    linear = 2 * batch * tokens * width * width * 12
    pairs = tokens * (tokens + 1) // 2
    attention = 2 * 2 * batch * pairs * width
    return linear + attention, 2 * linear + attention * 5 // 2


def main() -> int:
    """Train it for some steps, at least so many and at least so long."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--seconds", type=float, default=0.0)
    parser.add_argument("--width", type=int, default=512)
    parser.add_argument("--tokens", type=int, default=256)
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--backend", default="inductor")
    options = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    block = Block(options.width, max(1, options.width // 64))
    step_of = torch.compile(block, backend=options.backend)
    optimizer = torch.optim.SGD(block.parameters(), lr=1e-3)
    x = torch.randn(options.batch, options.tokens, options.width, requires_grad=True)
    began, step = time.perf_counter(), 0
    while step < options.steps or time.perf_counter() - began < options.seconds:
        loss = step_of(x).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        x.grad = None
        step += 1
    sys.stderr.write(f"{step} steps, loss {float(loss.detach()):.4f}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
