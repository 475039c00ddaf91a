"""The same ranks without a line between, on a clock that goes on when one says so: for tests, and for CPU time alone."""

from __future__ import annotations

import random
from typing import Any

from tests.support.cluster import Folded, Job, Rank
from tests.support.monitor import Clock
from tuimon.attach.connection import Report
from tuimon.feed import LiveFeed
from tuimon.fleet import Fleet
from tuimon.hook import wire


class Session:
    """A session whose frames the test gives."""

    brings_sources = True
    how = "injected"

    def __init__(self, rank: int) -> None:
        self.pid = 100_000 + rank
        self.hello: dict[str, Any] = {"argv": ["python", "/job/train.py"]}
        self.report = Report()
        self.whole: list[bool] = []

    def clock(self) -> int:
        """Of no use here."""
        return 0

    def start(self, sink: Any, on_end: Any) -> None:
        """Keeps whom to tell."""
        self.sink = sink

    def pass_on(self, *, whole: bool) -> None:
        """Keeps what was asked."""
        self.whole.append(whole)

    def detach(self) -> dict[str, Any]:
        """Says goodbye."""
        return {"left": []}

    def close(self) -> None:
        """Nothing is open."""


class Played:
    """The ranks, on a clock that goes on when the test says so."""

    def __init__(self, *, fold: bool, ranks: int, late: int, rate: float, per_node: int = 8) -> None:
        self.clock = Clock()
        self.job = Job(ranks, rate, late)
        self.job.end = self.clock.ns
        self.sessions = [Session(rank) for rank in range(ranks)]
        rnd = random.Random(5)
        clocks = [rnd.randrange(10**12, 10**15) for _ in range(-(-ranks // per_node))]
        self.ranks = [Rank(rank, clocks[rank // per_node], 1.79e9, self.job, ranks) for rank in range(ranks)]
        self.folded = [Folded(rank, self.job.stream) for rank in self.ranks] if fold else []
        feeds = []
        for rank, session in enumerate(self.sessions):
            feed = LiveFeed(session)
            feed.rank, feed.label, feed.host, feed.job = rank, f"rank {rank}", f"node{rank // per_node}", "9"
            feeds.append(feed)
        self.fleet = Fleet(feeds)
        self.fleet.start()
        for one in self.ranks:
            for frame in one.prelude(self.clock.ns):
                self.give(one, frame)

    def give(self, rank: Rank, frame: bytes) -> None:
        """A frame of a rank's."""
        self.sessions[rank.number].sink(frame[0], frame[wire.HEADER.size :])

    def on(self, seconds: float) -> None:
        """Time goes by, and the ranks say what they have to say."""
        for rank, frame in self.frames(seconds):
            self.give(rank, frame)

    def frames(self, seconds: float) -> list[tuple[Rank, bytes]]:
        """What they have to say when so much time has gone by."""
        found: list[tuple[Rank, bytes]] = []
        self.clock.on(seconds)
        while self.job.end <= self.clock.ns:
            _, by_rank = self.job.next()
            for rank, rows in zip(self.ranks, by_rank, strict=True):
                if self.folded:
                    self.folded[rank.number].take(rows)
                else:
                    shift, main = rank.offset, self.job.stream.main
                    found.append((rank, wire.samples_frame([(n, main, f, b + shift, e + shift) for n, f, b, e in rows])))
        for rank in self.ranks:
            frame = self.folded[rank.number].told(self.clock.ns) if self.folded else None
            if frame is not None:
                found.append((rank, frame))
            if self.clock.ns - rank.told_ns >= 2_000_000_000:
                rank.told_ns = self.clock.ns
                found.append((rank, rank.status(self.clock.ns)))
        return found
