"""Which processes belong to the job, and which GPUs it has open: read from /proc, for the reading of NVML."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable
from pathlib import Path

from tuimon.sources import tree

KEPT_S = 5.0
"""An answer is given again for so long."""
MOST_FILES = 4096
"""Open files of one process that are looked at."""
_DEVICE = re.compile(r"/dev/nvidia(\d+)(?: \(deleted\))?$")
Clock = Callable[[], float]


def family(pid: int, proc: Path = Path("/proc"), clock: Clock = time.monotonic) -> Callable[[], frozenset[int]]:
    """What gives the pids of the job and of all processes below it. The job's own is in it also after its end."""
    kept: list[tuple[float, frozenset[int]]] = []

    def pids() -> frozenset[int]:
        now = clock()
        if not kept or now - kept[0][0] >= KEPT_S:
            below = tree.below(pid, proc)
            kept[:] = [(now, frozenset({pid, *(one.pid for one in below)}))]
        return kept[0][1]

    return pids


def opened(pid: int, proc: Path = Path("/proc"), clock: Clock = time.monotonic) -> Callable[[], frozenset[int] | None]:
    """What gives the minor numbers N of each /dev/nvidiaN that the job or a process below it has open.

    None: this user may not see the files of the job. A process that uses CUDA may keep GPUs open on which it does nothing, so
    this tells where the job can be, not where it works.
    """
    kept: list[tuple[float, frozenset[int] | None]] = []
    pids = family(pid, proc, clock)

    def minors() -> frozenset[int] | None:
        now = clock()
        if not kept or now - kept[0][0] >= KEPT_S:
            own = _minors(proc / str(pid))
            others = () if own is None else [_minors(proc / str(one)) for one in pids() if one != pid]
            kept[:] = [(now, None if own is None else own.union(*(one for one in others if one is not None)))]
        return kept[0][1]

    return minors


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
