"""The page of profiler windows: as other pages, and from it one is opened or cancelled."""

from __future__ import annotations

from typing import ClassVar

from textual.binding import Binding, BindingType

from tuimon.app.action import Scope
from tuimon.app.details import window
from tuimon.app.keymap.page import WINDOW
from tuimon.app.screens.page import PageScreen

BINDINGS: list[BindingType] = [
    Binding(",".join(action.keys), action.call, action.label, id=action.id, show=False) for action in WINDOW
]

STEPS = (1, 2, 3, 5, 10, 20, 50)
"""Of how many steps a window may be."""

USUAL = 5


class WindowScreen(PageScreen):
    """What a window costs, and the windows so far."""

    BINDINGS = BINDINGS
    SCOPE: ClassVar[Scope] = "window"

    def __init__(self) -> None:
        super().__init__(window.TITLE, lambda scene, width: window.lines(scene, self.steps, width))
        self.steps = USUAL

    def action_open_window(self) -> None:
        """Open one."""
        self.monitor.ask_window(self.steps)

    def action_cancel_window(self) -> None:
        """Cancel the one that waits or is open."""
        self.monitor.cancel_window()

    def action_steps(self, way: int) -> None:
        """More steps, or fewer."""
        self.steps = STEPS[min(max(0, STEPS.index(self.steps) + way), len(STEPS) - 1)]
        self.monitor.paint()
