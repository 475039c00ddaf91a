"""Which steps of the ranks of one job belong together: those in which they met.

Ranks count their steps from the moment at which each was attached to, so equal indices mean nothing. A collective that two of
them took part in ties their steps together, and with them all that come later; without one, steps that end together do. Each
digest is looked at once, and what is kept is bounded.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from tuimon.model.ranks.digest import SlowNote, StepDigest
from tuimon.model.slow.rule import LEAST
from tuimon.model.steps.parts import CATEGORIES

SETTLE_NS = 3_000_000_000
"""All ranks have to have told so much beyond a round: why a step was slow is told later than the step."""
PATIENCE_NS = 20_000_000_000
"""A rank that has told nothing for so long is not waited for."""
YOUNG = 2 * LEAST + 1
"""Steps by which the first ones are judged."""
MOST_HELD = 32_768
"""Digests that are held at a time, over all ranks; beyond it the oldest rounds are judged as they are."""
NEAR = 64
"""Rounds that are looked at for one that ended at the same time."""
SHARPEN = 1 / 16
"""By so much a new step moves what is usual for a rank."""
DIFFERENCES = 64
"""Meetings by which two hosts' clocks are compared."""
BLOCKED_NS = 1_000_000
"""A collective that somebody waited in for so long ended at the same moment for all."""


@dataclass(slots=True)
class Host:
    """A clock that some of the ranks share."""

    place: int = 0
    """The first of the hosts is the one that the others are compared with."""
    offset_ns: int = 0
    """What makes its monotonic time the time of all."""
    correction_ns: int = 0
    """What the ends of collectives say beyond that."""
    differences: deque[int] = field(default_factory=lambda: deque(maxlen=DIFFERENCES))

    def differs(self, ns: int) -> None:
        """It was seen to be ahead by so much, as it stands corrected now."""
        self.differences.append(ns + self.correction_ns)
        ordered = sorted(self.differences)
        self.correction_ns = ordered[len(ordered) // 2]

    def shift(self) -> int:
        """What to add to a time of this host."""
        return self.offset_ns - self.correction_ns


@dataclass(slots=True)
class Rank:
    """One process, as the rounds see it."""

    key: int
    name: str
    number: int | None
    host: Host
    gone: bool = False
    anew: int = 0
    offset: int | None = None
    """Its index of a step, less the number of the round."""
    last_index: int = -1
    latest_ns: int = 0
    """When the latest step that it has told was over."""
    steps: dict[int, Held] = field(default_factory=dict)
    """Index -> step, oldest first."""
    usual: list[float] = field(default_factory=lambda: [0.0] * len(CATEGORIES))
    """ns of each category in its plain steps, smoothed."""
    plain: int = 0

    def sharpen(self, digest: StepDigest) -> None:
        """One more plain step."""
        self.plain += 1
        weight = max(SHARPEN, 1 / self.plain)
        usual = self.usual
        for at, ns in enumerate(digest.parts):
            usual[at] += (ns - usual[at]) * weight


@dataclass(slots=True)
class Held:
    """A step of one rank, and why it was slow where that has been told."""

    digest: StepDigest
    note: SlowNote | None = None


@dataclass(slots=True)
class Round:
    """Steps of several ranks that belong together."""

    number: int
    end_ns: int
    took_ns: int
    members: dict[int, Held] = field(default_factory=dict)
    """By the rank's key."""
    met: bool = False
    """`meet` was called."""


class Rounds:
    """Puts digests into rounds; gives each to `meet` when all are there, and to `judge` when no more is to be known of it.

    A round in which somebody is missing is given to both at the end.
    """

    def __init__(self, meet: Callable[[Round], None], judge: Callable[[Round], None]) -> None:
        self.ranks: dict[int, Rank] = {}
        self._meet, self._judge = meet, judge
        self._open: dict[int, Round] = {}
        self._met: dict[tuple[str, int], int] = {}
        self._next = 0
        self._floor = 0
        """Rounds below it have been judged."""
        self._held = 0
        self._newest_ns = 0
        self._alive = 0
        self._grown = False
        """The first steps have been judged by somebody: that they were slow is told when there are enough of them."""
        self._calls = 0

    def join(self, rank: Rank) -> None:
        """One more rank, or what is known of one has changed."""
        self.ranks[rank.key] = rank
        self._count()

    def leave(self, key: int) -> None:
        """Nobody waits for it any more."""
        if key in self.ranks:
            self.ranks[key].gone = True
            self._count()

    def _count(self) -> None:
        self._alive = sum(not rank.gone for rank in self.ranks.values())

    def add(self, key: int, digest: StepDigest) -> None:
        """A step of a rank is over."""
        rank = self.ranks[key]
        if digest.anew != rank.anew:
            rank.anew, rank.offset = digest.anew, None
            rank.steps.clear()
            rank.last_index = -1
        if digest.index <= rank.last_index:
            return  # told twice
        rank.last_index = digest.index
        self._grown = self._grown or digest.index >= YOUNG
        held = rank.steps[digest.index] = Held(digest)
        end = digest.end_ns + rank.host.shift()
        self._newest_ns = max(self._newest_ns, end)
        rank.latest_ns = max(rank.latest_ns, end)
        found = self._find(rank, digest, end)
        if found is not None:
            found.members[key] = held
            rank.offset = digest.index - found.number
            for one in digest.collectives:
                self._met.setdefault((one.group, one.sequence), found.number)
            self._held += 1
            if len(found.members) >= self._alive and not found.met:
                found.met = True
                self._meet(found)
        self._tidy(rank)

    def note(self, key: int, note: SlowNote) -> None:
        """Why a step was slow."""
        rank = self.ranks[key]
        held = rank.steps.get(note.index)
        if held is not None and note.anew == rank.anew:
            held.note = note

    def settle(self) -> None:
        """Judge all that is open, as it is."""
        for number in list(self._open):
            self._over(number)

    def _find(self, rank: Rank, digest: StepDigest, end_ns: int) -> Round | None:
        for one in digest.collectives:
            met = self._met.get((one.group, one.sequence))
            if met is not None and rank.key not in self._open[met].members:
                return self._open[met]
        number = None if rank.offset is None else digest.index - rank.offset
        if not digest.collectives:
            known = self._open.get(number) if number is not None else None
            if known is not None and rank.key not in known.members and _together(known, digest, end_ns):
                return known
            near = self._near(rank, digest, end_ns)
            if near is not None:
                return near
        if number is not None and number < self._floor and self._newest_ns - end_ns > SETTLE_NS:
            return None  # it comes too late
        if number is None or number in self._open or number < self._floor:
            number = self._next
        self._next = max(self._next, number + 1)
        made = self._open[number] = Round(number, end_ns, digest.took_ns)
        return made

    def _near(self, rank: Rank, digest: StepDigest, end_ns: int) -> Round | None:
        """The round whose steps ended nearest, where they ended together with this one."""
        best = None
        for looked, number in enumerate(reversed(self._open)):
            one = self._open[number]
            if rank.key not in one.members and _together(one, digest, end_ns):
                if best is None or abs(one.end_ns - end_ns) < abs(best.end_ns - end_ns):
                    best = one
                elif best is not None:
                    break
            if looked >= NEAR:
                break
        return best

    def _tidy(self, rank: Rank) -> None:
        """Forget steps of a rank that are in no open round, but for the one before those that are."""
        steps, offset = rank.steps, rank.offset or 0
        while len(steps) > 2:
            oldest = next(iter(steps))
            if oldest - offset in self._open or oldest + 1 - offset in self._open:
                break
            del steps[oldest]

    def close(self) -> None:
        """Judge the oldest rounds, where it is time: before anything new is added, once in a while."""
        self._calls += 1
        while self._held > MOST_HELD:
            self._over(next(iter(self._open)))
        if self._calls < self._alive or not self._grown:
            return
        self._calls = 0
        told_ns = self._told_ns()
        while self._open:
            number = next(iter(self._open))
            if self._open[number].end_ns + SETTLE_NS > told_ns:
                return
            self._over(number)

    def _told_ns(self) -> int:
        """Up to when all ranks have told their steps, but for those that have been silent for long."""
        first = next(iter(self._open.values()), None)
        told = self._newest_ns
        for rank in self.ranks.values():
            if rank.latest_ns == 0 and first is not None:
                rank.latest_ns = first.end_ns  # it has told nothing yet: it has as much time as one that falls silent
            if not rank.gone and self._newest_ns - PATIENCE_NS <= rank.latest_ns < told:
                told = rank.latest_ns
        return told

    def _over(self, number: int) -> None:
        done = self._open.pop(number)
        self._floor = max(self._floor, number + 1)
        self._held -= len(done.members)
        for held in done.members.values():
            for one in held.digest.collectives:
                if self._met.get((one.group, one.sequence)) == number:
                    del self._met[one.group, one.sequence]
        if not done.met:
            self._meet(done)
        self._judge(done)


def _together(one: Round, digest: StepDigest, end_ns: int) -> bool:
    """Whether a step ends when those of a round do, and not half a step earlier or later."""
    return abs(one.end_ns - end_ns) * 2 <= min(one.took_ns, digest.took_ns)
