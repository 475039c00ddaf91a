"""The choice of a theme: each one is seen at once, and files may come, change, break and go while it is open."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.monitor import Driven, drive, settings
from tests.support.scenes import WHOLE
from tests.support.styled import styled_text
from tuimon.app.look.sample import Row, draw, list_room, rows_of, scrolled
from tuimon.app.look.themed import ThemedApp
from tuimon.app.look.themes import ORDER, load_themes, user_folder
from tuimon.app.screens import themes as chooser
from tuimon.app.screens.themes import ThemesScreen
from tuimon.draw.glyphs import BRAILLE, GLYPH_SETS
from tuimon.draw.text import line_cells

NAMES = list(ORDER)


class Choosing(ThemedApp[None]):
    """An app that shows the choice alone."""

    def __init__(self, theme: str = "dark") -> None:
        super().__init__(load_themes(), theme)
        self.glyphs = BRAILLE
        self.said = ""

    def say(self, message: str) -> None:
        """Kept."""
        self.said = message


class Chosen:
    """The choice, driven."""

    def __init__(self, app: Choosing, pilot: Any) -> None:
        self.app, self.pilot = app, pilot

    async def press(self, *keys: str) -> None:
        for key in keys:
            await self.pilot.press(key)
            await self.pilot.pause()

    async def looked(self) -> None:
        """The folder is looked at, and what was found is shown."""
        screen = self.app.screen
        assert isinstance(screen, ThemesScreen)
        for _ in range(500):
            if not screen._looking:
                break
            await asyncio.sleep(0.01)
        screen.look()
        for _ in range(500):
            if not screen._looking:
                return
            await asyncio.sleep(0.01)
        raise AssertionError("it looks for ever")

    @property
    def text(self) -> str:
        screen = self.app.screen
        assert isinstance(screen, ThemesScreen)
        return "\n".join("".join(text for text, _ in line).rstrip() for line in screen.body.lines)


def choose(body: Callable[[Chosen], Awaitable[None]], theme: str = "dark", size: tuple[int, int] = (80, 24)) -> Choosing:
    """Open the choice and do `body` on it."""
    app = Choosing(theme)

    async def run() -> None:
        async with app.run_test(size=size) as pilot:
            app.push_screen(ThemesScreen())
            await pilot.pause()
            await body(Chosen(app, pilot))

    asyncio.run(run())
    return app


def write(name: str, text: str) -> Path:
    """A file in the user's folder, with a time of its own."""
    folder = user_folder()
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text(text)
    write.count = getattr(write, "count", 0) + 1  # type: ignore[attr-defined]
    os.utime(path, (1_800_000_000 + write.count, 1_800_000_000 + write.count))  # type: ignore[attr-defined]
    return path


MINE = 'name = "mine"\nbase = "dark"\n[roles]\nbreak = "bold #ff0000"\n'


def test_each_theme_is_shown_at_once_and_enter_keeps_it() -> None:
    worn = []

    async def body(on: Chosen) -> None:
        worn.append(on.app.theme_name)
        for _ in range(len(NAMES) + 1):
            await on.press("j")
            worn.append(on.app.theme_name)
        await on.press("k", "k", "enter")
        assert not isinstance(on.app.screen, ThemesScreen)

    app = choose(body)
    assert worn == [*NAMES, NAMES[-1], NAMES[-1]]
    assert app.theme_name == NAMES[-3]
    assert app.said == f'theme = "{NAMES[-3]}" in {chooser.short(chooser.config_file())} keeps it'
    assert not chooser.config_file().exists()


def test_escape_puts_back_what_was() -> None:
    async def body(on: Chosen) -> None:
        await on.press("G")
        assert on.app.theme_name == NAMES[-1]
        assert f"esc puts {NAMES[1]} back" in on.text
        await on.press("escape")
        assert not isinstance(on.app.screen, ThemesScreen)

    app = choose(body, theme=NAMES[1])
    assert app.theme_name == NAMES[1]
    assert app.said == ""


def test_a_file_may_come_change_break_and_go_while_it_is_open() -> None:
    async def body(on: Chosen) -> None:
        await on.looked()
        assert "mine" not in on.text
        write("mine.toml", MINE)
        await on.looked()
        assert "mine          yours: mine" in on.text
        await on.press("G")
        assert on.app.theme_name == "mine"
        assert on.app.style_of("break").color.name == "#ff0000"  # type: ignore[union-attr]

        write("mine.toml", MINE.replace("ff0000", "00ff00"))
        await on.looked()
        assert on.app.theme_name == "mine"
        assert on.app.style_of("break").color.name == "#00ff00"  # type: ignore[union-attr]

        path = write("mine.toml", MINE.replace("break", "brake"))
        await on.looked()
        assert "there is no role 'brake'" in " ".join(on.text.split()), on.text
        assert "shown as it was" in on.text
        assert on.app.theme_name == "mine"
        assert on.app.style_of("break").color.name == "#00ff00"  # type: ignore[union-attr]

        path.unlink()
        await on.looked()
        assert "its file is gone" in on.text
        assert on.app.style_of("break").color.name == "#00ff00"  # type: ignore[union-attr]

        await on.press("k")
        write("other.toml", MINE.replace("mine", "other"))
        await on.looked()
        assert "other" in on.text and "mine " not in on.text
        await on.press("escape")

    assert choose(body).theme_name == "dark"


def test_a_theme_that_is_broken_from_the_start_is_a_row_with_its_reason() -> None:
    write("broken.toml", "name = [")
    write("mine.toml", MINE)

    async def body(on: Chosen) -> None:
        await on.looked()
        await on.press("G")
        assert on.app.theme_name == "dark"
        assert "broken.toml: cannot be used" in on.text.split("\n")[0]
        assert "not TOML" in on.text
        await on.press("enter")
        screen = on.app.screen
        assert isinstance(screen, ThemesScreen)
        assert "broken.toml cannot be used" in "".join(text for text, _ in screen.keys_line.lines[0])
        await on.press("k", "enter")

    assert choose(body).theme_name == "mine"


def test_the_theme_of_before_is_there_to_go_back_to_although_its_file_is_gone() -> None:
    path = write("mine.toml", MINE)

    async def body(on: Chosen) -> None:
        await on.press("g")
        path.unlink()
        await on.looked()
        assert "mine" in on.text and on.app.theme_name == "dark"
        await on.press("escape")

    app = choose(body, theme="mine")
    assert app.theme_name == "mine"
    assert app.style_of("break").color.name == "#ff0000"  # type: ignore[union-attr]


def test_clicks() -> None:
    async def body(on: Chosen) -> None:
        await on.pilot.click(offset=(4, 4))
        await on.pilot.pause()
        assert on.app.theme_name == NAMES[2]

    choose(body)


@pytest.mark.parametrize("glyphs", GLYPH_SETS)
def test_at_every_size_the_selected_row_is_seen(glyphs: str) -> None:
    loaded = load_themes()
    loaded.broken["broken.toml"] = "a reason that goes on " * 20
    rows = rows_of(loaded, "~/.config/tuimon/themes")
    for width in (1, 20, 40, 65, 66, 80, 120, 200):
        for height in (3, 5, 10, 14, 23, 59):
            for at in range(len(rows)):
                top = scrolled(rows, at, 0, width, height)
                assert top <= at < top + list_room(rows, width, height)
                lines = draw(rows, at, top, "dark", width, height, GLYPH_SETS[glyphs])
                if width >= 66:
                    assert all(line_cells(line) <= width for line in lines[2:])
                    assert any(GLYPH_SETS[glyphs].right in line[0][0] for line in lines[2:] if line)


def test_every_role_is_in_the_sample() -> None:
    from tuimon.app.look.roles import ROLES
    from tuimon.app.look.sample import sample

    shown = {role for line in sample(43, 40, BRAILLE) for _, role in line}
    assert set(ROLES) <= shown
    at_24 = {role for line in sample(43, 21, BRAILLE) for _, role in line}
    assert set(ROLES) <= at_24


def test_rows_say_what_they_are() -> None:
    rows = rows_of(load_themes(), "~/themes")
    assert [row.name for row in rows] == NAMES
    assert all(isinstance(row, Row) and row.theme and not row.remark for row in rows)


def test_in_the_monitor_and_back_with_what_was_there() -> None:
    async def body(on: Driven) -> None:
        await on.press("4")
        before = on.text
        await on.press("T")
        assert on.text.startswith(" theme dark: dark ground")
        await on.press("j", "escape")
        assert on.app.theme_name == "dark" and on.text == before
        await on.press("T", "j", "j", "enter")
        assert on.app.theme_name == NAMES[2]
        assert f'theme = "{NAMES[2]}"' in on.text
        await on.press("t")
        assert on.app.theme_name == NAMES[3]

    drive(WHOLE["busy"](), (80, 24), body)


def test_without_colours_there_is_nothing_to_choose() -> None:
    async def body(on: Driven) -> None:
        await on.press("T")
        assert not isinstance(on.app.screen, ThemesScreen)
        assert "colours are off" in on.text

    drive(WHOLE["busy"](), (80, 24), body, settings(theme="mono", colour_off=True))


def test_screens_below_have_the_chosen_look_too() -> None:
    async def body(on: Driven) -> None:
        await on.press("enter", "T", "j", "enter")
        page = styled_text(on.app)
        await on.press("escape")
        assert "#fafafa" in page.lower() and "#121212" not in page.lower()
        assert "#121212" not in styled_text(on.app).lower()

    drive(WHOLE["busy"](), (80, 24), body)
