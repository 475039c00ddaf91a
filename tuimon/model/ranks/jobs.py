"""Which of several watched processes are ranks of one job, and what is known of each beside the others of its job."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from tuimon.model.model import Model
from tuimon.model.ranks.digest import Told
from tuimon.model.ranks.lateness import Lateness

_NUMBER = re.compile(r"\d+")


def job_of(job: str | None, command: str, rank: int | None, world_size: int | None) -> str | None:
    """What ranks of one job have in common; None for a process that is no rank of several.

    `job` is the launcher's name for it, where it has one. Commands may differ in numbers: some have the rank in them.
    """
    if rank is None or (world_size or 1) < 2:
        return None
    return f"{job or ''} {world_size} {_NUMBER.sub('#', command)}"


@dataclass(slots=True)
class _Job:
    lateness: Lateness = field(default_factory=Lateness)
    ranks: dict[int, int] = field(default_factory=dict)
    """The key of each rank, by its number."""
    ambiguous: bool = False
    """Two processes have one number: these are two jobs of the same command."""


class Jobs:
    """Takes what each process tells, by a key of the caller's, and compares those of one job."""

    def __init__(self) -> None:
        self._jobs: dict[str, _Job] = {}
        self._of: dict[int, str] = {}
        self._gone: set[int] = set()

    def see(self, key: int, model: Model, *, job: str | None = None, host: str | None = None) -> None:
        """Take what is new in a process's model. `host`: None for this one."""
        target = model.target
        if target.attached_ns is None:
            return
        told = model.digester.take()
        if key not in self._of:
            name = job_of(job, target.command, target.rank, target.world_size)
            if name is None or target.rank is None:
                return
            self.join(key, name, target.rank, host, model.wall_offset_s)
        self.take(key, told)
        if target.ended is not None:
            self.leave(key)

    def join(self, key: int, job: str, rank: int, host: str | None, wall_offset_s: float | None) -> None:
        """A process is a rank of a job (`job_of`)."""
        held = self._jobs.setdefault(job, _Job())
        self._of[key] = job
        if held.ranks.setdefault(rank, key) != key:
            held.ambiguous = True
        held.lateness.join(key, f"rank {rank}", rank=rank, host=host, wall_offset_s=wall_offset_s)

    def take(self, key: int, told: Iterable[Told]) -> None:
        """What is new of a process; nothing is kept of one that has not joined."""
        if key in self._of and not self._jobs[self._of[key]].ambiguous:
            self._jobs[self._of[key]].lateness.take(key, told)

    def leave(self, key: int) -> None:
        """A process has ended."""
        if key in self._of and key not in self._gone:
            self._gone.add(key)
            self._jobs[self._of[key]].lateness.leave(key)

    def settle(self) -> None:
        """Judge all that is there: before a report."""
        for one in self._jobs.values():
            one.lateness.settle()

    def of(self, key: int) -> Lateness | None:
        """That of the job to which a process belongs; None where it is the only one, or where it is not known which it is."""
        held = self._jobs.get(self._of.get(key, ""))
        return held.lateness if held is not None and not held.ambiguous and len(held.ranks) > 1 else None
