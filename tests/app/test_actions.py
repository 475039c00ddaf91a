"""The table of actions: no key twice, everything in it works and is documented."""

from __future__ import annotations

from collections import Counter

import pytest

from tuimon.app.app import MonitorApp
from tuimon.app.keymap import ACTIONS, actions
from tuimon.app.keymap.main import PANEL_KEYS
from tuimon.app.keymap.page import STEP
from tuimon.app.panels import PANELS
from tuimon.app.panels.help import lines
from tuimon.app.roles import ROLES
from tuimon.app.screens.main import MainScreen
from tuimon.app.screens.page import PageScreen
from tuimon.app.screens.step import StepScreen


@pytest.mark.parametrize("scope", ["main", "page", "step"])
def test_no_key_does_two_things(scope: str) -> None:
    keys = Counter(key for action in actions(scope) for key in action.keys)  # type: ignore[arg-type]
    if scope == "main":
        keys.update(PANEL_KEYS)
    assert [key for key, count in keys.items() if count > 1] == []


@pytest.mark.parametrize("action", ACTIONS, ids=lambda action: action.id)
def test_every_action_exists(action) -> None:  # type: ignore[no-untyped-def]
    name = action.call.split("(")[0]
    if name.startswith("app."):
        assert hasattr(MonitorApp, f"action_{name.removeprefix('app.')}")
        return
    if action.scope in ("main", "both"):
        assert hasattr(MainScreen, f"action_{name}")
    if action.scope in ("page", "both"):
        assert hasattr(PageScreen, f"action_{name}")


@pytest.mark.parametrize("action", STEP, ids=lambda action: action.id)
def test_every_action_of_a_step_exists(action) -> None:  # type: ignore[no-untyped-def]
    assert hasattr(StepScreen, f"action_{action.call.split('(')[0]}")


def test_the_help_page_has_every_key() -> None:
    text = "\n".join("".join(part for part, _ in line) for line in lines(PANELS[1], 100))
    for action in ACTIONS:
        if action.scope != "page":
            assert action.help in text, action.id


def test_panels_have_their_keys_in_order() -> None:
    assert [str(panel.number) for panel in PANELS] == list(PANEL_KEYS[: len(PANELS)])
    assert all(panel.help for panel in PANELS)


def test_help_uses_known_roles() -> None:
    for panel in PANELS:
        assert {role for line in lines(panel, 60) for _, role in line} <= set(ROLES)
