"""Which processes belong to the job, and which GPUs it has open: read from /proc, for the reading of NVML."""

from __future__ import annotations

import os
import re
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from tuimon.sources import tree

KEPT_S = 5.0
"""An answer is given again for so long."""
TOGETHER_S = 1.0
"""Those who ask for several jobs within so long get what one look at all processes has found."""
MOST_FILES = 4096
"""Open files of one process that are looked at."""
_DEVICE = re.compile(r"/dev/nvidia(\d+)(?: \(deleted\))?$")
T = TypeVar("T")
Clock = Callable[[], float]


def family(pid: int, proc: Path = Path("/proc"), clock: Clock = time.monotonic) -> Callable[[], frozenset[int]]:
    """What gives the pids of the job and of all processes below it. The job's own is in it also after its end."""
    kept_s = TOGETHER_S if proc == tree.PROC else 0.0
    return _kept(lambda: frozenset({pid, *(one.pid for one in tree.below(pid, proc, kept_s=kept_s))}), clock)


def opened(pid: int, proc: Path = Path("/proc"), clock: Clock = time.monotonic) -> Callable[[], frozenset[int] | None]:
    """What gives the minor numbers N of each /dev/nvidiaN that the job or a process below it has open.

    None: this user may not see the files of the job. A process that uses CUDA may keep GPUs open on which it does nothing, so
    this tells where the job can be, not where it works.
    """
    pids = family(pid, proc, clock)

    def minors() -> frozenset[int] | None:
        own = _minors(proc / str(pid))
        others = () if own is None else [_minors(proc / str(one)) for one in pids() if one != pid]
        return None if own is None else own.union(*(one for one in others if one is not None))

    return _kept(minors, clock)


def _kept(look: Callable[[], T], clock: Clock) -> Callable[[], T]:
    """What gives the answer of `look`, for a while the same. Each GPU's thread asks: while one looks the others wait."""
    lock = threading.Lock()
    answer: list[tuple[float, T]] = []

    def give() -> T:
        with lock:
            now = clock()
            if not answer or now - answer[0][0] >= KEPT_S:
                answer[:] = [(now, look())]
            return answer[0][1]

    return give


def _minors(folder: Path) -> frozenset[int] | None:
    """Of one process, by its open files, and by what it has mapped where it has none of them open."""
    try:
        names = os.listdir(folder / "fd")[:MOST_FILES]
    except OSError:
        return None
    targets = []
    for name in names:
        try:
            targets.append(os.readlink(folder / "fd" / name))
        except OSError:
            continue  # closed meanwhile
    found = _numbers(targets)
    if not found:
        try:
            found = _numbers((folder / "maps").read_text(errors="replace").splitlines())
        except OSError:
            return found
    return found


def _numbers(texts: list[str]) -> frozenset[int]:
    return frozenset(int(match[1]) for match in map(_DEVICE.search, texts) if match is not None)
