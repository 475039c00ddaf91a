"""How far something has got that lasts: one line on stderr that changes, where that is a terminal; nothing elsewhere."""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from tuimon.draw import format as fmt
from tuimon.draw.text import clean, cut

EVERY_S = 0.5
"""So often it is told; what is over within that shows nothing."""
FORETELL_S = 1.0
"""Before that, how long the rest will take is not told."""
BAR = 20

Own = TypeVar("Own", bound="LiveLine")


class LiveLine:
    """A line on stderr that is written over. A context: it is gone at its end."""

    def __init__(self) -> None:
        self.live = sys.stderr.isatty() and os.environ.get("TERM", "dumb") not in ("", "dumb")
        """Whether there is one."""
        self._shown = False

    def __enter__(self: Own) -> Own:
        return self

    def __exit__(self, *_: object) -> None:
        self.clear()

    def show(self, text: str) -> None:
        """Have this in the line; what is too long for the terminal is cut."""
        if self.live:
            self._shown = True
            self._write(f"\r\x1b[K{cut(clean(text), max(1, shutil.get_terminal_size().columns - 1), '~')}")

    def clear(self) -> None:
        """Take it away, for other words or for good."""
        if self._shown:
            self._shown = False
            self._write("\r\x1b[K")

    def _write(self, text: str) -> None:
        try:
            sys.stderr.write(text)
            sys.stderr.flush()
        except OSError:
            self.live = False  # nobody listens


class Reading(LiveLine):
    """How far files have been read."""

    def __init__(self, name: str, files: Sequence[Path], clock: Callable[[], float] = time.monotonic) -> None:
        """`name`: of what is read, `files`: all that it consists of."""
        super().__init__()
        self._name = name
        self._sizes = [_size(path) for path in files]
        self._done = [0.0] * len(files)
        self._clock = clock
        self._began = clock()
        self._told = self._began

    def part(self, number: int) -> Callable[[int, int], None]:
        """What takes in how far that file has been read: how much, and of how much."""

        def progress(done: int, of: int) -> None:
            self._done[number] = min(1.0, done / of) if of else 0.0
            now = self._clock()
            if self.live and now - self._told >= EVERY_S:
                self._told = now
                self.show(self.line(now - self._began))

        return progress

    def line(self, took_s: float) -> str:
        """`reading run.tuimon [#####...............]  25% of 84.0 MiB, 12 s left`, after so many seconds."""
        whole = sum(self._sizes)
        share = sum(done * size for done, size in zip(self._done, self._sizes, strict=True)) / whole if whole else 0.0
        left = f", {fmt.age(took_s / share - took_s)} left" if share > 0 and took_s >= FORETELL_S else ""
        return f"reading {self._name} {bar(share)} {share:4.0%} of {fmt.size(whole)}{left}"


def bar(share: float, width: int = BAR) -> str:
    """`[####................]`"""
    full = round(min(max(share, 0.0), 1.0) * width)
    return f"[{'#' * full}{'.' * (width - full)}]"


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0
