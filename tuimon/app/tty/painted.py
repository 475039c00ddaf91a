"""An app whose screen goes to the terminal through the painter, not as Textual would send it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Any, Generic, TypeVar

from rich.console import COLOR_SYSTEMS, RenderableType
from rich.segment import Segment
from textual import events
from textual.driver import Driver
from textual.drivers.linux_driver import LinuxDriver
from textual.screen import Screen

from tuimon.app.tty import terminal
from tuimon.app.tty.driver import TerminalDriver
from tuimon.app.tty.in_turn import InTurnApp
from tuimon.app.tty.paint import QUICK, Painter
from tuimon.app.widgets.line_widget import LineWidget

Result = TypeVar("Result")

HOLD_S = 1.0
"""At most so long what was on the terminal stays there, while what comes in its place has a layout and nothing in it yet."""


class PaintedApp(InTurnApp[Result], Generic[Result]):
    """Paints by the painter where there is a terminal; without one (in tests) all is Textual's."""

    def __init__(self) -> None:
        super().__init__()
        self.painter = Painter(self, COLOR_SYSTEMS.get(self.console.color_system or ""))
        self._painted: Screen[Any] | None = None
        """The screen that is on the terminal."""
        self._lines_of: Screen[Any] | None = None
        self._lines: list[LineWidget] = []
        """What a screen is made of: it stays the same while it is there."""
        self._holding = False
        """Whether a picture was held: of the next one all rows are painted."""
        self._held_s: float | None = None
        """Since when pictures are held that have nothing in them yet; None: there was none since the last that had."""

    def get_driver_class(self) -> type[Driver]:
        """Textual's driver for this platform, or ours where it is the one for terminals."""
        found = super().get_driver_class()
        return TerminalDriver if found is LinuxDriver else found

    def _display(self, screen: Screen[Any], renderable: RenderableType | None) -> None:
        """Textual has a picture to show."""
        if renderable is None or not terminal.can_draw(self):
            super()._display(screen, renderable)
            return
        self.painter.whole = terminal.shows_whole(self)
        terminal.tells_rows_only(screen)
        held = self._holding
        if self._holds(screen):
            return
        rows = terminal.changed_rows(renderable) if screen is self._painted and not held else None
        self._painted = screen
        self.painter.paint(rows)
        self.post_display_hook()

    def _holds(self, screen: Screen[Any]) -> bool:
        """Whether the picture is not worth showing: Textual lays a screen out, and paints it, before its lines are drawn."""
        if self._lines_of is not screen or not self._lines:
            self._lines_of, self._lines = screen, list(screen.query(LineWidget))
        drawn = bool(self._lines) and all(one.drawn for one in self._lines if one.display and one.size.area)
        if self._painted is None or drawn:
            self._held_s, self._holding = None, False
            return False
        now = time.monotonic()
        if self._held_s is None:
            self._held_s = now
            self.set_timer(HOLD_S, lambda: self._held_long_enough(now))
        self._holding = now - self._held_s < HOLD_S
        return self._holding

    def _held_long_enough(self, since: float) -> None:
        if self._holding and self._held_s == since and self.screen_stack:
            self._holding, self._painted = False, self.screen
            self._holding = not self._paint_again()  # then the next picture is painted, and all of it

    def on_cursor_position(self, event: events.CursorPosition) -> None:
        """The terminal has answered."""
        self.painter.answered(event.y, event.x, event.time)

    def on_resize(self, event: events.Resize) -> None:
        """Another size, or back from the shell: nothing on the terminal is as it was.

        A picture follows by itself only where the last of several such events, which come as one, tells another size.
        """
        self.painter.forget()
        self.call_after_refresh(self._paint_again)

    def redraw(self) -> None:
        """Paint all anew: something else has written on the terminal."""
        self.painter.forget()
        self._paint_again()

    def _paint_again(self) -> bool:
        """Gives whether it could."""
        if not terminal.can_draw(self) or not self.screen_stack or self.screen is not self._painted:
            return False
        if self.picture_size() != self.size or self._holding:  # another layout is on its way, and a picture with it
            return False
        self.painter.paint()
        return True

    # ------------------------------------------------------------------------------------------ for the painter

    def picture_size(self) -> tuple[int, int]:
        """Columns and rows of the screen that is on top."""
        return terminal.picture_size(self.screen)

    def rendered(self, rows: Iterable[int]) -> dict[int, list[Segment]]:
        """These rows of it."""
        return terminal.rendered(self.screen, rows)

    def send(self, text: str) -> None:
        """To the terminal."""
        terminal.send(self, text)

    def call_in(self, seconds: float, what: Callable[[], None]) -> None:
        """Later."""
        self.set_timer(seconds, what)

    # ------------------------------------------------------------------------------------------ for the pump

    def backlog(self) -> int:
        """How much of what was to be shown has not reached the terminal, in pieces; 0: it keeps up."""
        return terminal.backlog(self) + (1 if self.painter.late else 0)

    def line_rate(self) -> float | None:
        """Bytes a second that the line to the terminal carries; None: more than was ever needed."""
        return self.painter.flow.rate_bytes_s

    def line_words(self) -> str:
        """How quick the line is ("0.9 kB/s"); "" where that is not known."""
        rate = self.line_rate()
        return f"{rate / 1000:.1f} kB/s" if rate is not None and rate < QUICK else ""

    def sent(self) -> int:
        """Bytes of pictures that have gone to the terminal."""
        return self.painter.bytes
