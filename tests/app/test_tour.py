"""The tour: it leads through the screens by the keys that it tells, and needs neither torch nor a job."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest

from tests.support.command import ROOT
from tests.support.monitor import Clock, Driven, screen_text, settings
from tuimon.app.screens.tour import TourApp
from tuimon.app.tour import HEIGHT, TourError, load, parse, strip
from tuimon.commands import demo, tour
from tuimon.draw.glyphs import GLYPH_SETS
from tuimon.draw.text import line_cells
from tuimon.playback import Playback
from tuimon.sources.recording import Recording
from tuimon.sources.recording.format import FileHead

DEMOS = ROOT / "demos"
STOPS = DEMOS / "tour" / "stops.toml"
KEYS = {"esc": "escape", "?": "question_mark"}


def keys(press: str) -> list[str]:
    """What is told to press, as keys: a number is typed."""
    return [KEYS.get(key, key) for word in press.split() for key in (word if word.isdigit() else [word])]


@pytest.fixture
def feed(monkeypatch: pytest.MonkeyPatch) -> Iterator[Playback]:
    """The tour's recording, where it begins, on a machine without torch."""
    monkeypatch.setitem(sys.modules, "torch", None)
    played = tour.played(DEMOS)
    tour.settle(played, 60)
    yield played
    played.detach()


def walk(
    feed: Playback, size: tuple[int, int], body: Callable[[TourApp, Driven], Awaitable[None]], glyphs: str = "braille"
) -> None:
    """Run the tour in a terminal of this size, and `body` on it."""
    clock = Clock()
    app = TourApp(load(STOPS), feed, settings(glyphs), clock=clock, watch_terminal=False)

    async def run() -> None:
        async with app.run_test(size=size) as pilot:
            driven = Driven.__new__(Driven)
            driven.app, driven.clock, driven.pilot = app, clock, pilot
            await driven.tick(0.5)
            await body(app, driven)

    asyncio.run(run())


async def there(app: TourApp, at: int) -> None:
    """Until the tour stands at that stop: a trace in the lab takes its time."""
    for _ in range(600):
        app.look()
        if app.tour.at == at:
            return
        await asyncio.sleep(0.05)
    raise AssertionError(f"stop {app.tour.at + 1} does not lead on:\n{screen_text(app)}")


async def sized(driven: Driven, height: int) -> None:
    """Until the screen has another height: Textual waits a little for more of them."""
    for _ in range(200):
        await driven.tick(0.5)
        if len(driven.text.split("\n")) == height:
            return
        await asyncio.sleep(0.02)
    raise AssertionError(driven.text)


@pytest.mark.parametrize(("size", "glyphs"), [((80, 24), "braille"), ((120, 40), "ascii")])
def test_the_told_keys_lead_to_the_end(feed: Playback, size: tuple[int, int], glyphs: str) -> None:
    seen: list[str] = []

    async def body(app: TourApp, driven: Driven) -> None:
        for number, stop in enumerate(app.tour.stops, 1):
            assert app.tour.at == number - 1
            await driven.tick(0.5)
            lines = screen_text(app).split("\n")
            assert len(lines) == size[1]
            head = lines[-HEIGHT]
            assert f"tour {number} of {len(app.tour.stops)}  press {stop.press} " in head, head
            assert " ".join(" ".join(lines[1 - HEIGHT :]).split()) == stop.say  # all of it is there
            assert any(word in lines[-HEIGHT - 1] for word in ("quit", "back", "esc", "enter")), lines[-HEIGHT - 1]
            seen.append(lines[0])
            if number < len(app.tour.stops):
                await driven.press(*keys(stop.press))
                await there(app, number)

    walk(feed, size, body, glyphs)
    assert len(set(seen)) > 8  # it has been to as many screens


def test_it_can_be_skipped_through_and_left(feed: Playback) -> None:
    async def body(app: TourApp, driven: Driven) -> None:
        for number in range(1, len(app.tour.stops)):
            await driven.press("ctrl+t")
            assert app.tour.at >= number  # one that leads to where one is goes on at once
        await driven.press("ctrl+t")
        assert app.tour.at == len(app.tour.stops) - 1 and "this is the last stop" in driven.text
        await driven.press("q")

    walk(feed, (80, 24), body)


def test_pages_and_panels_leave_the_strip_its_lines(feed: Playback) -> None:
    async def body(app: TourApp, driven: Driven) -> None:
        for key in (
            "2",
            "enter",
            "escape",
            "escape",
            "question_mark",
            "escape",
            "colon",
            "escape",
            "T",
            "escape",
            "9",
            "q",
            "w",
        ):
            await driven.press(key)
            assert "tour 1" in driven.text.split("\n")[-HEIGHT] or app.tour.at > 0, (key, driven.text)
        for size in ((60, 20), (20, 5), (1, 1), (200, 60)):
            await driven.resize(*size)
            await sized(driven, size[1])
        assert "tour " in driven.text.split("\n")[-HEIGHT]

    walk(feed, (100, 30), body)


def test_the_recording_is_small_and_tells_nothing_of_a_machine() -> None:
    path = DEMOS / "tour" / "tour.tuimon"
    assert path.stat().st_size <= 300_000
    text = "\n".join(repr(event) for batch in Recording(path).read() for event in batch.events)
    for told in ("/home/", "/root", "/tmp/", "/Users/"):
        assert told not in text
    assert "/demo/train_small_gpt.py" in text
    assert isinstance(Recording(path).head, FileHead) and Recording(path).head.host == 0


def test_the_lines_of_the_recording_are_those_of_the_demo(feed: Playback) -> None:
    """Pages show the source beside what was recorded: who changes the demo makes the recording anew (tools/tour_recording)."""
    source = (DEMOS / "train_small_gpt.py").read_text(encoding="utf-8").splitlines()
    found = {boundary.user_line: boundary.user_file for boundary in feed.model.boundaries.values()}
    assert {source[line - 1].strip().partition("(")[0] for line in found} == {"requests.info", "if longest.item"}
    assert {Path(file) for file in found.values()} == {DEMOS / "train_small_gpt.py"}


def test_without_a_screen_it_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    from tuimon.commands.options import FAILED, Options

    assert demo.run(None, Options(headless=True), tour=True) == FAILED
    assert "the tour needs a terminal" in capsys.readouterr().err


@pytest.mark.parametrize("file", sorted(path.name for path in STOPS.parent.glob("*.toml")))
def test_each_stop_fits_at_80_cells(file: str) -> None:
    walked = load(STOPS.parent / file, file.partition(".")[0])
    for at in range(len(walked.stops)):
        walked.at = at
        lines = strip(walked, 80, GLYPH_SETS["ascii"])
        assert len(lines) <= HEIGHT and all(line_cells(line) <= 80 for line in lines)
        told = " ".join(text.strip() for line in lines[1:] for text, _ in line)
        assert (told == walked.stop.say and "skip" in str(lines[0])) or at == len(walked.stops) - 1


def test_each_short_demo_says_below_the_monitor_what_to_press() -> None:
    for name in demo.SHORT:
        stops = load(STOPS.parent / f"{name}.toml", name).stops
        told = (DEMOS / f"{name}.py").read_text(encoding="utf-8")
        assert 3 <= len(stops) <= 4 and stops[-1].until == "never"
        assert f"in the monitor    {stops[0].press} " in told  # as the program says it itself


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("nonsense", "not TOML"),
        ('title = "x"', "stop"),
        ('[[stop]]\nsay = "x"', "press, say and until"),
        ('[[stop]]\nsay = "x"\npress = "2"\nuntil = "the moon"', "until must be one of"),
    ],
)
def test_stops_that_are_none_are_told(text: str, why: str) -> None:
    with pytest.raises(TourError, match=why):
        parse(text.encode(), "stops.toml")
