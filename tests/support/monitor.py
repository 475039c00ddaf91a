"""The monitor in a made-up terminal: started, driven by keys, read back as text. No clock but the test's own."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

from tests.support.fake_feed import FakeFeed, FakeFleet
from tuimon import events as ev
from tuimon.app.app import MonitorApp
from tuimon.app.look.themes import load_themes
from tuimon.app.settings import Settings
from tuimon.draw.glyphs import GLYPH_SETS
from tuimon.roofline.ceilings import load_ceilings


class Clock:
    """A clock that moves when the test says so."""

    def __init__(self) -> None:
        self.ns = 50_000_000_000

    def __call__(self) -> int:
        return self.ns

    def on(self, seconds: float) -> None:
        """Time goes by."""
        self.ns += int(seconds * 1e9)


class Driven:
    """A running monitor with its feed, its clock and its keys."""

    def __init__(self, app: MonitorApp, feeds: list[FakeFeed], clock: Clock, pilot: Any) -> None:
        self.app, self.feeds, self.clock, self.pilot = app, feeds, clock, pilot
        self.feed = feeds[0]

    async def tick(self, seconds: float = 1.0) -> None:
        """Time goes by, and the pump beats once."""
        self.clock.on(seconds)
        self.app.pump.tick()
        await self.settle()

    async def press(self, *keys: str) -> None:
        """Keys, one after the other, each with all its consequences."""
        for key in keys:
            await self.pilot.press(key)
            await self.settle()

    async def settle(self) -> None:
        """Wait until the screen stays as it is.

        A page that closes is drawn over by a message behind a refresh behind a message: one pause of the pilot does not wait
        for the whole chain on a busy machine.
        """
        before, same = ("", ""), 0
        for _ in range(100):
            await self.pilot.pause()
            now = (self.app.screen.__class__.__name__, self.text)
            same = same + 1 if now == before else 0
            if same >= 2:
                return
            before = now

    async def resize(self, width: int, height: int) -> None:
        """Another size of the terminal."""
        await self.pilot.resize_terminal(width, height)
        await self.settle()

    @property
    def text(self) -> str:
        """The screen as text."""
        return screen_text(self.app)

    def line(self, beginning: str) -> str:
        """The line of the screen that holds this text."""
        for line in self.text.split("\n"):
            if beginning in line:
                return line
        raise AssertionError(f"{beginning!r} is not on the screen:\n{self.text}")


def screen_text(app: MonitorApp) -> str:
    """What is on the screen, line by line. The only use of Textual's insides in the tests."""
    strips = app.screen._compositor.render_strips()
    return "\n".join("".join(segment.text for segment in strip).rstrip() for strip in strips)


def settings(glyphs: str = "braille", theme: str = "dark", **more: Any) -> Settings:
    """Settings with nothing in them that depends on the machine."""
    return Settings(
        glyphs=GLYPH_SETS[glyphs],
        themes=load_themes(),
        theme=theme,
        hertz=4.0,
        ceilings=load_ceilings(),
        utc_offset_s=0,
        **more,
    )


def drive(
    events: Iterable[ev.Event] | FakeFleet | FakeFeed,
    size: tuple[int, int],
    body: Callable[[Driven], Awaitable[None]],
    given: Settings | None = None,
) -> MonitorApp:
    """Run the monitor on these events, feed or fleet in a terminal of this size, and `body` on it. Gives the app, ended."""
    feed = events if isinstance(events, (FakeFleet, FakeFeed)) else FakeFeed(events)
    feeds = feed.members if isinstance(feed, FakeFleet) else [feed]
    clock = Clock()
    app = MonitorApp(feed, given or settings(), clock=clock, watch_terminal=False)

    async def run() -> None:
        async with app.run_test(size=size) as pilot:
            driven = Driven(app, feeds, clock, pilot)
            await pilot.pause()
            await driven.tick(0.0)
            await body(driven)

    asyncio.run(run())
    return app
