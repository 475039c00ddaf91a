"""What the kernel tells of a process's memory and waits and of the host's pressure: small files, read and parsed.

Every function gives None, or nothing, where the kernel does not keep the figure or does not let us read it.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

PRESSURES = ("cpu", "memory", "io")
"""The files of /proc/pressure."""


def read(path: Path) -> str | None:
    """The text of a file of the kernel."""
    try:
        return path.read_text(errors="replace")
    except OSError:
        return None


def swapped_bytes(status: str) -> int | None:
    """Memory that is swapped out, from the text of /proc/PID/status."""
    for line in status.splitlines():
        if line.startswith("VmSwap:"):
            try:
                return int(line.split()[1]) * 1024
            except (IndexError, ValueError):
                return None
    return None


def pressure(folder: Path = Path("/proc/pressure")) -> tuple[tuple[str, float], ...]:
    """(what, percent of the last ten seconds in which some task waited for it) for each of PRESSURES that can be read."""
    found = []
    for what in PRESSURES:
        share = some_share(read(folder / what) or "")
        if share is not None:
            found.append((what, share))
    return tuple(found)


def some_share(text: str) -> float | None:
    """avg10 of the line "some avg10=0.12 avg60=.." of a pressure file."""
    for line in text.splitlines():
        kind, *fields = line.split() or [""]
        if kind == "some":
            for field in fields:
                name, _, value = field.partition("=")
                if name == "avg10":
                    try:
                        return float(value)
                    except ValueError:
                        return None
    return None


class RunQueue:
    """How long the threads of a process were runnable but had no CPU, in seconds since they started.

    The kernel keeps it for each thread in /proc/PID/task/TID/schedstat (run time ns, wait time ns, time slices) and drops
    it with the thread. Adding up the living threads alone would run backwards whenever one ends, so what an ended one had
    last is kept.
    """

    def __init__(self, tasks: Path) -> None:
        self._tasks = tasks
        self._last: dict[str, int] = {}
        self._ended = 0

    def seconds(self) -> float | None:
        """The total so far. None where the kernel does not keep it or does not let us read it."""
        now: dict[str, int] = {}
        counted = False
        try:
            tids = [entry.name for entry in self._tasks.iterdir()]
        except OSError:
            return None
        for tid in tids:
            try:
                _, waited, slices = map(int, (self._tasks / tid / "schedstat").read_text().split())
            except (OSError, ValueError):
                continue  # this thread has just ended, or the file is not of this form
            now[tid] = waited
            # a kernel that does not account writes "0 0 0"; a thread that ever ran has had a time slice
            counted = counted or slices > 0
        for tid, waited in self._last.items():
            # a smaller figure under the same id is another thread
            if now.get(tid, -1) < waited:
                self._ended += waited
        self._last = now
        return (sum(now.values()) + self._ended) / 1e9 if counted else None


@dataclass(frozen=True, slots=True)
class Usage:
    """What a process has used since it started, all its threads together."""

    minor_faults: int
    major_faults: int
    """Page faults that had to read from a device."""
    user_s: float
    system_s: float


def usage(stat: str) -> Usage | None:
    """From the text of /proc/PID/stat (fields 10, 12, 14 and 15, proc(5)); None if malformed."""
    # the command stands in parentheses and may itself hold spaces and parentheses
    fields = stat.rpartition(")")[2].split()
    ticks = os.sysconf("SC_CLK_TCK")
    try:
        return Usage(int(fields[7]), int(fields[9]), int(fields[11]) / ticks, int(fields[12]) / ticks)
    except (IndexError, ValueError):
        return None
