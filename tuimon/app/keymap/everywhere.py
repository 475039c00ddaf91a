"""Keys that are the same on every screen, the picker and the lab included."""

from __future__ import annotations

from tuimon.app.action import Action

QUIT = ("q", "ctrl+q", "ctrl+c")

HELP = Action(
    "help", "app.help", ("question_mark", "f1"), "?", "help", "All keys of this screen, and what its words mean.", "general",
    "both", footer=0,
)  # fmt: skip
PALETTE = Action(
    "palette",
    "app.palette",
    ("colon", "ctrl+p"),
    ":",
    "commands",
    "Find a command by its name.",
    "general",
    "both",
)
REDRAW = Action(
    "redraw", "app.redraw", ("ctrl+l",), "ctrl+l", "redraw", "Paint all anew, where something else has written on the screen.",
    "general", "both",
)  # fmt: skip
THEMES: tuple[Action, ...] = (
    Action("theme", "app.theme", ("t",), "t", "theme", "The next theme.", "general", "both", footer=6, why_not="colour"),
    Action("themes", "app.themes", ("T",), "T", "themes", "Choose a theme; seen at once.", "general", "both", why_not="colour"),
)
MOVES: tuple[Action, ...] = (
    Action("down", "move(1)", ("j", "down"), "j", "down", "The next row or line.", "rows", "both"),
    Action("up", "move(-1)", ("k", "up"), "k", "up", "The row or line before.", "rows", "both"),
    Action("page_down", "page(1)", ("pagedown", "ctrl+d", "ctrl+f"), "pgdn", "page down", "A page on.", "rows", "both"),
    Action("page_up", "page(-1)", ("pageup", "ctrl+u", "ctrl+b"), "pgup", "page up", "A page back.", "rows", "both"),
    Action("first", "end(-1)", ("g", "home"), "g", "first", "The first row.", "rows", "both"),
    Action("last", "end(1)", ("G", "end"), "G", "last", "The last row; in the log: follow what is new.", "rows", "both"),
)
