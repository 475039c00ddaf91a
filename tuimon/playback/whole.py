"""A file that is shown as a whole: what it says is folded on a thread of its own, and is there when that is done."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Literal

from tuimon import events as ev
from tuimon.model import Model
from tuimon.sources.files import NAMES, Opened, Progress, Stopped
from tuimon.sources.trace_file import Unreadable

ELSEWHERE = "its host"
"""What is known of this machine does not hold for it."""


def folded(opened: Opened, progress: Progress, judge: Callable[[Model], None], left: tuple[str, ...] = ()) -> Model:
    """All that a file says, as a model. `left`: sentences on what of its folder was left out. Raises Unreadable, Stopped."""
    model = Model()
    judge(model)
    for batch in opened.events(progress):
        model.apply(batch)
    if left:
        model.apply([ev.NotAvailable(model.now_ns, "the whole folder", "; ".join(left))])
    return model


class WholeFile:
    """A file in place of a job. A large one does not hold up the screen."""

    recorded: Literal[False] = False
    """Whether it is a recording of what the monitor was given, and can be played."""

    def __init__(self, opened: Opened, *, judge: Callable[[Model], None] = lambda _: None, left: tuple[str, ...] = ()) -> None:
        self.model = Model()
        self.title = opened.path.name
        self.label = opened.label
        self.rank = opened.rank
        self.host: str | None = ELSEWHERE
        self.pid: int | None = None
        self.job: str | None = None
        self.refused: str | None = None
        """Why the file could not be read; None while it may still be, and where it was."""
        self.restarted = 0
        """How often `model` has become another one."""
        self.opened = opened
        self._left = left
        self._judge = judge
        self._share: float | None = None
        self._told = ""
        self._made: Model | None = None
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._read, name=f"tuimon-file {opened.label}", daemon=True)

    def start(self) -> None:
        """Begin to read."""
        self._thread.start()

    def wait(self, seconds: float | None = None) -> bool:
        """Until all is read, or for so long; gives whether it is."""
        self._thread.join(seconds)
        return not self._thread.is_alive()

    def drain(self) -> list[ev.Event]:
        """How far it is read; when it is, `model` becomes what it says."""
        if self._made is not None:
            self.model, self._made = self._made, None
            self.restarted += 1
            return []
        if self.refused is not None and self.model.target.ended is None:
            return [ev.TargetEnded(0, "refused", self.refused)]
        if self.model.target.attached_ns is not None or self.model.target.ended is not None:
            return []
        share = f", {self._share:.0%}" if self._share is not None else ""
        sentence = f"reading {self.opened.path.name}{share}"
        if sentence == self._told:
            return []
        self._told = sentence
        return [ev.Attaching(0, sentence)]

    def show(self, on: bool) -> None:
        """Nothing: all of it comes anyway."""

    def command(self, message: dict[str, object]) -> str | None:
        """There is nobody to ask."""
        return f"this is a {NAMES[self.opened.kind][0]}; nothing can be asked of it"

    def detach(self) -> None:
        """Read no further."""
        self._stop.set()

    def nvml_waiting(self) -> float | None:
        """No driver is asked."""
        return None

    def silence(self) -> tuple[float, str | None] | None:
        """Nothing more comes from a file."""
        return None

    def _progress(self, read: int, of: int) -> None:
        self._share = min(1.0, read / of) if of > 0 else None
        if self._stop.is_set():
            raise Stopped

    def _read(self) -> None:
        path = self.opened.path
        try:
            self._made = folded(self.opened, self._progress, self._judge, self._left)
        except Stopped:
            pass
        except Unreadable as error:
            self.refused = f"{path} {error}"
        except Exception as error:  # noqa: BLE001 - it would be lost with this thread
            self.refused = f"{path} could not be read, which is a fault of tuimon: {type(error).__name__}: {error}"
