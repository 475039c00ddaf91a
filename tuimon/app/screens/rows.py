"""The keys of rows on the main screen: along them, in another order, fewer of them, what is behind one; and the mouse."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from tuimon.app.moves import move_cursor, move_to_end, next_marked, select_shown, turn_mark
from tuimon.app.panels import boundaries, ranks
from tuimon.app.screens import asking, points, steps
from tuimon.app.widgets.panel_widget import PanelWidget
from tuimon.model.steps.parts import StepAccount

if TYPE_CHECKING:
    from tuimon.app.screens.main import MainScreen

ACCEPTED = boundaries.PANEL.id
"""Where a mark is kept beside the project, with a note."""


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
        view = self._main.focused_panel.view
        view.reverse = not view.reverse
        order = self._main.focused_panel.panel.sorts[view.sort]
        self._main.monitor.say(f"sorted by {order}{', the other way round' if view.reverse else ''}")
        self._main.changed()

    def action_details(self) -> None:
        """The page behind the selected row, or the selected step."""
        widget = self._main.focused_panel
        if steps.open_selected(self._main):
            return
        key = select_shown(widget.panel, self._main.monitor.panel_scene(), widget.view)
        if widget.panel is ranks.PANEL:
            if key is not None:
                self._main.leave_over()
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

    # ------------------------------------------------------------------------------------------ marks, the clipboard

    def action_mark(self) -> None:
        """Mark the selected row, or no longer; a boundary is accepted, or no longer."""
        main, widget = self._main, self._main.focused_panel
        if widget.panel.id == ACCEPTED:
            asking.accept_or_not(main)
            return
        if main.focus_id == steps.PANEL:
            main.monitor.say("slow steps are marked already: n selects the next one")
            return
        key = select_shown(widget.panel, main.monitor.panel_scene(), widget.view)
        if key is None:
            main.monitor.say("there is no row here yet")
            return
        marked = turn_mark(widget.view, key)
        main.monitor.say(f"{'marked' if marked else 'no longer marked'}; {len(widget.view.marks)} here, ' selects the next one")

    def action_next_mark(self) -> None:
        """The next row that is marked."""
        main, widget = self._main, self._main.focused_panel
        scene = main.monitor.panel_scene()
        marks = set(widget.view.marks)
        if widget.panel.id == ACCEPTED:
            marks |= {key for key, boundary in scene.model.boundaries.items() if boundary.accepted is not None}
        if main.focus_id == steps.PANEL:
            steps.go(main, 1)
        elif next_marked(widget.panel, scene, widget.view, marks):
            main.monitor.say(f"one of {len(marks)} that are marked" if len(marks) > 1 else "the one that is marked")
            main.changed()
        else:
            main.monitor.say("no row here is marked: m marks the selected one")

    def action_copy(self) -> None:
        """The selected row as a line of text to the clipboard; in the timeline a sentence on a step."""
        main, widget = self._main, self._main.focused_panel
        if main.focus_id == steps.PANEL:
            steps.copy(main)
            return
        scene = main.monitor.panel_scene()
        key = select_shown(widget.panel, scene, widget.view)
        text = widget.panel.copied(scene, key) if widget.panel.copied is not None and key is not None else ""
        if text:
            main.monitor.copy(text)
        else:
            main.monitor.say("there is no row here yet")

    # ------------------------------------------------------------------------------------------ what is typed

    def action_filter(self) -> None:
        """Open the line that a filter is typed in."""
        asking.ask_for_filter(self._main)

    # ------------------------------------------------------------------------------------------ the mouse

    def pointed(self, event: PanelWidget.Pointed) -> None:
        """A click gives the panel the keys and selects the row; the wheel moves the selection."""
        self._main.focus_id = event.panel.panel.id
        view = event.panel.view
        if event.line == 0:  # the title
            number = event.panel.panel.number
            if isinstance(number, int):
                self._main.action_zoom(number)
            return
        if event.line is not None and self._main.focus_id == points.PANEL:
            points.select_line(self._main, event.line)
        elif event.line is not None:
            ordered = event.panel.panel.keys(self._main.monitor.panel_scene(), view)
            row = view.top + event.line - view.above - (2 if event.panel.panel.sorts else 1)
            if event.line >= 1 and 0 <= row < len(ordered):
                again = view.cursor == ordered[row]
                view.cursor, view.follow = ordered[row], False
                if again:  # a second click opens it
                    self.action_details()
                    return
        else:
            move_cursor(event.panel.panel, self._main.monitor.panel_scene(), view, event.step)
        self._main.changed()
