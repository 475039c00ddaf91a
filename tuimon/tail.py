"""The job's own output, as lines in the event log.

A job that tuimon starts under the screen writes into a file, never into a pipe: a pipe that nobody empties would stop it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path

from tuimon.events import Event, Line

PERIOD_S = 0.25
MOST_LINES = 40
"""So many lines are passed on in one period; the file has the rest."""
CHUNK = 1 << 20


class Tail:
    """Follows a file that grows and puts its lines, the last ones where there are too many."""

    def __init__(self, path: Path, put: Callable[[Event], None]) -> None:
        self._path = path
        self._put = put
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="tuimon-tail", daemon=True)
        self._rest = b""

    def start(self) -> None:
        """Start following, from the file's beginning."""
        self._thread.start()

    def stop(self) -> None:
        """Read what there is, then end."""
        self._over.set()
        self._thread.join(2.0)

    def _run(self) -> None:
        try:
            with self._path.open("rb") as file:
                while True:
                    last = self._over.wait(PERIOD_S)
                    while self._take(file.read(CHUNK)):
                        pass
                    if last:
                        return
        except OSError as error:
            self._put(Line(time.monotonic_ns(), f"the job's output cannot be read any more: {error}"))

    def _take(self, data: bytes) -> bool:
        """Put the lines that `data` completes; False where there was nothing."""
        if not data:
            return False
        *lines, self._rest = (self._rest + data).split(b"\n")
        if len(self._rest) > CHUNK:  # no line of text: do not gather it for ever
            lines, self._rest = [*lines, self._rest], b""
        now = time.monotonic_ns()
        if len(lines) > MOST_LINES:
            left_out = len(lines) - MOST_LINES
            lines = lines[-MOST_LINES:]
            self._put(Line(now, f"{left_out} lines of the job's output left out here: see {self._path}"))
        for line in lines:
            # a progress bar draws its line again and again: what stands there last is what counts
            text = line.rstrip(b"\r").rpartition(b"\r")[2].decode("utf-8", "replace")
            self._put(Line(now, text, "job"))
        return True
