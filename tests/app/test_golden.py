"""Whole screens as text, kept in files: a change of a picture shows in the review.

Every screen at four sizes, the states of a job at two, the overview in every theme, and what else a picture can have.
TUIMON_UPDATE_GOLDEN=1 writes the files anew.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.app.test_picker import Picking, picking, some
from tests.support.golden import KEPT, agree, project_at_home
from tests.support.monitor import Driven, drive, settings
from tests.support.points import compute, cpu, h100
from tests.support.scenes import WHOLE
from tests.support.styled import styled_text
from tuimon.app.look.themes import load_themes
from tuimon.draw.glyphs import BRAILLE
from tuimon.roofline.points import Roofline

GOLDEN = KEPT

Size = tuple[int, int]

SIZES: tuple[Size, ...] = ((80, 24), (100, 30), (120, 40), (200, 60))
TWO: tuple[Size, ...] = ((80, 24), (120, 40))

SCREENS: dict[str, tuple[str, tuple[str, ...]]] = {
    "overview": ("busy", ()),
    "boundaries": ("busy", ("2",)),
    "recompiles": ("busy", ("3",)),
    "regions": ("busy", ("4",)),
    "steps": ("slow", ("1", "n")),
    "roofline": ("h100", ("6", "right", "right")),
    "surroundings": ("gpu-eight", ("5",)),
    "ranks": ("ranks", ("a",)),
    "events": ("busy", ("7",)),
    "lab": ("busy", ("L", "1", *"640", "enter", "v")),
    "findings": ("busy", ("w",)),
    "boundary": ("busy", ("2", "enter")),
    "source": ("busy", ("2", "enter", "enter")),
    "recompile": ("busy", ("3", "enter")),
    "region": ("busy", ("4", "enter")),
    "step": ("slow", ("n", "enter")),
    "point": ("h100", ("6", "right", "right", "enter")),
    "gpu": ("gpu-one", ("5", "enter")),
    "help": ("busy", ("question_mark",)),
    "palette": ("busy", ("colon",)),
    "palette-found": ("busy", ("colon", *"ro")),
    "themes": ("busy", ("T",)),
    "filter": ("busy", ("2", "slash", *"item")),
}
"""Name -> scene, and the keys that lead there from the overview."""

STATES: dict[str, tuple[str, tuple[str, ...]]] = {
    **{
        name: (name, ())
        for name in (
            "waiting",
            "compiling",
            "slow",
            "ended",
            "lost",
            "stopped",
            "gpu-no-gpu",
            "before-attach",
            "attaching",
            "blocked",
            "empty",
            "ranks",
            "gpus",
            "cpu",
        )
    },
    "before-attach-boundaries": ("before-attach", ("2",)),
    "filter-none": ("busy", ("2", "slash", *"flash", "enter")),
    "frozen": ("busy", ("space", "j")),
}
"""The same at two sizes: how it can stand with a job."""

PICTURES: tuple[tuple[str, Size, str, tuple[str, ...]], ...] = (
    ("busy", (80, 24), "ascii", ()),
    ("busy", (200, 60), "block", ()),
    ("awkward", (80, 24), "braille", ()),
    ("busy", (20, 5), "braille", ()),
    ("busy", (20, 1), "braille", ()),
    ("compiling", (20, 5), "braille", ()),
    ("ended", (20, 5), "braille", ()),
    ("ranks", (80, 24), "braille", ("a", "j", "j", "j")),
    ("ranks", (80, 24), "braille", ("right_square_bracket",) * 3),
    ("ranks64", (80, 24), "ascii", ("left_square_bracket",) * 2),
    ("ranks64", (80, 24), "braille", ("a", "s", "j")),
    ("slow", (120, 40), "braille", ("n", "N")),
    ("slow", (80, 24), "ascii", ("n",)),
    ("h100", (80, 24), "ascii", ("6",)),
    ("h100", (120, 40), "block", ("6", "c")),
    ("h100", (80, 24), "braille", ("6", "p")),
    ("cpu", (100, 30), "braille", ("6", "right")),
    *((f"gpu-{machine}", size, "braille", ("5",)) for machine in ("no-gpu", "one", "mig", "lost") for size in TWO),
    ("gpu-eight", (80, 24), "braille", ()),
    ("gpu-one", (80, 24), "braille", ()),
    ("gpu-mig", (80, 24), "braille", ()),
    ("gpu-lost", (120, 40), "braille", ()),
    ("gpu-silent", (80, 24), "ascii", ("5",)),
    ("gpu-pool", (80, 24), "braille", ("5", "enter")),
    ("gpu-no-gpu", (80, 24), "braille", ("5", "enter")),
)
"""What else a picture can have: scene, size, glyphs, keys."""

KNOWN: dict[str, Callable[[], Roofline]] = {"h100": h100, "cpu": cpu}


@pytest.fixture(autouse=True)
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The program of the made-up jobs can be read where they have it."""
    monkeypatch.setattr(os, "open", project_at_home(tmp_path))


def seen(scene: str, sizes: tuple[Size, ...], keys: tuple[str, ...] = (), glyphs: str = "braille") -> list[str]:
    """The screen behind these keys, at each of the sizes and, where they are several, at the first one again."""
    texts = []

    async def body(on: Driven) -> None:
        await on.press(*keys)
        await on.tick(1)
        if on.app._message:
            await on.tick(5)  # until the words to the person are gone
        texts.append(on.text + "\n")
        for size in (*sizes[1:], sizes[0]) if len(sizes) > 1 else ():
            await on.resize(*size)
            texts.append(on.text + "\n")

    drive(WHOLE[scene](), sizes[0], body, settings(glyphs, roofline=compute(KNOWN[scene]()) if scene in KNOWN else None))
    return texts


def sized(name: str, size: Size) -> str:
    """A picture's name."""
    return f"{name}-{size[0]}x{size[1]}"


@pytest.mark.parametrize("name", SCREENS)
def test_screens(name: str) -> None:
    *texts, again = seen(SCREENS[name][0], SIZES, SCREENS[name][1])
    agree({sized(name, size): text for size, text in zip(SIZES, texts, strict=True)})
    # the timeline stays where a wider one came to, and the selected step in it
    assert again == texts[0] or name == "steps", "after a change of size, and back, it is another picture"


@pytest.mark.parametrize("name", STATES)
def test_states(name: str) -> None:
    *texts, again = seen(STATES[name][0], TWO, STATES[name][1])
    agree({f"state-{sized(name, size)}": text for size, text in zip(TWO, texts, strict=True)})
    assert again == texts[0], "after a change of size, and back, it is another picture"


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
def test_picker(size: Size) -> None:
    texts = []

    async def body(on: Picking) -> None:
        texts.append(on.text + "\n")

    picking(some, body, size, BRAILLE)
    agree({sized("picker-some", size): texts[0]})


def test_themes() -> None:
    pictures: dict[str, str] = {}

    async def body(on: Driven) -> None:
        await on.tick(1)
        for theme in load_themes().themes:
            on.app.wear(theme)
            for _ in range(100):  # until it is drawn in its looks, in which only these change
                await on.settle()
                if styled_text(on.app) not in pictures.values():
                    break
            pictures[f"theme-{theme}-80x24"] = styled_text(on.app)

    drive(WHOLE["busy"](), SIZES[0], body)
    assert all(len(text.encode()) <= 8192 for text in pictures.values())
    assert len(set(pictures.values())) == len(pictures)
    agree(pictures)


def name_of(picture: tuple[str, Size, str, tuple[str, ...]]) -> str:
    """A picture's name, with all that makes it."""
    scene, size, glyphs, keys = picture
    pressed = [key.replace("_square_bracket", "") for key in keys]
    return "-".join([sized(scene, size), *([glyphs] if glyphs != "braille" else []), *pressed])


@pytest.mark.parametrize("picture", PICTURES, ids=name_of)
def test_pictures(picture: tuple[str, Size, str, tuple[str, ...]]) -> None:
    scene, size, glyphs, keys = picture
    agree({name_of(picture): seen(scene, (size,), keys, glyphs)[0]})
