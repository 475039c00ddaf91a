"""The choice of a theme: a list that is walked through while the screen shows each one, at once. Files are looked at anew
while it is open, so a theme can be written beside it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, ClassVar, cast

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container
from textual.screen import Screen

from tuimon.app.action import Scope
from tuimon.app.keymap import actions
from tuimon.app.keymap.foot import foot
from tuimon.app.look.sample import HEAD, Row, draw, rows_of, scrolled
from tuimon.app.look.themes import Loaded, load_themes, stamps, user_folder
from tuimon.app.panels.frame import fitted
from tuimon.app.plan import Box
from tuimon.app.screens.asking import put
from tuimon.app.widgets.keys_widget import KeysWidget
from tuimon.app.widgets.line_widget import LineWidget
from tuimon.config import config_file, short

if TYPE_CHECKING:
    from tuimon.app.everywhere import Everywhere

BINDINGS: list[BindingType] = [
    Binding(",".join(action.keys), action.call, action.label, id=action.id, show=False) for action in actions("themes")
]

LOOK_S = 1.0
"""So often the user's folder is looked at."""

Stamps = tuple[tuple[str, int, int], ...]


class ThemesScreen(Screen[None]):
    """The themes, and a sample of the one that is on."""

    BINDINGS = BINDINGS
    AUTO_FOCUS = ""
    SCOPE: ClassVar[Scope] = "themes"

    def __init__(self) -> None:
        super().__init__()
        self.rows: list[Row] = []
        self._cursor = self._before = ""
        self._at = self._top = 0
        self._stamps: Stamps | None = None
        self._looking = False
        self._message = ""
        self.body = LineWidget(id="themes")
        self.keys_line = KeysWidget()

    @property
    def _app(self) -> Everywhere[Any]:
        return cast("Everywhere[Any]", self.app)

    def compose(self) -> ComposeResult:
        """The list over the keys."""
        with Container(id="board"):
            yield self.body
            yield self.keys_line

    def on_mount(self) -> None:
        """On the theme that is on."""
        self._cursor = self._before = self._app.theme_name
        self._take()
        self._lay_out(self.app.size.width, self.app.size.height)
        self.set_interval(LOOK_S, self.look)
        self.look()

    def on_resize(self, event: events.Resize) -> None:
        """Another size."""
        self._lay_out(event.size.width, event.size.height)

    def _lay_out(self, width: int, height: int) -> None:
        bottom = 1 if height > HEAD + 1 else 0
        put(self.body, Box(0, 0, width, max(1, height - bottom)))
        put(self.keys_line, Box(0, height - 1, width, 1) if bottom else None)
        self.call_after_refresh(self.paint)

    # ------------------------------------------------------------------------------------------ the files

    def look(self) -> None:
        """Whether files have changed, on a thread: a home directory may be far away."""
        if not self._looking:
            self._looking = True
            self.run_worker(self._look(), exit_on_error=False)

    async def _look(self) -> None:
        try:
            now, found = await asyncio.to_thread(_changed, self._stamps)
        finally:
            self._looking = False
        self._stamps = now
        if found is None:
            return
        loaded = self._app.themes
        worn, kept = self._app.theme_name, self._before
        loaded.again(found, (worn, kept))
        self._take()
        self._app.wear(worn)
        self.paint()

    def _take(self) -> None:
        self.rows = rows_of(self._app.themes, short(user_folder()))
        self._at = next((at for at, row in enumerate(self.rows) if row.key == self._cursor), min(self._at, len(self.rows) - 1))
        self._cursor = self.rows[self._at].key

    # ------------------------------------------------------------------------------------------ drawing

    def paint(self) -> None:
        """Bring the screen up to date."""
        width, height = self.body.size
        if not self.rows or width <= 0:
            return
        glyphs = self._app.glyphs
        self._top = scrolled(self.rows, self._at, self._top, width, height)
        lines = draw(self.rows, self._at, self._top, self._before, width, height, glyphs)
        self.body.show(fitted(lines, width, height, glyphs))
        self.keys_line.tell(foot(self.SCOPE, self.keys_line.size.width, glyphs, message=self._message), glyphs)

    # ------------------------------------------------------------------------------------------ what keys do

    def _go(self, at: int) -> None:
        self._at = min(max(0, at), len(self.rows) - 1)
        self._message = ""
        row = self.rows[self._at]
        self._cursor = row.key
        if row.theme and row.key != self._app.theme_name:
            self._app.wear(row.key)
        self.paint()

    def action_move(self, step: int) -> None:
        """Another theme, shown at once."""
        self._go(self._at + step)

    def action_page(self, step: int) -> None:
        """A page on or back."""
        self._go(self._at + step * max(1, self.body.size.height - HEAD - 1))

    def action_end(self, way: int) -> None:
        """The first or the last."""
        self._go(0 if way < 0 else len(self.rows) - 1)

    def action_keep(self) -> None:
        """The selected theme for this run."""
        row = self.rows[self._at]
        if not row.theme:
            self._message = f"{row.name} cannot be used; why stands beside it"
            self.paint()
            return
        self._app.wear(row.key)
        self.dismiss()
        self._app.say(f'theme = "{row.key}" in {short(config_file())} keeps it')

    def action_leave(self) -> None:
        """As it was before."""
        self._app.wear(self._before)
        self.dismiss()

    def on_click(self, event: events.Click) -> None:
        """A click shows a theme; a second one on it keeps it."""
        at = self._top + event.screen_y - HEAD
        if HEAD <= event.screen_y < self.body.size.height and at < len(self.rows):
            again = at == self._at and event.chain > 1
            self._go(at)
            if again:
                self.action_keep()

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        """The wheel goes through them."""
        self._go(self._at + 1)

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        """The wheel goes through them."""
        self._go(self._at - 1)


def _changed(before: Stamps | None) -> tuple[Stamps, Loaded | None]:
    """What the user's folder holds, and all themes anew where that is no longer as before."""
    now = stamps()
    return now, load_themes() if now != before else None
