"""All ranks of a job that is over: a folder of recordings, logs or traces, shown beside each other."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

from tuimon.model import Model
from tuimon.model.ranks.jobs import Jobs
from tuimon.playback.playing import Playback
from tuimon.playback.whole import WholeFile
from tuimon.sources.files import Opened, open_any

Member = Playback | WholeFile


class FileGroup:
    """Several of them, in the order of their ranks. Recordings are played together, by the time of day."""

    def __init__(self, members: Sequence[Member], title: str) -> None:
        self.members: list[Member] = list(members)
        self.title = title
        self.jobs = Jobs()
        """What is known of ranks beside each other, by the member's place."""
        self._restarted = 0
        same = Counter(one.label for one in self.members)
        for one in self.members:
            if same[one.label] > 1:
                one.label = one.opened.path.name
            if one.opened.kind != "recording" and one.rank is not None:
                one.job = str(one.opened.path.parent)

    @property
    def refused(self) -> str | None:
        """Why nothing of it could be read: of the first, where none could. None otherwise."""
        refusals = [one.refused for one in self.members if one.refused is not None]
        return refusals[0] if len(refusals) == len(self.members) else None

    def start(self) -> None:
        """Begin to read all."""
        for one in self.members:
            one.start()

    def wait(self, seconds: float | None = None) -> bool:
        """Until all are read, or for so long; gives whether they are."""
        until = None if seconds is None else time.monotonic() + seconds
        read = [one.wait(None if until is None else max(0.0, until - time.monotonic())) for one in self.members]
        return all(read)

    def compare(self) -> None:
        """Compare the ranks by what their models have taken in since the last time; from the begin where one was moved."""
        restarted = sum(one.restarted for one in self.members)
        if restarted != self._restarted:
            self._restarted, self.jobs = restarted, Jobs()
        for at, one in enumerate(self.members):
            self.jobs.see(at, one.model, job=one.job, host=one.host)

    def detach(self) -> None:
        """Read no further."""
        for one in self.members:
            one.detach()


def of_path(
    path: Path,
    *,
    judge: Callable[[Model], None] = lambda _: None,
    speed: float | None = 1.0,
    paused: bool = False,
    clock: Callable[[], int] = time.monotonic_ns,
) -> Member | FileGroup:
    """What the monitor shows of a file or a folder. Raises Unreadable."""
    found, left = open_any(path)

    def member(opened: Opened, left: Sequence[str]) -> Member:
        if opened.again is not None:
            return Playback(opened, judge=judge, speed=speed, paused=paused, clock=clock)
        return WholeFile(opened, judge=judge, left=tuple(left))

    members = [member(one, left if at == 0 else ()) for at, one in enumerate(found)]
    if len(members) == 1:
        return members[0]
    what = "ranks" if all(one.rank is not None for one in found) else "files"
    return FileGroup(members, f"{len(members)} {what} of {path.name}")
