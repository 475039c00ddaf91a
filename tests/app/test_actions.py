"""The table of actions: no key twice, everything in it works, is in the help of its screen, in the list of commands, and in the
documents' tables."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter

import pytest

from tests.support.fake_feed import SCENES, busy
from tests.support.monitor import Driven, drive
from tuimon.app.action import Action, Scope
from tuimon.app.app import MonitorApp
from tuimon.app.keymap import ACTIONS, TABLES, actions, tables
from tuimon.app.keymap.foot import foot
from tuimon.app.keymap.main import PANEL_KEYS, ZOOMS
from tuimon.app.lab.app import LabApp
from tuimon.app.lab.keys import lab_subject
from tuimon.app.look.roles import ROLES
from tuimon.app.panels.all import PANELS
from tuimon.app.panels.frame import PanelLines
from tuimon.app.panels.help import Subject, at_a_glance, lines, of_panel
from tuimon.app.picker.app import PickerApp
from tuimon.app.screens.help import HelpScreen
from tuimon.app.screens.lab import LabScreen
from tuimon.app.screens.main import MainScreen
from tuimon.app.screens.page import PageScreen
from tuimon.app.screens.palette import PaletteScreen
from tuimon.app.screens.step import StepScreen
from tuimon.app.screens.themes import ThemesScreen
from tuimon.app.screens.window import WindowScreen
from tuimon.draw.glyphs import ASCII, BRAILLE, GLYPH_SETS
from tuimon.draw.text import line_cells

SCOPES: list[Scope] = list(TABLES)
SCREENS: dict[Scope, type] = {
    "main": MainScreen,
    "roofline": MainScreen,
    "replay": MainScreen,
    "page": PageScreen,
    "step": StepScreen,
    "window": WindowScreen,
    "help": HelpScreen,
    "lab": LabScreen,
    "picker": PickerApp,
    "palette": PaletteScreen,
    "themes": ThemesScreen,
}
APPS: dict[Scope, tuple[type, ...]] = {
    "lab": (MonitorApp, LabApp),
    "picker": (PickerApp,),
    **dict.fromkeys(("help", "palette", "themes"), (MonitorApp, LabApp, PickerApp)),
}


def text(drawn: PanelLines) -> str:
    return "\n".join("".join(part for part, _ in line) for line in drawn)


@pytest.mark.parametrize("replay", [False, True])
@pytest.mark.parametrize("scope", SCOPES)
def test_no_key_does_two_things(scope: Scope, replay: bool) -> None:
    keys = Counter(key for action in actions(scope, replay=replay) for key in action.keys)
    assert [key for key, count in keys.items() if count > 1] == []
    ids = Counter(action.id for action in actions(scope, replay=replay))
    assert [one for one, count in ids.items() if count > 1] == []


@pytest.mark.parametrize(
    ("scope", "action"),
    [(scope, action) for scope in SCREENS for action in TABLES[scope]],
    ids=lambda part: part if isinstance(part, str) else part.id,
)
def test_every_action_exists(scope: Scope, action: Action) -> None:
    name = action.call.partition("(")[0]
    if name.startswith("app."):
        for app in APPS.get(scope, (MonitorApp,)):
            assert hasattr(app, f"action_{name.removeprefix('app.')}"), app
    else:
        assert hasattr(SCREENS[scope], f"action_{name}")
    assert action.help and action.label and action.shown


@pytest.mark.parametrize("scope", SCOPES)
def test_the_help_of_a_screen_has_all_its_keys_and_shows_them_at_once(scope: Scope) -> None:
    subject = Subject(scope, "x", several=True)
    if not actions(scope):
        return
    whole = " ".join(text(lines(subject, 100, BRAILLE)).split())
    for action in actions(scope):
        assert " ".join(action.help.split()) in whole, action.id
    glance = at_a_glance(actions(scope), 80)
    assert len(glance) <= 20 and all(line_cells(line) <= 80 for line in glance)
    seen = text(glance).split()
    for action in actions(scope):
        if action not in ZOOMS:
            assert all(part in seen for part in action.shown.split()), action.id


def test_the_tables_for_documents_have_every_key() -> None:
    told = {(help_, key) for _, rows in tables() for keys, help_ in rows for key in keys.split()}
    for action in ACTIONS:
        assert all((action.help, key) in told for key in (action.shown.split()[0],) if len(key) == 1), action.id
    assert {help_ for _, rows in tables() for _, help_ in rows} == {action.help for action in ACTIONS}


def test_panels_have_their_keys_in_order() -> None:
    numbered = {str(panel.number): panel.title for panel in PANELS}
    for action in ZOOMS:
        assert numbered[action.shown] == action.label
    assert all(panel.help for panel in PANELS)
    assert "".join(action.shown for action in ZOOMS) == PANEL_KEYS


def test_help_uses_known_roles() -> None:
    subjects = [lab_subject(), *(of_panel(panel, "main", True, False, "") for panel in PANELS)]
    for subject in subjects:
        for glyphs in GLYPH_SETS.values():
            assert {role for line in lines(subject, 60, glyphs) for _, role in line} <= set(ROLES)


@pytest.mark.parametrize("scope", SCOPES)
def test_a_footer_knows_what_stands_where(scope: Scope) -> None:
    assert foot(scope, 0, ASCII).line == []
    for width in (20, 80, 200):
        drawn = foot(scope, width, ASCII, several=True)
        said = text([drawn.line])
        assert len(said) <= width
        for begin, end, action in drawn.spans:
            assert said[begin:].startswith(action.shown if action not in ZOOMS else "1-7")
            assert drawn.at(begin) is action and drawn.at(end) is not action
        assert drawn.at(0) is None


def test_each_screen_has_the_help_of_its_own() -> None:
    async def body(on: Driven) -> None:
        for keys, said in (
            ((), "help: 2 boundaries and graph breaks"),
            (("6",), "help: 6 roofline"),
            (("6", "2", "enter"), "help: boundary at"),
            (("L",), "help: the roofline lab"),
        ):
            await on.press(*keys, "question_mark")
            assert isinstance(on.app.screen, HelpScreen) and said in on.text.split("\n")[0], said
            await on.press("j", "pagedown", "G", "question_mark", "escape", "escape")
        assert isinstance(on.app.screen, MainScreen) and on.feed.detached == 0

    drive(busy(), (80, 24), body)


def test_keys_of_the_footer_can_be_clicked_at() -> None:
    async def body(on: Driven) -> None:
        last = on.text.split("\n")[-1]
        await on.pilot.click(offset=(last.index("? help") + 2, 23))
        await on.settle()
        assert isinstance(on.app.screen, HelpScreen)
        await on.pilot.click(offset=(on.text.split("\n")[-1].index("esc back") + 1, 23))
        await on.settle()
        assert isinstance(on.app.screen, MainScreen)
        title = next(at for at, line in enumerate(on.text.split("\n")) if "4 regions" in line)
        await on.pilot.click(offset=(5, title))
        await on.settle()
        assert on.app.main.zoomed == "regions"

    drive(busy(), (80, 24), body)


@pytest.mark.parametrize("scene", ["busy", "nothing"])
def test_every_panel_takes_the_keys_of_rows(scene: str) -> None:
    """Whatever has the keys: filter, sort, mark, the next mark, copy and freeze do something or say why not."""

    async def body(on: Driven) -> None:
        for panel in PANELS:
            if not isinstance(panel.number, int):
                continue
            await on.press(str(panel.number))
            for key in ("slash", "s", "S", "m", "apostrophe", "y", "space", "space"):
                on.app.say("")
                before = on.text
                await on.press(key)
                assert on.text != before, (panel.id, key)
                await on.press("escape") if key in ("slash", "m") and on.app.main.asking.is_open else None
            if on.app.main.zoomed is not None:
                await on.press(str(panel.number))
            on.app.say("")

    drive(SCENES[scene](), (80, 24), body)


def test_the_table_needs_no_screen_library() -> None:
    code = "import sys, tuimon.app.keymap.foot; sys.exit('textual' in sys.modules or 'rich' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
