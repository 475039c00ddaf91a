"""The help of the screen that one is in: over the monitor, the lab and the list of processes alike."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, cast

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container
from textual.screen import Screen

from tuimon.app.action import Scope
from tuimon.app.keymap import actions
from tuimon.app.keymap.foot import foot
from tuimon.app.panels.frame import fitted
from tuimon.app.panels.help import Subject, lines
from tuimon.app.plan import Box
from tuimon.app.screens.asking import put
from tuimon.app.widgets.keys_widget import KeysWidget
from tuimon.app.widgets.line_widget import LineWidget
from tuimon.draw.glyphs import GlyphSet
from tuimon.draw.text import Line

if TYPE_CHECKING:
    from tuimon.app.everywhere import Everywhere

BINDINGS: list[BindingType] = [
    Binding(",".join(action.keys), action.call, action.label, id=f"help-{action.id}", show=False) for action in actions("help")
]

WHEEL = 3
"""Lines that a notch of the wheel goes."""


class HelpScreen(Screen[None]):
    """All keys, what they do, and what the words mean."""

    BINDINGS = BINDINGS
    AUTO_FOCUS = ""
    SCOPE: ClassVar[Scope] = "help"

    def __init__(self, subject: Subject) -> None:
        super().__init__()
        self.subject = subject
        self.body = LineWidget(id="help")
        self.keys_line = KeysWidget()
        self.top = 0
        self._last = 0
        self._message = ""

    @property
    def _glyphs(self) -> GlyphSet:
        return cast("Everywhere[Any]", self.app).glyphs

    def compose(self) -> ComposeResult:
        """The text and the keys."""
        with Container(id="board"):
            yield self.body
            yield self.keys_line

    def on_resize(self, event: events.Resize) -> None:
        """Text is broken anew."""
        width, height = event.size
        put(self.body, Box(0, 0, width, max(0, height - 1)))
        put(self.keys_line, Box(0, max(0, height - 1), width, 1))
        self.call_after_refresh(self.paint)

    def tell(self, message: str) -> None:
        """A word to the person, in the place of the keys; "": the keys."""
        if message != self._message:
            self._message = message
            self.paint()

    def paint(self) -> None:
        """Bring the page up to date."""
        width, height = self.body.size
        glyphs = self._glyphs
        text = lines(self.subject, max(10, width), glyphs)
        room = max(0, height - 2)
        self._last = max(0, len(text) - room)
        self.top = min(max(0, self.top), self._last)
        title: Line = [(" ", "text"), (f"help: {self.subject.title}", "title-focus")]
        if self._last:
            title += [("  ", "text"), (f"{self.top + 1}-{min(len(text), self.top + room)} of {len(text)}", "note")]
        page = [title, [(glyphs.horizontal * width, "rule")], *text[self.top : self.top + room]]
        self.body.show(fitted(page, width, height, glyphs))
        keys = foot(self.SCOPE, self.keys_line.size.width, glyphs, message=self._message, labels={"down": "scroll"})
        self.keys_line.tell(keys, glyphs)

    def action_leave(self) -> None:
        """Back to where one was."""
        self.dismiss()

    def action_move(self, step: int) -> None:
        """A line on or back."""
        self.top += step
        self.paint()

    def action_page(self, step: int) -> None:
        """A page on or back."""
        self.action_move(step * max(1, self.body.size.height - 3))

    def action_end(self, way: int) -> None:
        """The top or the end."""
        self.top = 0 if way < 0 else self._last
        self.paint()

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        """The wheel scrolls."""
        self.action_move(WHEEL)

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        """The wheel scrolls."""
        self.action_move(-WHEEL)
