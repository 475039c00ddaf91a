"""The keys of pages: of all of them, of the page of a step, of the page of profiler windows, of the help."""

from __future__ import annotations

from tuimon.app.action import Action
from tuimon.app.keymap.everywhere import MOVES, PALETTE, REDRAW, THEMES

_QUIT = Action(
    "quit_page", "app.quit", ("ctrl+q", "ctrl+c"), "ctrl+c", "quit", "Detach and leave; the job runs on.", "general", "page"
)

PAGE: tuple[Action, ...] = (
    Action("leave", "leave", ("escape", "q"), "esc", "back", "Back to where one was.", "general", "page", footer=0),
    Action(
        "follow", "follow", ("enter",), "enter", "follow", "Where the selected line leads, or the first that leads on.", "page",
        "page", footer=1,
    ),
    Action(
        "link", "link(1)", ("tab",), "tab", "next link", "Select the next line that leads on; shift+tab: the one before.",
        "page", "page", footer=2,
    ),
    Action("link_before", "link(-1)", ("shift+tab",), "shift+tab", "link before", "The link before.", "page", "page"),
    Action(
        "find", "find", ("slash",), "/", "find",
        "Show only the lines that hold a text, or with !text those that do not; esc: all.", "page", "page", footer=3,
    ),
    Action(
        "copy_page", "copy", ("y",), "y", "copy", "Copy what the page or its selected line says, with file and line.", "page",
        "page", footer=3,
    ),
    _QUIT,
)  # fmt: skip

STEP: tuple[Action, ...] = (
    Action(
        "step_next", "slow_step(1)", ("n",), "n N", "slow step", "The next slow step; N: the one before.", "steps", "step", 1
    ),
    Action("step_previous", "slow_step(-1)", ("N",), "N", "slow before", "The slow step before.", "steps", "step"),
)
"""What the page of a step has beyond other pages."""

WINDOW: tuple[Action, ...] = (
    Action(
        "window_open", "open_window", ("p",), "p", "open a window", "Open the profiler window that the page tells of.",
        "roofline", "window", 0,
    ),
    Action("window_more", "steps(1)", ("plus", "equals_sign"), "+ -", "steps", "More, or fewer.", "roofline", "window", 1),
    Action("window_fewer", "steps(-1)", ("minus",), "-", "fewer", "Fewer steps.", "roofline", "window"),
    Action(
        "window_cancel", "cancel_window", ("x",), "x", "cancel", "Cancel the window that waits or is open.", "roofline",
        "window", 1,
    ),
)  # fmt: skip
"""What the page of profiler windows has beyond other pages."""

HELPED: tuple[Action, ...] = (
    Action(
        "leave_help", "leave", ("escape", "q", "question_mark", "f1", "enter"), "esc", "back", "Back to where one was.",
        "general", "help", footer=0,
    ),
    _QUIT,
    *THEMES,
    PALETTE,
    REDRAW,
    *MOVES,
)  # fmt: skip
"""The keys of the help itself."""
