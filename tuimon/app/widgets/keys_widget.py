"""The last line of a screen: its keys, of which each can be clicked at."""

from __future__ import annotations

from textual import events

from tuimon.app.keymap.foot import Foot
from tuimon.app.panels.frame import fitted
from tuimon.app.widgets.line_widget import LineWidget
from tuimon.draw.glyphs import GlyphSet
from tuimon.draw.text import line_cells


class KeysWidget(LineWidget):
    """A footer."""

    def __init__(self) -> None:
        super().__init__(id="keys")
        self._foot = Foot([])

    def tell(self, foot: Foot, glyphs: GlyphSet) -> int:
        """Show this footer. Gives how many lines changed."""
        self._foot = foot
        width = max(self.size.width, line_cells(foot.line))  # it may have its place with the next layout only
        return self.show(fitted([foot.line], width, 1, glyphs))

    async def on_click(self, event: events.Click) -> None:
        """As the key does."""
        event.stop()
        action = self._foot.at(event.x)
        if action is not None and event.y == 0:
            await self.app.run_action(action.call, self.screen)
