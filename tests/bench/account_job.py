"""A training job that measures itself: what `account_sums` lays beside tuimon's accounts. Prints one line of JSON.

    python account_job.py STEPS optimizer|inferred|marked

A compiled model (backend "eager": nothing native is generated), a loader, an optimizer or an update by hand, a collection of
the whole heap now and then, a collective, a window of the profiler. With time.perf_counter_ns() it notes each passage of its
loop's head and the middle of each step, and what the loader, the optimizer, the collective and the profiler took of each step.
"""

import gc
import json
import sys
from time import perf_counter_ns as now

import torch
import torch.distributed as dist

import tuimon


@torch.compile(backend="eager")
def model(x, weights):
    for weight in weights:
        x = (x @ weight).tanh()
    return x.square().mean()


def main(steps, kind):
    torch.manual_seed(0)
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    weights = [torch.nn.Parameter(torch.randn(48, 48) / 7) for _ in range(4)]
    optimizer = torch.optim.AdamW(weights, foreach=False)
    batches = torch.utils.data.DataLoader(torch.randn(steps * 8, 48), batch_size=8, shuffle=True)
    heap = [[number] for number in range(100_000)]
    heads, middles, took = [], [], {"data wait": 0, "optimizer": 0, "communication": 0, "gc": 0, "profiler": 0}
    batch = iter(batches)
    sys.stdout.write("begins\n")
    sys.stdout.flush()
    for step in range(steps):
        heads.append(now())
        if kind == "marked":
            tuimon.step()
        began = now()
        x = next(batch)
        took["data wait"] += now() - began
        profiler = None
        if step % 2500 == 1250:
            began = now()
            profiler = torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU])
            profiler.start()
            took["profiler"] += now() - began
        loss = model(x, weights)
        middles.append(now())
        loss.backward()
        if step % 50 == 20:
            began = now()
            dist.all_reduce(loss.detach())
            took["communication"] += now() - began
        if step % 500 == 250:
            began = now()
            gc.collect()
            took["gc"] += now() - began
        if profiler is not None:
            began = now()
            profiler.stop()
            took["profiler"] += now() - began
        if kind == "optimizer":
            began = now()
            optimizer.step()
            took["optimizer"] += now() - began
            optimizer.zero_grad()
        else:
            with torch.no_grad():
                for weight in weights:
                    weight -= 0.01 * weight.grad
                    weight.grad = None
    heads.append(now())
    del heap
    sys.stdout.write(json.dumps({"heads": heads, "middles": middles, "took": took}) + "\n")


main(int(sys.argv[1]), sys.argv[2])
