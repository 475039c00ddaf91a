"""What people come for, by keys alone and at most six of them: what costs most and where, why a step was slow, the lab.

The same over ssh, on a real job: tests/live/test_jobs_over_ssh.py.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.support.fake_feed import MODEL, TRAIN
from tests.support.golden import project_at_home
from tests.support.monitor import Driven, drive
from tests.support.scenes import WHOLE
from tuimon.app.screens.lab import LabScreen

SIZE = (80, 24)
MOST_KEYS = 6


@pytest.fixture(autouse=True)
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The program of the made-up jobs can be read where they have it."""
    monkeypatch.setattr(os, "open", project_at_home(tmp_path))


class Person:
    """Somebody in front of it, who presses keys; the keys are counted."""

    def __init__(self, on: Driven) -> None:
        self.on = on
        self.keys = 0

    async def press(self, *keys: str) -> None:
        self.keys += len(keys)
        await self.on.press(*keys)

    def reads(self, *words: str) -> None:
        """All of these are on the screen; what is broken over lines counts as whole."""
        text = "".join(self.on.text.split())
        for word in words:
            assert "".join(word.split()) in text, f"{word!r} is not on the screen:\n{self.on.text}"


def test_the_costliest_boundary_and_its_line() -> None:
    async def body(on: Driven) -> None:
        person = Person(on)
        assert "model.py:57" in on.line(" 17.0% ")  # with no key at all: it is the first row
        await person.press("2")
        first, *_ = on.text.split("\n")
        assert "model.py:57" in first and "17" in first, first
        await person.press("enter")
        person.reads(f"{MODEL}:57", "17.0%")
        await person.press("enter")
        person.reads(f"{MODEL}:57", "largest = norm.item()", "Dynamo does not know how to trace this call.", "Move it out of")
        assert person.keys <= MOST_KEYS
        await person.press("escape", "escape", "escape")
        person.reads("q quit", "recompiles")

    drive(WHOLE["busy"](), SIZE, body)


def test_the_cause_of_the_last_slow_step() -> None:
    async def body(on: Driven) -> None:
        person = Person(on)
        await person.press("n", "enter")
        person.reads("step 69 took", "times the usual", "data wait, 100% of the excess", f"{TRAIN}:9")
        await person.press("enter")
        person.reads(f"{TRAIN}:9", "for batch in loader:")
        assert person.keys <= MOST_KEYS

    drive(WHOLE["slow"](), SIZE, body)


async def traced(on: Driven) -> None:
    """Until it has traced the roof, as it does by itself, a station each half second."""
    lab = on.app.screen
    assert isinstance(lab, LabScreen)
    for _ in range(20):
        if not lab.session.lab.playing:
            break
        lab.tick()
        await on.settle()


def test_the_two_settings_of_the_lab() -> None:
    async def body(on: Driven) -> None:
        person = Person(on)
        await person.press("L", "1", "6", "4", "0", "enter")
        assert person.keys <= MOST_KEYS
        await traced(on)
        person.reads("640 GFLOP/s RIGHT", "1 of 1 right")
        person.keys = 0
        await person.press("2", "1", "T", "enter")
        await traced(on)
        person.reads("1,000 GFLOP/s RIGHT", "2 of 2 right")
        assert person.keys <= MOST_KEYS

    drive(WHOLE["busy"](), SIZE, body)
