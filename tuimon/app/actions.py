"""The one table of what a person can do: it makes the key bindings, the footer, the help page and the command palette."""

from __future__ import annotations

from dataclasses import replace

from tuimon.app.action import Action, Scope

ACTIONS: tuple[Action, ...] = (
    Action(
        "quit",
        "app.quit",
        ("q", "ctrl+q", "ctrl+c"),
        "q",
        "quit",
        "Detach and leave; the job runs on.",
        "general",
        footer=0,
    ),
    Action("help", "app.show_help", ("question_mark", "f1"), "?", "help", "This page.", "general", "both", footer=0),
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
        "Show only the rows that hold a text; enter keeps it, esc takes it away.",
        "rows",
        footer=2,
    ),
    Action("sort", "sort", ("s",), "s", "sort", "The panel's next order.", "rows", footer=3),
    Action("reverse", "reverse", ("S",), "S", "reverse", "The other way round.", "rows"),
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
    Action(
        "previous_slow",
        "slow_step(-1)",
        ("N",),
        "N",
        "slow before",
        "The slow step before.",
        "steps",
    ),
    Action(
        "copy",
        "copy",
        ("y",),
        "y",
        "copy",
        "Copy the selected or the latest slow step as a sentence for a ticket, and log it.",
        "steps",
    ),
    Action(
        "look",
        "look",
        ("w",),
        "w",
        "look at",
        "What to look at first, with evidence and next step; and all frames with their calls.",
        "general",
        footer=4,
    ),
    Action(
        "lab",
        "lab",
        ("L",),
        "L",
        "lab",
        "The roofline lab: predict a ceiling, trace the roof; all of it hypothetical.",
        "general",
    ),
    Action(
        "freeze",
        "freeze",
        ("space",),
        "space",
        "freeze",
        "Stop the screen; the collecting goes on. Again: catch up.",
        "general",
        footer=3,
    ),
    Action("record", "record", ("r",), "r", "record", "Begin to record what is seen, in a file here; again: stop.", "general"),
    Action(
        "all_ranks",
        "all_ranks",
        ("a",),
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
    Action(
        "accept",
        "accept",
        ("m",),
        "m",
        "accept",
        "Accept the selected boundary, with a note kept beside the project; again: undo.",
        "rows",
        footer=5,
    ),
    Action("theme", "app.theme", ("t",), "t", "theme", "The next theme.", "general", "both", footer=6),
    Action(
        "faster", "faster(1)", ("plus", "equals_sign"), "+", "faster", "Draw more often, up to ten times a second.", "general"
    ),
    Action("slower", "faster(-1)", ("minus",), "-", "slower", "Draw less often, down to once in two seconds.", "general"),
    Action(
        "palette",
        "app.palette",
        ("colon", "ctrl+p"),
        ":",
        "commands",
        "Find a command by its name.",
        "general",
        "both",
        palette=False,
    ),
    Action("down", "move(1)", ("j", "down"), "j", "down", "The next row.", "rows", "both", palette=False),
    Action("up", "move(-1)", ("k", "up"), "k", "up", "The row before.", "rows", "both", palette=False),
    Action("page_down", "page(1)", ("pagedown", "ctrl+d"), "pgdn", "page down", "A page on.", "rows", "both", palette=False),
    Action("page_up", "page(-1)", ("pageup", "ctrl+u"), "pgup", "page up", "A page back.", "rows", "both", palette=False),
    Action("first", "end(-1)", ("g", "home"), "g", "first", "The first row.", "rows", "both", palette=False),
    Action(
        "last",
        "end(1)",
        ("G", "end"),
        "G",
        "last",
        "The last row; in the log: follow what is new.",
        "rows",
        "both",
        palette=False,
    ),
    Action(
        "leave",
        "leave",
        ("escape", "q", "enter"),
        "esc",
        "back",
        "Back to the panels.",
        "general",
        "page",
        footer=0,
        palette=False,
    ),
    Action(
        "quit_page",
        "app.quit",
        ("ctrl+q", "ctrl+c"),
        "ctrl+c",
        "quit",
        "Detach and leave; the job runs on.",
        "general",
        "page",
        palette=False,
    ),
)

PANEL_KEYS = "123456789"

STEP_ACTIONS: tuple[Action, ...] = (
    Action("step_next", "slow_step(1)", ("n",), "n N", "slow step", "The next slow step.", "steps", "step", 1, palette=False),
    Action("step_previous", "slow_step(-1)", ("N",), "N", "", "The slow step before.", "steps", "step", palette=False),
    Action("step_copy", "copy", ("y",), "y", "copy the sentence", "Copy the sentence.", "steps", "step", 1, palette=False),
)
"""What the page of a step has beyond other pages."""


ROOFLINE_ACTIONS: tuple[Action, ...] = (
    Action(
        "next_point",
        "point(1)",
        ("right",),
        "left right",
        "point",
        "Select the next point, or the one before (j and k too).",
        "roofline",
        "roofline",
        footer=1,
    ),
    Action("previous_point", "point(-1)", ("left",), "left", "point before", "The point before.", "roofline", "roofline"),
    Action(
        "boundary",
        "boundary",
        ("b",),
        "b",
        "boundary",
        "The next memory boundary for all points; after the last one: where each point's bytes mean most.",
        "roofline",
        "roofline",
        footer=3,
    ),
    Action(
        "trails",
        "trails",
        ("t",),
        "t",
        "trails",
        "Where points were in the last windows: shown, or not.",
        "roofline",
        "roofline",
        footer=4,
    ),
    Action(
        "whole",
        "whole",
        ("a",),
        "a",
        "whole process",
        "One point: all regions together. Again: back.",
        "roofline",
        "roofline",
        footer=3,
    ),
    Action(
        "window",
        "window",
        ("p",),
        "p",
        "profiler",
        "A profiler window in the job, for its operators and kernels: what it costs, then p again to open one.",
        "roofline",
        "roofline",
        footer=2,
    ),
    Action(
        "hypothesis",
        "hypothesis",
        ("h",),
        "h",
        "to the lab",
        "The selected point's intensity and ceiling into the lab, as a hypothesis.",
        "roofline",
        "roofline",
        footer=4,
    ),
)
"""What panel 6 has while it has the keys. Some of these keys mean something else elsewhere."""

REPLAY_ACTIONS: tuple[Action, ...] = (
    Action("play", "play", ("space",), "space", "play", "Pause, or play; at the end: from the begin.", "replay", "replay", 1),
    Action(
        "step_on",
        "replay_step(1)",
        ("full_stop",),
        ". ,",
        "step",
        "One step on; a comma: one back. It pauses.",
        "replay",
        "replay",
        1,
    ),
    Action("step_back", "replay_step(-1)", ("comma",), ",", "a step back", "One step back.", "replay", "replay"),
    Action(
        "steps_on", "replay_step(10)", ("greater_than_sign",), "> <", "ten steps", "Ten steps on, or back.", "replay", "replay"
    ),
    Action("steps_back", "replay_step(-10)", ("less_than_sign",), "<", "ten back", "Ten steps back.", "replay", "replay"),
    Action(
        "next_finding",
        "finding(1)",
        ("f",),
        "f F",
        "finding",
        "Where the next thing to look at came up; F: the one before.",
        "replay",
        "replay",
        footer=2,
    ),
    Action("previous_finding", "finding(-1)", ("F",), "F", "finding before", "The one before.", "replay", "replay"),
    Action(
        "go_to",
        "go_to",
        ("o",),
        "o",
        "go to",
        "A step (1204), a time of day (03:12), since the begin (90s), from here (+30s, -1m), a share (50%).",
        "replay",
        "replay",
        footer=2,
    ),
    Action(
        "play_faster", "speed(1)", ("plus", "equals_sign"), "+ -", "speed", "Play faster, or slower.", "replay", "replay", 3
    ),
    Action("play_slower", "speed(-1)", ("minus",), "-", "slower", "Play slower.", "replay", "replay"),
    Action("to_begin", "to_begin", ("0",), "0", "the begin", "Back to the begin.", "replay", "replay"),
)
"""What there is beyond that while a recording is played. Some of these keys mean something else for a live job."""

WINDOW_ACTIONS: tuple[Action, ...] = (
    Action("window_open", "open_window", ("p",), "p", "open a window", "Open it.", "roofline", "window", 0, palette=False),
    Action(
        "window_more",
        "steps(1)",
        ("plus", "equals_sign"),
        "+ -",
        "steps",
        "More steps.",
        "roofline",
        "window",
        1,
        palette=False,
    ),
    Action("window_fewer", "steps(-1)", ("minus",), "-", "", "Fewer steps.", "roofline", "window", palette=False),
    Action("window_cancel", "cancel_window", ("x",), "x", "cancel", "Cancel it.", "roofline", "window", 1, palette=False),
)
"""What the page of profiler windows has beyond other pages."""

_BESIDE_POINTS: dict[str, int | None] = {
    "ceiling": 1,
    "freeze": 3,
    "next": 4,
    "look": 5,
    **dict.fromkeys(("filter", "sort", "next_slow", "accept")),
}
"""Ranks in the footer of actions of the main screen, while the roofline has the keys."""


def actions(scope: Scope, several: bool = True, replay: bool = False) -> list[Action]:
    """The actions of a scope, those of both included; those for several processes only with `several`, those of a recording
    that is played with `replay`."""
    if replay:
        own = {key for action in REPLAY_ACTIONS for key in action.keys} | {"r"}
        return [*REPLAY_ACTIONS, *(action for action in actions(scope, several) if not own & set(action.keys))]
    if scope == "step":
        return [*STEP_ACTIONS, *actions("page", several)]
    if scope == "window":
        return [*WINDOW_ACTIONS, *actions("page", several)]
    if scope == "roofline":
        own = {key for action in ROOFLINE_ACTIONS for key in action.keys}
        others = [action for action in actions("main", several) if not own & set(action.keys)]
        return [*ROOFLINE_ACTIONS, *(_beside_points(action) for action in others)]
    return [action for action in ACTIONS if action.scope in (scope, "both") and (several or not action.several)]


def _beside_points(action: Action) -> Action:
    return replace(action, footer=_BESIDE_POINTS.get(action.id, action.footer))
