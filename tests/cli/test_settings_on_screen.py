"""Settings reach the screen: what a terminal is sent with them, and without."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from tests.support.terminal import Terminal

SOURCE = str(Path(__file__).resolve().parents[2])
MOUSE, COLOUR = b"?1000h", b"\x1b[38;"


@pytest.mark.parametrize(
    ("words", "environ", "file", "mouse", "colours"),
    [
        ((), {}, "", True, True),
        (("--no-mouse",), {"TUIMON_MOUSE": "on"}, "", False, True),
        (("--mouse", "--color", "auto"), {"SSH_CONNECTION": "192.0.2.1 1 192.0.2.2 22", "NO_COLOR": "1"}, "", True, True),
        ((), {}, 'mouse = false\ncolor = "none"\ntheem = "light"\n', False, False),
    ],
)
def test_mouse_and_colours(
    words: tuple[str, ...], environ: dict[str, str], file: str, mouse: bool, colours: bool, no_settings: Path
) -> None:
    (no_settings / "tuimon").mkdir()
    (no_settings / "tuimon" / "config.toml").write_text(file)
    not_ours = ("SSH_CONNECTION", "SSH_TTY", "COLUMNS", "LINES")
    env = {name: value for name, value in os.environ.items() if name not in not_ours}
    env |= {"TERM": "xterm-256color", "PYTHONPATH": SOURCE, "PYTHONUTF8": "1", **environ}
    on = Terminal([sys.executable, "-m", "tuimon", *words, "lab"], 100, 30, env)
    try:
        if file:  # a word for a few seconds, in the place of the keys
            assert on.wait_for(lambda: on.sees("'theem'"))
        assert on.wait_for(lambda: on.sees("quit"))
        on.write("q")
        assert on.ended() == 0
    finally:
        on.close()
    assert (MOUSE in on.data, COLOUR in on.data) == (mouse, colours)


def test_a_program_gets_the_environment_as_it_was(tmp_path: Path) -> None:
    env = {name: value for name, value in os.environ.items() if not name.startswith("TEXTUAL_")}
    env |= {"TERM": "xterm-256color", "PYTHONPATH": SOURCE, "PYTHONUTF8": "1", "NO_COLOR": "1", "TMPDIR": str(tmp_path)}
    program = ("sh", "-c", 'env > "$0"', str(tmp_path / "seen"))
    on = Terminal([sys.executable, "-m", "tuimon", "run", "--", *program], 100, 30, env)
    try:
        assert on.ended() == 0
    finally:
        on.close()
    seen = (tmp_path / "seen").read_text()
    assert "NO_COLOR=1\n" in seen and "TEXTUAL_" not in seen  # those are for our screen


def test_alone_with_stderr_elsewhere_it_lists(tmp_path: Path) -> None:
    env = {**os.environ, "TERM": "xterm-256color", "PYTHONPATH": SOURCE, "PYTHONUTF8": "1"}
    program = 'exec "$0" -m tuimon 2> "$1"'  # the screen would be drawn into that file
    on = Terminal(["sh", "-c", program, sys.executable, str(tmp_path / "log")], 100, 30, env)
    try:
        assert on.ended() == 0
    finally:
        on.close()
    assert b"tuimon run -- python train.py" in on.data and (tmp_path / "log").read_bytes() == b""


TOUR = str(Path(SOURCE) / "demos" / "tour" / "tour.tuimon")
LIGHT, DARK, WHITE = b"48;2;250;250;250", b"48;2;18;18;18", "rgb:ffff/ffff/ffff"
APPS = {"lab": ("lab",), "the list": (), "a recording": ("replay", TOUR)}
"""A monitor, the picker and the lab, each of which chooses its theme."""


@pytest.mark.parametrize(
    ("app", "words", "environ", "file", "ground", "light"),
    [
        *((app, (), {"TUIMON_BACKGROUND": "light"}, 'background = "dark"', "", True) for app in APPS),
        *((app, (), {}, "", WHITE, True) for app in APPS),
        ("lab", ("--background", "dark"), {}, 'background = "light"', WHITE, False),  # what is told is not asked
        ("the list", ("--theme", "dark"), {"TUIMON_BACKGROUND": "light"}, "", WHITE, False),  # one that is named is the theme
    ],
)
def test_the_ground_chooses_the_theme(
    app: str, words: tuple[str, ...], environ: dict[str, str], file: str, ground: str, light: bool, no_settings: Path
) -> None:
    (no_settings / "tuimon").mkdir()
    (no_settings / "tuimon" / "config.toml").write_text(file)
    not_ours = ("SSH_CONNECTION", "SSH_TTY", "COLUMNS", "LINES", "COLORFGBG")
    env = {name: value for name, value in os.environ.items() if name not in not_ours}
    env |= {"TERM": "xterm-256color", "COLORTERM": "truecolor", "PYTHONPATH": SOURCE, "PYTHONUTF8": "1", **environ}
    on = Terminal([sys.executable, "-m", "tuimon", *words, *APPS[app]], 100, 30, env, ground=ground)
    try:
        assert on.wait_for(lambda: on.sees("quit"))
        on.write("q")
        assert on.ended() == 0
    finally:
        on.close()
    assert (LIGHT in on.data, DARK in on.data) == (light, not light)
    assert (b"\x1b]11;?" in on.data) == (not words and not environ)
