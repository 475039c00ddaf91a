"""The keys of rows on the main screen: along them, in another order, fewer of them, what is behind one; and the mouse."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from tuimon.app.moves import move_cursor, move_to_end, select_shown
from tuimon.app.panels import ranks
from tuimon.app.screens import asking, points, steps
from tuimon.app.widgets.panel_widget import PanelWidget
from tuimon.model.steps.parts import StepAccount

if TYPE_CHECKING:
    from tuimon.app.screens.main import MainScreen


class RowKeys:
    """What the keys of rows do; a part of the main screen."""

    @property
    def _main(self) -> MainScreen:
        return cast("MainScreen", self)

    # ------------------------------------------------------------------------------------------ rows

    def action_move(self, step: int) -> None:
        """Another row, or step."""
        if steps.move(self._main, step):
            return
        move_cursor(self._main.focused_panel.panel, self._main.monitor.panel_scene(), self._main.focused_panel.view, step)
        self._main.monitor.paint()

    def action_page(self, step: int) -> None:
        """A page on or back."""
        self.action_move(step * (steps.PAGE if self._main.focus_id == steps.PANEL else self._main.focused_panel.view.page))

    def action_end(self, way: int) -> None:
        """The first or the last row; in the timeline the oldest step, or the newest again and again."""
        if steps.move_to_end(self._main, way):
            return
        move_to_end(self._main.focused_panel.panel, self._main.monitor.panel_scene(), self._main.focused_panel.view, way)
        self._main.monitor.paint()

    def action_sort(self) -> None:
        """The next order."""
        sorts = self._main.focused_panel.panel.sorts
        if not sorts:
            self._main.monitor.say("this panel has no order to choose")
            return
        view = self._main.focused_panel.view
        view.sort = (view.sort + 1) % len(sorts)
        view.reverse = False
        self._main.monitor.say(f"sorted by {sorts[view.sort]}")
        self._main.changed()

    def action_reverse(self) -> None:
        """The other way round."""
        if not self._main.focused_panel.panel.sorts:
            self._main.monitor.say("this panel has no order to choose")
            return
        self._main.focused_panel.view.reverse = not self._main.focused_panel.view.reverse
        self._main.changed()

    def action_details(self) -> None:
        """The page behind the selected row, or the selected step."""
        widget = self._main.focused_panel
        if steps.open_selected(self._main):
            return
        key = select_shown(widget.panel, self._main.monitor.panel_scene(), widget.view)
        if widget.panel is ranks.PANEL:
            if key is not None:
                self._main.leave_ranks()
                self._main.monitor.select_rank(int(key))
            return
        self._main.monitor.open_details(widget.panel, key)

    # ------------------------------------------------------------------------------------------ steps

    def action_slow_step(self, way: int) -> None:
        """The slow step after the selected one, or the one before."""
        steps.go(self._main, way)

    def select_step(self, account: StepAccount | None) -> None:
        """The timeline stands still around this step and has the keys; None: it follows the newest again."""
        steps.select(self._main, account)

    def action_copy(self) -> None:
        """A sentence on a slow step to the clipboard."""
        steps.copy(self._main)

    # ------------------------------------------------------------------------------------------ what is typed

    def action_filter(self) -> None:
        """Open the line that a filter is typed in."""
        asking.ask_for_filter(self._main)

    def action_accept(self) -> None:
        """Accept the selected boundary with a note, or take that back."""
        asking.accept_or_not(self._main)

    # ------------------------------------------------------------------------------------------ the mouse

    def pointed(self, event: PanelWidget.Pointed) -> None:
        """A click gives the panel the keys and selects the row; the wheel moves the selection."""
        self._main.focus_id = event.panel.panel.id
        view = event.panel.view
        if event.line is not None and self._main.focus_id == points.PANEL:
            points.select_line(self._main, event.line)
        elif event.line is not None:
            ordered = event.panel.panel.keys(self._main.monitor.panel_scene(), view)
            row = view.top + event.line - view.above - (2 if event.panel.panel.sorts else 1)
            if event.line >= 1 and 0 <= row < len(ordered):
                view.cursor, view.follow = ordered[row], False
        else:
            move_cursor(event.panel.panel, self._main.monitor.panel_scene(), view, event.step)
        self._main.changed()
