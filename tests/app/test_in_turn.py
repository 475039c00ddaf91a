"""Keys that come several at a time, as over a slow line, do what they do one after the other."""

from __future__ import annotations

import asyncio
from typing import Any

from textual import events

from tests.support.fake_feed import busy
from tests.support.monitor import Driven, drive
from tuimon.app.lab.app import LabApp
from tuimon.app.look.themes import load_themes
from tuimon.app.screens.lab import LabSession
from tuimon.draw.glyphs import BRAILLE

SIZE = (80, 24)


def type_at_once(app: Any, *keys: str) -> None:
    """All of these in one go."""
    for key in keys:
        app.post_message(events.Key(key, key if len(key) == 1 else None))


def test_what_is_typed_right_behind_the_key_that_opens_a_line_stands_in_it() -> None:
    async def body(on: Driven) -> None:
        type_at_once(on.app, "2", "slash", *"item", "enter")
        await on.settle()
        assert "filter 'item': 1 of 3" in on.text
        type_at_once(on.app, "enter", "enter")  # the second one comes before the page of the first is drawn
        await on.settle()
        assert "source model.py:57" in on.text
        type_at_once(on.app, *("escape",) * 4)
        await on.settle()
        assert "filter" not in on.line("2 boundaries") and "recompiles" in on.text

    drive(busy(), SIZE, body)


def test_the_lab_takes_a_whole_answer_at_once() -> None:
    app = LabApp(LabSession(), load_themes(), "dark", BRAILLE, watch=False)

    async def run() -> None:
        async with app.run_test(size=SIZE) as pilot:
            await pilot.pause()
            type_at_once(app, *"1640", "enter")
            await pilot.pause()
            await pilot.pause()
            assert app.lab_screen.session.lab.prediction == 640e9

    asyncio.run(run())


def test_a_key_that_is_never_done_with_keeps_no_other_waiting() -> None:
    async def body(on: Driven) -> None:
        on.app._turn_s = 0.0  # since the machine was started
        await on.press("2")
        assert "recompiles" not in on.text

    drive(busy(), SIZE, body)
