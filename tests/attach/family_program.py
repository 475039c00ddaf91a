"""Families of real torch processes: family_program.py KIND. Each child says "ready" through the ready directory."""

import os
import sys
import time
from pathlib import Path

KIND = sys.argv[1]
READY = Path(os.environ["FAMILY_READY"]) / KIND


def ready(name):
    (READY / f"{name}.{os.getpid()}").touch()


class Rows:
    """A dataset; its workers say when they are up."""

    def __len__(self):
        return 1 << 20

    def __getitem__(self, index):
        import torch

        ready("loader")
        return torch.ones(2)


def rank(_index):
    import torch

    matrix = torch.ones(64, 64, requires_grad=True)
    ready("rank")
    while True:
        (matrix @ matrix).sum().backward()
        time.sleep(0.02)


def loader(method):
    from torch.utils.data import DataLoader

    for _ in DataLoader(Rows(), num_workers=2, multiprocessing_context=method, prefetch_factor=1):
        time.sleep(0.05)


def compiling():
    from torch._inductor import config

    config.compile_threads = 2
    from torch._inductor.async_compile import AsyncCompile

    pool = AsyncCompile.process_pool()
    pool.submit(os.getpid).result()
    tasks = [pool.submit(time.sleep, 3600) for _ in range(2)]
    ready("compile")
    while tasks:
        time.sleep(0.02)


if __name__ == "__main__":
    if KIND in ("fork", "spawn", "forkserver"):
        loader(KIND)
    elif KIND == "ranks":
        import torch.multiprocessing

        torch.multiprocessing.spawn(rank, nprocs=2)
    elif KIND == "rank":
        rank(0)
    elif KIND == "compile":
        compiling()
