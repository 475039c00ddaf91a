"""From a theme's looks to what the screen library takes."""

from __future__ import annotations

from rich.color import Color as RichColor
from rich.style import Style
from textual.theme import Theme as TextualTheme

from tuimon.app.themes import Look, Theme


def textual_name(name: str) -> str:
    """A theme's name among Textual's own, some of which are called the same."""
    return f"tuimon-{name}"


def own_name(name: str) -> str:
    """A theme's own name, from the one that Textual knows it by."""
    return name.removeprefix("tuimon-")


def _textual_color(color: str | None) -> str:
    if color is None or color == "default":
        return "ansi_default"
    return color if color.startswith("#") else f"ansi_{color.replace('-', '_')}"


def textual_theme(theme: Theme) -> TextualTheme:
    """What Textual itself needs of a theme: for the screen's ground, the filter line and the command palette."""
    text = theme.looks["text"]
    ground, accent = _textual_color(text.background), theme.looks["brand"].color
    selected = theme.looks["selected"]
    return TextualTheme(
        name=textual_name(theme.name),
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
