"""Several processes watched at once: the ranks of a job, or any others."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Sequence

from tuimon.attach.connection import GOODBYE_S
from tuimon.attach.refusal import Refused
from tuimon.feed import LiveFeed
from tuimon.model.ranks.jobs import Jobs
from tuimon.sources.nvml.shared import SharedGpus

DETACH_S = GOODBYE_S + 5.0
"""All are let go at the same time, within this: each says by itself when its hook has not answered."""


class Fleet:
    """The feeds of several processes, in the order in which they are shown. Works as well with one.

    `start`, then `pump` (a screen drains each member itself), then `detach`.
    """

    def __init__(self, feeds: Sequence[LiveFeed], title: str | None = None) -> None:
        """`title`: what it is as a whole ("8 ranks of JOB"); None: made from what the members run."""
        if not feeds:
            raise ValueError("a fleet needs at least one feed")
        self.members = list(feeds)
        _tell_apart(self.members)
        self.title = title or _title(self.members)
        self.jobs = Jobs()
        """What is known of ranks beside each other, by the member's place."""
        if len(self.members) > 1:
            gpus = SharedGpus(pcie=any(feed.pcie for feed in self.members))
            for feed in self.members:
                feed.share_gpus(gpus)

    @property
    def first(self) -> LiveFeed:
        """The one that stands for all where one is asked for: the lowest rank that tuimon is attached to, if any."""
        attached = [feed for feed in self.members if feed.model.target.attached_ns is not None]
        return min(attached or self.members, key=lambda feed: (feed.rank is None, feed.rank or 0))

    @property
    def refused(self) -> Refused | None:
        """The refusal (the first one) where every member was refused: there is nothing to show. None otherwise."""
        refusals = [feed.refused for feed in self.members if feed.refused is not None]
        return refusals[0] if len(refusals) == len(self.members) else None

    @property
    def refusals(self) -> list[tuple[str, Refused]]:
        """(label, refusal) of those that tuimon could not attach to."""
        return [(feed.label, feed.refused) for feed in self.members if feed.refused is not None]

    @property
    def silent_goodbyes(self) -> list[str]:
        """A sentence for each whose hook has not answered to the last word, and is still in."""
        several = len(self.members) > 1
        return [
            f"{feed.label}: {feed.silent_goodbye}" if several else feed.silent_goodbye
            for feed in self.members
            if feed.silent_goodbye is not None
        ]

    @property
    def left(self) -> list[str]:
        """What could not be taken out again, anywhere."""
        several = len(self.members) > 1
        return [f"{name} (in {feed.label})" if several else name for feed in self.members for name in feed.left]

    def start(self) -> None:
        """Start all; returns at once, also where they still have to attach."""
        for feed in self.members:
            feed.start()

    def pump(self) -> None:
        """Take in what has come, for all. For owners that have no screen to update."""
        for feed in self.members:
            feed.pump()
        self.compare()

    def compare(self) -> None:
        """Compare the ranks of one job by what their models have taken in since the last time."""
        if len(self.members) > 1:
            for at, feed in enumerate(self.members):
                self.jobs.see(at, feed.model, job=feed.job, host=feed.host)

    def detach(self) -> None:
        """Let all go, at the same time, within one bound. More than once is fine."""
        threads = [
            threading.Thread(target=feed.detach, name=f"tuimon-detach {feed.label}", daemon=True) for feed in self.members
        ]
        for thread in threads:
            thread.start()
        deadline = time.monotonic() + DETACH_S
        for thread in threads:
            thread.join(max(0.0, deadline - time.monotonic()))


def _tell_apart(feeds: Sequence[LiveFeed]) -> None:
    """Labels that differ: the same pid of two hosts by the host, the rank 0 of two jobs by their pids."""
    same = Counter(feed.label for feed in feeds)
    for feed in feeds:
        if same[feed.label] > 1 and feed.host:
            feed.label = f"{feed.label}@{feed.host}"
    same = Counter(feed.label for feed in feeds)
    for feed in feeds:
        if same[feed.label] > 1 and feed.pid is not None:
            feed.label = f"{feed.pid}@{feed.host}" if feed.host else str(feed.pid)


def _title(feeds: Sequence[LiveFeed]) -> str:
    """`8 ranks of python train.py`, `3 processes`, or the one command."""
    if len(feeds) == 1:
        return feeds[0].title
    what = "ranks" if all(feed.rank is not None for feed in feeds) else "processes"
    titles = {feed.title for feed in feeds}
    return f"{len(feeds)} {what}" + (f" of {titles.pop()}" if len(titles) == 1 else "")
