"""No key harms the job: every action of every scope, by each of its keys, on feeds that count what they are told to do."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.app.test_picker import some
from tests.support.fake_feed import FakeFeed, FakeFleet, busy, fleet
from tests.support.monitor import Driven, drive, settings
from tests.support.points import compute, h100, windows
from tests.support.scenes import WHOLE
from tuimon.app import keymap
from tuimon.app.action import Scope
from tuimon.app.look.themes import load_themes
from tuimon.app.picker.app import PickerApp
from tuimon.app.screens.main import MainScreen
from tuimon.draw.glyphs import BRAILLE

PLACES: dict[Scope, tuple[str, tuple[str, ...]]] = {
    "main": ("busy", ()),
    "page": ("busy", ("2", "enter")),
    "step": ("slow", ("n", "enter")),
    "window": ("h100", ("6", "p")),
    "roofline": ("h100", ("6",)),
    "help": ("busy", ("question_mark",)),
    "lab": ("busy", ("L",)),
    "palette": ("busy", ("colon",)),
    "themes": ("busy", ("T",)),
}
"""Scope -> scene, and the keys that lead there."""

ELSEWHERE: set[Scope] = {"picker", "replay", "tour"}
"""Scopes in which no job is attached to: the list of processes is below; a recording has no job."""

LEAVING = ("app.quit", "leave_lab")
"""Calls that may end the monitor; there is a test of those."""

HARM = [
    (os, "kill"),
    (os, "killpg"),
    (os, "pidfd_open"),
    (signal, "pidfd_send_signal"),
    (signal, "pthread_kill"),
    (subprocess, "Popen"),
    (socket.socket, "connect"),
]
"""What would reach a process, and no key has a use for."""


@pytest.fixture(autouse=True)
def reached(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[list[str]]:
    """What would have reached a process. `r` records into the folder that one is in."""
    monkeypatch.chdir(tmp_path)
    found: list[str] = []

    def watched(name: str) -> Any:
        def call(*args: object, **more: object) -> None:
            found.append(f"{name}{args}")

        return call

    for place, name in HARM:
        if hasattr(place, name):
            monkeypatch.setattr(place, name, watched(name))
    yield found
    assert found == []


def keys_of(scope: Scope) -> list[str]:
    """A key of each action there but those that end the monitor."""
    return [action.keys[0] for action in keymap.actions(scope) if action.call not in LEAVING]


def where(on: Driven) -> tuple[str, str | None, bool]:
    """The screen that one is on."""
    return type(on.app.screen).__name__, on.app.main.zoomed, on.app.main.asking.is_open


async def home(on: Driven) -> None:
    """Back to the panels, from wherever one is."""
    for _ in range(8):
        if where(on) == (MainScreen.__name__, None, False):
            return
        await on.pilot.press("escape")
    raise AssertionError(f"there is no way back:\n{on.text}")


def test_every_scope_is_walked() -> None:
    assert {scope for scope, table in keymap.TABLES.items() if table} <= set(PLACES) | ELSEWHERE


@pytest.mark.parametrize("scope", PLACES)
def test_no_action_reaches_the_job(scope: Scope) -> None:
    scene, keys = PLACES[scope]
    told: dict[str, list[str]] = {}

    async def body(on: Driven) -> None:
        await on.press(*keys)
        place = where(on)
        for key in keys_of(scope):
            if where(on) != place:
                await home(on)
                await on.press(*keys)
                assert where(on) == place
            before = len(on.feed.commands)
            await on.press(key)
            if on.feed.commands[before:]:
                told[key] = [str(command["cmd"]) for command in on.feed.commands[before:]]
        assert on.app.is_running and on.feed.detached == 0

    drive(WHOLE[scene](), (80, 24), body, settings(roofline=compute(h100()) if scene == "h100" else None))
    # a window is asked for by the second p alone, on the page that says what it costs; the one that waits is cancelled by x
    assert told == ({"p": ["window"], "x": ["window_cancel"]} if scope == "window" else {})


def test_a_walk_at_random() -> None:
    rnd = random.Random(9)
    keys = sorted({key for scope in PLACES for key in keys_of(scope)} - {"p", "q"})

    async def body(on: Driven) -> None:
        for _ in range(150):
            await on.pilot.press(rnd.choice(keys))
        await on.settle()
        assert on.app.is_running and on.feed.detached == 0 and on.feed.commands == []

    drive(windows(), (80, 24), body, settings(roofline=compute(h100())))


@pytest.mark.parametrize("key", ["q", "ctrl+q", "ctrl+c"])
def test_leaving_lets_the_job_go_and_says_nothing_else_to_it(key: str) -> None:
    feed = FakeFeed(busy())

    async def body(on: Driven) -> None:
        await on.pilot.press(key)
        for _ in range(200):
            if on.feed.detached:
                return
            await asyncio.sleep(0.01)

    drive(feed, (80, 24), body)
    assert feed.detached == 1 and feed.commands == []


def test_with_ranks_too() -> None:
    ranks: FakeFleet = fleet(4)

    async def body(on: Driven) -> None:
        await on.press("a")
        place = where(on)
        for key in keys_of("main"):
            if where(on) != place:
                await home(on)
                await on.pilot.press("a")
            await on.pilot.press(key)
        assert on.app.is_running

    drive(ranks, (80, 24), body)
    assert ranks.detached == 0 and all(one.detached == 0 and one.commands == [] for one in ranks.members)


def test_the_list_of_processes_only_looks() -> None:
    looked = []

    def find() -> list[Any]:
        looked.append(1)
        return list(some())

    async def run(key: str) -> None:
        app: PickerApp[Any] = PickerApp(find, load_themes(), "dark", BRAILLE, watch=False)
        async with app.run_test(size=(80, 24)) as pilot:
            await app.workers.wait_for_complete()
            await pilot.press(key)
            await pilot.pause()

    for key in keys_of("picker"):
        asyncio.run(run(key))
    assert looked
