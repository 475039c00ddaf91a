"""The list of commands: over the monitor, its pages, the lab and the list of processes; in ASCII and without colours."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from tests.support.fake_feed import busy
from tests.support.monitor import Driven, drive, screen_text, settings
from tuimon.app.commands import Command, found, likeness
from tuimon.app.keymap import TABLES
from tuimon.app.lab.app import LabApp
from tuimon.app.look.roles import ROLES
from tuimon.app.look.themes import load_themes
from tuimon.app.picker.app import PickerApp
from tuimon.app.screens.help import HelpScreen
from tuimon.app.screens.lab import LabScreen, LabSession
from tuimon.app.screens.main import MainScreen
from tuimon.app.screens.page import PageScreen
from tuimon.app.screens.palette import PaletteScreen
from tuimon.draw.glyphs import ASCII, BRAILLE, GlyphSet

MONITORS = ("main", "roofline", "replay", "page", "step", "window", "lab")


def test_what_was_typed_finds_what_was_meant() -> None:
    commands = [Command(title, key, help_, "x") for title, key, help_ in (
        ("freeze", "space", "Stop the screen."), ("next rank", "]", "Another."), ("filter", "/", "Rows."),
        ("slower", "-", "Draw less often."),
    )]  # fmt: skip
    for typed, title in (
        ("fr", "freeze"), ("n r", "next rank"), ("nr", "next rank"), ("]", "next rank"), ("stop the", "freeze"),
        ("fltr", "filter"), ("less often", "slower"), ("slow", "slower"), ("FREEZE", "freeze"),
    ):  # fmt: skip
        assert found(commands, typed)[0].title == title, typed
    assert found(commands, "zzz") == []
    assert likeness(commands[0], "") == 0
    impossible = commands[0]._replace(why_not="not now")
    assert found([impossible, *commands[1:]], "f")[-1] is impossible


@pytest.mark.parametrize("glyphs", ["braille", "ascii"])
def test_it_does_what_is_chosen(glyphs: str) -> None:
    async def body(on: Driven) -> None:
        await on.press("colon")
        assert isinstance(on.app.screen, PaletteScreen)
        assert glyphs != "ascii" or on.text.isascii()
        await on.press(*"freeze")
        assert any(line.startswith((">freeze", "▸freeze")) and "space" in line for line in on.text.split("\n"))
        await on.press("enter")
        assert isinstance(on.app.screen, MainScreen) and "FROZEN" in on.text
        await on.press("ctrl+p", *"next rank", "enter")
        assert isinstance(on.app.screen, PaletteScreen) and "one process is watched" in on.text
        await on.press("escape")
        assert isinstance(on.app.screen, MainScreen)
        await on.press("colon", *"zzzz")
        assert "no command is called so" in on.text
        await on.press("enter", "escape", "colon", "enter")
        assert on.app.is_running and on.feed.detached == 0  # the first one is not the way out
        roles = {role for line in on.app.main.keys_line.lines for _, role in line}
        assert roles <= set(ROLES)

    drive(busy(), (80, 24), body, settings(glyphs, "mono", colour_off=True))


def test_from_a_page_the_panels_are_gone_back_to() -> None:
    async def body(on: Driven) -> None:
        await on.press("enter")
        assert isinstance(on.app.screen, PageScreen)
        await on.press("colon", *"recompiles", "enter")
        assert isinstance(on.app.screen, MainScreen) and on.app.main.zoomed == "recompiles"
        await on.press("L", "colon", *"regions", "enter")
        assert isinstance(on.app.screen, MainScreen) and on.app.main.zoomed == "regions"
        await on.press("L", "colon", *"settings", "enter")
        assert isinstance(on.app.screen, LabScreen) and on.app.screen.line.display
        await on.press("escape", "escape", "enter", "colon", *"help", "enter")
        assert isinstance(on.app.screen, HelpScreen) and "help: region" in on.text

    drive(busy(), (80, 24), body)


def test_every_action_is_in_it() -> None:
    async def body(on: Driven) -> None:
        await on.press("colon")
        assert isinstance(on.app.screen, PaletteScreen)
        listed = {command.run for command in on.app.screen.all}
        for scope in MONITORS:
            for action in TABLES[scope]:  # type: ignore[index]
                assert action.call in listed, action.id
        themes = {command.title for command in on.app.screen.all if command.title.startswith("theme: ")}
        assert themes == {f"theme: {name}" for name in on.app.themes.themes}
        for command in on.app.screen.all:
            assert command.help

    drive(busy(), (80, 24), body)


def test_themes_are_not_offered_where_there_are_no_colours() -> None:
    async def body(on: Driven) -> None:
        await on.press("colon", *"themes", "enter")
        assert "colours are off" in on.text

    drive(busy(), (80, 24), body, settings(theme="mono", colour_off=True))


def test_rows_are_clicked_at() -> None:
    async def body(on: Driven) -> None:
        await on.press("colon", *"freeze")
        at = next(at for at, line in enumerate(on.text.split("\n")) if "freeze  " in line)
        await on.pilot.click(offset=(5, at))
        await on.settle()
        assert "FROZEN" in on.text

    drive(busy(), (80, 24), body)


@pytest.mark.parametrize("size", [(1, 1), (20, 5), (60, 15), (200, 60)])
def test_any_size(size: tuple[int, int]) -> None:
    async def body(on: Driven) -> None:
        await on.press("colon", "down", "pagedown", "up")
        await on.resize(80, 24)
        await on.press("escape", "question_mark", "G")
        await on.resize(*size)
        assert len(on.text.split("\n")) == size[1]

    drive(busy(), size, body)


def no_processes() -> list[Any]:
    return []


APPS: tuple[Callable[[GlyphSet], Any], ...] = (
    lambda glyphs: LabApp(LabSession(), load_themes(), "mono", glyphs, watch=False),
    lambda glyphs: PickerApp(no_processes, load_themes(), "mono", glyphs, watch=False),
)


@pytest.mark.parametrize("glyphs", [ASCII, BRAILLE], ids=lambda glyphs: glyphs.name)
@pytest.mark.parametrize("make", APPS, ids=["lab", "picker"])
def test_over_the_lab_and_the_picker(make: Callable[[GlyphSet], Any], glyphs: GlyphSet) -> None:
    app = make(glyphs)

    async def run() -> None:
        async with app.run_test(size=(80, 24)) as pilot:
            await pilot.pause()
            for key in ("question_mark", "j", "q", "colon", *"help", "enter"):
                await pilot.press(key)
                await pilot.pause()
                await pilot.pause()
            assert isinstance(app.screen, HelpScreen), app.screen
            assert glyphs is BRAILLE or screen_text(app).isascii()
            for key in ("escape", "colon", *"quit", "enter"):
                await pilot.press(key)
                await pilot.pause()
                await pilot.pause()
            assert app._exit

    asyncio.run(run())
