"""A terminal of a few lines: the first one is the answer, and nothing is said twice."""

from __future__ import annotations

import pytest

from tests.app.test_honest import scene
from tests.support.scenes import WHOLE
from tuimon import events as ev
from tuimon.app.panels import tiny
from tuimon.draw.text import line_cells

FIRST = {
    "busy": "25.8/s 17% mod…py:57",
    "compiling": "compile for…rd 3.2 s",
    "ended": "ended: signal 9",
    "lost": "ended: lost",
    "waiting": "waiting for torch",
    "empty": "running",
}


def lines(name: str, width: int, height: int) -> list[str]:
    made = WHOLE[name]()
    assert isinstance(made, list)
    events: list[ev.Event] = made
    drawn = tiny.draw(scene(events), width, height)
    assert len(drawn) <= height and all(line_cells(line) <= width for line in drawn)
    return ["".join(text for text, _ in line) for line in drawn]


@pytest.mark.parametrize("name", FIRST)
def test_one_line_is_the_answer(name: str) -> None:
    (line,) = lines(name, 20, 1)
    assert line == FIRST[name]


@pytest.mark.parametrize("name", FIRST)
def test_five_lines_say_nothing_twice(name: str) -> None:
    five = [line for line in lines(name, 20, 5) if line]
    assert len(set(five)) == len(five)
    ages = [word for line in five for word in line.split() if word.replace(".", "").isdigit() and "." in word]
    if name == "compiling":
        assert sum(line.startswith("compile") for line in five) == 1
        assert ages.count("3.2") == 1
