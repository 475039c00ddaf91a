"""What the control groups of a process allow it: CPU quota, memory limit, and how often they have held it back.

A limit can be set on any group above a process, so all that can be seen are looked at and the least counts. In a container the
groups above its own are hidden, and the path that the kernel tells may be the host's: then the root of what is mounted is its
group. Both versions of the file system are read, and the mixture in which only some controllers are in the first.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from tuimon.sources.kernel import read

ROOT = Path("/sys/fs/cgroup")
DEEPEST = 32
"""Levels of control groups that are looked at."""
NO_LIMIT = 1 << 60
"""Version 1 writes the largest number of pages where there is no limit."""
Version = Literal["", "v1", "v2"]


@dataclass(frozen=True, slots=True)
class Folders:
    """The groups of a process for one controller, its own first, then those above it."""

    version: Version = ""
    paths: tuple[Path, ...] = ()


@dataclass(frozen=True, slots=True)
class Cpu:
    """Of the CPU controller."""

    quota_cores: float | None = None
    """The least of all levels; None: no quota."""
    periods: int | None = None
    """Of the level that was held back longest, as the next two."""
    throttled_periods: int | None = None
    throttled_s: float | None = None
    """Summed over the cores, as the kernel does."""


@dataclass(slots=True)
class _Counters:
    """The CPU controller's counters as they go on. They are of one level; when they are another's from a reading on, because it
    is the worst now or the process was moved, what that one had counted before does not count."""

    of: Path | None = None
    base: tuple[int, int, float] = (0, 0, 0.0)
    told: tuple[int, int, float] = (0, 0, 0.0)

    def go_on(self, cpu_: Cpu, level: Path | None) -> Cpu:
        if level is None or cpu_.periods is None or cpu_.throttled_periods is None or cpu_.throttled_s is None:
            return cpu_
        now = (cpu_.periods, cpu_.throttled_periods, cpu_.throttled_s)
        if self.of is not None and self.of != level:
            self.base = (self.told[0] - now[0], self.told[1] - now[1], self.told[2] - now[2])
        self.of = level
        self.told = (now[0] + self.base[0], now[1] + self.base[1], now[2] + self.base[2])
        return replace(cpu_, periods=self.told[0], throttled_periods=self.told[1], throttled_s=self.told[2])


@dataclass(frozen=True, slots=True)
class Memory:
    """Of the memory controller."""

    limit_bytes: int | None = None
    """The least of all levels; None: no limit."""
    used_bytes: int | None = None
    """In the group that has it, caches of files included."""
    oom_kills: int | None = None
    """Processes of the process's own group that were killed for want of memory."""


def folders(membership: str, controller: str, root: Path = ROOT) -> Folders:
    """The groups for "cpu" or "memory", from the text of /proc/PID/cgroup. Empty where none can be seen."""
    second = Folders()
    for line in membership.splitlines():
        number, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if number == "0" and not controllers:
            second = Folders("v2", _levels(root, path))
        elif controller in controllers.split(","):
            for base in (root / controllers, root / controller):
                first = Folders("v1", _levels(base, path))
                if first.paths:
                    return first  # a controller is in one of the two only
    return second if second.paths else Folders()


def _levels(base: Path, path: str) -> tuple[Path, ...]:
    parts = [part for part in path.strip().split("/") if part]
    if ".." in parts or len(parts) > DEEPEST:
        return ()  # a group outside of what is mounted here
    found = (base.joinpath(*parts[:depth]) for depth in range(len(parts), -1, -1))
    return tuple(one for one in found if one.is_dir())


def cpu(of: Folders) -> Cpu:
    """What the CPU controller tells now; all None where it tells nothing."""
    return _cpu(of)[0]


def _cpu(of: Folders) -> tuple[Cpu, Path | None]:
    """The same, and the level whose counters these are."""
    levels = [(path, _cpu_level(path, of.version)) for path in of.paths]
    quotas = [level.quota_cores for _, level in levels if level.quota_cores is not None]
    counted = [(path, level) for path, level in levels if level.throttled_s is not None]
    if not counted:
        return Cpu(min(quotas, default=None)), None
    # of equals the one with the least quota, then the process's own
    where, worst = max(counted, key=lambda one: (one[1].throttled_s or 0.0, -(one[1].quota_cores or 1e9)))
    return Cpu(min(quotas, default=None), worst.periods, worst.throttled_periods, worst.throttled_s), where


def _cpu_level(path: Path, version: Version) -> Cpu:
    if version == "v2":
        quota, _, period = (read(path / "cpu.max") or "").strip().partition(" ")
    else:
        quota = (read(path / "cpu.cfs_quota_us") or "").strip()
        period = (read(path / "cpu.cfs_period_us") or "").strip()
    # "max" in version 2 and -1 in version 1 stand for none
    cores = int(quota) / int(period) if quota.isdecimal() and period.isdecimal() and int(period) else None
    told = _pairs(read(path / "cpu.stat"))
    held = told.get("throttled_usec")
    held_s = held / 1e6 if held is not None else None
    if held_s is None and "throttled_time" in told:
        held_s = told["throttled_time"] / 1e9
    return Cpu(cores, told.get("nr_periods"), told.get("nr_throttled"), held_s)


def memory(of: Folders) -> Memory:
    """What the memory controller tells now; all None where it tells nothing."""
    limit: tuple[int, int] | None = None  # bytes, minus what is used: of equal limits the fuller group counts
    kills: int | None = None
    names = ("memory.max", "memory.current", "memory.events")
    if of.version == "v1":
        names = ("memory.limit_in_bytes", "memory.usage_in_bytes", "memory.oom_control")
    for path in of.paths:
        most, used = (_number(read(path / name)) for name in names[:2])
        if most is not None and most < NO_LIMIT:
            here = (most, -1 if used is None else used)
            if limit is None or here[0] < limit[0] or (here[0] == limit[0] and here[1] > limit[1]):
                limit = here
        if kills is None:
            kills = _pairs(read(path / names[2])).get("oom_kill")
    if limit is None:
        return Memory(oom_kills=kills)
    return Memory(limit[0], limit[1] if limit[1] >= 0 else None, kills)


def _number(text: str | None) -> int | None:
    text = (text or "").strip()
    return int(text) if text.isdecimal() else None


def _pairs(text: str | None) -> dict[str, int]:
    found = {}
    for line in (text or "").splitlines():
        name, _, value = line.partition(" ")
        if value.strip().isdecimal():
            found[name] = int(value)
    return found


@dataclass(slots=True)
class Groups:
    """The groups of one process. Where they are is looked up again every so many readings: a process seldom moves."""

    pid: int
    proc: Path = Path("/proc")
    root: Path = ROOT
    again: int = 30
    _left: int = 0
    _cpu: Folders = field(default_factory=Folders)
    _memory: Folders = field(default_factory=Folders)
    _counters: _Counters = field(default_factory=_Counters)
    why: str | None = None
    """Why nothing is told, a sentence; None where something is."""

    def now(self) -> tuple[Version, Cpu, Memory]:
        """The version, and what both controllers tell."""
        if self._left <= 0:
            self._look()
            self._left = self.again
        self._left -= 1
        now = self._counters.go_on(*_cpu(self._cpu))
        return self._cpu.version or self._memory.version, now, memory(self._memory)

    def _look(self) -> None:
        membership = read(self.proc / str(self.pid) / "cgroup")
        self._cpu = folders(membership or "", "cpu", self.root)
        self._memory = folders(membership or "", "memory", self.root)
        self.why = None
        if membership is None:
            self.why = "the kernel does not tell the control groups of this process"
        elif not self._cpu.paths and not self._memory.paths:
            self.why = f"its control groups are not mounted in {self.root}"
