"""The keys of the list of processes."""

from __future__ import annotations

from tuimon.app.action import Action
from tuimon.app.keymap.everywhere import HELP, MOVES, PALETTE, QUIT, REDRAW, THEMES

PICKER: tuple[Action, ...] = (
    Action(
        "pick",
        "pick",
        ("enter",),
        "enter",
        "attach",
        "Watch the selected process, or all ranks of the selected job.",
        "list",
        "picker",
        footer=0,
    ),
    Action(
        "all",
        "pick_all",
        ("a",),
        "a",
        "all ranks",
        "Watch all ranks of the selected one's job on one screen.",
        "list",
        "picker",
        footer=1,
    ),
    Action(
        "filter",
        "filter",
        ("slash",),
        "/",
        "filter",
        "Show only the rows that hold a text, or with !text those that do not; esc takes it away.",
        "list",
        "picker",
        footer=2,
    ),
    Action(
        "refresh",
        "refresh_list",
        ("r",),
        "r",
        "refresh",
        "Look again now; it is done every two seconds anyway.",
        "list",
        "picker",
        footer=3,
    ),
    Action(
        "hold",
        "hold",
        ("space",),
        "space",
        "freeze",
        "The list stands still, and is not looked at anew; again: it is.",
        "list",
        "picker",
    ),
    Action("copy_process", "copy", ("y",), "y", "copy", "Copy the selected row: what it runs, and its PID.", "list", "picker"),
    Action("quit", "leave", QUIT, "q", "quit", "Leave; nothing has been touched.", "general", "picker", footer=0),
    HELP,
    *THEMES,
    PALETTE,
    REDRAW,
    Action("back", "undo", ("escape",), "esc", "back", "Take the filter away.", "general", "picker"),
    *(action for action in MOVES if action.id not in ("down", "up")),
    *(
        Action(action.id, action.call, (*action.keys, also), action.shown, action.label, action.help, "rows", "picker")
        for action, also in zip(MOVES[:2], ("tab", "shift+tab"), strict=True)
    ),
)
