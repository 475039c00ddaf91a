"""32 ranks on four nodes, played from a recorded stream: the late one is named, from calls and from what was folded of them."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.support.monitor import Driven, settings
from tests.support.played import Played
from tuimon.app.app import MonitorApp
from tuimon.model.ranks.folded import MOST_LINES, MOST_STEPS

RANKS, PER_NODE, RATE, LATE = 32, 8, 4.0, 21


def watch(played: Played, size: tuple[int, int], body: Any) -> None:
    """The monitor on them."""
    app = MonitorApp(played.fleet, settings(), clock=played.clock, watch_terminal=False)

    async def run() -> None:
        async with app.run_test(size=size) as pilot:
            await body(_Driven(app, played, pilot))

    asyncio.run(run())


class _Driven(Driven):
    def __init__(self, app: MonitorApp, played: Played, pilot: Any) -> None:
        self.app, self.clock, self.pilot, self.played = app, played.clock, pilot, played

    async def run(self, seconds: int) -> None:
        """So many seconds of the job."""
        for _ in range(seconds):
            self.played.on(1.0)
            self.app.pump.tick()
            await self.pilot.pause()


@pytest.mark.parametrize("fold", [True, False], ids=["folded", "raw"])
def test_the_late_one_of_many_is_named(fold: bool) -> None:
    async def body(on: _Driven) -> None:
        await on.run(12)
        assert f"rank {LATE} is late" in on.line("rank [")
        await on.press("a")
        text = on.text.split("\n")
        assert f"rank {LATE} is late in most steps" in text[4]
        first = next(line for line in text if line.startswith("▸   "))
        assert first.split()[1:4] == [str(LATE), "late", "▾"]
        waits = [line for line in text if f" {LATE}, " in line]
        assert len(waits) >= 8  # the others wait for it
        await on.press("enter")
        assert f"[{LATE}" in on.text.split("\n")[2] and f"pid {100_000 + LATE}" in on.text

    watch(Played(fold=fold, ranks=RANKS, late=LATE, rate=RATE), (80, 24), body)


def test_memory_is_bounded_and_only_the_rank_that_is_shown_sends_its_calls() -> None:
    played = Played(fold=True, ranks=PER_NODE, late=5, rate=RATE)

    async def body(on: _Driven) -> None:
        await on.run(90)
        for feed in played.fleet.members:
            steps = feed.model.steps
            assert steps.n > MOST_STEPS and len(steps.accounts) == MOST_STEPS and len(feed.model.log) <= MOST_LINES
            assert feed.model.digester.take() == [] and feed.drain() == []
        assert played.sessions[0].whole == [True] and not any(one.whole for one in played.sessions[1:])
        await on.press("right_square_bracket")
        for _ in range(100):
            if played.sessions[0].whole[-1] is False and played.sessions[1].whole == [True]:
                break
            await asyncio.sleep(0.02)
        assert played.sessions[0].whole == [True, False] and played.sessions[1].whole == [True]

    watch(played, (80, 24), body)
