"""What this machine's processor is: its name, how many of its cores may be used, its caches. Read from /proc and /sys."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

_SIZES = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
_CACHES = "/sys/devices/system/cpu/cpu{}/cache"


@dataclass(frozen=True, slots=True)
class Cpu:
    """The processor, as the kernel tells; what it does not tell is None."""

    name: str
    cpus: int
    """Logical CPUs that this process may run on."""
    l2_bytes: int | None
    """Of the largest cache that a core has for itself or with its sibling threads."""
    llc_bytes: int | None
    """Of the last level."""
    memory_bytes: int | None
    """That is free to be used."""
    clock_mhz: float | None
    key: str
    """What its calibration is kept under: another processor, or more of its cores, is another one."""


def cpu() -> Cpu:
    """This machine's processor."""
    info = _text("/proc/cpuinfo")
    name = _field(info, "model name") or _field(info, "Model") or _field(info, "CPU part") or os.uname().machine
    cpus = len(os.sched_getaffinity(0))
    caches = _caches(min(os.sched_getaffinity(0)))
    llc = caches[-1][1] if caches else None
    own = [size for _, size, shared in caches[:-1] if shared <= 2]
    exact = ".".join(_field(info, field) or "0" for field in ("cpu family", "model", "stepping"))
    words = f"cpu-{name}-{exact}-{cpus}x-{(llc or 0) >> 10}k"
    clock = _field(info, "cpu MHz")
    return Cpu(
        name=" ".join(name.split()),
        cpus=cpus,
        l2_bytes=max(own, default=None),
        llc_bytes=llc,
        memory_bytes=_available(),
        clock_mhz=float(clock) if clock and re.fullmatch(r"[0-9.]+", clock) else None,
        key=re.sub(r"[^a-z0-9.]+", "-", words.lower()).strip("-")[:120],
    )


def pressure() -> float | None:
    """Percent of the last ten seconds in which a task was ready and no CPU was free for it. None: the kernel does not tell."""
    found = re.match(r"some avg10=([0-9.]+)", _text("/proc/pressure/cpu"))
    return float(found[1]) if found else None


def _caches(number: int) -> list[tuple[int, int, int]]:
    """(level, bytes, how many CPUs share it) of the data caches of a CPU, the nearest first."""
    found = []
    for place in sorted(Path(_CACHES.format(number)).glob("index*")):
        size = re.fullmatch(r"(\d+)([KMG]?)", _text(f"{place}/size").strip())
        level, kind = _text(f"{place}/level").strip(), _text(f"{place}/type").strip()
        if size is None or not level.isdigit() or kind == "Instruction":
            continue
        found.append((int(level), int(size[1]) * _SIZES.get(size[2], 1), _count(_text(f"{place}/shared_cpu_list"))))
    return sorted(found)


def _count(text: str) -> int:
    """How many CPUs a list such as "0-3,8" names."""
    count = 0
    for part in text.strip().split(","):
        ends = part.split("-")
        if all(end.isdigit() for end in ends):
            count += int(ends[-1]) - int(ends[0]) + 1
    return count


def _available() -> int | None:
    found = re.search(r"^MemAvailable:\s+(\d+) kB", _text("/proc/meminfo"), re.MULTILINE)
    return int(found[1]) << 10 if found else None


def _field(text: str, name: str) -> str | None:
    found = re.search(rf"^{re.escape(name)}\s*:\s*(.+)$", text, re.MULTILINE)
    return found[1].strip() if found else None


def _text(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""
