"""Nothing on any screen is told by colour alone: what a role means is also in the words, their place, or a sign beside them.

The same text in the same place, once meant as one thing and once as another, has to look different without colours; and how it
stands with a job differs in words.
"""

from __future__ import annotations

import itertools
import os
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from textual.screen import Screen

from tests.app.test_golden import KNOWN, PICTURES, SCREENS, STATES, Size
from tests.app.test_picker import Picking, picking, some
from tests.support.golden import project_at_home
from tests.support.monitor import Driven, drive, settings
from tests.support.points import compute
from tests.support.scenes import WHOLE
from tuimon.app.look.looks import runs
from tuimon.app.look.roles import ROLES
from tuimon.app.look.themes import load_themes
from tuimon.app.widgets.line_widget import LineWidget
from tuimon.draw.glyphs import BRAILLE
from tuimon.draw.text import Line, cells

MEANINGS = (
    {"bad", "ended"},
    {"warn"},
    {"good"},
    {"break"},
    {"recompile"},
    {"compile"},
    {"selected", "cursor"},
    {"frozen"},
    {"quiet"},
    {"source-here"},
    {"roof-selected"},
    {"roof"},
    {"point-1"},
    {"point-2"},
    {"point-3"},
    {"strong"},
)
"""Roles that mean the same; those that are in none of them mean nothing of their own."""

SIZES = ((80, 24), (120, 40))


def meaning(role: str) -> str:
    """What a role means, by the first of those that mean the same."""
    return next((min(one) for one in MEANINGS if role in one), "plain")


class Mark(NamedTuple):
    """A piece of text on a screen."""

    widget: str
    at: int
    """The cell that it begins in."""
    after: str
    """What stands before it in its line: its label."""
    text: str
    role: str


def marks(screen: Screen[object]) -> Iterator[Mark]:
    """All pieces of text on a screen."""
    for widget in screen.query(LineWidget):
        if not widget.display:
            continue
        for line in widget.lines:
            at, after = 0, ""
            for text, role in _rows_that_step_back(line):
                if text.strip(" …"):
                    yield Mark(str(widget.id), at + cells(text) - cells(text.lstrip()), after, text.strip(), role)
                    after = text.strip()
                at += cells(text)


def _rows_that_step_back(line: Line) -> Line:
    """A line that is quiet as a whole, as one piece: that it is, its words tell together ("asked for", 0 calls)."""
    told = {role for text, role in line if text.strip()}
    return [("".join(text for text, _ in line), "quiet")] if told == {"quiet"} else line


def shown(scene: str, keys: tuple[str, ...], sizes: tuple[Size, ...] = SIZES) -> set[Mark]:
    """What stands on a screen at each of the sizes."""
    found: set[Mark] = set()

    async def body(on: Driven) -> None:
        await on.press(*keys)
        await on.tick(1)
        for size in sizes:
            await on.resize(*size)
            found.update(marks(on.app.screen))

    more = {"roofline": compute(KNOWN[scene]())} if scene in KNOWN else {}
    drive(WHOLE[scene](), sizes[0], body, settings(**more))
    return found


MONO = load_themes().themes["mono"]
LOOKS = {role: runs([[("x", role)]], MONO)[0][0][1:] for role in ROLES}
"""How each role looks without colours."""


def alike(found: set[Mark]) -> list[str]:
    """Pieces of text that differ in meaning and in nothing that can be seen without colours."""
    places: dict[tuple[str, object, str], set[str]] = defaultdict(set)
    for mark in found:
        places[(mark.widget, mark.at, mark.text)].add(mark.role)
        places[(mark.widget, mark.after, mark.text)].add(mark.role)
    return [
        f"{text!r} in {widget} after {place!r}: {one} or {other}"
        for (widget, place, text), roles in sorted(places.items(), key=str)
        for one, other in itertools.combinations(sorted(roles), 2)
        if meaning(one) != meaning(other) and LOOKS[one] == LOOKS[other]
    ]


@pytest.fixture(autouse=True)
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The program of the made-up jobs can be read where they have it."""
    monkeypatch.setattr(os, "open", project_at_home(tmp_path))


def picked() -> set[Mark]:
    """What stands in the list of processes."""
    found: set[Mark] = set()

    async def body(on: Picking) -> None:
        found.update(marks(on.app.screen))

    picking(some, body, SIZES[0], BRAILLE)
    return found


def test_nothing_is_told_by_colour_alone() -> None:
    found = picked()
    for scene, keys in {**SCREENS, **STATES}.values():
        found |= shown(scene, keys)
    for scene, size, glyphs, keys in PICTURES:
        found |= shown(scene, keys, (size,)) if glyphs == "braille" else set()
    assert {meaning(mark.role) for mark in found} >= {"warn", "good", "break", "recompile", "quiet", "strong"}
    faults = alike(found)
    assert not faults, "\n" + "\n".join(faults)


def test_the_check_finds_what_is_told_by_colour_alone() -> None:
    told = {Mark("keys", 3, "steps", "0.5 Hz", "text"), Mark("keys", 3, "steps", "0.5 Hz", "break")}
    assert len(alike(told)) == 2
    assert not alike({Mark("keys", 3, "steps", "0.5 Hz", "text"), Mark("keys", 3, "steps", "0.5 Hz", "warn")})
    assert not alike({Mark("keys", 3, "steps", "0.5 Hz", "text"), Mark("keys", 9, "slow line:", "0.5 Hz", "break")})


STANDINGS = {
    "running": ("busy", ()),
    "compiling": ("compiling", ()),
    "slow": ("slow", ()),
    "ended": ("ended", ()),
    "lost": ("lost", ()),
    "stopped": ("stopped", ()),
    "waiting": ("waiting", ()),
    "attaching": ("attaching", ()),
    "before the attach": ("before-attach", ()),
    "frozen": ("busy", ("space",)),
    "filtered": ("busy", ("2", "slash", "i", "enter")),
    "recording": ("busy", ("r",)),
    "a rank that is late": ("ranks", ()),
}
"""How it can stand with a job, and with the screen."""


ZOOMED_ONLY = {"filtered", "recording", "slow"}
"""These are of a panel, or of a mark in the second line: five lines have no room for them."""


def beginnings(scene: str, keys: tuple[str, ...]) -> tuple[str, str]:
    """The first lines of a screen, and all of a tiny one."""
    found = []

    async def body(on: Driven) -> None:
        await on.press(*keys)
        await on.tick(5)
        found.append("\n".join(on.text.split("\n")[:3]))
        await on.resize(20, 5)
        found.append(on.text)

    drive(WHOLE[scene](), SIZES[0], body, settings(theme="mono"))
    return found[0], found[1]


def test_how_it_stands_is_told_in_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # where it would record
    texts = {name: beginnings(scene, keys) for name, (scene, keys) in STANDINGS.items()}
    pairs = list(itertools.combinations(texts, 2))
    assert not [f"{one} and {other}" for one, other in pairs if texts[one][0] == texts[other][0]]
    tiny = [(one, other) for one, other in pairs if not {one, other} & ZOOMED_ONLY]
    assert not [f"{one} and {other}, tiny" for one, other in tiny if texts[one][1] == texts[other][1]]
