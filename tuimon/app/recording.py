"""The key that records: what is watched, from its begin on, into a file of its own for each process."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tuimon import events as ev
from tuimon.app.pump import Watched
from tuimon.draw.format import size

if TYPE_CHECKING:
    from tuimon.recorder import Prelude, Recorder

MOST_JOBS = 64
"""Of so many it is kept what names things, so that a recording that is begun late makes sense; of more, nothing is."""
TOO_MANY = "what was compiled before is not in it"


class _Tape:
    """What is recorded of one process."""

    def __init__(self, watched: Watched, *, keep: bool) -> None:
        self.watched = watched
        self.recorder: Recorder | None = None
        self._prelude: Prelude | None = None
        self._early: list[Sequence[ev.Event]] | None = [] if keep else None
        """What came before the prelude could be made of it; None: there is to be none, or it has it all."""
        watched.model.tap = self._put if keep else None

    def load(self) -> None:
        """Make the prelude: what can write has been loaded, or is to be now."""
        if self._early is not None:
            from tuimon.recorder import Prelude

            early, self._early, self._prelude = self._early, None, Prelude()
            for events in early:
                self._prelude.put(events)

    def begin(self, path: Path) -> None:
        """From here on, and what is needed of before. Raises OSError."""
        from tuimon.recorder import Recorder

        self.load()
        model, feed = self.watched.model, self.watched.feed
        earlier = self._prelude.events() if self._prelude is not None else ()

        def tell(event: ev.Event) -> None:
            put = getattr(feed, "tell", None)
            if put is not None:
                put(event)

        self.recorder = Recorder(path, local=feed.host is None, earlier=earlier, tell=tell, steps=lambda: model.steps.n)
        model.tap = self._put

    def _put(self, events: Sequence[ev.Event]) -> None:
        if self._early is not None:
            self._early.append(events)
            return
        if self._prelude is not None:
            self._prelude.put(events)
        if self.recorder is not None:
            self.recorder.put(events)

    def end(self) -> str:
        """Close it; gives what was recorded, in a sentence."""
        recorder, self.recorder = self.recorder, None
        if self._prelude is None and self._early is None:
            self.watched.model.tap = None
        return recorder.close() if recorder is not None else ""


class Recordings:
    """Records all that is watched, or nothing."""

    def __init__(self, watched: Sequence[Watched]) -> None:
        live = [one for one in watched if not hasattr(one.feed, "recorded")]  # no file
        self._kept = len(live) <= MOST_JOBS
        self._tapes = [_Tape(one, keep=self._kept) for one in live]

    def load(self) -> None:
        """From now on keep no more than what a recording would begin with."""
        for tape in self._tapes:
            tape.load()

    @property
    def on(self) -> bool:
        """Whether something is recorded."""
        return any(tape.recorder is not None for tape in self._tapes)

    def mark(self) -> str:
        """For the line at the top: how much has been written, or that it stopped; "" where nothing is recorded."""
        recorders = [tape.recorder for tape in self._tapes if tape.recorder is not None]
        if not recorders:
            return ""
        stopped = [one for one in recorders if one.state == "stopped"]
        written = size(sum(one.bytes for one in recorders))
        return f"REC stopped at {written}" if stopped else f"REC {written}"

    def turn(self) -> str:
        """Begin, or stop. Gives what there is to say."""
        if self.on:
            return self.close()
        tapes = [tape for tape in self._tapes if tape.watched.model.target.ended is None]
        if not self._tapes:
            return "this is a file already; there is nothing to record"
        if not tapes:
            return "the job is over: there is nothing more to record"
        now = time.strftime("%Y%m%d-%H%M%S")
        for folder, why in _folders():
            try:
                names = _names(tapes, folder, now)
                for tape, path in zip(tapes, names, strict=True):
                    tape.begin(path)
            except OSError as error:
                problem = f"{folder} cannot be written to: {(error.strerror or str(error)).lower()}"
                for tape in tapes:
                    tape.end()
                continue
            where = names[0] if len(names) == 1 and not why else names[0].parent
            late = "" if self._kept else f"; {TOO_MANY}"
            return f"recording into {_shown(where)}{why}{late}"
        return problem

    def close(self) -> str:
        """Stop; gives what was recorded, in a sentence."""
        said = [tape.end() for tape in self._tapes if tape.recorder is not None]
        return said[0] if len(said) == 1 else f"{len(said)} recordings; the first: {said[0]}" if said else ""


def _folders() -> list[tuple[Path, str]]:
    """Where recordings go, in the order in which it is tried, and what to say of it."""
    state = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "tuimon"
    return [(_here(), ""), (state, ", as the folder here cannot be written to")]


def _here() -> Path:
    try:
        return Path.cwd()
    except OSError:  # it is gone
        return Path()


def _names(tapes: list[_Tape], folder: Path, now: str) -> list[Path]:
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if len(tapes) == 1:
        return [folder / f"tuimon-{_of(tapes[0])}-{now}.tuimon"]
    several = folder / f"tuimon-{len(tapes)}-ranks-{now}"
    several.mkdir(mode=0o700)
    return [several / f"{_of(tape)}-{at}.tuimon" for at, tape in enumerate(tapes)]


def _of(tape: _Tape) -> str:
    target, feed = tape.watched.model.target, tape.watched.feed
    rank = target.rank if target.rank is not None else feed.rank
    return f"rank-{rank}" if rank is not None else str(target.pid or feed.pid or "job")


def _shown(path: Path) -> str:
    home = str(Path.home())
    text = str(path)
    if path.parent == _here():
        return path.name
    return text.replace(home, "~", 1) if text.startswith(f"{home}/") else text
