"""The recordings of processes that are watched: a file, or a folder with one for each."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Sequence
from pathlib import Path

from tuimon import events as ev
from tuimon.commands.options import DONE, FAILED, Record, say
from tuimon.commands.places import why_no_folder
from tuimon.draw.text import clean
from tuimon.feed import LiveFeed

SUFFIX = ".tuimon"


class CannotRecord(Exception):
    """There can be no recording there; the text is a sentence."""


def check(record: Record) -> None:
    """Raises CannotRecord where it can be seen now that nothing can be written there: before a job is started or touched."""
    path = record.path
    why_not = why_no_folder(path if os.path.isdir(path) else path.parent)
    if why_not is not None:
        raise CannotRecord(why_not)
    if os.path.isdir(path):
        return
    if os.path.lexists(path):
        if not os.path.isfile(path) or os.path.islink(path):
            raise CannotRecord(f"{path} is no ordinary file; name one that is not there yet")
        if not record.force:
            raise CannotRecord(f"{path} is there already; name another file, or --force to replace it")


class Recordings:
    """The recordings of what is watched: a file, or a folder with one for each. A context: they are closed at its end."""

    def __init__(self, record: Record | None) -> None:
        self._record = record
        self._tapes: list[_Tape] = []
        self._made: Path | None = None
        self.incomplete = False
        """Whether one of them stopped before the watching did; known when they are closed."""

    def begin(self, feeds: Sequence[LiveFeed], *, folder: bool = False) -> None:
        """Record all that these take in from now on; call it before they start. `folder`: into one, also a single one.

        Raises CannotRecord.
        """
        record = self._record
        if record is None:
            return
        path = record.path
        folder = folder or len(feeds) > 1 or os.path.isdir(path)
        if not folder:
            check(record)
        elif not os.path.isdir(path):
            try:
                path.mkdir(mode=0o700)
            except OSError as error:
                raise CannotRecord(f"the folder {path} could not be made: {error.strerror}") from None
            self._made = path
        try:
            for feed in feeds:
                self._tapes.append(_Tape(path / _name(feed) if folder else path, record, feed))
        except OSError as error:
            self._drop()
            raise CannotRecord(f"{error.filename or path} could not be made: {error.strerror or error}") from None
        what = "with lines of source and of output" if record.source else "without lines of source or output"
        say(f"recording to {clean(str(path))}, {what}")

    def __enter__(self) -> Recordings:
        return self

    def __exit__(self, *_: object) -> None:
        for tape in self._tapes:
            tape.close()
            self.incomplete = self.incomplete or tape.stopped
        if self._made is not None:
            with contextlib.suppress(OSError):
                self._made.rmdir()  # where none was attached to

    def _drop(self) -> None:
        for tape in self._tapes:
            tape.drop()
        self._tapes = []

    def status(self, status: int) -> int:
        """The exit status of a command that recorded: 1 where all else went well, but a recording is not whole."""
        return FAILED if self.incomplete and status == DONE else status


class _Tape:
    """The recorder of one process."""

    def __init__(self, path: Path, record: Record, feed: LiveFeed) -> None:
        self._path = path
        from tuimon.recorder import Recorder

        self._feed = feed
        steps = feed.model.steps
        self._recorder = Recorder(
            path,
            source=record.source,
            most=record.most,
            force=record.force,
            local=feed.host is None,
            tell=self._tell,
            steps=lambda: steps.n,
        )
        feed.model.tap = self._recorder.put

    @property
    def stopped(self) -> bool:
        return self._recorder.state == "stopped"

    def close(self) -> None:
        """Write what is there, and say what it came to. Of a process that was not attached to there is nothing to keep."""
        if not self._feed.attached:
            self.drop()
            return
        self._feed.model.tap = None
        say(clean(self._recorder.close()))

    def drop(self) -> None:
        """Take it away."""
        self._feed.model.tap = None
        self._recorder.close()
        with contextlib.suppress(OSError):
            self._path.unlink()

    def _tell(self, event: ev.Event) -> None:
        """On the recorder's thread: something went wrong. The watching goes on, and shows it."""
        self._feed.tell(event)
        if isinstance(event, ev.NotAvailable):
            say(f"{clean(str(self._path))}: {clean(event.why)}")


def _name(feed: LiveFeed) -> str:
    """`rank-3.tuimon`, `pid-4711.tuimon`, `rank-0@gpu7.tuimon`: labels of a fleet differ."""
    label = feed.label if not feed.label[:1].isdigit() else f"pid {feed.label}"
    return re.sub(r"[^A-Za-z0-9@.]+", "-", label).strip("-.") + SUFFIX
