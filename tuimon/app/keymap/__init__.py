"""The one table of what a person can do: it makes the key bindings, the footer, the help page and the command palette."""

from __future__ import annotations

from dataclasses import replace

from tuimon.app.action import Action, Scope
from tuimon.app.keymap.main import MAIN
from tuimon.app.keymap.page import PAGE, STEP, WINDOW
from tuimon.app.keymap.replay import REPLAY
from tuimon.app.keymap.roofline import BESIDE, ROOFLINE

ACTIONS: tuple[Action, ...] = (*MAIN, *PAGE)


def actions(scope: Scope, several: bool = True, replay: bool = False) -> list[Action]:
    """The actions of a scope, those of both included; those for several processes only with `several`, those of a recording
    that is played with `replay`."""
    if replay:
        own = {key for action in REPLAY for key in action.keys} | {"r"}
        return [*REPLAY, *(action for action in actions(scope, several) if not own & set(action.keys))]
    if scope == "step":
        return [*STEP, *actions("page", several)]
    if scope == "window":
        return [*WINDOW, *actions("page", several)]
    if scope == "roofline":
        own = {key for action in ROOFLINE for key in action.keys}
        others = [action for action in actions("main", several) if not own & set(action.keys)]
        return [*ROOFLINE, *(_beside_points(action) for action in others)]
    return [action for action in ACTIONS if action.scope in (scope, "both") and (several or not action.several)]


def _beside_points(action: Action) -> Action:
    return replace(action, footer=BESIDE.get(action.id, action.footer))
