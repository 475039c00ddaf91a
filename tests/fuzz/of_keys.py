"""Keys, one after the other, on the screens of jobs of which some values are odd."""

from __future__ import annotations

import os
import tempfile
from functools import cache
from unittest import mock

from tests.fuzz.draws import Draw
from tests.fuzz.of_recordings import stream
from tests.fuzz.seen import compute
from tests.support.monitor import Driven, drive, settings
from tuimon.app import keymap
from tuimon.app.action import Scope

SIZES = ((80, 24), (120, 40), (40, 10), (200, 60), (20, 5))
MOST_KEYS = 12
LEAVING = ("app.quit", "leave_lab")
"""Calls that may end the monitor."""


@cache
def _keys() -> tuple[str, ...]:
    scopes: tuple[Scope, ...] = ("main", "page", "step", "window", "roofline", "help", "lab", "palette", "themes")
    found = {action.keys[0]: None for scope in scopes for action in keymap.actions(scope) if action.call not in LEAVING}
    return (*found, "a", "7", "backspace")


def keys(data: bytes, thorough: bool) -> None:
    """The monitor on such a job, in a terminal of some size, with keys from the bytes."""
    del thorough
    draw = Draw(data)
    size, events = draw.pick(SIZES), stream(draw)
    pressed = [draw.pick(_keys()) for _ in range(draw.below(MOST_KEYS))]

    async def body(on: Driven) -> None:
        for key in pressed:
            await on.press(key)
            if draw.below(3) == 0:
                await on.tick(1)
            if draw.below(6) == 0:
                await on.resize(*draw.pick(SIZES))

    before = os.getcwd()
    with tempfile.TemporaryDirectory(prefix="tuimon-fuzz-") as home:
        own = {"HOME": home, "XDG_CONFIG_HOME": home, "XDG_STATE_HOME": home, "XDG_CACHE_HOME": home}
        os.chdir(home)  # recordings and pictures go into the folder that one is in
        try:
            with mock.patch.dict(os.environ, own):
                drive(events, size, body, settings(roofline=compute))
        finally:
            os.chdir(before)
