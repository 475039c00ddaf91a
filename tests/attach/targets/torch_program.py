"""Torch programs to attach to: torch_program.py MODE FILE [ARGUMENT]. FILE holds eight counters that both sides map.

Counters: 0 rounds (from 1 on: warmed up), 1 faults, 3 whether our hook is in sys.modules now, 5 the last snapshot that was
answered, 6 the one that is wanted, 7 the wish that the program end. Every mode checks its own results against those of its
first round, so a result that an attach changes is a fault. A snapshot goes to FILE.snapshot, the last facts to FILE.end.
"""

import hashlib
import json
import mmap
import os
import struct
import sys
import threading
import time

mode, path = sys.argv[1], sys.argv[2]
argument = sys.argv[3] if len(sys.argv) > 3 else ""
with open(path, "r+b") as file:
    counters = memoryview(mmap.mmap(file.fileno(), 4096)).cast("Q")

WARM_UP_STEPS = 5
EPOCH = 50
"""Steps after which training begins anew from the same weights and the same data: each epoch's losses are the first one's."""


def beat():
    """A round is done; answer what is asked. False when the program shall end."""
    counters[3] = "_tuimon_hook" in sys.modules
    if counters[6] != counters[5]:
        put(path + ".snapshot", snapshot())
        counters[5] = counters[6]
    counters[0] += 1
    return not counters[7]


def put(where, facts):
    with open(where + ".new", "w") as out:
        json.dump(facts, out)
    os.rename(where + ".new", where)


def snapshot():
    """What an attach could leave behind, as the program itself sees it."""
    import atexit
    import gc
    import logging
    import signal

    import __main__

    with open("/proc/self/statm") as statm:  # before the looking takes memory itself
        rss = int(statm.read().split()[1]) * mmap.PAGESIZE
    optimizer = sys.modules.get("torch.optim.optimizer")  # the name in torch.optim is another thing
    monitoring = getattr(sys, "monitoring", None)
    numbers = os.listdir("/proc/self/fd")
    loggers = ("", "torch", "torch.__trace")
    return {
        "threads": sorted(thread.name for thread in threading.enumerate()),
        "native threads": len(os.listdir("/proc/self/task")),
        "descriptors": sorted(
            os.readlink("/proc/self/fd/" + number).split(":")[0]
            for number in numbers
            if os.path.lexists("/proc/self/fd/" + number)
        ),
        "modules": sorted(sys.modules),
        "path": list(sys.path),
        "finders": [str(type(finder)) for finder in sys.meta_path],
        "main": sorted(vars(__main__)),
        "signals": [str(signal.getsignal(number)) for number in signal.valid_signals()],
        "trace": [str(sys.gettrace()), str(sys.getprofile()), str(threading._trace_hook), str(threading._profile_hook)],
        "hooks": [str(sys.excepthook), str(sys.displayhook), str(threading.excepthook)],
        "gc": [len(gc.callbacks), gc.isenabled(), list(gc.get_threshold())],
        "atexit": atexit._ncallbacks(),
        "objects of ours": objects_of_ours(),
        "monitoring": [str(monitoring.get_tool(number)) for number in range(6)] if monitoring else None,
        "handlers": {name: [str(type(one)) for one in logging.getLogger(name).handlers] for name in loggers},
        "levels": {name: logging.getLogger(name).level for name in loggers},
        "optimizer hooks": len(optimizer._global_optimizer_post_hooks) if optimizer else None,
        "globals": sorted(name for name in globals() if "__compiled_fn" in name or "__resume_at" in name),
        "wrapped": sorted(
            str(type(value)) for name, value in globals().items() if "__compiled_fn" in name or "__resume_at" in name
        ),
        "rss": rss,
    }


def objects_of_ours():
    """What lives of the hook: functions, and instances of its classes, by name."""
    import gc

    found = {}
    gc.collect()
    for one in gc.get_objects():
        kind = type(one)
        module = kind.__module__ if kind.__module__ != "builtins" else getattr(one, "__module__", None)
        if isinstance(module, str) and module.startswith("_tuimon_hook"):
            name = module + "." + str(getattr(one, "__qualname__", None) or kind.__qualname__)
            found[name] = found.get(name, 0) + 1
    return found


def dynamo_counters():
    import torch._dynamo.utils as utils

    return {group: dict(sorted(values.items())) for group, values in sorted(utils.counters.items()) if values}


def idle_thread():
    """What most jobs have: a progress bar's, a logger's, a watchdog's thread, asleep."""
    threading.Thread(target=threading.Event().wait, daemon=True).start()


def training():
    """Compiled training with a graph break. `argument` is the backend."""
    import torch

    torch.manual_seed(0)
    torch.set_num_threads(1)
    net = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.GELU(), torch.nn.LayerNorm(32), torch.nn.Linear(32, 1))
    first = {name: value.clone() for name, value in net.state_dict().items()}

    @torch.compile(backend=argument or "aot_eager")
    def loss_of(x):
        y = net(x)
        torch._dynamo.graph_break()
        return y.pow(2).mean()

    def epoch(steps):
        net.load_state_dict(first)
        optimizer = torch.optim.AdamW(net.parameters(), lr=1e-2)
        source = torch.Generator().manual_seed(1)
        losses = hashlib.sha256()
        for _ in range(steps):
            optimizer.zero_grad()
            loss = loss_of(torch.randn(8, 16, generator=source))
            loss.backward()
            optimizer.step()
            losses.update(struct.pack("<f", loss.item()))
            if steps == EPOCH:
                beat()
        return losses.hexdigest()

    idle_thread()
    epoch(WARM_UP_STEPS)
    epochs, hashes = 0, {}
    while not counters[7]:
        found = epoch(EPOCH)
        hashes.setdefault(found, epochs)
        counters[1] = len(hashes) - 1
        epochs += 1
    put(path + ".end", {"epochs": epochs, "losses": sorted(hashes), "counters": dynamo_counters(), "rounds": counters[0]})


def no_torch_yet():
    """Has not imported torch; does so at its end, and compiles something then."""
    while beat():
        sum(range(2000))
    import torch

    compiled = torch.compile(lambda x: torch.relu(x).sum(), backend="eager")
    if compiled(torch.ones(4)).item() != 4.0:
        counters[1] += 1
    put(path + ".end", {"frames": dynamo_counters().get("frames", {})})


def loader():
    """Eager training from a DataLoader with two workers, started anew each epoch; the sum of an epoch is known."""
    import torch

    torch.set_num_threads(1)

    class Squares(torch.utils.data.Dataset):
        def __len__(self):
            return 256

        def __getitem__(self, index):
            return torch.full((4,), float(index * index))

    right = 4 * sum(index * index for index in range(256))
    idle_thread()
    while True:
        total = 0.0
        for batch in torch.utils.data.DataLoader(Squares(), batch_size=16, num_workers=2, multiprocessing_context="fork"):
            total += batch.double().sum().item()
            if not beat():
                return
        if total != right:
            counters[1] += 1


def compiling():
    """Compiles a new function each round."""
    import torch

    idle_thread()
    number = 0
    while True:
        number = number % 50 + 1
        torch._dynamo.reset()
        names = {"torch": torch}
        exec(f"def f(x):\n    return (torch.relu(x) * {number}).sum()\n", names)
        x = torch.ones(8, requires_grad=True)
        result = torch.compile(names["f"], backend="aot_eager")(x)
        result.backward()
        if result.item() != 8 * number or x.grad.sum().item() != 8 * number:
            counters[1] += 1
        if not beat():
            return


def matmul():
    """One matrix product of about `argument` seconds after the other, on the main thread, without the GIL."""
    import torch

    torch.set_num_threads(1)
    torch.manual_seed(0)
    idle_thread()
    begin = time.perf_counter()
    small = torch.randn(1200, 1200)
    small @ small
    one = max(1e-3, time.perf_counter() - begin)
    begin = time.perf_counter()
    small @ small
    one = min(one, time.perf_counter() - begin)
    width = int(1200 * (float(argument or 20) / one) ** (1 / 3))
    big = torch.randn(width, width)
    right = None
    beat()
    while True:
        total = (big @ big).double().sum().item()
        right = total if right is None else right
        if total != right:
            counters[1] += 1
        if not beat():
            return


globals()[mode]()
