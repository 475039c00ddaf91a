"""Whole screens as text, kept in files: a change of a picture shows in the review.

TUIMON_UPDATE_GOLDEN=1 writes the files anew.
"""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path

import pytest

from tests.app.steps_scene import slow_job
from tests.support.fake_feed import SCENES, fleet
from tests.support.gpu_scenes import MACHINES
from tests.support.monitor import Driven, drive, settings
from tests.support.points import compute, cpu, h100, windows

GOLDEN = Path(__file__).parent / "golden"

PICTURES = [
    ("busy", (120, 40), "braille", ()),
    ("busy", (80, 24), "braille", ()),
    ("busy", (80, 24), "ascii", ()),
    ("busy", (200, 60), "block", ()),
    ("compiling", (80, 24), "braille", ()),
    ("empty", (120, 40), "braille", ()),
    ("empty", (80, 24), "braille", ()),
    ("waiting", (80, 24), "braille", ()),
    ("ended", (80, 24), "braille", ()),
    ("gpus", (120, 40), "braille", ()),
    ("gpus", (80, 24), "braille", ()),
    ("awkward", (80, 24), "braille", ()),
    ("busy", (20, 5), "braille", ()),
    ("busy", (80, 24), "braille", ("enter",)),
    ("busy", (80, 24), "braille", ("question_mark",)),
    ("busy", (80, 24), "braille", ("1",)),
    ("busy", (80, 24), "braille", ("6",)),
    ("busy", (80, 24), "braille", ("space", "j")),
    *((scene, size, "braille", ()) for scene in ("attaching", "blocked", "ranks") for size in ((80, 24), (120, 40))),
    ("ranks", (80, 24), "braille", ("a", "j", "j", "j")),
    ("ranks", (120, 40), "braille", ("a",)),
    ("ranks", (80, 24), "braille", ("right_square_bracket",) * 3),
    ("ranks64", (80, 24), "ascii", ("left_square_bracket",) * 2),
    ("ranks64", (80, 24), "braille", ("a", "s", "j")),
    ("slow", (80, 24), "braille", ()),
    ("slow", (120, 40), "braille", ("n", "N")),
    ("slow", (80, 24), "ascii", ("n",)),
    ("slow", (80, 24), "braille", ("n", "enter")),
    ("slow", (120, 40), "braille", ("n", "enter")),
    ("h100", (80, 24), "braille", ("6", "right", "right")),
    ("h100", (80, 24), "ascii", ("6",)),
    ("h100", (120, 40), "braille", ("6", "right", "right")),
    ("h100", (120, 40), "block", ("6", "c")),
    ("h100", (80, 24), "braille", ("6", "right", "right", "enter")),
    ("h100", (80, 24), "braille", ("6", "p")),
    ("cpu", (120, 40), "braille", ()),
    ("cpu", (100, 30), "braille", ("6", "right")),
    *(
        (f"gpu-{machine}", size, "braille", ("5",))
        for machine in ("no-gpu", "one", "eight", "mig", "lost")
        for size in ((80, 24), (120, 40))
    ),
    ("gpu-eight", (80, 24), "braille", ()),
    ("gpu-eight", (120, 40), "braille", ()),
    ("gpu-one", (80, 24), "braille", ()),
    ("gpu-mig", (80, 24), "braille", ()),
    ("gpu-lost", (120, 40), "braille", ()),
    ("gpu-silent", (80, 24), "ascii", ("5",)),
    ("gpu-pool", (80, 24), "braille", ("5", "enter")),
    ("gpu-one", (120, 40), "braille", ("5", "enter")),
    ("gpu-no-gpu", (80, 24), "braille", ("5", "enter")),
]

KNOWN = {"h100": h100, "cpu": cpu}
"""Scenes with points in the roofline."""

WHOLE = {
    **SCENES,
    **{f"gpu-{name}": events for name, events in MACHINES.items()},
    "slow": slow_job,
    "ranks": fleet,
    "ranks64": partial(fleet, 64),
    **dict.fromkeys(KNOWN, windows),
}


def name(picture: tuple[str, tuple[int, int], str, tuple[str, ...]]) -> str:
    scene, (width, height), glyphs, keys = picture
    pressed = [key.replace("_square_bracket", "") for key in keys]
    return "-".join([scene, f"{width}x{height}", *([glyphs] if glyphs != "braille" else []), *pressed])


@pytest.mark.parametrize("picture", PICTURES, ids=name)
def test_screen(picture: tuple[str, tuple[int, int], str, tuple[str, ...]]) -> None:
    scene, size, glyphs, keys = picture
    seen = []

    async def body(on: Driven) -> None:
        await on.press(*keys)
        await on.tick(1 if scene.startswith("ranks") else 5)  # until the words to the person are gone
        seen.append(on.text + "\n")

    drive(WHOLE[scene](), size, body, settings(glyphs, roofline=compute(KNOWN[scene]()) if scene in KNOWN else None))
    file = GOLDEN / f"{name(picture)}.txt"
    if os.environ.get("TUIMON_UPDATE_GOLDEN"):
        file.write_text(seen[0], encoding="utf-8")
    assert seen[0] == file.read_text(encoding="utf-8")
