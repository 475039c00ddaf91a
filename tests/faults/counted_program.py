"""A job that counts for itself: compiled training that runs as many epochs as a line of its input says, and answers in JSON.

Its arguments: the backend, the path of a file. An epoch begins anew from the same weights and the same data, so that its losses
are those of the first one to the bit, or something has changed them. Each step calls two compiled graphs forward, two backward
(there is a break in the middle) and an optimizer. The main thread naps between two epochs, as one does that waits for data.
"""

import hashlib
import json
import os
import select
import struct
import sys
import threading
import time

STEPS = 50


def main():
    import torch

    torch.manual_seed(0)
    torch.set_num_threads(1)
    net = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.GELU(), torch.nn.LayerNorm(32), torch.nn.Linear(32, 1))
    first = {name: value.clone() for name, value in net.state_dict().items()}
    threading.Thread(target=threading.Event().wait, daemon=True).start()  # as most jobs have: one that is asleep

    @torch.compile(backend=sys.argv[1])
    def loss_of(x):
        y = net(x)
        torch._dynamo.graph_break()
        return y.pow(2).mean()

    def epoch():
        net.load_state_dict(first)
        optimizer = torch.optim.AdamW(net.parameters(), lr=1e-2)
        source = torch.Generator().manual_seed(1)
        losses = hashlib.sha256()
        for _ in range(STEPS):
            optimizer.zero_grad()
            loss = loss_of(torch.randn(8, 16, generator=source))
            loss.backward()
            optimizer.step()
            losses.update(struct.pack("<f", loss.item()))
        return losses.hexdigest()

    steps, seen, cpu = 0, {epoch(), epoch()}, time.thread_time()
    say({"losses": sorted(seen), "pid": os.getpid()})
    while True:
        while not select.select([0], [], [], 0.01)[0]:
            pass
        line = sys.stdin.buffer.raw.readline()  # nothing is kept back where select does not see it
        if not line.strip():
            break
        begun = time.thread_time()
        for _ in range(int(line)):
            seen.add(epoch())
            steps += STEPS
        cpu = time.thread_time() - begun
        say(
            {
                "steps": steps,
                "losses": sorted(seen),
                "cpu_s": cpu,
                "threads": len(os.listdir("/proc/self/task")),
                "fds": len(os.listdir("/proc/self/fd")),
                "rss": resident(),
                "hooked": any(name.startswith("_tuimon_hook") for name in sys.modules),
            }
        )


def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE")


def say(facts):
    os.write(1, json.dumps(facts).encode() + b"\n")


main()
