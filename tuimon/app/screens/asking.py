"""The line at the bottom of the main screen that something is typed in: a filter, a note of an accepted boundary, a place."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.widget import Widget
from textual.widgets import Input

from tuimon.app.moves import clear_filter, select_shown
from tuimon.app.plan import Box
from tuimon.app.widgets.line_widget import LineWidget

if TYPE_CHECKING:
    from tuimon.app.screens.main import MainScreen

FILTER, NOTE, GOTO = "filter", "note", "go to"
ASKS = {
    FILTER: "show rows that hold this text",
    NOTE: "why it is fine: enter accepts the boundary, esc does not",
    GOTO: "a step (1204), a time (03:12, 90s), from here (+30s), 50%",
}
"""What the line can ask for, and what stands in it while it is empty."""


def put(widget: Widget, box: Box | None) -> None:
    """Place a widget; None: it is not shown."""
    widget.display = box is not None
    if box is not None:
        widget.styles.width, widget.styles.height = box.width, box.height
        widget.styles.offset = (box.x, box.y)


class AskLine:
    """The two widgets of the line, and what they are asking for."""

    def __init__(self) -> None:
        self.label = LineWidget(id="filter-label")
        self.line = Input(id="filter", compact=True)
        self.line.cursor_blink = False
        self.what = FILTER
        self.noted: str | None = None
        """The boundary that a note is being typed for."""

    @property
    def is_open(self) -> bool:
        """Whether something is being typed."""
        return bool(self.line.display)

    def put(self, box: Box | None) -> None:
        """Place the line, with what it asks for before it; None: it is closed."""
        text = f" {self.what}: "
        label = min(len(text), box.width - 1) if box is not None else 0
        put(self.label, Box(box.x, box.y, label, 1) if box is not None and label else None)
        put(self.line, Box(box.x + label, box.y, box.width - label, 1) if box is not None else None)
        self.label.show([[(text, "key-label")]])


def ask_for_filter(screen: MainScreen) -> None:
    """Open the line that a filter is typed in."""
    if not screen.focused_panel.panel.filterable:
        screen.monitor.say("this panel has no rows to filter")
        return
    _open(screen, FILTER, screen.focused_panel.view.filter)


def accept_or_not(screen: MainScreen) -> None:
    """Ask for a note to accept the selected boundary with; or, where it is accepted, take that back."""
    widget = screen.focused_panel
    scene = screen.monitor.panel_scene()
    if widget.panel.id != "boundaries":
        screen.monitor.say("boundaries are accepted in their table (2)")
        return
    key = select_shown(widget.panel, scene, widget.view)
    boundary = scene.model.boundaries.get(key) if key is not None else None
    if key is None or boundary is None:
        screen.monitor.say("there is no boundary here yet")
    elif boundary.accepted is not None:
        screen.monitor.accept(key, None)
    else:
        screen.asking.noted = key
        _open(screen, NOTE, "")


def ask_for_place(screen: MainScreen) -> None:
    """Ask where a replay is to go."""
    _open(screen, GOTO, "")


def _open(screen: MainScreen, what: str, value: str) -> None:
    if screen.plan.keys is None:
        screen.monitor.say("there is no room to type in: make the terminal larger")
        return
    asking = screen.asking
    asking.what = what
    asking.put(screen.plan.keys)
    screen.keys_line.display = False
    asking.line.placeholder = ASKS[what]
    asking.line.value = value
    screen.set_focus(asking.line)  # now: focus() does it later, and what is typed until then is lost


def typed(screen: MainScreen, value: str) -> None:
    """Each letter of a filter narrows the rows at once."""
    if screen.asking.is_open and screen.asking.what == FILTER:
        screen.focused_panel.view.filter = value
        screen.changed()


def entered(screen: MainScreen) -> None:
    """Enter keeps the filter, accepts the boundary with the note, or goes to the place."""
    close(screen, keep=True)
    asking = screen.asking
    if asking.what == GOTO and asking.line.value.strip():
        screen.monitor.replay.go(asking.line.value)
    if asking.what == NOTE and asking.noted is not None:
        screen.monitor.accept(asking.noted, asking.line.value.strip())


def close(screen: MainScreen, *, keep: bool) -> None:
    """Out of the line; without `keep` the filter goes with it."""
    asking = screen.asking
    asking.put(None)
    screen.set_focus(None)
    screen.keys_line.display = screen.plan.keys is not None
    if not keep and asking.what == FILTER:
        clear_filter(screen.focused_panel.view)
    screen.changed()
