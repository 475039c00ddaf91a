"""What a program that `tuimon run` started starts in its turn: where those processes do its work, that is said.

The hook is in the first process alone (of torchrun's: in rank 0), and a forked one carries none. A program that makes its own
ranks and only waits for them would look as if it did nothing.
"""

from __future__ import annotations

import contextlib
import threading
import time

import psutil

from tuimon import events as ev
from tuimon.attach.find.process import find_targets
from tuimon.commands.options import say
from tuimon.model import Model

OFTEN_S, OFTEN, SELDOM_S = 0.5, 120, 5.0
"""It is looked so often at first, so many times, and then less often."""
AGAIN = 4
"""So many times the same processes are looked at: what they are shows only when all of them are there."""
LASTING_S = 1.0
"""What has been there for so long is told: a child between fork and exec still has the parent's torch in it, for a moment."""
MOST_NAMED = 8


class Below:
    """Looks for jobs below a process until one is found, or until the process makes steps itself. A context."""

    def __init__(self, model: Model, pid: int) -> None:
        self._model = model
        self._pid = pid
        self._over = threading.Event()
        self._found: list[int] = []
        self._thread = threading.Thread(target=self._look, name="tuimon-below", daemon=True)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join(1.0)
        if self._found and self._model.steps.source is None:
            named = ", ".join(map(str, self._found[:MOST_NAMED])) + (", .." if len(self._found) > MOST_NAMED else "")
            why = (
                f"{len(self._found)} that run torch themselves were seen (pids {named}); `tuimon run` watches the first "
                f"process alone: `tuimon attach {self._pid}`, while they run, watches them all"
            )
            self._model.apply([ev.NotAvailable(self._model.now_ns, "processes that the program started", why)])

    def _look(self) -> None:
        looks, left, known = 0, AGAIN, set[int]()
        since: dict[tuple[int, tuple[str, ...]], float] = {}
        while not self._over.wait(OFTEN_S if looks < OFTEN else SELDOM_S) and self._model.steps.source is None:
            looks += 1
            below = _below(self._pid)
            left = AGAIN if below - known else left - 1
            known = below
            if not below or (left <= 0 and not since):
                continue
            now = time.monotonic()
            jobs = [one for one in find_targets(everything=True) if one.kind == "job" and one.has_torch and one.pid in below]
            since = {at: since.get(at, now) for at in ((one.pid, tuple(one.command)) for one in jobs)}
            if since and max(since.values()) <= now - LASTING_S:
                self._found = sorted(pid for pid, _ in since)
                say(
                    f"the program has started {len(self._found)} that run torch themselves, and tuimon watches the first "
                    f"process alone; `tuimon attach {self._pid}` watches those"
                )
                return


def _below(pid: int) -> set[int]:
    """The processes below this one; empty where it has ended."""
    with contextlib.suppress(psutil.Error):
        return {child.pid for child in psutil.Process(pid).children(recursive=True)}
    return set()
