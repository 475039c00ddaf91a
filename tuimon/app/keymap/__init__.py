"""The one table of what a person can do: it makes the key bindings, the footers, the help and the list of commands."""

from __future__ import annotations

from tuimon.app.action import Action, Scope
from tuimon.app.keymap.lab import LAB
from tuimon.app.keymap.main import MAIN, ZOOMS
from tuimon.app.keymap.page import HELPED, PAGE, STEP, WINDOW
from tuimon.app.keymap.palette import PALETTE_KEYS
from tuimon.app.keymap.picker import PICKER
from tuimon.app.keymap.replay import REPLAY
from tuimon.app.keymap.roofline import ROOFLINE
from tuimon.app.keymap.themes import THEME_KEYS
from tuimon.app.keymap.tour import TOUR

_BOTH = tuple(action for action in MAIN if action.scope == "both")

TABLES: dict[Scope, tuple[Action, ...]] = {
    "main": (*MAIN, *ZOOMS),
    "roofline": ROOFLINE,
    "replay": REPLAY,
    "page": (*PAGE, *_BOTH),
    "step": STEP,
    "window": WINDOW,
    "help": HELPED,
    "lab": LAB,
    "picker": PICKER,
    "palette": PALETTE_KEYS,
    "themes": THEME_KEYS,
    "tour": TOUR,
}
"""What each scope has of its own."""

_BELOW: dict[Scope, Scope] = {"roofline": "main", "replay": "main", "tour": "main", "step": "page", "window": "page"}
"""Where the keys of a scope come before those of another one, which hold there too."""

HEADINGS: dict[Scope, str] = {
    "main": "the panels",
    "roofline": "the roofline, while it has the keys",
    "replay": "a recording that is played",
    "page": "pages",
    "step": "the page of a step",
    "window": "the page of profiler windows",
    "lab": "the roofline lab",
    "picker": "the list of processes",
    "palette": "the list of commands",
    "themes": "the choice of a theme",
    "help": "the help",
    "tour": "the tour",
}
"""How a scope is called where its keys are listed."""

ACTIONS: tuple[Action, ...] = tuple(dict.fromkeys(action for table in TABLES.values() for action in table))
"""All of them, each once."""


def actions(scope: Scope, several: bool = True, replay: bool = False) -> list[Action]:
    """What can be done in a scope: its own actions, then those of what it lies over, as far as their keys are free.

    `several`: with those for several processes; `replay`: a recording is played, whose keys come before those of the panels.
    """
    own = [action for action in TABLES[scope] if several or not action.several]
    below = _BELOW.get(scope)
    if replay and scope in ("main", "roofline"):
        own, below = [*REPLAY, *(own if scope == "roofline" else ())], "main"
    if below is None:
        return own
    taken = {key for action in own for key in action.keys} | ({"r"} if replay or scope == "replay" else set())
    under = [action for action in TABLES[below] if several or not action.several]
    return [*own, *(action for action in under if not taken & set(action.keys))]


def tables() -> list[tuple[str, list[tuple[str, str]]]]:
    """All keys for documents: (what scope, its rows of (keys, what they do))."""
    out = []
    for scope, table in TABLES.items():
        if table:
            out.append((HEADINGS[scope], [(" ".join(written(action)), action.help) for action in table]))
    return out


_WRITTEN = {
    "slash": "/", "question_mark": "?", "colon": ":", "escape": "esc", "pagedown": "pgdn", "pageup": "pgup", "plus": "+",
    "minus": "-", "equals_sign": "=", "apostrophe": "'", "full_stop": ".", "comma": ",", "greater_than_sign": ">",
    "less_than_sign": "<", "right_square_bracket": "]", "left_square_bracket": "[",
}  # fmt: skip


def written(action: Action) -> list[str]:
    """All keys of an action as a person writes them."""
    return [_WRITTEN.get(key, key) for key in action.keys]
