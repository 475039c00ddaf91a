"""The pictures of the documents: screens of the monitor on a kept recording, as SVG and as text.

`python -m tools.pictures` writes docs/pictures and the screens that README and docs show between their markers;
`--check` writes nothing and fails where something differs. No clock, no terminal and no machine has a part in what they show.

A document asks for a screen by its name:

    <!-- screen: overview-100x30 -->
    (here it is put, as a block of text)
    <!-- end of screen -->
"""

from __future__ import annotations

import argparse
import asyncio
import os
import re
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from textual.pilot import Pilot

from tuimon import events as ev
from tuimon.app.app import MonitorApp
from tuimon.app.look.looks import on_screen, picture
from tuimon.app.look.themes import load_themes
from tuimon.app.settings import Settings
from tuimon.draw.glyphs import BRAILLE
from tuimon.draw.text import Line
from tuimon.model import Model
from tuimon.roofline.ceilings import load_ceilings
from tuimon.sources.files import no_progress, open_any

ROOT = Path(__file__).resolve().parent.parent
RECORDING = ROOT / "demos" / "tour" / "tour.tuimon"
"""The recording that the tour shows: made from demos/train_small_gpt.py, without anything of the machine."""
DEMO, THERE = ROOT / "demos" / "train_small_gpt.py", "/demo/"
"""The program of the recording, and where it is in there."""
PICTURES = ROOT / "docs" / "pictures"
DOCUMENTS = (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))

STEP = 0.9
"""The share of the recording's steps after which the picture is taken."""

_SCREEN = re.compile(r"(<!-- screen: ([a-z0-9-]+) -->\n)(.*?)(<!-- end of screen -->)", re.S)


class Shot(NamedTuple):
    """A picture: the size of the terminal, the theme, the keys that lead there from the overview."""

    width: int
    height: int
    theme: str
    keys: tuple[str, ...] = ()


SHOTS: dict[str, Shot] = {
    "overview-80x24-dark": Shot(80, 24, "dark"),
    "overview-80x24-light": Shot(80, 24, "light"),
    "overview-100x30": Shot(100, 30, "dark"),
    "overview-120x40-dark": Shot(120, 40, "dark"),
    "overview-120x40-light": Shot(120, 40, "light"),
    "boundary-80x24": Shot(80, 24, "dark", ("2", "enter")),
    "findings-80x24": Shot(80, 24, "dark", ("w",)),
    "step-80x24": Shot(80, 24, "dark", ("n", "enter")),
    "recompiles-80x24": Shot(80, 24, "dark", ("3",)),
    "regions-80x24": Shot(80, 24, "dark", ("4",)),
}
"""Name -> what is shown. Each is an .svg and a .txt."""


class Kept:
    """A feed of what a recording holds up to a step, as if the job ran now."""

    title = "train_small_gpt.py"
    label = "job"
    rank: int | None = None
    host: str | None = None
    pid: int | None = None
    job: str | None = None

    def __init__(self, path: Path, share: float) -> None:
        self.model = Model()
        self._events = list(_until(path, share))

    def drain(self) -> list[ev.Event]:
        """All at once."""
        events, self._events = self._events, []
        return events

    def show(self, on: bool) -> None:
        """It has all its events."""

    def command(self, message: dict[str, object]) -> str | None:
        """Nobody is there."""
        return "this is a picture"

    def detach(self) -> None:
        """Nothing is attached."""

    def nvml_waiting(self) -> float | None:
        """No driver is asked."""
        return None

    def silence(self) -> tuple[float, str | None] | None:
        """It never is."""
        return None


def _until(path: Path, share: float) -> Iterator[ev.Event]:
    """The events of a recording up to where this share of its steps is over."""
    opened = open_any(path)[0][0]
    whole = Model()
    for events in opened.events(no_progress):
        whole.apply(events)
    last = int(whole.steps.n * share)
    seen = Model()
    for events in opened.events(no_progress):
        seen.apply(events)
        yield from events
        if seen.steps.n >= last:
            return


def settings(theme: str) -> Settings:
    """Settings without anything of this machine."""
    return Settings(
        glyphs=BRAILLE, themes=load_themes(), theme=theme, hertz=4.0, ceilings=load_ceilings(), utc_offset_s=0
    )  # fmt: skip


def taken(shot: Shot, recording: Path) -> list[Line]:
    """The lines of the screen of this picture."""
    now = 50_000_000_000
    app = MonitorApp(Kept(recording, STEP), settings(shot.theme), clock=lambda: now, watch_terminal=False)
    lines: list[Line] = []

    async def run() -> None:
        async with app.run_test(size=(shot.width, shot.height)) as pilot:
            await _still(app, pilot)
            app.pump.tick()
            for key in shot.keys:
                await pilot.press(key)
                await _still(app, pilot)
            app.pump.tick()
            await _still(app, pilot)
            lines.extend(on_screen(app.screen))

    asyncio.run(run())
    return lines


async def _still(app: MonitorApp, pilot: Pilot[None]) -> None:
    """Until the screen stays as it is."""
    same, before = 0, None
    while same < 3:
        await pilot.pause()
        now = on_screen(app.screen)
        same = same + 1 if now == before else 0
        before = now


def plain(lines: list[Line]) -> str:
    """The screen as text."""
    return "".join("".join(text for text, _ in line).rstrip() + "\n" for line in lines)


def pictures(recording: Path, names: list[str]) -> dict[str, str]:
    """File name -> what is in it, for these pictures."""
    themes = load_themes().themes
    found = {}
    for name in names:
        shot = SHOTS[name]
        lines = taken(shot, recording)
        title = f"tuimon: {name}"
        found[f"{name}.txt"] = plain(lines)
        found[f"{name}.svg"] = picture(lines, shot.width, shot.height, themes[shot.theme], title)
    return found


@contextmanager
def program_there() -> Iterator[None]:
    """The demo can be read where the recording says that it is, as old as the recording."""
    real = os.open
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / DEMO.name
        copy.write_bytes(DEMO.read_bytes())
        os.utime(copy, (0, 0))

        def opened(path: object, *args: Any, **more: Any) -> int:
            return real(copy if str(path) == f"{THERE}{DEMO.name}" else path, *args, **more)  # type: ignore[arg-type]

        os.open = opened
        try:
            yield
        finally:
            os.open = real


def with_screens(document: str, files: dict[str, str]) -> str:
    """A document with its screens as they are in `files`. Raises KeyError where it names one that there is not."""
    return _SCREEN.sub(lambda found: f"{found[1]}```\n{files[found[2] + '.txt']}```\n{found[4]}", document)


def private(text: str) -> list[str]:
    """What stands in a picture and is of the machine it was made on: home directories, this host's name."""
    name = re.escape(os.uname().nodename)
    return re.findall(rf"/(?:home|root|Users|tmp)/[\w.-]+|(?<![\w.-]){name}(?![\w.-])", text)


def main(arguments: list[str] | None = None) -> int:
    """Write the pictures, or compare them with what is there."""
    parser = argparse.ArgumentParser(prog="python -m tools.pictures", description=__doc__.partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="write nothing; fail where something differs")
    parser.add_argument("--recording", type=Path, default=RECORDING, help="another recording")
    parser.add_argument("--to", type=Path, default=PICTURES, help="another folder")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"only these, of {', '.join(SHOTS)}")
    given = parser.parse_args(arguments)
    unknown = [name for name in given.names if name not in SHOTS]
    if unknown:
        parser.error(f"no picture {unknown[0]}")
    with program_there(), tempfile.TemporaryDirectory() as nobody:
        os.environ["XDG_CONFIG_HOME"] = nobody  # what somebody has accepted or configured here is in no picture
        files = pictures(given.recording, given.names or list(SHOTS))
    wanted = {given.to / name: text for name, text in files.items()}
    if given.to == PICTURES and not given.names:
        wanted |= {path: with_screens(path.read_text(encoding="utf-8"), files) for path in DOCUMENTS}
    shown = {name: private(text) for name, text in files.items()}
    for name, what in shown.items():
        if what:
            print(f"{name} shows {what[0]}, which is of a machine", file=sys.stderr)  # noqa: T201
    different = [path for path, text in wanted.items() if not path.exists() or path.read_text(encoding="utf-8") != text]
    for path in different:
        if not given.check:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(wanted[path], encoding="utf-8")
        print(f"{path} {'differs' if given.check else 'written'}")  # noqa: T201
    return 1 if any(shown.values()) or (given.check and different) else 0


if __name__ == "__main__":
    sys.exit(main())
