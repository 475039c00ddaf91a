"""A hostile job on every screen: nothing that it says acts on the terminal, the clipboard, a picture."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from textual.screen import Screen

from tests.app.test_golden import KNOWN, SCREENS, STATES
from tests.app.test_picker import Found, Picking, picking, some
from tests.support.evil import EVIL, SEEN, acts, evil, hostile_feed
from tests.support.fake_feed import FakeFeed
from tests.support.golden import project_at_home
from tests.support.monitor import Driven, drive, settings
from tests.support.points import compute
from tests.support.scenes import WHOLE
from tuimon.app.look.looks import on_screen, picture
from tuimon.app.look.themes import load_themes
from tuimon.app.widgets.line_widget import LineWidget
from tuimon.draw.svg import svg
from tuimon.roofline.points import Roofline

MORE: dict[str, tuple[str, tuple[str, ...]]] = {
    "now": ("busy", ("1", "enter")),
    "host": ("busy", ("5", "enter")),
    "event": ("awkward", ("7", "enter")),
    "awkward": ("awkward", ()),
    "awkward boundary": ("awkward", ("2", "enter")),
    "finding": ("busy", ("w", "enter")),
    "frame": ("busy", ("w", "end", "enter", "enter")),
    "stopped finding": ("slow", ("w", "enter")),
    "windows": ("h100", ("6", "p")),
    "gpus": ("gpu-eight", ("5", "enter")),
    "rank": ("ranks", ("a", "enter")),
    "refused rank": ("ranks", ("right_square_bracket",) * 3),
}
WITHOUT = {"lab", "help", "palette", "palette-found", "themes", "empty", "attaching"}
"""Screens on which a job says nothing."""
EVERY = {name: place for name, place in {**STATES, **SCREENS, **MORE}.items() if name not in WITHOUT}


@pytest.fixture(autouse=True)
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The program of the made-up jobs can be read where they have it."""
    monkeypatch.setattr(os, "open", project_at_home(tmp_path))


def check_lines(screen: Screen[Any]) -> None:
    """What the screen is made of: cleaned before it gets to the widget, which cleans it once more."""
    for widget in screen.query(LineWidget):
        for line in widget.lines:
            for text, role in line:
                assert not acts(text), (widget.id, role, text)


def check_picture(on: Driven) -> None:
    """The screen as SVG: well-formed, of the elements that a picture has, with the words that stand there."""
    width, height = on.app.screen.size
    theme = load_themes().themes["dark"]
    drawn = picture(on_screen(on.app.screen), width, height, theme, f"tuimon {EVIL}")
    root = ElementTree.fromstring(drawn)
    assert {element.tag.rpartition("}")[2] for element in root.iter()} <= {"svg", "title", "style", "rect", "text"}
    assert not acts(drawn.replace("\n", ""))


def hostile_roofline(known: Roofline) -> Roofline:
    """With names of kernels and operators that are a job's."""
    points = tuple(replace(one, name=evil(one.name)) for one in known.points)
    return replace(known, points=points, unknown=tuple((evil(name), share) for name, share in known.unknown))


@pytest.mark.parametrize("name", EVERY)
def test_a_screen(name: str, sent: list[str]) -> None:
    scene, keys = EVERY[name]
    told: list[str] = []

    async def body(on: Driven) -> None:
        await on.press(*keys)
        await on.tick(1)
        check_lines(on.app.screen)
        check_picture(on)
        told.append(on.text)
        if name in SCREENS:
            await on.resize(80, 24)
            check_lines(on.app.screen)
        await on.press("y")
        assert not acts(on.text.replace("\n", "")), on.text

    more: dict[str, Any] = {"roofline": compute(hostile_roofline(KNOWN[scene]()))} if scene in KNOWN else {}
    drive(hostile_feed(WHOLE[scene]()), (120, 40), body, settings(**more))
    assert SEEN.search("".join(told)), told[0]
    assert not any(acts(text) for text in sent)


def test_the_list_of_processes(sent: list[str]) -> None:
    """Command lines are anybody's, before tuimon has a say in anything."""

    def found() -> list[Found]:
        rows = some()
        for row in rows:
            row.command = [evil(word) for word in row.command]
            row.job, row.container, row.user = (evil(text) if text else text for text in (row.job, row.container, row.user))
        return rows

    async def body(on: Picking) -> None:
        for key in ("j", "j", "y", "slash", "x", "enter"):
            await on.press(key)
            check_lines(on.app.screen)
        assert SEEN.search(on.text)

    picking(found, body, (120, 40))
    assert len(sent) == 1 and not acts(sent[0])


def test_a_picture_is_of_clean_text_whoever_has_made_its_lines() -> None:
    drawn = svg([[(f"a{EVIL}b", "#ffffff", None, frozenset())]], 80, 2, title=EVIL, ground="#000000", text="#eeeeee")
    root = ElementTree.fromstring(drawn)
    assert not acts(drawn.replace("\n", ""))
    assert "".join(root.itertext()).count("[bold]x[/]</text><b>&lt;") == 2


def test_what_is_copied_is_one_line_that_shows_all_that_it_is(sent: list[str]) -> None:
    """What somebody pastes into a shell runs at the first line end, and may hold more than is seen."""

    async def body(on: Driven) -> None:
        on.app.copy(f"a\nrm -rf ~\r\x1b[201~{EVIL}\u200b\U000e0041" + "é\n" * 40_000)
        assert not acts(on.feed.model.log[-1].text[:8])

    drive(FakeFeed(), (120, 24), body)
    assert sent[0].startswith("a rm -rf ~ ?[201~") and not acts(sent[0]) and len(sent[0]) > 35_000
