"""The monitor on a tour: each screen leaves three lines at the bottom to the strip that leads through them."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, cast

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding
from textual.geometry import Size
from textual.screen import Screen

from tuimon.app.app import MonitorApp
from tuimon.app.feed import Feed, Group
from tuimon.app.keymap.tour import TOUR
from tuimon.app.panels.frame import fitted
from tuimon.app.scene import Rank, Scene, Standing
from tuimon.app.screens.lab import LabScreen
from tuimon.app.screens.main import MainScreen
from tuimon.app.screens.page import PageScreen
from tuimon.app.screens.step import StepScreen
from tuimon.app.screens.steps import PANEL as STEPS
from tuimon.app.settings import Settings
from tuimon.app.tour import HEIGHT, Tour, strip
from tuimon.app.widgets.line_widget import LineWidget

LOOK_S = 0.25
"""So often it is looked where the person is, beside each time that something is drawn."""


class TourStrip(LineWidget):
    """The lines at the bottom."""

    DEFAULT_CSS = f"TourStrip {{ dock: bottom; width: 100%; height: {HEIGHT}; }}"


@functools.cache
def toured(kind: type[Screen[Any]]) -> type[Screen[Any]]:
    """The same screen, with room for the strip. Screens take their size from their events, so these tell less."""

    class Toured(kind):  # type: ignore[misc, valid-type]
        """A screen of the tour."""

        def compose(self) -> ComposeResult:
            """What the screen has, and the strip."""
            yield from kind.compose(self)
            yield TourStrip(id="tour")

        @property
        def size(self) -> Size:
            """What is left of it."""
            return _less(super().size)

        def on_resize(self, event: events.Resize) -> None:
            """Another size: behind its own handlers the screen is told of one that is smaller."""
            self.call_later(cast("Any", kind).on_resize, self, events.Resize(_less(event.size), _less(event.virtual_size)))

    Toured.__name__ = kind.__name__
    return Toured


def _less(size: Size) -> Size:
    return Size(size.width, max(1, size.height - HEIGHT))


class TourApp(MonitorApp):
    """The monitor, led."""

    BINDINGS = [  # noqa: RUF012
        Binding(",".join(action.keys), action.call, action.label, id=action.id, show=False, priority=True) for action in TOUR
    ]

    def __init__(
        self,
        tour: Tour,
        feed: Feed | Group,
        settings: Settings,
        clock: Callable[[], int] = time.monotonic_ns,
        watch_terminal: bool = True,
    ) -> None:
        super().__init__(feed, settings, clock, watch_terminal)
        self.tour = tour
        self.main.__class__ = cast("type[MainScreen]", toured(MainScreen))

    def on_mount(self) -> None:
        """The monitor's own start, then the tour's look at it."""
        self.set_interval(LOOK_S, self.look)

    def push_screen(self, screen: Any, *words: Any, **named: Any) -> Any:
        """Each screen leaves room for the strip."""
        if isinstance(screen, Screen):
            screen.__class__ = toured(type(screen))
        return super().push_screen(screen, *words, **named)

    def paint(self) -> None:
        """The monitor's own picture, then the strip."""
        super().paint()
        self.look()

    def _scene(self, ranks: Sequence[Rank], standings: tuple[Standing, ...]) -> Scene:
        """As of any recording, but that the program's source lies here: pages may read it."""
        return replace(super()._scene(ranks, standings), host=None)

    def here(self) -> frozenset[str]:
        """Where the person is, in the words that a stop waits for."""
        screen, main = self.screen, self.main
        found = set()
        if screen is main:
            found.add(f"panel {main.zoomed}" if main.zoomed else "overview")
            if main.zoomed == "findings":
                found.add("findings")
            if main.panels[STEPS].view.cursor is not None:
                found.add("step selected")
        elif isinstance(screen, StepScreen):
            found.add("step page")
        elif isinstance(screen, PageScreen):
            found.add("page" if len(self.screen_stack) <= 2 else "deeper")
        elif isinstance(screen, LabScreen):
            found.add("lab")
            if screen.session.lab.revealed:
                found.add("revealed")
        else:
            found.add(getattr(screen, "SCOPE", ""))
        return frozenset(found)

    def look(self) -> None:
        """Go on where the keys have led there, and show the strip."""
        if not self.screen_stack or not self.is_running:
            return
        self.tour.look(self.here())
        for line in self.screen.query("#tour").results(TourStrip):
            width = line.size.width
            if width:
                line.show(fitted(strip(self.tour, width, self.glyphs), width, HEIGHT, self.glyphs))

    def action_tour(self) -> None:
        """The next stop, whatever was done."""
        if not self.tour.skip():
            self.say("this is the last stop")
        self.look()
