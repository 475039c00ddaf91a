"""A job that is joined in the middle: what `attach_steps` lays beside tuimon's steps. Prints a line at once, then one of JSON.

    python attach_job.py SECONDS optimizer|marked|marked-function|backward|calls

It goes on for SECONDS from when its standard input is closed, which whoever joins it does then: on a busy machine compiling and
attaching may take longer than all steps. Each step takes some 4 ms; every 15th is slow by 80 ms, in turn by a sleep, a wait for
data and a collection. With time.perf_counter_ns() it notes the middle of each step, and the middle of what made one slow.
"""

import gc
import json
import sys
from select import select
from time import perf_counter_ns as now
from time import sleep

import torch

import tuimon

EVERY, SLOW_S = 15, 0.08
heap = [[number] for number in range(1_000_000)]


@torch.compile(backend="eager")
def model(x, weights):
    for weight in weights:
        x = (x @ weight).tanh()
    return x.square().mean()


class Items(torch.utils.data.IterableDataset):
    def __init__(self, before):
        self.before = before

    def __iter__(self):
        number = 0
        while True:
            if number % (3 * EVERY) == 2 * EVERY:
                slow("data wait", number - self.before, lambda: sleep(SLOW_S))
            yield torch.ones(16, 64)
            number += 1


told = {"middles": [], "slow": []}


def slow(cause, step, by):
    began = now()
    by()
    told["slow"].append([step, cause, (began + now()) // 2])


def step(number, x, weights, optimizer, kind):
    loss = model(x, weights)
    told["middles"].append(now())
    if kind != "calls":
        loss.backward()
    else:
        loss = model(x, weights[:2])
    if number % (3 * EVERY) == EVERY:
        slow("other python", number, lambda: sleep(SLOW_S))
    if number % (3 * EVERY) == 0 and number:
        slow("gc", number, gc.collect)
    if optimizer is not None:
        optimizer.step()
        optimizer.zero_grad()


def main(seconds, kind):
    gc.disable()
    weights = [torch.nn.Parameter(torch.randn(64, 64) / 8) for _ in range(4)]
    optimizer = torch.optim.SGD(weights, lr=0.01) if kind == "optimizer" else None
    before = kind.startswith("marked")  # a marked step begins behind the wait for its data: that is in the one before it
    ends = None
    for number, x in enumerate(torch.utils.data.DataLoader(Items(before), batch_size=None)):
        if kind == "marked":
            tuimon.step()
        step(number, x, weights, optimizer, kind)
        if number == 1:
            sys.stdout.write("begins\n")
            sys.stdout.flush()
        if ends is None and number and select([sys.stdin], [], [], 0)[0]:
            ends = now() + int(seconds * 1e9)
        if ends is not None and now() > ends:
            break
    sys.stdout.write(json.dumps(told) + "\n")


main(float(sys.argv[1]), sys.argv[2])
