"""The list of commands: type a few letters of what is wanted, enter does it. Works in every app and with every glyph set."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar, cast

from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container
from textual.screen import Screen
from textual.widgets import Input

from tuimon.app.action import Scope
from tuimon.app.commands import Command, found
from tuimon.app.keymap import actions
from tuimon.app.keymap.foot import foot
from tuimon.app.panels.frame import PanelLines, fitted
from tuimon.app.plan import Box
from tuimon.app.screens.asking import put
from tuimon.app.widgets.keys_widget import KeysWidget
from tuimon.app.widgets.line_widget import LineWidget
from tuimon.draw.glyphs import GlyphSet
from tuimon.draw.table import window
from tuimon.draw.text import Line, cells, cut, exactly, pad, wrap

if TYPE_CHECKING:
    from tuimon.app.everywhere import Everywhere

BINDINGS: list[BindingType] = [
    Binding(",".join(action.keys), action.call, action.label, id=action.id, show=False, priority=True)
    for action in actions("palette")
]

LABEL = " do: "
HEAD = 2
"""Lines above the list."""
MOST_TITLE, MOST_KEYS = 28, 10
BELOW = 3
"""Lines below the list, for all that is said of the selected one."""


class PaletteScreen(Screen["Command | None"]):
    """What is typed, and the commands that it may mean. Gives the chosen one."""

    BINDINGS = BINDINGS
    AUTO_FOCUS = ""
    SCOPE: ClassVar[Scope] = "palette"

    def __init__(self, commands: Sequence[Command]) -> None:
        super().__init__()
        self.all = commands
        self.rows = found(commands, "")
        self.at = 0
        self._top = 0
        self._message = ""
        self.label = LineWidget(id="filter-label")
        self.line = Input(id="filter", placeholder="a few letters of a command", compact=True)
        self.line.cursor_blink = False
        self.body = LineWidget(id="commands")
        self.keys_line = KeysWidget()

    @property
    def _glyphs(self) -> GlyphSet:
        return cast("Everywhere[Any]", self.app).glyphs

    def compose(self) -> ComposeResult:
        """The line over the list over the keys."""
        with Container(id="board"):
            yield self.label
            yield self.line
            yield self.body
            yield self.keys_line

    def on_mount(self) -> None:
        """What is typed goes into the line at once."""
        self.set_focus(self.line)

    def on_resize(self, event: events.Resize) -> None:
        """Another size."""
        self._lay_out(event.size.width, event.size.height)

    def _lay_out(self, width: int, height: int) -> None:
        label = min(len(LABEL), max(0, width - 8))
        put(self.label, Box(0, 0, label, 1) if label else None)
        put(self.line, Box(label, 0, max(1, width - label), 1))
        put(self.body, Box(0, 1, width, max(0, height - 2)) if height > 2 else None)
        put(self.keys_line, Box(0, height - 1, width, 1) if height > 1 else None)
        self.label.show([[(LABEL, "key-label")]])
        self.call_after_refresh(self.paint)

    def paint(self) -> None:
        """Bring the screen up to date."""
        width, height = self.body.size
        glyphs = self._glyphs
        below = BELOW if height > 4 * BELOW else 0
        room = max(0, height - 1 - below)
        self.at = min(max(0, self.at), max(0, len(self.rows) - 1))
        self._top = window(len(self.rows), self.at, self._top, room)
        shown = self.rows[self._top : self._top + room]
        lines: PanelLines = [[(glyphs.horizontal * width, "rule")]]
        lines += [self._row(row, self._top + at == self.at, width) for at, row in enumerate(shown)]
        if not self.rows:
            lines.append([(" no command is called so; fewer letters find more", "note")])
        if below:
            lines = [*fitted(lines, width, height - below, glyphs), [(glyphs.horizontal * width, "rule")]]
            chosen = self.rows[self.at] if self.rows else None
            said = (f"not here: {chosen.why_not}. " if chosen.why_not else "") + chosen.help if chosen else ""
            lines += [[(" ", "text"), (part, "text")] for part in wrap(said, max(10, width - 2))[: below - 1]]
        self.body.show(fitted(lines, width, height, glyphs))
        keys = foot(self.SCOPE, self.keys_line.size.width, glyphs, message=self._message)
        self.keys_line.tell(keys, glyphs)

    def _row(self, row: Command, chosen: bool, width: int) -> Line:
        glyphs = self._glyphs
        title = min(MOST_TITLE, max(cells(one.title) for one in self.all))
        roles = ("quiet", "quiet", "quiet") if row.why_not else ("text", "key", "note")
        if chosen:
            roles = ("selected", "selected", "selected")
        said = f"not here: {row.why_not}" if row.why_not else row.help
        line: Line = [
            (glyphs.right if chosen else " ", roles[0]),
            (pad(cut(row.title, title, glyphs.ellipsis), title) + "  ", roles[0]),
            (pad(cut(row.keys, MOST_KEYS, glyphs.ellipsis), MOST_KEYS) + "  ", roles[1]),
            (cut(said, max(1, width - title - MOST_KEYS - 6), glyphs.ellipsis), roles[2]),
        ]
        return exactly(line, width, roles[0] if chosen else "text")

    @on(Input.Changed, "#filter")
    def narrow_while_typing(self, event: Input.Changed) -> None:
        """Each letter narrows the list at once."""
        self.rows, self.at, self._top, self._message = found(self.all, event.value), 0, 0, ""
        self.paint()

    def tell(self, message: str) -> None:
        """What the app has to say is said when the list is closed: here it would cover the keys."""

    def action_do(self) -> None:
        """What is selected."""
        if not self.rows:
            return
        row = self.rows[self.at]
        if row.why_not:
            self._message = f"{row.title}: not here, {row.why_not}"
            self.paint()
        else:
            self.dismiss(row)

    def action_leave(self) -> None:
        """Nothing."""
        self.dismiss(None)

    def action_move(self, step: int) -> None:
        """Another row."""
        self.at += step
        self._message = ""
        self.paint()

    def action_page(self, step: int) -> None:
        """A page on or back."""
        self.action_move(step * max(1, self.body.size.height - 2 - BELOW))

    def on_click(self, event: events.Click) -> None:
        """A click does what it is at."""
        at = self._top + event.screen_y - HEAD
        shown = self.body.size.height - 1 - BELOW
        if HEAD <= event.screen_y < HEAD + shown and at < len(self.rows):
            self.at = at
            self.action_do()

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        """The wheel moves the selection."""
        self.action_move(3)

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        """The wheel moves the selection."""
        self.action_move(-3)
