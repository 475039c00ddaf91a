"""What no first picture waits for: loaded on a thread once that is there, so that no key waits for it either."""

from __future__ import annotations

import contextlib
import importlib
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from tuimon.app.plane import Compute
    from tuimon.roofline.ceilings import Ceiling

MODULES = (
    "tuimon.app.details.opening",
    "tuimon.app.screens.page",
    "tuimon.app.screens.step",
    "tuimon.app.screens.window",
    "tuimon.app.screens.help",
    "tuimon.app.screens.palette",
    "tuimon.app.screens.themes",
    "tuimon.app.screens.lab",
    "tuimon.app.panels.roofline_chart",
    "tuimon.app.still",
    "tuimon.recorder",
)
"""What a key needs."""


class Figures(NamedTuple):
    """What is known of machines."""

    ceilings: tuple[Ceiling, ...] = ()
    roofline: Compute | None = None
    """What makes a roofline of a model."""
    problems: tuple[str, ...] = ()
    """Sentences on files that could not be used."""


class Later:
    """Loads and reads on a thread of its own, once."""

    def __init__(self, read: Callable[[], Figures] | None) -> None:
        """`read` gives the figures; None: they are known already."""
        self._read = read
        self._figures: Figures | None = None
        self._thread: threading.Thread | None = None
        self._there = threading.Event()
        self._taken = False

    def begin(self) -> None:
        """From now on."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="tuimon-later", daemon=True)
            self._thread.start()

    def take(self) -> tuple[bool, Figures | None]:
        """Whether all has come since this was asked last, and the figures, if they were to be read. Never blocks."""
        if self._taken or not self._there.is_set():
            return False, None
        self._taken = True
        return True, self._figures

    def _run(self) -> None:
        if self._read is not None:
            try:
                self._figures = self._read()
            except Exception as error:  # noqa: BLE001 - whatever it is: without them there is no roof, and all else goes on
                self._figures = Figures(problems=(f"the figures of machines cannot be read: {error}",))
        for name in MODULES:
            with contextlib.suppress(Exception):  # whoever presses the key for it is told: no other thing waits for that
                importlib.import_module(name)
        self._there.set()
