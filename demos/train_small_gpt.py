"""A small compiled transformer on synthetic text, with three faults that one can watch (each can be switched off).

    python demos/train_small_gpt.py [--steps N] [--logger hot|out|off] [--item loop|hoisted|off] [--no-ragged] [--batch N]

The faults are ordinary ones, each on one line that says FAULT:

* a request logger inside `forward`: the compiler has to leave its graph for it in every step, even when nothing is printed;
* an `.item()` inside a small compiled function that runs for every head of every weight matrix in every step;
* a last batch that is shorter than the others: the compiler meets a new shape and compiles again.

Two runs can be compared where only one thing differs and their losses are the same to the bit. `--logger out` logs the same
line before the model is called; `--item hoisted` calls the same small function, but reads all of its answers at once, behind
the loop: the host does the same work in both, and only the graph breaks go. (`off` leaves the work itself out, which is another
program.) `--batch` changes the work, so that such a pair is none. `--stall N` is a fourth fault: each Nth batch comes late.

Needs torch; a C++ compiler makes it the real thing, without one it says so and uses a backend that needs none.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import logging
import os
import shutil
import sys
import sysconfig
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TextIO

import torch
from torch import Tensor, nn
from torch.nn import functional as F

VOCABULARY, WIDTH, HEADS, LAYERS, CONTEXT = 64, 64, 4, 2, 32
BATCH, SEQUENCES = 8, 117  # 14 full batches an epoch, and 5 sequences over
NORM_LIMIT = 4.0
STALL_S = 0.4

requests = logging.getLogger("requests")  # nothing listens below WARNING: not one line of it is ever printed


@dataclass(frozen=True)
class Faults:
    """Which of the three faults are in, and where."""

    logger: str = "hot"
    """"hot": in the compiled model; "out": before it is called; "off"."""
    item: str = "loop"
    """"loop": in the compiled function; "hoisted": one reading behind the loop; "off": no question to the host."""
    ragged: bool = True


class Block(nn.Module):
    """Attention and a feed-forward layer, each added to its input."""

    def __init__(self) -> None:
        super().__init__()
        self.to_qkv = nn.Linear(WIDTH, 3 * WIDTH, bias=False)
        self.out = nn.Linear(WIDTH, WIDTH, bias=False)
        self.up = nn.Linear(WIDTH, 4 * WIDTH, bias=False)
        self.down = nn.Linear(4 * WIDTH, WIDTH, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        batch, length, _ = x.shape
        qkv = self.to_qkv(F.rms_norm(x, (WIDTH,))).view(batch, length, 3, HEADS, WIDTH // HEADS)
        q, k, v = qkv.permute(2, 0, 3, 1, 4).unbind(0)
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).reshape(batch, length, WIDTH))
        return x + self.down(F.relu(self.up(F.rms_norm(x, (WIDTH,)))))


class SmallGPT(nn.Module):
    """Token and position embeddings, a few blocks, and a projection back to the vocabulary."""

    def __init__(self, faults: Faults) -> None:
        super().__init__()
        self.faults = faults
        self.tokens = nn.Embedding(VOCABULARY, WIDTH)
        self.positions = nn.Parameter(torch.zeros(CONTEXT, WIDTH))
        self.blocks = nn.ModuleList(Block() for _ in range(LAYERS))
        self.to_vocabulary = nn.Linear(WIDTH, VOCABULARY, bias=False)

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.tokens(tokens) + self.positions
        if self.faults.logger == "hot":
            requests.info("a batch of %d sequences", tokens.shape[0])  # FAULT: a logger inside the compiled model
        for block in self.blocks:
            x = block(x)
        return self.to_vocabulary(F.rms_norm(x, (WIDTH,)))


def limit_norm_with_item(weight: Tensor) -> Tensor:
    """Scale a piece of a weight matrix down where its largest row is too long, asking on the host whether it is."""
    longest = weight.norm(dim=1).max()
    if longest.item() > NORM_LIMIT:  # FAULT: the host reads a value in the middle of a small compiled function
        weight = weight * (NORM_LIMIT / longest)
    return weight


def longest_row(weight: Tensor) -> Tensor:
    """How long the largest row of a piece of a weight matrix is; who called this asks for the value."""
    return weight.norm(dim=1).max()


def limit_norm(weight: Tensor) -> Tensor:
    """The same without a question to the host: the factor is 1 where no row is too long."""
    longest = weight.norm(dim=1).max()
    return weight * (NORM_LIMIT / longest.clamp(min=NORM_LIMIT))


def limit_norms(pieces: list[Tensor], item: str, backend: str) -> Callable[[], None]:
    """What limits the rows of all pieces, in place, once a step."""
    if item == "hoisted":
        row = torch.compile(longest_row, backend=backend)

        def hoisted() -> None:
            for piece, longest in zip(pieces, torch.stack([row(piece) for piece in pieces]).tolist(), strict=True):
                piece.copy_(piece * (NORM_LIMIT / longest) if longest > NORM_LIMIT else piece)

        return hoisted
    limit: Callable[[Tensor], Tensor] = torch.compile(limit_norm_with_item if item == "loop" else limit_norm, backend=backend)

    def each() -> None:
        for piece in pieces:
            piece.copy_(limit(piece))

    return each


def late(batches: Iterator[Tensor], every: int) -> Iterator[Tensor]:
    """The same batches, of which one in `every` comes late."""
    for number, batch in enumerate(batches, 1):
        if number % every == 0:
            time.sleep(STALL_S)  # FAULT (with --stall): as a file on a slow disk
        yield batch


def batches(faults: Faults, generator: torch.Generator, size: int = BATCH) -> Iterator[Tensor]:
    """Endless epochs over one synthetic text: each sequence counts up from a random start, with some noise."""
    start = torch.randint(VOCABULARY, (SEQUENCES, 1), generator=generator)
    noise = torch.randint(0, 2, (SEQUENCES, CONTEXT + 1), generator=generator)
    text = (start + torch.arange(CONTEXT + 1) + noise) % VOCABULARY
    while True:
        for at in range(0, SEQUENCES, size):
            batch = text[at : at + size]
            if len(batch) < size and not faults.ragged:
                continue
            yield batch  # FAULT (with `ragged`): the last batch of the epoch has 5 sequences, not 8


def say(text: str) -> None:
    """Tell whoever watches; on stderr, so that it comes at once."""
    sys.stderr.write(f"demo: {text}\n")


def usable_backend(wanted: str) -> str:
    """`wanted`, or "aot_eager" with a sentence on stderr where inductor cannot build code on this machine."""
    if wanted != "inductor":
        return wanted
    header = os.path.join(sysconfig.get_path("include"), "Python.h")
    if shutil.which(os.environ.get("CXX", "g++")) is None:
        missing = "there is no C++ compiler here (g++, or what CXX names)"
    elif not os.path.exists(header):
        missing = f"{header} is not there (package python3-dev)"
    else:
        return wanted
    say(f"{missing}: using the backend aot_eager, which compiles nothing to machine code")
    return "aot_eager"


def train(options: argparse.Namespace, losses: TextIO | None) -> None:
    """The loop. Ends after `options.steps` steps, or never."""
    torch.manual_seed(options.seed)
    torch.set_num_threads(1)  # one thread: the same sums in the same order, so that two runs can be compared bit by bit
    faults = Faults(options.logger, options.item, ragged=not options.no_ragged)
    backend = usable_backend(options.backend)
    model = SmallGPT(faults)
    rows = WIDTH // HEADS  # a head's share of a weight matrix: one shape for all, so that shapes stay the batch's affair
    pieces = [piece for p in model.blocks.parameters() if p.shape[1] == WIDTH for piece in p.detach().split(rows)]
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    compiled = torch.compile(model, backend=backend)
    limit = limit_norms(pieces, faults.item, backend)
    steps = itertools.count() if options.steps is None else range(options.steps)
    data = batches(faults, torch.Generator().manual_seed(options.seed), options.batch)
    if options.stall:
        data = late(data, options.stall)
    began = time.monotonic()
    for step, batch in zip(steps, data, strict=False):
        if faults.logger == "out":
            requests.log(logging.INFO, "a batch of %d sequences", batch.shape[0])
        logits = compiled(batch[:, :-1])
        loss = F.cross_entropy(logits.flatten(0, 1), batch[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            limit()
        if losses is not None:
            losses.write(f"{step} {loss.item().hex()}\n")
            losses.flush()
        if step % 20 == 0:
            say(f"step {step}, loss {loss.item():.4f}, {time.monotonic() - began:.1f} s")
        if options.pace:
            time.sleep(options.pace)


def main() -> None:
    """Read the command line and train."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--steps", type=int, metavar="N", help="end after N steps (default: never)")
    parser.add_argument("--logger", choices=("hot", "out", "off"), default="hot", help="in forward, before it, or nowhere")
    parser.add_argument("--no-logger", action="store_const", const="off", dest="logger", help="the same as --logger off")
    parser.add_argument("--item", choices=("loop", "hoisted", "off"), default="loop", help="in the loop, behind it, nowhere")
    parser.add_argument("--no-item", action="store_const", const="off", dest="item", help="the same as --item off")
    parser.add_argument("--no-ragged", action="store_true", help="leave out the short last batch")
    parser.add_argument("--batch", type=int, default=BATCH, metavar="N", help="sequences in a batch (default: %(default)s)")
    parser.add_argument("--stall", type=int, default=0, metavar="N", help="have each Nth batch come late (default: none)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--pace", type=float, default=0.0, metavar="S", help="wait S seconds after each step")
    parser.add_argument("--losses", metavar="FILE", help="write each step's loss, exact to the bit (as hexadecimal floats)")
    parser.add_argument("--backend", default="inductor", help="of torch.compile (default: %(default)s)")
    options = parser.parse_args()
    with contextlib.ExitStack() as files:
        losses = files.enter_context(open(options.losses, "w", encoding="ascii")) if options.losses else None
        with contextlib.suppress(KeyboardInterrupt):
            train(options, losses)


if __name__ == "__main__":
    main()
