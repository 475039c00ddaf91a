"""What the apps have in common: our themes, and how a role looks in the one that is on."""

from __future__ import annotations

from typing import Generic, TypeVar

from rich.style import Style
from textual.app import App

from tuimon.app.looks import own_name, rich_style, textual_name, textual_theme
from tuimon.app.themes import DEFAULT, MONO, Loaded, Look, load_themes, plain

Result = TypeVar("Result")


class ThemedApp(App[Result], Generic[Result]):
    """An app whose lines get their looks from one of our themes."""

    CSS_PATH = "tuimon.tcss"
    TITLE = "tuimon"

    def __init__(self, themes: Loaded, theme: str) -> None:
        super().__init__()
        self.themes = themes
        self.animation_level = "none"
        self._styles_of_roles: dict[tuple[str, str], Style] = {}
        for known in themes.themes.values():
            self.register_theme(textual_theme(known))
        self.theme = textual_name(theme)

    def style_of(self, role: str) -> Style:
        """How a role looks in the theme that is on."""
        name = own_name(self.theme)
        style = self._styles_of_roles.get((name, role))
        if style is None:
            theme = self.themes.themes[name]
            style = rich_style(theme.looks.get(role, Look()), theme.looks["text"])
            self._styles_of_roles[(name, role)] = style
        return style


def choose_theme(wanted: str | None, colour_off: bool) -> tuple[Loaded, str, list[str]]:
    """The themes, the name of the one to begin with, and sentences on what could not be used."""
    themes = load_themes()
    problems = list(themes.problems)
    chosen = MONO if colour_off else (wanted or DEFAULT)
    if colour_off and MONO not in themes.themes:
        themes.themes[MONO] = plain()
    if chosen not in themes.themes:
        problems.insert(0, f"there is no theme {chosen!r}; there are {', '.join(themes.themes)}")
        chosen = DEFAULT if DEFAULT in themes.themes else next(iter(themes.themes))
    return themes, chosen, problems
