"""A panel on the screen: draws itself anew only when what it shows has changed."""

from __future__ import annotations

from typing import Any

from textual import events
from textual.message import Message

from tuimon.app.panels.frame import fitted
from tuimon.app.scene import Panel, PanelView, Scene
from tuimon.app.widgets.line_widget import LineWidget


class PanelWidget(LineWidget):
    """One panel with the view that a person has of it."""

    class Pointed(Message):
        """Someone clicked into the panel, or turned the wheel over it."""

        def __init__(self, panel: PanelWidget, line: int | None, step: int) -> None:
            super().__init__()
            self.panel = panel
            self.line = line
            self.step = step

    class Boxed(Message):
        """The panel has another size."""

    def __init__(self, panel: Panel) -> None:
        super().__init__(id=f"panel-{panel.id}")
        self.panel = panel
        self.view = PanelView()
        self.focused_panel = False
        self._looked_at: tuple[Any, ...] | None = None
        self._data: tuple[Any, ...] | None = None

    @property
    def drawn(self) -> bool:
        """Whether it was drawn since its box is the one that it has now."""
        return self._looked_at is not None and self._looked_at[2] == self.size

    def sync(self, scene: Scene, due: bool = True) -> int:
        """Draw anew if anything that shows has changed since the last time. Gives how many lines differ.

        `due`: whether it is time for tables to follow their numbers. What a person changed is drawn whether or not.
        """
        width, height = self.size
        versions = scene.model.versions
        rows = self.panel.rows
        looked_at = (
            id(scene.model),
            self.view.version,
            self.size,
            self.focused_panel,
            rows(scene) if rows is not None else 0,
            scene.model.target.attached_ns,  # "not attached yet" goes at once, not with the next look at numbers
        )
        data = (
            tuple(versions[section] for section in self.panel.sections),
            scene.now_ns if self.panel.ticking(scene) else 0,
            self.panel.stamp(scene),
        )
        waits = rows is not None and not due
        if looked_at == self._looked_at and (data == self._data or waits):
            return 0
        self._looked_at, self._data = looked_at, data
        lines = self.panel.draw(scene, self.view, width, height, self.focused_panel)
        return self.show(fitted(lines, width, height, scene.glyphs))

    def on_resize(self) -> None:
        """A box has taken effect: what belongs into it is drawn now, and not with the next beat."""
        self.post_message(self.Boxed())

    def on_click(self, event: events.Click) -> None:
        """A click selects."""
        self.post_message(self.Pointed(self, event.y, 0))

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        """The wheel moves the selection."""
        self.post_message(self.Pointed(self, None, 3))

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        """The wheel moves the selection."""
        self.post_message(self.Pointed(self, None, -3))
