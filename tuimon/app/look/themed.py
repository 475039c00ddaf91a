"""What the apps have in common: our themes, and how a role looks in the one that is on."""

from __future__ import annotations

from pathlib import Path
from typing import Generic, TypeVar

from rich.style import Style

from tuimon.app.look.looks import own_name, rich_style, textual_name, textual_theme
from tuimon.app.look.themes import DEFAULT, MONO, Loaded, Look, Theme, load_themes, plain
from tuimon.app.tty.painted import PaintedApp
from tuimon.app.widgets.line_widget import LineWidget

Result = TypeVar("Result")


class ThemedApp(PaintedApp[Result], Generic[Result]):
    """An app whose lines get their looks from one of our themes."""

    CSS_PATH = Path(__file__).parent.parent / "tuimon.tcss"  # whole: Textual looks beside the file of each class
    TITLE = "tuimon"

    def __init__(self, themes: Loaded, theme: str) -> None:
        super().__init__()
        self.themes = themes
        self.animation_level = "none"
        self._styles_of_roles: dict[tuple[str, str], Style] = {}
        self._worn: dict[str, Theme] = {}
        """The themes that Textual was told of, by its names for them."""
        self.wear(theme)

    def style_of(self, role: str) -> Style:
        """How a role looks in the theme that is on."""
        style = self._styles_of_roles.get((self.theme, role))
        if style is None:
            theme = self._worn[self.theme]
            style = rich_style(theme.looks.get(role, Look()), theme.looks["text"])
            self._styles_of_roles[(self.theme, role)] = style
        return style

    @property
    def theme_name(self) -> str:
        """The theme that is on, by our name."""
        return own_name(self.theme)

    def wear(self, name: str) -> None:
        """Put this one of `themes` on, as it is now: its file may have changed since it was worn last."""
        theme = self.themes.themes[name]
        version, known = 1, textual_name(name)
        while self._worn.get(known, theme) != theme:  # Textual keeps what it once made of a name
            version += 1
            known = textual_name(name, version)
        if known not in self._worn:
            self._worn[known] = theme
            self.register_theme(textual_theme(theme, known))
        self.theme = known
        if self.is_running:  # Textual tells widgets of a theme only where its own styles differ
            for screen in self.screen_stack:
                for widget in screen.query(LineWidget):
                    widget.notify_style_update()
                    widget.refresh()


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
