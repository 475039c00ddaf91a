"""The keys of the main screen, and those that work on pages too."""

from __future__ import annotations

from tuimon.app.action import Action
from tuimon.app.keymap.everywhere import HELP, MOVES, PALETTE, QUIT, REDRAW, THEMES

PANEL_KEYS = "1234567"
"""A digit is a panel on the full screen. 8 and 9 are actions of the table below."""

ZOOMS: tuple[Action, ...] = tuple(
    Action(f"panel-{key}", f"zoom({key})", (key,), key, title, f"{title} on the full screen; again, or esc: back.", "panels")
    for key, title in zip(
        PANEL_KEYS,
        ("now", "boundaries and graph breaks", "recompiles", "regions", "GPU and host", "roofline", "event log"),
        strict=True,
    )
)

MAIN: tuple[Action, ...] = (
    Action("quit", "app.quit", QUIT, "q", "quit", "Detach and leave; the job runs on.", "general", footer=0),
    HELP,
    Action(
        "next",
        "next_panel(1)",
        ("tab",),
        "tab",
        "panel",
        "The keys go to the next panel; shift+tab to the one before.",
        "panels",
        footer=3,
    ),
    Action(
        "previous", "next_panel(-1)", ("shift+tab",), "shift+tab", "panel before", "The keys go to the panel before.", "panels"
    ),
    Action("back", "back", ("escape",), "esc", "back", "Out of the full screen; takes a filter away.", "panels"),
    Action(
        "details",
        "details",
        ("enter",),
        "enter",
        "details",
        "All that is known of the selected row or the panel.",
        "rows",
        footer=2,
    ),
    Action(
        "filter",
        "filter",
        ("slash",),
        "/",
        "filter",
        "Show only the rows that hold a text, or with !text those that do not; enter keeps it, esc takes it away.",
        "rows",
        footer=2,
    ),
    Action("sort", "sort", ("s",), "s", "sort", "The panel's next order.", "rows", footer=3),
    Action("reverse", "reverse", ("S",), "S", "reverse", "The other way round.", "rows"),
    Action(
        "mark",
        "mark",
        ("m",),
        "m",
        "mark",
        "Mark the selected row; again: no longer. A boundary is accepted, with a note kept beside the project.",
        "rows",
        footer=5,
    ),
    Action("next_mark", "next_mark", ("apostrophe",), "'", "next mark", "Select the next row that is marked.", "rows"),
    Action("copy", "copy", ("y",), "y", "copy", "Copy the selected row as a sentence; of a step, one for a ticket.", "rows"),
    Action(
        "next_slow",
        "slow_step(1)",
        ("n",),
        "n N",
        "slow",
        "Select the next slow step in the timeline (or go to its page); N: the one before.",
        "steps",
        footer=2,
    ),
    Action("previous_slow", "slow_step(-1)", ("N",), "N", "slow before", "The slow step before.", "steps"),
    Action(
        "look",
        "look",
        ("w",),
        "w",
        "look at",
        "What to look at first, with evidence and next step; and all frames with their calls.",
        "general",
        footer=1,
    ),
    Action(
        "lab",
        "lab",
        ("L", "9"),
        "L",
        "lab",
        "The roofline lab: predict a ceiling, trace the roof; all of it hypothetical.",
        "general",
    ),
    Action(
        "freeze",
        "app.freeze",
        ("space",),
        "space",
        "freeze",
        "Stop the screen; the collecting goes on. Again: catch up.",
        "general",
        "both",
        footer=3,
    ),
    Action("record", "record", ("r",), "r", "record", "Begin to record what is seen, in a file here; again: stop.", "general"),
    Action(
        "all_ranks",
        "all_ranks",
        ("a", "8"),
        "a",
        "all ranks",
        "All ranks in one table; enter there shows the selected one. Again, or esc: back.",
        "ranks",
        footer=1,
        several=True,
    ),
    Action(
        "next_rank",
        "next_rank(1)",
        ("right_square_bracket",),
        "]",
        "next rank",
        "The panels show the next rank.",
        "ranks",
        footer=2,
        several=True,
    ),
    Action(
        "previous_rank",
        "next_rank(-1)",
        ("left_square_bracket",),
        "[",
        "rank before",
        "The panels show the rank before.",
        "ranks",
        several=True,
    ),
    Action("ceiling", "ceiling", ("c",), "c", "ceiling", "The roofline's next ceiling.", "panels", footer=5),
    *THEMES,
    Action(
        "faster", "faster(1)", ("plus", "equals_sign"), "+", "faster", "Draw more often, up to ten times a second.", "general"
    ),
    Action("slower", "faster(-1)", ("minus",), "-", "slower", "Draw less often, down to once in two seconds.", "general"),
    PALETTE,
    REDRAW,
    *MOVES,
)
