"""Whatever is done, however late the terminal answers: in the end it shows what a terminal would that was drawn on once."""

from __future__ import annotations

import asyncio
import random
import re
from collections.abc import Iterator
from dataclasses import fields, replace
from typing import Any

import pyte
import pytest
from textual import events
from textual.geometry import Size

from tests.support.fake_feed import busy
from tests.support.monitor import Driven, drive
from tuimon.app.tty import terminal
from tuimon.app.tty.painted import PaintedApp

SIZES = [(80, 24), (120, 40), (20, 5), (20, 1), (61, 17)]
KEYS = "1234567wwzjjkGgtt?T::/aii'mnsS LTT".replace(" ", "")
NAMED = ("enter", "escape", "escape", "tab", "down", "pagedown", "space", "ctrl+l", "question_mark", "slash", "colon")
ASKED = re.compile(r"\x1b\[(\d+);(\d+)H\x1b\[6n")
ODD = "学習.py café́ \U0001f642 ab"


class Shown:
    """The terminal of a monitor: what it is sent, and when it answers."""

    def __init__(self, width: int, height: int) -> None:
        self.screen = pyte.Screen(width, height)
        self.stream = pyte.Stream(self.screen)
        self.stream.feed("\x1b[?7l")
        self.open: list[tuple[int, int]] = []

    def take(self, text: str) -> None:
        self.stream.feed(re.sub(r"\x1b\[\?2026[hl]", "", text))
        self.open += [(int(row), int(column)) for row, column in ASKED.findall(text)]

    def answer(self, app: Any) -> bool:
        """All questions so far."""
        asked, self.open = self.open, []
        for row, column in asked:
            app.painter.answered(min(row, self.screen.lines) - 1, min(column, self.screen.columns) - 1)
        return bool(asked)

    def picture(self) -> list[list[Any]]:
        blank = "default", False
        rows = []
        for y in range(self.screen.lines):
            cells = (self.screen.buffer[y][x] for x in range(self.screen.columns))
            rows.append([(c.data, c.bg, c.reverse, *((c.fg, c.bold) if c.data.strip() else blank)) for c in cells])
        return rows


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> Iterator[Shown]:
    """The painter draws on this one instead of on none."""
    on = Shown(80, 24)
    monkeypatch.setattr(terminal, "can_draw", lambda app: bool(app._running and not app._closed and not app._batch_count))
    monkeypatch.setattr(PaintedApp, "send", lambda app, text: on.take(text))
    yield on


async def settled(on: Driven, shown: Shown) -> None:
    for _ in range(500):
        await on.settle()
        if not shown.answer(on.app) and not on.app.painter.behind:
            return
    raise AssertionError("it does not come to an end")


def drawn_once(on: Driven) -> list[list[Any]]:
    """What a terminal shows that gets the picture from nothing, at once."""
    app = on.app
    fresh = Shown(*app.size)
    painter = type(app.painter)(_Canvas(app, fresh), app.painter._looks._colours, asks=False)
    painter.paint()
    return fresh.picture()


class _Canvas:
    def __init__(self, app: Any, fresh: Shown) -> None:
        self.picture_size, self.rendered, self.send = app.picture_size, app.rendered, fresh.take

    def call_in(self, seconds: float, what: Any) -> None:
        raise AssertionError("all of it fits")


def odd() -> list[Any]:
    """The busy job with names that take two cells, or none."""

    def other(event: Any) -> Any:
        words = {
            field.name: getattr(event, field.name) for field in fields(event) if isinstance(getattr(event, field.name), str)
        }
        changed = {name: word.replace("model.py", ODD) for name, word in words.items() if "model.py" in word}
        return replace(event, **changed) if changed else event

    return [other(event) for event in busy()]


@pytest.mark.parametrize("seed", [1])
def test_keys_sizes_and_themes_in_any_order(shown: Shown, seed: int) -> None:
    chance = random.Random(seed)

    async def body(on: Driven) -> None:
        for turn in range(60):
            doing = chance.random()
            if doing < 0.15:
                size = chance.choice(SIZES)
                shown.screen.resize(size[1], size[0])
                await on.pilot.resize_terminal(*size)
            elif doing < 0.25:
                on.clock.on(0.5)
                on.app.pump.tick()
            else:
                await on.pilot.press(chance.choice((*KEYS, *NAMED)) if chance.random() < 0.5 else chance.choice(NAMED))
            if not on.app.is_running:
                return
            if chance.random() < 0.4:
                shown.answer(on.app)
            if turn % 6 == 5:
                await settled(on, shown)
                assert shown.picture() == drawn_once(on), turn

    drive(odd(), (80, 24), body)


def test_sizes_that_come_as_one(shown: Shown) -> None:
    """Away and back before anything was laid out: the terminal has cut the picture, and Textual sees no difference."""

    async def body(on: Driven) -> None:
        await settled(on, shown)
        shown.screen.resize(5, 20)
        shown.screen.resize(24, 80)
        for size in (Size(20, 5), Size(80, 24)):
            on.app.post_message(events.Resize(size, size))
            while on.app.size != size:
                await asyncio.sleep(0)
        await settled(on, shown)
        assert shown.picture() == drawn_once(on)

    drive(busy(), (80, 24), body)
