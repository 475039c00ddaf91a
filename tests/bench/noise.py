"""Whether this machine is quiet enough for a verdict: what is the same is measured twice, and waiting for a processor counted.

A bench on a busy machine may print figures, but never that a bound is kept or broken.
"""

from __future__ import annotations

import contextlib
import statistics
import time
from collections.abc import Sequence
from pathlib import Path

SAME = 0.003
"""So far apart may the median of what is the same be, where a step is measured."""
WIDTH = 10 / 3
"""So many times that its middle three fifths may be wide."""
ROUNDS = 5
"""Fewer rounds are no ground for a verdict."""
SWITCHES = 5.0
"""So many times in a second of its own running may a job be put aside."""
PRESSURE = 0.10
"""For such a share of the time may somebody have waited for a processor."""


def middle(values: Sequence[float]) -> tuple[float, float, float]:
    """(median, 20th percentile, 80th percentile). Raises ValueError where there are no values."""
    ordered = sorted(values)
    if not ordered:
        raise ValueError("no values")
    fifth = len(ordered) // 5
    return statistics.median(ordered), ordered[fifth], ordered[-1 - fifth]


def spread(values: Sequence[float], digits: int = 3) -> str:
    """ "1.020 [1.008-1.028]": the median and the middle three fifths."""
    mid, low, high = middle(values)
    return f"{mid:.{digits}f} [{low:.{digits}f}-{high:.{digits}f}]"


def put_aside(pid: int) -> int:
    """How often the threads of a process had to give the processor up against their will; 0 where it has ended."""
    told = 0
    for path in Path(f"/proc/{pid}/task").glob("*/status"):
        with contextlib.suppress(OSError):  # a thread that has ended
            for line in path.read_text().splitlines():
                if line.startswith("nonvoluntary_ctxt_switches:"):
                    told += int(line.split()[1])
    return told


def ran_s(pid: int) -> float:
    """For how many seconds the threads of a process have run; 0 where it has ended."""
    told = 0
    for path in Path(f"/proc/{pid}/task").glob("*/schedstat"):
        with contextlib.suppress(OSError, IndexError, ValueError):
            told += int(path.read_text().split()[0])
    return told / 1e9


def waited_s() -> float | None:
    """For how many seconds since the machine's start somebody has waited for a processor; None: not told by this kernel."""
    try:
        first = Path("/proc/pressure/cpu").read_text().splitlines()[0]
        return int(first.rpartition("total=")[2]) / 1e6
    except (OSError, IndexError, ValueError):
        return None


class Gate:
    """Watches the machine from its making until `verdict`. `pids`: the processes that are measured."""

    def __init__(self, pids: Sequence[int] = ()) -> None:
        self._pids = tuple(pids)
        self._began, self._waited = time.monotonic(), waited_s()
        self._switches = {pid: put_aside(pid) for pid in self._pids}
        self._ran = {pid: ran_s(pid) for pid in self._pids}

    def verdict(self, same: Sequence[float], aside: float = 0.0, within: float = SAME) -> str:
        """Why nothing is judged; "" on a quiet machine.

        `same`: for each round, one measure of what is the same over the other; `aside`: how often in a second a job was put
        aside, where it tells that itself; `within`: how far apart what is the same may be, as what is wanted asks for. To be
        called while the processes still live.
        """
        reasons = []
        if len(same) < ROUNDS:
            reasons.append(f"{len(same)} round{'s' * (len(same) != 1)} where {ROUNDS} are the least")
        if same:
            mid, low, high = middle(same)
            if abs(mid - 1) > within:
                reasons.append(f"nothing against nothing differs by {abs(mid - 1):.1%}")
            if high - low > WIDTH * within:
                reasons.append(f"nothing against nothing spreads over {high - low:.1%}")
        worst = max((self._rate(pid) for pid in self._pids), default=aside)
        if worst > SWITCHES:
            reasons.append(f"a job was put aside {worst:.0f} times in each second that it ran")
        waited, took = waited_s(), time.monotonic() - self._began
        if waited is not None and self._waited is not None and took > 0 and (waited - self._waited) / took > PRESSURE:
            reasons.append(f"somebody waited for a processor for {(waited - self._waited) / took:.0%} of the time")
        return "; ".join(reasons)

    def _rate(self, pid: int) -> float:
        ran = ran_s(pid) - self._ran[pid]
        return (put_aside(pid) - self._switches[pid]) / ran if ran > 0.1 else 0.0
