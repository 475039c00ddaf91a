"""The lab on the screen: by keys only, in a made-up terminal and in a real one; and how it looks."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.fake_feed import busy
from tests.support.monitor import Driven, drive, screen_text, settings
from tests.support.terminal import Terminal
from tuimon.app.lab.app import LabApp
from tuimon.app.lab.keys import lab_foot
from tuimon.app.lab.live import measured, take
from tuimon.app.lab.view import Picture, draw
from tuimon.app.look.roles import ROLES
from tuimon.app.look.themes import load_themes
from tuimon.app.screens.lab import LabScreen, LabSession
from tuimon.app.screens.main import MainScreen
from tuimon.app.screens.page import PageScreen
from tuimon.draw.glyphs import ASCII, BLOCK, BRAILLE, GLYPH_SETS, GlyphSet
from tuimon.draw.text import line_cells
from tuimon.lab import state
from tuimon.lab import walk as walking
from tuimon.lab.state import Lab, Taken
from tuimon.lab.walk import load_walk
from tuimon.model import Model
from tuimon.roofline.ceilings import Ceiling
from tuimon.roofline.points import Point, Roofline

ROOT = Path(__file__).resolve().parents[2]
GOLDEN = Path(__file__).parent / "golden"
NAMES = {".": "full_stop", "/": "slash", ",": "comma", "-": "minus", " ": "space", "?": "question_mark"}
CEILING = Ceiling("this CPU f32", 98e9, 20e9, "DRAM", "calibrated")
MEASURED = (
    "region Sequential(Linear, GELU, Linear) [0/0] backward",
    "median 6.77 ms [1.99-16.4 ms]",
    "steady, n 342; host time",
    "NOT synchronised: the time to launch",
    "achieved 12.1 GFLOP/s when taken",
    "nothing typed here changes it (m)",
)
TAKEN = Taken("region 0:0/0:forward", "region block", 4.2, 20e9, 98e9, "<=", "compulsory bytes; DRAM calibrated")


class Keyed:
    """A lab that runs, its keys, its screen."""

    def __init__(self, app: LabApp, pilot: Any) -> None:
        self.app, self.pilot = app, pilot

    async def press(self, *keys: str) -> None:
        await self.pilot.press(*(NAMES.get(key, key) for key in keys))
        for _ in range(3):  # a screen that opens is drawn by a message behind a refresh
            await self.pilot.pause()

    async def type(self, key: str, text: str) -> None:
        """Open the line with a key, type, and enter."""
        await self.press(key, *text, "enter")

    @property
    def lab(self) -> Lab:
        return self.app.lab_screen.session.lab

    @property
    def text(self) -> str:
        return screen_text(self.app)  # type: ignore[arg-type]


def keyed(
    body: Callable[[Keyed], Awaitable[None]], size: tuple[int, int] = (80, 24), glyphs: GlyphSet = BRAILLE, **more: Any
) -> None:
    """Run the lab alone, and `body` on it."""
    app = LabApp(LabSession(), load_themes(), "dark", glyphs, watch=False, **more)

    async def run() -> None:
        async with app.run_test(size=size) as pilot:
            await pilot.pause()
            await body(Keyed(app, pilot))

    asyncio.run(run())


class TestByKeysOnly:
    def test_the_two_settings_with_a_right_and_a_wrong_prediction(self) -> None:
        async def body(on: Keyed) -> None:
            await on.press("r")
            await on.type("i", "8")
            await on.type("b", "80")
            assert "ridge 12.5 FLOP/byte" in on.text and "ceiling ?" in on.text
            await on.type("p", "640")
            assert "predicted 640 GFLOP/s" in on.text and "640 GFLOP/s RIGHT" not in on.text
            await on.press(*"ssss")
            assert "roof here = min(1,000 GFLOP/s, 4 FLOP/byte x 80 GB/s) = 320 GFLOP/s" in on.text
            assert "4 of 5 · bandwidth is the limit · playback only traces the selected roof" in on.text
            await on.press("s")
            assert "ceiling = min(1,000 GFLOP/s, 8 FLOP/byte x 80 GB/s) = 640 GFLOP/s" in on.text
            assert "ceiling 640 GFLOP/s RIGHT" in on.text and "1 of 1 right" in on.text
            assert state.station(on.lab) == (8.0, 640e9)
            await on.press("r")
            assert "I not set: i" in on.text and "B not set: b" in on.text
            await on.type("i", "16")
            await on.type("b", "80")
            await on.type("p", "1280")
            await on.press(*"sssssss")
            assert state.station(on.lab) == (16.0, 1000e9)
            assert "ceiling 1,000 GFLOP/s WRONG" in on.text and "1 of 2 right" in on.text
            assert "that is I x B" in on.text and "7 of 7 · the peak is the limit" in on.text

        keyed(body)

    def test_each_setting_in_a_key_and_its_answer_in_a_few_more(self) -> None:
        async def body(on: Keyed) -> None:
            await on.press("1")
            assert "the ceiling, in GFLOP/s:" in on.text and (on.lab.intensity, on.lab.bandwidth) == (8.0, 80e9)
            await on.press("6", "4", "0", "enter")
            assert on.lab.playing and "space stop" in on.text
            while on.lab.playing:  # the timer's beats, without waiting for them
                on.app.lab_screen.tick()
            await on.pilot.pause()
            assert "ceiling 640 GFLOP/s RIGHT" in on.text and "1 of 1 right" in on.text
            await on.press("2", "1", "T", "enter")
            while on.lab.playing:
                on.app.lab_screen.tick()
            await on.pilot.pause()
            assert "ceiling 1,000 GFLOP/s RIGHT" in on.text and "2 of 2 right" in on.text
            await on.press("1", "x", "enter")  # what is no number is told, and nothing plays
            assert not on.lab.playing and on.lab.prediction is None
            await on.press("p", "6", "4", "0", "enter")  # asked for by itself, one steps by hand as ever
            assert on.lab.prediction == 640e9 and not on.lab.playing
            await on.press("2", "escape", "s")
            assert on.lab.at == 0 and on.lab.intensity == 16.0

        keyed(body)

    def test_playing_traces_to_the_ceiling_and_then_nothing_moves(self) -> None:
        async def body(on: Keyed) -> None:
            await on.type("i", "8")
            await on.type("b", "80")
            await on.press(" ")
            screen = on.app.lab_screen
            assert on.lab.playing and screen._timer is not None and "space stop" in on.text
            for _ in range(10):  # the timer's beats, without waiting for them
                screen.tick()
            await on.pilot.pause()
            assert "ceiling 640 GFLOP/s" in on.text and not on.lab.playing and screen._timer is None
            before = on.text
            screen.tick()
            assert on.text == before

        keyed(body)

    def test_what_is_typed_belongs_to_the_line_until_enter_or_escape(self) -> None:
        async def body(on: Keyed) -> None:
            await on.press("i", "q", "r", "s", "?")
            assert "I, in FLOP/byte" in on.text
            await on.press("escape", "escape")
            assert on.lab.intensity is None and "i b k set" in on.text and "q leaves the lab" in on.text
            await on.type("i", "1/12")
            assert on.lab.intensity == 1 / 12

        keyed(body)

    def test_the_line_takes_the_keys_as_soon_as_it_is_open(self) -> None:
        async def body(on: Keyed) -> None:
            on.app.lab_screen.action_ask("intensity")
            assert on.app.focused is on.app.lab_screen.line  # at once: on a busy machine a key may come before any refresh

        keyed(body)

    def test_bad_input_is_told_and_the_old_value_stays(self) -> None:
        async def body(on: Keyed) -> None:
            await on.type("i", "8")
            await on.type("b", "80")
            for text in ("0", "-3", "nan", "1e400", "", "x"):
                await on.type("i", text)
                assert "it stays 8 FLOP/byte" in " ".join(on.text.split())
                await on.type("b", text)
                assert "it stays 80 GB/s" in " ".join(on.text.split())
                assert (on.lab.intensity, on.lab.bandwidth) == (8.0, 80e9)

        keyed(body)

    def test_the_guided_walk(self) -> None:
        async def body(on: Keyed) -> None:
            await on.press("w")
            assert "walk, stop 1 of 7" in on.text
            await on.press("enter", "enter")
            assert "walk, stop 2 of 7" in on.text and "first set the intensity to 8 FLOP/byte: i" in on.text
            await on.type("i", "8")
            await on.type("b", "80")
            await on.type("p", "640")
            await on.press(*"sssss")
            assert "8 x 80 = 640" in on.text and "▸ enter goes on" in on.text
            await on.press("enter")
            await on.type("i", "16")
            await on.type("b", "80")
            for answer in ("1000", "1,000", "6.667", "15"):
                await on.type("p", answer)
                await on.press("v", "enter")
            assert "walk, stop 7 of 7" in on.text and "5 of 5 right" in on.text
            await on.press("w")
            assert "walk, stop" not in on.text

        keyed(body)

    def test_the_settings_answer_the_stops_of_the_walk_that_ask_for_them(self) -> None:
        async def body(on: Keyed) -> None:
            await on.press("w", "enter")
            for number, (key, answer) in enumerate((("1", "640"), ("2", "1T")), 2):
                assert f"walk, stop {number} of 7" in on.text
                await on.press(key, *answer, "enter")
                while on.lab.playing:
                    on.app.lab_screen.tick()
                await on.press("enter")
            assert "walk, stop 4 of 7" in on.text and "2 of 2 right" in on.text

        keyed(body)

    def test_a_walk_that_is_none_is_told(self) -> None:
        async def body(on: Keyed) -> None:
            await on.press("w")
            assert "there is no walk" in on.text and on.app.lab_screen.session.walk is None

        keyed(body, walk=Path("/no/such/walk.toml"))

    def test_help_and_theme(self) -> None:
        async def body(on: Keyed) -> None:
            await on.press("?")
            assert "help: the roofline lab" in on.text
            await on.press("j", "j", "k", "s", "v", "r", "i", "w")
            assert on.lab == Lab() and "help: the roofline lab" in on.text
            await on.press("q")
            assert "help: the roofline lab" not in on.text
            await on.press("t")
            assert f"theme: {list(on.app.themes.themes)[1]}" in on.text
            await on.press("h")
            assert "nothing was taken from a live region" in on.text
            await on.press("m")
            assert "nothing is measured of it" in on.text
            await on.press("q")

        keyed(body)

    def test_q_leaves(self) -> None:
        async def body(on: Keyed) -> None:
            await on.press("q")
            assert on.app._exit

        keyed(body)


def point(model: Model, **more: Any) -> Point:
    key = next(iter(model.regions))
    given: dict[str, Any] = {"boundary": "DRAM", "seconds": 1.0, "calls": 10, "key": f"region {key}", **more}
    return Point("block [0/0] forward", "region", 4.2, 51e9, 0.4, "modelled", "upper", **given)


class TestOverTheMonitor:
    def test_six_keys_from_the_monitor(self) -> None:
        async def body(on: Driven) -> None:
            for keys, said in (("L1640", "640 GFLOP/s RIGHT"), ("L21T", "1,000 GFLOP/s RIGHT")):
                await on.press(*keys, "enter")
                screen = on.app.screen
                assert isinstance(screen, LabScreen)
                while screen.session.lab.playing:
                    screen.tick()
                await on.settle()
                assert f"ceiling {said}" in on.text
                await on.press("escape")

        drive(busy(), (80, 24), body)

    def test_a_live_region_as_a_hypothesis_and_back_to_what_is_measured(self) -> None:
        async def body(on: Driven) -> None:
            on.app.open_lab(point(on.app.panel_scene().model), CEILING)
            await on.tick(1)
            assert "potential traffic benefit: hypothesis │  measured, synchronised time" in on.text
            assert "as taken, I <= 4.2: 84 GFLOP/s" in on.text and "I 4.2 FLOP/byte" in on.text
            assert "hypothetical, except what is called measured" in on.text
            assert "median" in on.text and "host, to completion" in on.text
            await on.press("i", "8", "full_stop", "4", "enter", "p", "9", "8", "enter", "v")
            assert "here, I = 8.4: 98 GFLOP/s" in on.text and "1.17 x the ceiling: potential" in on.text
            await on.press("h")
            assert "I 4.2 FLOP/byte" in on.text
            await on.press("m")
            assert isinstance(on.app.screen, PageScreen) and "steady" in on.text and "[p10-p90]" in on.text
            await on.press("escape")
            assert isinstance(on.app.screen, MainScreen)
            on.app.open_lab()
            await on.tick(1)
            assert "as taken, I <= 4.2: 84 GFLOP/s" in on.text  # it is as it was left
            await on.press("escape")
            assert isinstance(on.app.screen, MainScreen)

        drive(busy(), (80, 24), body)

    def test_by_keys_from_the_roofline_and_back(self) -> None:
        def compute(model: Model, *chosen: Any) -> Roofline:
            return Roofline((point(model),), None, (CEILING,), 0, None, "", 1.0, (), ())

        async def body(on: Driven) -> None:
            await on.press("L")
            assert isinstance(on.app.screen, LabScreen) and "I not set: i" in on.text
            await on.press("escape", "6", "h")
            assert isinstance(on.app.screen, MainScreen) and "select a point first" in on.text
            await on.press("right", "h")
            await on.tick(1)
            assert isinstance(on.app.screen, LabScreen) and "as taken, I <= 4.2: 84 GFLOP/s" in on.text
            await on.press("m")
            assert isinstance(on.app.screen, PageScreen) and on.text.lstrip().startswith("region [0/0] forward")

        drive(busy(), (80, 24), body, settings(roofline=compute))

    def test_nothing_is_drawn_anew_while_nothing_changes(self) -> None:
        async def body(on: Driven) -> None:
            on.app.open_lab()
            await on.tick(1)
            screen = on.app.screen
            assert isinstance(screen, LabScreen)
            drawn = []
            screen.paint = lambda: drawn.append(1)  # type: ignore[method-assign]
            for _ in range(8):
                await on.tick(0.25)
            assert drawn == []

        drive(busy(), (80, 24), body)

    @pytest.mark.parametrize(
        ("more", "said"),
        [
            ({"boundary": "LLC"}, "the bytes of block [0/0] forward are counted at LLC"),
            ({"intensity": None, "why_not": "no formula for aten::foo"}, "is not known: no formula for aten::foo"),
        ],
    )
    def test_what_cannot_be_taken_is_told(self, more: dict[str, Any], said: str) -> None:
        live = Point("block [0/0] forward", "region", more.get("intensity", 4.2), 1e9, 0.4, "modelled", "upper",
                     boundary=more.get("boundary", "DRAM"), why_not=more.get("why_not", ""))  # fmt: skip
        why = take(live, CEILING)
        assert isinstance(why, str) and said in why


class TestWhatIsMeasured:
    def test_time_that_is_not_synchronised_is_called_so(self) -> None:
        async def body(on: Driven) -> None:
            model = on.app.panel_scene().model
            live = point(model)
            taken = take(live, CEILING)
            assert isinstance(taken, Taken)
            assert "NOT" not in " ".join(measured(model, taken, live))
            model.target.devices = ("NVIDIA H100",)
            assert "NOT synchronised" in " ".join(measured(model, taken, live))
            model.regions[live.key.removeprefix("region ")].device.add(2_000_000)
            said = " ".join(measured(model, taken, live))
            assert "median 2.00 ms" in said and "the device's clock, n 1 sampled" in said and "NOT" not in said

        drive(busy(), (80, 24), body)

    def test_what_is_gone_is_told(self) -> None:
        assert measured(Model(), TAKEN, None)[:2] == ("region block", "it is no longer known")


def pictures() -> Iterator[Picture]:
    eight = state.predict(state.set_bandwidth(state.set_intensity(Lab(), "8"), "80"), "1000")
    yield Picture(Lab())
    yield Picture(eight)
    yield Picture(state.step(state.step(eight)))
    yield Picture(state.reveal(eight))
    yield Picture(state.reveal(Lab(1e9, 1.0, 1e24)))
    yield Picture(state.reveal(Lab(1e-9, 1e24, 1.0)))
    yield Picture(state.set_intensity(eight, "nonsense " * 3))
    walk, lab = walking.skip(*walking.begin(load_walk(), Lab()))
    yield Picture(lab, walk)
    yield Picture(state.reveal(state.take(Lab(), TAKEN)), None, MEASURED, True)


SHOWN = [
    ("wrong", 3, (80, 24), BRAILLE),
    ("wrong", 3, (80, 24), ASCII),
    ("traced", 2, (120, 40), BRAILLE),
    ("walk", 7, (80, 24), BRAILLE),
    ("taken", 8, (80, 24), BRAILLE),
    ("taken", 8, (40, 16), BLOCK),
]


@pytest.mark.parametrize("shown", SHOWN, ids=lambda shown: f"{shown[0]}-{shown[2][0]}x{shown[2][1]}-{shown[3].name}")
def test_picture(shown: tuple[str, int, tuple[int, int], GlyphSet]) -> None:
    """Kept in files, as whole screens are (TUIMON_UPDATE_GOLDEN=1 writes them anew)."""
    title, number, (width, height), glyphs = shown
    picture = list(pictures())[number]
    lines = [*draw(picture, width, height - 1, glyphs), lab_foot(width, glyphs, "", **how_it_is(picture)).line]
    text = "".join("".join(run for run, _ in line).rstrip() + "\n" for line in lines)
    file = GOLDEN / f"lab-{title}-{width}x{height}{'' if glyphs is BRAILLE else f'-{glyphs.name}'}.txt"
    if os.environ.get("TUIMON_UPDATE_GOLDEN"):
        file.write_text(text, encoding="utf-8")
    assert text == file.read_text(encoding="utf-8")


def how_it_is(picture: Picture) -> dict[str, bool]:
    """What the last line depends on."""
    lab = picture.lab
    return {
        "walking": picture.walk is not None,
        "taken": lab.taken is not None,
        "playing": lab.playing,
        "live": picture.live,
    }


class TestLooks:
    @pytest.mark.parametrize("glyphs", GLYPH_SETS.values(), ids=lambda glyphs: glyphs.name)
    def test_it_fits_any_size_and_uses_known_roles(self, glyphs: GlyphSet) -> None:
        for picture in pictures():
            for width, height in (
                (1, 1),
                (5, 3),
                (20, 5),
                (40, 10),
                (59, 16),
                (60, 16),
                (79, 23),
                (80, 23),
                (100, 30),
                (200, 59),
            ):
                lines = draw(picture, width, height, glyphs)
                assert len(lines) == height and all(line_cells(line) == width for line in lines)
                assert {role for line in lines for _, role in line} <= set(ROLES)
                if glyphs is ASCII:
                    assert all(text.isascii() for line in lines for text, _ in line)

    def test_hypothetical_places_have_their_own_shape_and_word_without_colour(self) -> None:
        for glyphs in GLYPH_SETS.values():
            lines = draw(list(pictures())[3], 80, 23, glyphs)
            places = [run for line in lines[4:] for run, role in line if role in ("point-2", "cursor")]
            assert places == [glyphs.point_declared] * 5
            assert "hypothetical: nothing in here is measured" in "".join(run for run, _ in lines[0])
            assert not any(role.startswith("point-") and role != "point-2" for line in lines[4:] for _, role in line)

    def test_the_chart_is_on_the_screen_at_80x24_in_every_state(self) -> None:
        for picture in pictures():
            if picture.lab.bandwidth is not None:
                text = ["".join(run for run, _ in line) for line in draw(picture, 80, 23, BRAILLE)]
                assert any(line.startswith("F/B") for line in text), picture


class TestInATerminal:
    """The same by keys in a pseudo-terminal of 80x24, as it comes from `tuimon lab`."""

    @pytest.fixture
    def on(self, tmp_path: Path) -> Iterator[Terminal]:
        gone = ("NO_COLOR", "SSH_CONNECTION", "SSH_TTY", "COLUMNS", "LINES")
        env = {name: value for name, value in os.environ.items() if name not in gone}
        env |= {"TERM": "xterm-256color", "PYTHONPATH": str(ROOT), "PYTHONUTF8": "1", "XDG_CONFIG_HOME": str(tmp_path)}
        started = Terminal([sys.executable, "-m", "tuimon", "lab"], 80, 24, env)
        yield started
        started.close()

    def test_both_settings_and_then_silence(self, on: Terminal) -> None:
        assert on.wait_for(lambda: on.sees("roofline lab"))
        for intensity, prediction, told in (
            ("8", "640", "ceiling 640 GFLOP/s RIGHT"),
            ("16", "640", "ceiling 1,000 GFLOP/s WRONG"),
        ):
            on.write("r")
            assert on.wait_for(lambda: on.sees("I not set: i"))
            for key, text, seen in (
                ("i", intensity, f"I {intensity} FLOP/byte"),
                ("b", "80", "B 80 GB/s"),
                ("p", prediction, f"predicted {prediction} GFLOP/s"),
            ):
                on.write(key)
                assert on.wait_for(lambda: not on.sees("i b k set"))
                on.write(f"{text}\r")
                assert on.wait_for(lambda seen=seen: on.sees(seen)), "\n".join(on.screen.display)  # type: ignore[misc]
            on.write(" " if intensity == "8" else "sssssss")
            assert on.wait_for(lambda told=told: on.sees(told)), "\n".join(on.screen.display)  # type: ignore[misc]
        assert on.sees("1 of 2 right") and on.sees("7 of 7 · the peak is the limit")
        while on.read(0.3):
            pass
        assert on.read(1.0) == b""
        on.write("q")
        assert on.ended() == 0
        assert b"\x1b[?1049l" in on.data
