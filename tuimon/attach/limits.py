"""Limits that the target has used up, seen before anything is done to it."""

from __future__ import annotations

import os

from tuimon.attach.refusal import Refused

NEEDED = 3
"""Descriptors that the hook has open at one time: its connection twice while it is renumbered, a handle of tuimon's process;
before those, the files that the bootstrap imports from, one by one."""


def files(pid: int) -> None:
    """Raises Refused("no-files") where the process can open nothing more: the hook could not connect, nor say why not."""
    soft = _soft_limit(pid)
    if soft is None:
        return
    try:
        used = {int(name) for name in os.listdir(f"/proc/{pid}/fd")}
    except (OSError, ValueError):
        return
    free = soft - sum(1 for number in used if number < soft)
    if free < NEEDED:
        raise Refused(
            "no-files",
            f"process {pid} has no file descriptor left ({len(used)} open, {soft} allowed): the hook could not connect; raise "
            f"its limit while it runs: prlimit --pid {pid} --nofile={2 * max(soft, len(used)) + 64}",
        )


def _soft_limit(pid: int) -> int | None:
    """The number of the first descriptor that it may not have; None where there is no limit or it cannot be read."""
    try:
        with open(f"/proc/{pid}/limits", encoding="ascii") as file:
            for line in file:
                if line.startswith("Max open files"):
                    return int(line.split()[3])
    except (OSError, ValueError, IndexError):
        pass
    return None
