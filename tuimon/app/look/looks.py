"""From a theme's looks to what the screen library takes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rich.color import Color as RichColor
from rich.style import Style
from textual.screen import Screen
from textual.theme import Theme as TextualTheme

from tuimon.app.look.themes import Look, Theme
from tuimon.app.widgets.line_widget import LineWidget
from tuimon.draw.text import Line, exactly, line_cells

if TYPE_CHECKING:
    from tuimon.draw.svg import Run

ANSI = {
    "black": "#000000", "red": "#cd0000", "green": "#00cd00", "yellow": "#cdcd00", "blue": "#0000ee", "magenta": "#cd00cd",
    "cyan": "#00cdcd", "white": "#e5e5e5", "bright-black": "#7f7f7f", "bright-red": "#ff0000", "bright-green": "#00ff00",
    "bright-yellow": "#ffff00", "bright-blue": "#5c5cff", "bright-magenta": "#ff00ff", "bright-cyan": "#00ffff",
    "bright-white": "#ffffff",
}  # fmt: skip
"""The sixteen colours as xterm has them: for pictures, as every terminal has its own."""

DARK_GROUND, LIGHT_GROUND = ("#121212", "#d8d8d8"), ("#fafafa", "#202020")
"""Ground and text of a picture in a theme that leaves them to the terminal."""


def textual_name(name: str, version: int = 1) -> str:
    """A theme's name among Textual's own, some of which are called the same. One that was changed needs a new name."""
    return f"tuimon-{name}" if version == 1 else f"tuimon-{name}~{version}"


def own_name(name: str) -> str:
    """A theme's own name, from the one that Textual knows it by."""
    return name.removeprefix("tuimon-").partition("~")[0]


def _textual_color(color: str | None) -> str:
    if color is None or color == "default":
        return "ansi_default"
    return color if color.startswith("#") else f"ansi_{color.replace('-', '_')}"


def textual_theme(theme: Theme, name: str) -> TextualTheme:
    """What Textual itself needs of a theme: for the screen's ground and the lines that are typed in. `name` is Textual's."""
    text = theme.looks["text"]
    ground, accent = _textual_color(text.background), theme.looks["brand"].color
    selected = theme.looks["selected"]
    return TextualTheme(
        name=name,
        primary=_textual_color(accent or text.color),
        accent=_textual_color(accent or text.color),
        foreground=_textual_color(text.color),
        background=ground,
        surface=ground,
        panel=ground if theme.ansi else _textual_color(selected.background or text.background),
        dark=theme.dark,
        ansi=theme.ansi,
        # Textual's own style sheets ask for these two, and only its own themes have them
        variables={"ansi-background": ground, "ansi-foreground": _textual_color(text.color)},
    )


def _rich_color(name: str | None) -> RichColor | None:
    if name is None:
        return None
    return RichColor.parse(name.replace("-", "_"))


def rich_style(look: Look, text: Look) -> Style:
    """A look as the terminal gets it; what it leaves open is as in `text`, the screen's own look."""
    attributes = dict.fromkeys(look.attributes, True)
    color = _rich_color(look.color or text.color)
    background = _rich_color(look.background or text.background)
    return Style(
        color=color,
        bgcolor=background,
        bold=attributes.get("bold"),
        dim=attributes.get("dim"),
        italic=attributes.get("italic"),
        underline=attributes.get("underline"),
        reverse=attributes.get("reverse"),
        strike=attributes.get("strike"),
    )


def runs(lines: Sequence[Line], theme: Theme) -> list[list[Run]]:
    """Lines as a theme shows them: the look of each run in place of its role. Colours are "#rrggbb"; None is the screen's."""
    text = theme.looks["text"]
    looks: dict[str, tuple[str | None, str | None, frozenset[str]]] = {}
    out = []
    for line in lines:
        row: list[Run] = []
        for words, role in line:
            if role not in looks:
                look = theme.looks.get(role, text)
                color = None if look.color == text.color else look.color
                ground = None if look.background == text.background else look.background
                looks[role] = _pictured(color), _pictured(ground), look.attributes
            row.append((words, *looks[role]))
        out.append(row)
    return out


def _pictured(color: str | None) -> str | None:
    return None if color in (None, "default") else ANSI.get(color, color)


def picture(lines: Sequence[Line], width: int, height: int, theme: Theme, title: str) -> str:
    """These lines as an SVG picture of a terminal in this theme."""
    from tuimon.draw.svg import svg

    look = theme.looks["text"]
    ground, text = DARK_GROUND if theme.dark else LIGHT_GROUND
    ground, text = _pictured(look.background) or ground, _pictured(look.color) or text
    return svg(runs(lines, theme), width, height, title=title, ground=ground, text=text)


def on_screen(screen: Screen[Any]) -> list[Line]:
    """The lines of the whole screen, put together of its widgets that are made of lines: what stands there, in roles."""
    width, height = screen.size
    rows: list[dict[int, Line]] = [{} for _ in range(height)]
    for widget in screen.query(LineWidget):
        if not widget.display or not widget.is_on_screen:
            continue
        x, y, across, down = widget.region
        for at, line in enumerate(widget.lines[:down]):
            if 0 <= y + at < height:
                rows[y + at][x] = exactly(line, across)
    out = []
    for parts in rows:
        row: Line = []
        for x in sorted(parts):
            row += [(" " * (x - line_cells(row)), "text")] if x > line_cells(row) else []
            row += parts[x]
        out.append(exactly(row, width))
    return out
