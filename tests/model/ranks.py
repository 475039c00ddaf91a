"""Jobs of several ranks, as digests: steps of 20 ms that end in a collective which all leave together."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from tuimon.model.ranks.digest import Met, SlowNote, StepDigest, Told
from tuimon.model.ranks.lateness import Lateness
from tuimon.model.steps.parts import CATEGORIES

MS = 1_000_000
COMPILE, FORWARD, COMMUNICATION, OTHER = (
    CATEGORIES.index(name) for name in ("compile", "forward regions", "communication", "other python")
)
TAIL_NS = 200_000
"""What the collective itself takes."""


def nothing(_rank: int, _step: int) -> float:
    return 0.0


@dataclass
class Job:
    """Makes the digests of every rank, step by step. All functions are of (rank, step)."""

    ranks: int
    sleeps: Callable[[int, int], float] = nothing
    """ms of other python beyond the usual."""
    compiles: Callable[[int, int], float] = nothing
    works: Callable[[int, int], float] = nothing
    """ms of forward regions beyond the usual 20."""
    jitter: float = 0.3
    """ms, at most, of everybody's work."""
    joined: Callable[[int], int] = lambda _rank: 0
    """The step at which a rank is attached to."""
    leaves: Callable[[int], int] = lambda _rank: 10**9
    clocks: Callable[[int], int] = lambda _rank: 0
    """How far a rank's clock is ahead, in ns."""
    ddp: bool = False
    """They meet within the backward, unseen."""
    over_ms: float = 20.0
    """A step that takes so much longer is told to be slow."""
    seed: int = 1
    _now: list[int] = field(default_factory=list)

    def steps(self, count: int) -> Iterable[tuple[int, list[Told]]]:
        """(rank, what it tells) in the order in which steps end."""
        chance = random.Random(self.seed)
        self._now = [10**12] * self.ranks
        for step in range(count):
            alive = [rank for rank in range(self.ranks) if step < self.leaves(rank)]
            came, own = {}, {}
            for rank in alive:
                sleep, compile_, extra = (f(rank, step) for f in (self.sleeps, self.compiles, self.works))
                forward = 20 + extra + chance.random() * self.jitter
                own[rank] = forward, sleep, compile_
                came[rank] = self._now[rank] + round((forward + sleep + compile_) * MS)
            over = max(came.values()) + TAIL_NS
            for rank in alive:
                begin, end = self._now[rank], over + round(chance.random() * 30_000)
                self._now[rank] = end
                if step >= self.joined(rank):
                    yield rank, self._told(rank, step, begin, came[rank], end, own[rank])

    def _told(self, rank: int, step: int, begin: int, came: int, end: int, own: tuple[float, float, float]) -> list[Told]:
        forward, sleep, compile_ = own
        ahead, index = self.clocks(rank), step - self.joined(rank)
        parts = [0] * len(CATEGORIES)
        parts[FORWARD], parts[OTHER], parts[COMPILE] = round(forward * MS), round(sleep * MS), round(compile_ * MS)
        parts[OTHER if self.ddp else COMMUNICATION] += end - came
        met = () if self.ddp else (Met("0", step + 1000, "all_reduce", came + ahead, end + ahead),)
        backward = (came + ahead, end + ahead) if self.ddp else None
        parts[OTHER] += end - begin - sum(parts)
        digest = StepDigest(0, index, begin + ahead, end + ahead, tuple(parts), compile_ > 0, True, met, backward)
        if end - begin < (20 + self.over_ms) * MS:
            return [digest]
        cause, words = ("communication", "wait for all_reduce")
        if sleep >= self.over_ms:
            cause, words = "other python", "main train.py:17: time.sleep(0.1)"
        elif compile_ >= self.over_ms:
            cause, words = "compile", "recompile of f [0/1]: size of x at 0 was 8, is 6 (1.20 s)"
        return [digest, SlowNote(0, index, cause, words, True, end - begin, 20 * MS)]


def compared(job: Job, count: int, *, lost: float = 0.0, hosts: int = 1) -> Lateness:
    """All of it told to one `Lateness`, of which some digests get lost."""
    chance = random.Random(7)
    lateness = Lateness()
    for rank in range(job.ranks):
        host = None if hosts == 1 else f"node{rank * hosts // job.ranks}"
        lateness.join(rank, f"rank {rank}", rank=rank, host=host, wall_offset_s=1.7e9)
    for rank, told in job.steps(count):
        if chance.random() >= lost:
            lateness.take(rank, told)
        if told and isinstance(told[0], StepDigest) and told[0].index + job.joined(rank) + 1 == job.leaves(rank):
            lateness.leave(rank)
    lateness.settle()
    return lateness
