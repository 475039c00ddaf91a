"""A page of text over the panels: details, or the help. It scrolls, and stays live while it is open."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar, cast

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import Screen

from tuimon.app.action import Scope
from tuimon.app.keymap import actions
from tuimon.app.panels import keys as keys_line
from tuimon.app.panels.frame import fitted
from tuimon.app.panels.target import Status
from tuimon.app.scene import Scene
from tuimon.app.widgets.line_widget import LineWidget
from tuimon.draw.text import Line, clean, cut, line_cells

if TYPE_CHECKING:
    from tuimon.app.app import MonitorApp

BINDINGS: list[BindingType] = [
    Binding(",".join(action.keys), action.call, action.label, id=f"page-{action.id}", show=False) for action in actions("page")
]


class PageScreen(Screen[None]):
    """A title, text that scrolls, and the keys."""

    BINDINGS = BINDINGS
    AUTO_FOCUS = ""
    SCOPE: ClassVar[Scope] = "page"
    """Which actions its footer tells."""

    def __init__(self, title: str, build: Callable[[Scene, int], list[Line]]) -> None:
        super().__init__()
        self.page_title = title
        self._build = build
        self.body = LineWidget(id="page")
        self.keys_line = LineWidget(id="keys")
        self.top = 0
        self._last = 0

    @property
    def monitor(self) -> MonitorApp:
        """The app, by its own type."""
        return cast("MonitorApp", self.app)

    def compose(self) -> ComposeResult:
        """The text and the keys."""
        yield self.body
        yield self.keys_line

    def on_resize(self, event: events.Resize) -> None:
        """Text is broken anew."""
        self.call_after_refresh(self.monitor.paint)

    def sync(self, scene: Scene, status: Status, panels: Scene | None = None, clock_ns: int | None = None) -> int:
        """Bring the page up to date. Gives the number of lines that changed."""
        width, height = self.body.size
        glyphs = scene.glyphs
        lines = self._build(panels or scene, max(10, width))
        if lines and not lines[0]:
            del lines[0]
        room = max(0, height - 2)
        self._last = max(0, len(lines) - room)
        self.top = min(self.top, self._last)
        where = f"{self.top + 1}-{min(len(lines), self.top + room)} of {len(lines)}" if self._last else ""
        title: Line = [
            (" ", "text"),
            (cut(clean(self.page_title), max(1, width - len(where) - 14), glyphs.ellipsis), "title-focus"),
        ]
        if where:
            title += [("  ", "text"), (where, "note")]
        if scene.ranks:
            title += [("  ", "text"), (clean(scene.ranks[scene.rank].label), "strong")]
        if status.frozen is not None:
            title += [("  ", "text"), (" FROZEN ", "frozen")]
        page = [title, [(glyphs.horizontal * width, "rule")], *lines[self.top : self.top + room]]
        changed = self.body.show(fitted(page, width, height, glyphs))
        width, height = self.keys_line.size
        over = scene.replay is not None or scene.model.target.how == "file"  # no window is opened in it
        footer = keys_line.draw("page" if self.SCOPE == "window" and over else self.SCOPE, status.message, [], width, glyphs)
        if not status.message and footer:
            room = width - line_cells(footer[0]) - len("   scroll ")
            keys = next((keys for keys in ("j k pgdn pgup", "j k") if len(keys) <= room), "")
            footer[0] += [("  ", "text"), (keys, "key"), (" scroll", "key-label")] if keys else []
        return changed + self.keys_line.show(fitted(footer, width, height, glyphs))

    def action_leave(self) -> None:
        """Back to the panels."""
        self.dismiss()

    def _show_from(self, top: int) -> None:
        self.top = min(max(0, top), self._last)
        self.monitor.paint()

    def action_move(self, step: int) -> None:
        """A line on or back."""
        self._show_from(self.top + step)

    def action_page(self, step: int) -> None:
        """A page on or back."""
        self._show_from(self.top + step * max(1, self.body.size.height - 3))

    def action_end(self, way: int) -> None:
        """The top or the end."""
        self._show_from(0 if way < 0 else self._last)
