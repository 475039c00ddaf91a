"""A recording on the screen: the same panels, keys that go through it, and how it stands with it in the line at the top."""

from __future__ import annotations

import asyncio
import os
import stat
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest

from tests.app.test_golden import GOLDEN
from tests.sources.recorded_streams import record, training
from tests.support.fake_feed import busy
from tests.support.monitor import Clock, Driven, drive, settings
from tuimon import events as ev
from tuimon.app.app import MonitorApp
from tuimon.app.panels.target import reading
from tuimon.playback import FileGroup, Playback, loading, of_path
from tuimon.sources.files import open_any
from tuimon.sources.recording import Writer

WIDE, NARROW = (120, 40), (80, 24)
PATIENCE = 2_000


class Replayed(Driven):
    """A monitor on a recording."""

    async def there(self) -> None:
        """Until what is watched is where it was sent, with enough read ahead."""
        for _ in range(PATIENCE):
            self.app.pump.tick()
            if not any(one.position().going or one._wanted is not None or one._has_room for one in self.plays):
                await self.settle()
                return
            await asyncio.sleep(0.005)
        raise AssertionError("it does not get there")

    @property
    def plays(self) -> list[Playback]:
        return [one.feed for one in self.app.pump.watched if isinstance(one.feed, Playback)]


@pytest.fixture(autouse=True)
def let_go(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A feed is let go when the monitor has ended, as `app.run` does it: its threads end."""
    started: list[Playback] = []
    start = Playback.start

    def starts(self: Playback) -> None:
        started.append(self)
        start(self)

    monkeypatch.setattr(Playback, "start", starts)
    yield
    for one in started:
        one.detach()


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The busy job of the other pictures, six events each 100 ms."""
    path = tmp_path_factory.mktemp("replay") / "busy.tuimon"
    told = busy()
    record(path, [told[at : at + 6] for at in range(0, len(told), 6)], each=2)
    return path


def play(
    path: Path, size: tuple[int, int], body: Callable[[Replayed], Awaitable[None]], glyphs: str = "braille", **more: object
) -> MonitorApp:
    """Run the monitor on a recording, or a folder of them, and `body` on it, with all of it read."""
    clock = Clock()
    feed = of_path(path, clock=clock, **more)  # type: ignore[arg-type]
    feed.start()
    feed.wait()
    app = MonitorApp(feed, settings(glyphs), clock=clock, watch_terminal=False)

    async def run() -> None:
        async with app.run_test(size=size) as pilot:
            driven = Replayed(app, [feed], clock, pilot)  # type: ignore[list-item]
            await pilot.pause()
            await driven.there()
            await body(driven)

    asyncio.run(run())
    return app


def test_it_plays_and_pauses_and_the_clock_of_the_job_with_it(path: Path) -> None:
    async def body(on: Replayed) -> None:
        assert "replay ▶ 1x  0:00 of 0:05" in on.text.split("\n")[1]
        await on.tick(0.9)
        await on.tick(0.9)
        assert "▶ 1x  0:01 of 0:05  step" in on.line("replay")
        await on.press("space")
        at, now = on.line("replay"), on.app.pump.now_ns()
        assert "‖ paused  0:01" in at and "space play" in on.text
        await on.tick(10)
        assert on.line("replay") == at and on.app.pump.now_ns() == now
        await on.press("space")
        assert "space pause" in on.text
        await on.tick(0.9)
        assert "0:02" in on.line("replay")

    play(path, WIDE, body)


def test_to_the_end_and_back_to_the_begin(path: Path) -> None:
    async def body(on: Replayed) -> None:
        while not on.plays[0].position().over:
            await on.tick(1)
        assert "■ end  0:05 of 0:05  step 259" in on.line("replay")
        await on.press("0")
        await on.there()
        assert "▶ 1x  0:00 of 0:05" in on.line("replay")

    play(path, WIDE, body)


def test_steps_and_places_by_keys(path: Path) -> None:
    async def body(on: Replayed) -> None:
        await on.press("o", *"100", "enter")
        await on.there()
        assert "‖ paused" in on.line("replay") and "step 100" in on.line("replay")
        for key, step in (("full_stop", 101), ("greater_than_sign", 111), ("comma", 110), ("less_than_sign", 100)):
            await on.press(key)
            await on.there()
            assert on.plays[0].position().step == step and f"step {step}" in on.line("replay")
        await on.press("o", *"1000", "enter")
        await on.tick(0)
        assert "there is no step 1000: the last one is 259" in on.text
        await on.press("o", *"xyz", "enter")
        await on.tick(0)
        assert "where is that? a step (1204)" in on.text
        await on.press("o", *"50%", "enter")
        await on.there()
        assert "0:02 of 0:05" in on.line("replay")
        await on.press("o", "escape")
        assert "go to:" not in on.text

    play(path, WIDE, body)


def test_to_what_is_found(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loading, "LOOK_EVERY", 100)
    monkeypatch.setattr(loading, "LOOKS", 100.0)

    async def body(on: Replayed) -> None:
        assert on.plays[0]._loading.found
        await on.press("f")
        assert "came up here" in on.text
        await on.there()
        assert "‖ paused" in on.line("replay")
        await on.press("F")
        assert "nothing to look at comes up before this" in on.text

    play(path, WIDE, body)


def test_several_things_found_at_once_are_counted(path: Path) -> None:
    async def body(on: Replayed) -> None:
        (play,) = on.plays
        play._loading.found = [loading.Found(2_000_000_000, "one"), loading.Found(2_000_000_000, "other")]
        await on.press("f")
        assert "came up here (with 1 more): one" in on.text
        await on.there()
        await on.press("f")
        assert "nothing to look at comes up behind this" in on.text

    play(path, WIDE, body)


@pytest.mark.parametrize("local", [True, False])
def test_what_was_measured_of_this_machine_holds_for_a_job_that_ran_on_it(tmp_path: Path, local: bool) -> None:
    writer = Writer(tmp_path / "here.tuimon", local=local)
    writer.put(0, busy())
    writer.close()

    async def body(on: Replayed) -> None:
        assert on.app.plane.here is local  # as live, and in the report

    play(tmp_path / "here.tuimon", NARROW, body)


def test_before_the_attach_q_cancels_nothing(tmp_path: Path) -> None:
    record(tmp_path / "begun.tuimon", [[ev.Attaching(1, "attaching to process 7")], busy()], each=2)

    async def body(on: Replayed) -> None:
        await on.tick(0.05)
        assert "tuimon was attaching then" in on.text and "q cancel" not in on.text

    play(tmp_path / "begun.tuimon", NARROW, body)


def test_how_far_it_is_read_is_told_in_samples(path: Path) -> None:
    (opened,) = open_any(path)[0]
    where = Playback(opened).position()
    assert "".join(text for text, _ in reading(where._replace(loaded=0.41, rows=123_456, of_rows=3_100_000))) == (
        "reading 41%, 123k of 3.10M samples"
    )
    assert reading(where._replace(loaded=1.0)) == []


def test_speed(path: Path) -> None:
    async def body(on: Replayed) -> None:
        await on.press("plus")
        assert "playing at 2 times its pace" in on.text and "▶ 2x" in on.line("replay")
        await on.press("minus", "minus")
        assert "▶ 0.5x" in on.line("replay")
        for _ in range(9):
            await on.press("plus")
        assert "playing as fast as it goes" in on.text

    play(path, WIDE, body)


def test_the_keys_of_a_live_job_are_as_they_were() -> None:
    async def body(on: Driven) -> None:
        await on.press("f", "full_stop", "0", "o")
        assert "go to:" not in on.text and "replay" not in on.text.split("\n")[1]
        await on.press("space")
        assert "FROZEN" in on.text

    drive(busy(), WIDE, body)


def test_keys_are_on_the_help_page_of_a_recording_only(path: Path) -> None:
    async def body(on: Replayed) -> None:
        await on.press("question_mark", "G")
        assert on.app.screen.__class__.__name__ == "HelpScreen"
        await on.press("g")
        for _ in range(20):
            if "keys: replay" in on.text:
                return
            await on.press("pagedown")
        raise AssertionError(on.text)

    play(path, WIDE, body)


def test_a_recording_is_not_recorded_and_nothing_is_asked_of_it(path: Path) -> None:
    async def body(on: Replayed) -> None:
        await on.press("r")
        assert "this is a file already" in on.text

    play(path, WIDE, body)


def test_what_is_accepted_stays_so_wherever_one_goes(path: Path) -> None:
    async def body(on: Replayed) -> None:
        await on.press("o", *"100", "enter")
        await on.there()
        await on.press("2", "m", *"fine", "enter")
        accepted = [one.key for one in on.plays[0].model.boundaries.values() if one.accepted is not None]
        assert accepted
        before = on.plays[0].model
        await on.press("less_than_sign")
        await on.there()
        assert on.plays[0].model is not before
        assert [one.key for one in on.plays[0].model.boundaries.values() if one.accepted is not None] == accepted

    play(path, WIDE, body)


def test_ranks_go_where_the_one_on_the_panels_goes(tmp_path: Path) -> None:
    for rank in range(3):
        record(tmp_path / f"{rank}.tuimon", list(training(80, seed=rank)))

    async def body(on: Replayed) -> None:
        assert isinstance(on.app.feed, FileGroup)
        for one in on.plays:
            one.began_s = 1_790_000_000.0  # they were written one after the other
        await on.press("space", "o", *"45", "enter")
        await on.there()
        await on.there()
        assert [one.position().step for one in on.plays] == [45, 59, 59]  # the whole batches that had come by then
        assert len({one.clock() for one in on.plays}) == 1
        await on.press("right_square_bracket", "comma")
        await on.there()
        await on.there()
        assert on.plays[1].position().step == 58 and on.plays[0].position().paused

    play(tmp_path, WIDE, body)


def test_a_file_that_turns_out_to_be_none_ends_the_monitor(path: Path, tmp_path: Path) -> None:
    (tmp_path / "bad.json").write_text('{"traceEvents": 1')
    feed = of_path(tmp_path / "bad.json")
    app = MonitorApp(feed, settings(), clock=Clock(), watch_terminal=False)
    feed.start()
    feed.wait()

    async def run() -> None:
        async with app.run_test(size=NARROW) as pilot:
            app.pump.tick()
            for _ in range(PATIENCE):
                if not app.is_running:
                    break
                await pilot.pause(0.005)

    asyncio.run(run())
    assert app.return_code == 3 and feed.refused is not None and "bad.json" in feed.refused


# ------------------------------------------------------------------------------------------ the key that records


def test_r_records_what_is_watched_from_its_begin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)

    async def body(on: Driven) -> None:
        await on.press("r")
        assert "recording into tuimon-4242-" in on.text
        await on.tick(5)
        assert "REC " in on.text.split("\n")[1]
        on.feed.give(ev.Line(on.feed.model.now_ns, "while it was recorded"))
        await on.tick()
        await on.press("r")
        assert "recorded 0 steps" in on.text
        await on.tick(5)
        assert "REC " not in on.text
        on.feed.give(ev.Line(on.feed.model.now_ns, "afterwards"))
        await on.tick()

    drive(busy(), WIDE, body)
    (written,) = tmp_path.glob("*.tuimon")
    assert stat.S_IMODE(written.stat().st_mode) == 0o600
    told = [event for batch in open_any(written)[0][0].events(lambda _read, _of: None) for event in batch]
    lines = [event.text for event in told if isinstance(event, ev.Line)]
    assert "while it was recorded" in lines and "afterwards" not in lines
    kinds = {type(event) for event in told}
    assert {ev.TargetSeen, ev.InstrumentAdded, ev.GraphBroke} <= kinds  # of before it began, what names things
    assert ev.Samples not in kinds


def test_where_the_folder_cannot_be_written_to_it_goes_to_the_users_state(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = tmp_path / "gone"
    here.mkdir()
    monkeypatch.chdir(here)
    here.rmdir()
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))

    async def body(on: Driven) -> None:
        await on.press("r")
        assert "recording into ~/.local/state/tuimon, as the folder here cannot be written to" in on.text

    drive(busy(), NARROW, body)
    assert len(list((tmp_path / ".local" / "state" / "tuimon").glob("*.tuimon"))) == 1


# ------------------------------------------------------------------------------------------ pictures


@pytest.mark.parametrize(
    ("name", "size", "glyphs", "keys"),
    [
        ("replay-80x24", NARROW, "braille", ("o", *"150", "enter")),
        ("replay-120x40", WIDE, "braille", ("o", *"150", "enter")),
        ("replay-80x24-ascii", NARROW, "ascii", ("o", *"200", "enter")),
        ("replay-80x24-o", NARROW, "braille", ("space", "o")),
    ],
)
def test_screen(name: str, size: tuple[int, int], glyphs: str, keys: tuple[str, ...], path: Path) -> None:
    seen = []

    async def body(on: Replayed) -> None:
        await on.press(*keys)
        await on.there()
        on.clock.on(5)
        await on.there()
        seen.append(on.text + "\n")

    play(path, size, body, glyphs)
    file = GOLDEN / f"{name}.txt"
    if os.environ.get("TUIMON_UPDATE_GOLDEN"):
        file.write_text(seen[0], encoding="utf-8")
    assert seen[0] == file.read_text(encoding="utf-8")
