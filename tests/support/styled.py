"""A screen as text with its looks: what a theme makes of it, in a form that a review can read."""

from __future__ import annotations

from string import ascii_letters

from rich.color import Color
from rich.style import Style

from tuimon.app.app import MonitorApp

ATTRIBUTES = ("bold", "dim", "italic", "underline", "reverse", "strike")


def look(style: Style | None) -> str:
    """Foreground on background, then attributes: "#d0d0d0 on #101010 bold"."""
    if style is None:
        return "default on default"
    colours = f"{_colour(style.color)} on {_colour(style.bgcolor)}"
    return " ".join([colours, *(attribute for attribute in ATTRIBUTES if getattr(style, attribute))])


def _colour(colour: Color | None) -> str:
    return colour.name if colour is not None else "default"


def styled_text(app: MonitorApp) -> str:
    """The screen, each change of look as `[letter]`, after a legend of what the letters are."""
    legend: dict[str, str] = {}
    lines = []
    for strip in app.screen._compositor.render_strips():
        line, now = "", ""
        for segment in strip:
            letter = legend.setdefault(look(segment.style), ascii_letters[len(legend)])
            if letter != now and segment.text:
                line += f"[{letter}]"
                now = letter
            line += segment.text
        lines.append(line.rstrip())
    return "\n".join([*(f"{letter} = {words}" for words, letter in legend.items()), "", *lines]) + "\n"
