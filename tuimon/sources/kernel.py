"""What the kernel tells of a process's memory, its control group and the host's pressure: small files, read and parsed.

Every function gives None, or nothing, where the kernel does not keep the figure or does not let us read it.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

PRESSURES = ("cpu", "memory", "io")
"""The files of /proc/pressure."""
DEEPEST = 32
"""Levels of control groups that are looked at."""


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


def control_groups(membership: str, root: Path = Path("/sys/fs/cgroup")) -> list[Path]:
    """The cpu.stat files of a process's control group and of those above it, from the text of /proc/PID/cgroup.

    A quota can be set at any level. Under a namespace the path is relative to the container's own root, which is where the
    file system is mounted in it.
    """
    for line in membership.splitlines():
        number, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if number == "0" and not controllers:
            base = root
        elif "cpu" in controllers.split(","):
            base = root / controllers
        else:
            continue
        parts = [part for part in path.strip().split("/") if part]
        if ".." in parts or len(parts) > DEEPEST:
            continue  # a group outside of what is mounted here
        found = [base.joinpath(*parts[:depth], "cpu.stat") for depth in range(len(parts), -1, -1)]
        found = [one for one in found if one.is_file()]
        if found:
            return found
    return []


def throttled_s(files: Sequence[Path]) -> float | None:
    """Seconds for which a CPU quota held the group back, all levels together: summed over the cores, as the kernel does."""
    total = None
    for file in files:
        for line in (read(file) or "").splitlines():
            name, _, value = line.partition(" ")
            scale = {"throttled_usec": 1e6, "throttled_time": 1e9}.get(name)
            if scale is not None:
                try:
                    total = (total or 0.0) + int(value) / scale
                except ValueError:
                    continue
    return total
