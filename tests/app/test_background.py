"""The theme to begin with: from the terminal's answer, the environment, and what a person chose."""

from __future__ import annotations

import pytest

from tuimon.app.tty.background import depth, fitting_theme, ground


@pytest.mark.parametrize(
    ("answer", "environ", "found"),
    [
        (b"\x1b]11;rgb:ffff/ffff/ffff\x1b\\\x1b[?62c", {}, "light"),
        (b"\x1b]11;rgb:ff/fb/e6\x07\x1b[?62c", {}, "light"),
        (b"\x1b]11;rgba:0000/2b2b/3636/ffff\x07\x1b[?62c", {}, "dark"),
        (b"x\x1b]11;rgb:8/8/8\x07\x1b[?6c", {}, "light"),
        (b"\x1b[?62c", {}, "unknown"),
        (None, {}, "unknown"),
        (None, {"COLORFGBG": "15;0"}, "dark"),
        (None, {"COLORFGBG": "0;default;15"}, "light"),
        (b"\x1b]11;rgb:0/0/0\x07\x1b[?6c", {"COLORFGBG": "0;15"}, "dark"),
        (b"\x1b]11;rgb:f/f/f\x07\x1b[?6c", {"TERM": "linux"}, "unknown"),
    ],
)
def test_the_ground_is_told_by_the_terminal(answer: bytes | None, environ: dict[str, str], found: str) -> None:
    assert ground(environ, lambda seconds: answer) == found


@pytest.mark.parametrize(
    ("environ", "found"),
    [
        ({"TERM": "xterm-256color"}, "256"),
        ({"TERM": "xterm-256color", "COLORTERM": "truecolor"}, "true"),
        ({"TERM": "xterm-kitty"}, "256"),
        ({"TERM": "linux"}, "16"),
        ({"TERM": "screen"}, "16"),
        ({"TERM": "dumb"}, "none"),
        ({}, "none"),
    ],
)
def test_how_many_colours_there_are(environ: dict[str, str], found: str) -> None:
    assert depth(environ) == found


def test_a_choice_comes_before_what_fits() -> None:
    assert fitting_theme("high-contrast", "light", "16") == "high-contrast"
    assert fitting_theme(None, "auto", "16", lambda: "light") == "ansi16"
    assert fitting_theme(None, "auto", "256", lambda: "light") == "light"
    assert fitting_theme(None, "auto", "true", lambda: "unknown") is None
    assert fitting_theme(None, "dark", "256", lambda: "light") is None
    assert fitting_theme(None, "light", "256", lambda: "dark") == "light"
    assert fitting_theme(None, "light", "none") is None
