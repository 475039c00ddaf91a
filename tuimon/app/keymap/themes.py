"""The keys of the choice of a theme."""

from __future__ import annotations

from tuimon.app.action import Action
from tuimon.app.keymap.everywhere import HELP, MOVES, REDRAW

THEME_KEYS: tuple[Action, ...] = (
    Action("keep", "keep", ("enter",), "enter", "keep", "Keep the selected theme for this run.", "themes", "themes", footer=0),
    Action(
        "themes_leave", "leave", ("escape", "q", "T"), "esc", "as it was", "Back, to the theme of before.", "themes",
        "themes", footer=0,
    ),
    HELP,
    REDRAW,
    *MOVES,
    Action("themes_quit", "app.quit", ("ctrl+q", "ctrl+c"), "ctrl+c", "quit", "Leave tuimon.", "general", "themes"),
)  # fmt: skip
