"""The keys of the list of processes."""

from __future__ import annotations

from tuimon.app.action import Action

PICKER: tuple[Action, ...] = (
    Action(
        "pick",
        "pick",
        ("enter",),
        "enter",
        "attach",
        "Watch the selected process, or all ranks of the selected job.",
        "",
        footer=0,
    ),
    Action(
        "all", "pick_all", ("a",), "a", "all ranks", "Watch all ranks of the selected one's job on one screen.", "", footer=1
    ),
    Action(
        "filter", "filter", ("slash",), "/", "filter", "Show only the rows that hold a text; esc takes it away.", "", footer=2
    ),
    Action(
        "refresh", "refresh_list", ("r",), "r", "refresh", "Look again now; it is done every two seconds anyway.", "", footer=3
    ),
    Action("help", "help", ("question_mark", "f1"), "?", "help", "This page, and back.", "", footer=1),
    Action("quit", "leave", ("q", "ctrl+q", "ctrl+c"), "q", "quit", "Leave; nothing has been touched.", "", footer=0),
    Action("back", "undo", ("escape",), "esc", "back", "Take the filter away.", ""),
    Action("down", "move(1)", ("j", "down", "tab"), "j", "down", "The next row.", ""),
    Action("up", "move(-1)", ("k", "up", "shift+tab"), "k", "up", "The row before.", ""),
    Action("page_down", "page(1)", ("pagedown", "ctrl+d"), "pgdn", "page down", "A page on.", ""),
    Action("page_up", "page(-1)", ("pageup", "ctrl+u"), "pgup", "page up", "A page back.", ""),
    Action("first", "end(0)", ("g", "home"), "g", "first", "The first row.", ""),
    Action("last", "end(-1)", ("G", "end"), "G", "last", "The last row.", ""),
)
