"""The keys of the list of commands."""

from __future__ import annotations

from tuimon.app.action import Action
from tuimon.app.keymap.everywhere import REDRAW

_QUIT = Action("quit_list", "app.quit", ("ctrl+q", "ctrl+c"), "ctrl+c", "quit", "Leave tuimon.", "general")

PALETTE_KEYS: tuple[Action, ...] = (
    Action("do", "do", ("enter",), "enter", "do it", "What is selected.", "commands", "palette", footer=0),
    Action("palette_leave", "leave", ("escape",), "esc", "back", "Back; nothing is done.", "commands", "palette", footer=0),
    Action("palette_down", "move(1)", ("down", "tab", "ctrl+n"), "down", "down", "The next one.", "commands", "palette"),
    Action("palette_up", "move(-1)", ("up", "shift+tab", "ctrl+p"), "up", "up", "The one before.", "commands", "palette"),
    Action("palette_page", "page(1)", ("pagedown",), "pgdn", "page down", "A page on.", "commands", "palette"),
    Action("palette_page_up", "page(-1)", ("pageup",), "pgup", "page up", "A page back.", "commands", "palette"),
    _QUIT,
    REDRAW,
)
"""Letters go into the line that is typed in."""
