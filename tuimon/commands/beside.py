"""What goes on beside watching without a screen: phases are marked, and a file for Prometheus is kept up to date."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

from tuimon.commands.options import Options, say
from tuimon.fleet import Fleet
from tuimon.report.prometheus import exposition, write
from tuimon.report.ranks import Watched

PROMETHEUS_S = 15.0
"""So often its file is written where nothing is said: as often as it is usually read."""


class Beside:
    """Looks at what is watched, ten times a second."""

    def __init__(self, fleet: Fleet, options: Options) -> None:
        self._fleet = fleet
        self._path = options.prometheus
        self._every_s = options.interval or PROMETHEUS_S
        self._next = 0.0
        self._said: str | None = None
        self._phases = []
        if options.phases:
            from tuimon.commands.phases import Phases

            self._phases = [(member, Phases(options.phases)) for member in fleet.members]

    def look(self) -> None:
        """Do what is due."""
        for member, phases in self._phases:
            if marks := phases.marks(member.model):
                member.model.apply(marks)
        now = time.monotonic()
        if self._path is not None and now >= self._next:
            self._next = now + self._every_s
            self._said = put(self._path, watched(self._fleet), self._said)


def watched(fleet: Fleet) -> list[Watched]:
    """The processes of a fleet as reports take them."""
    return [
        Watched(member.label, member.rank, member.pid, member.host, member.model, at, fleet.jobs.of(at))
        for at, member in enumerate(fleet.members)
    ]


def put(path: Path, ranks: Sequence[Watched], said: str | None = None) -> str | None:
    """Write the file for Prometheus. Gives why it could not be; that is said, but where it is what was `said` the last time."""
    try:
        write(path, exposition(ranks))
    except OSError as error:
        why = error.strerror or str(error)
        if why != said:
            say(f"{path} could not be written: {why}; it is tried again")
        return why
    return None
