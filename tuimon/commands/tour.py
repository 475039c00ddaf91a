"""`tuimon demo --tour`: a recording that comes with tuimon, and a strip that leads through the screens. Needs no torch."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tuimon import events as ev
from tuimon.commands.options import FAILED, Options, say
from tuimon.playback import Playback
from tuimon.sources.files import open_any
from tuimon.sources.opened import Opened, Piece, Progress
from tuimon.sources.trace_file import Unreadable

RECORDING, STOPS, PROGRAM = "tour/tour.tuimon", "tour/stops.toml", "train_small_gpt.py"
THERE = "/demo/"
"""How paths of the demo begin in the recording."""
AT = "100"
"""The step that the tour begins at: by then all faults have shown."""
SOON_S = 5.0
"""It is there within so long, or gets there before the eyes of the person."""


def run(demos: Path, options: Options) -> int:
    """Play the tour of that folder on the screen. Gives an exit status."""
    from tuimon.app.tour import TourError, load
    from tuimon.commands.screen import on_screen

    if not options.screen:
        say("the tour needs a terminal: it is for the screen")
        return FAILED
    try:
        tour, feed = load(demos / STOPS), played(demos)
    except (TourError, Unreadable) as error:
        say(f"the tour cannot be played: {error}")
        return FAILED
    settle(feed)
    return on_screen(feed, options, tour=tour)


def played(demos: Path, clock: Any = time.monotonic_ns) -> Playback:
    """The tour's recording, as if the demo of this folder ran. Raises Unreadable."""
    found, _ = open_any(demos / RECORDING)
    feed = Playback(here(found[0], demos), speed=1.0, clock=clock)
    feed.title = PROGRAM
    feed.go(AT, 0)
    return feed


def settle(feed: Playback, seconds: float = SOON_S) -> None:
    """Play it up to where it begins."""
    feed.start()
    until = time.monotonic() + seconds
    while time.monotonic() < until and (feed.position().going or not feed.model.steps.n):
        feed.drain()
        time.sleep(0.01)


def here(opened: Opened, demos: Path) -> Opened:
    """A recording whose program lies in this folder, and was started when that was last changed."""
    changed_s = (demos / PROGRAM).stat().st_mtime if (demos / PROGRAM).is_file() else time.time()
    again = opened.again
    assert again is not None

    def events(progress: Progress) -> Iterator[list[ev.Event]]:
        for batch in opened.events(progress):
            yield [_moved(event, f"{demos}/", changed_s) for event in batch]

    def pieces(block: int, progress: Progress) -> Iterator[Piece]:
        for piece in again(block, progress):
            yield piece._replace(events=[_moved(event, f"{demos}/", changed_s) for event in piece.events])

    return dataclasses.replace(opened, events=events, again=pieces)


def _moved(event: ev.Event, demos: str, changed_s: float) -> ev.Event:
    if isinstance(event, ev.Samples):
        return event
    if isinstance(event, ev.TargetSeen):
        return dataclasses.replace(event, wall_s=max(event.wall_s or 0.0, changed_s + 1))
    told = {field.name: getattr(event, field.name) for field in dataclasses.fields(event)}
    changed = {name: _there(value, demos) for name, value in told.items()}
    return dataclasses.replace(event, **changed) if changed != told else event


def _there(value: Any, demos: str) -> Any:
    if isinstance(value, str):
        return value.replace(THERE, demos) if THERE in value else value
    if isinstance(value, tuple):
        parts = [_there(part, demos) for part in value]
        return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
    return value
