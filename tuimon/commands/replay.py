"""`tuimon replay FILE` and `tuimon report FILE`: what a file of another profiler holds, on the screen or as a report."""

from __future__ import annotations

import threading
from pathlib import Path

from tuimon import events as ev
from tuimon.commands.options import FAILED, Options, deliver, say
from tuimon.model import Model
from tuimon.sources.files import events
from tuimon.sources.inbox import Inbox
from tuimon.sources.trace_file import Unreadable

ELSEWHERE = "the file's host"
SOON_S = 0.3
"""A file that is none is mostly found out within so long: no screen is opened for it then."""


class FileFeed:
    """A file in place of a job. It is read on a thread of its own, so that a large one does not hold up the screen."""

    def __init__(self, path: Path) -> None:
        self.model = Model()
        self.title = path.name
        self.label = path.name
        self.rank: int | None = None
        self.host: str | None = ELSEWHERE  # what is known of this machine does not hold for it
        self.pid: int | None = None
        self.job: str | None = None
        self.refused: str | None = None
        """Why the file could not be read; None while it may still be, and where it was."""
        self._path = path
        self._inbox = Inbox()
        self._thread = threading.Thread(target=self._read, name="tuimon-file", daemon=True)

    def start(self) -> None:
        """Begin to read."""
        self._inbox.put(ev.Attaching(0, f"reading {self._path.name}"))
        self._thread.start()

    def wait(self, seconds: float | None = None) -> None:
        """Until all is read, or for so long."""
        self._thread.join(seconds)

    def drain(self) -> list[ev.Event]:
        """What was read since the last call."""
        return self._inbox.drain()

    def show(self, on: bool) -> None:
        """Nothing: all of it comes anyway."""

    def command(self, message: dict[str, object]) -> str | None:
        """There is nobody to ask."""
        return "this is a file; nothing can be asked of it"

    def detach(self) -> None:
        """Nothing to let go."""

    def nvml_waiting(self) -> float | None:
        """No driver is asked."""
        return None

    def silence(self) -> tuple[float, str | None] | None:
        """Nothing more comes from a file."""
        return None

    def _read(self) -> None:
        try:
            found = events(self._path)
        except Unreadable as error:
            self.refused = f"{self._path} {error}"
        except Exception as error:  # noqa: BLE001 - it would be lost with this thread
            self.refused = f"{self._path} could not be read, which is a fault of tuimon: {type(error).__name__}: {error}"
        else:
            self._inbox.put_many(found)
            return
        self._inbox.put(ev.TargetEnded(0, "refused", self.refused))


def run(path: Path, options: Options, *, screen: bool) -> int:
    """Show the file, or without a screen its report. Gives an exit status: 1, with a sentence, where it cannot be read."""
    feed = FileFeed(path)
    feed.start()
    feed.wait(SOON_S if screen else None)
    if screen and feed.refused is None:
        from tuimon.commands.screen import on_screen

        status = on_screen(feed, options, front="roofline")
        if feed.refused is None and options.output is None:
            return status
    if feed.refused is not None:
        say(feed.refused)
        return FAILED
    feed.model.apply(feed.drain())
    return _report(feed, options)


def _report(feed: FileFeed, options: Options) -> int:
    from tuimon.commands.watch import known_figures
    from tuimon.report import build, render

    made = build(feed.model, known=known_figures(options.ceilings), here=False)
    return deliver(render(made, options.format), options.output)
