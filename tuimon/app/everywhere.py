"""What the keys do that are the same in the monitor, the lab and the list of processes: help, commands, themes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Generic, TypeVar

from textual.screen import Screen

from tuimon.app.commands import Command, do
from tuimon.app.look.themed import ThemedApp
from tuimon.app.tty import terminal
from tuimon.draw.text import clean, cut, one_line

if TYPE_CHECKING:
    from tuimon.app.panels.help import Subject
    from tuimon.draw.glyphs import GlyphSet

Result = TypeVar("Result")

COLOURS_OFF = "colours are off (NO_COLOR or --no-color)"

MOST_COPIED = 70_000
"""Bytes: xterm takes no more than 100 kB of an OSC 52, and these become a third more on the way."""

SAID = 40
"""Cells of what was copied that are said."""


class Everywhere(ThemedApp[Result], Generic[Result]):
    """An app with help, a list of commands, and themes to choose from."""

    glyphs: GlyphSet
    colour_off: bool = False
    may_copy: bool = True
    """Whether the terminal's clipboard may be written to."""

    def say(self, message: str) -> None:
        """A word to the person, at the bottom, for a few seconds."""
        raise NotImplementedError

    def subject(self) -> Subject:
        """What the help is to be about: the screen on top."""
        raise NotImplementedError

    def commands(self) -> Iterable[Command]:
        """All that can be done, on the screen on top first; what cannot be done there says why."""
        raise NotImplementedError

    def why_not(self, what: str) -> str:
        """Why something cannot be done here, by `Action.why_not`; "": it can."""
        return COLOURS_OFF if what == "colour" and self.colour_off else ""

    def _is_open(self, *scopes: str) -> bool:
        """Whether one of these screens is on top. They are loaded when they are wanted."""
        return getattr(self.screen, "SCOPE", "") in scopes

    def action_help(self) -> None:
        """The help of the screen on top."""
        if not self._is_open("help", "palette"):
            from tuimon.app.screens.help import HelpScreen

            self.push_screen(HelpScreen(self.subject()))

    def action_palette(self) -> None:
        """Find a command by its name."""
        if not self._is_open("palette"):
            from tuimon.app.screens.palette import PaletteScreen

            below: Screen[object] = self.screen
            self.push_screen(PaletteScreen(list(self.commands())), lambda chosen: do(self, chosen, below))

    def action_redraw(self) -> None:
        """Paint all anew."""
        self.redraw()

    def action_theme(self) -> None:
        """The next theme."""
        if self.colour_off:
            self.say(COLOURS_OFF)
            return
        names = list(self.themes.themes)
        self.use_theme(names[(names.index(self.theme_name) + 1) % len(names)])

    def action_themes(self) -> None:
        """The choice of a theme."""
        if self.colour_off:
            self.say(COLOURS_OFF)
        elif not self._is_open("themes"):
            from tuimon.app.screens.themes import ThemesScreen

            self.push_screen(ThemesScreen())

    def use_theme(self, name: str) -> None:
        """This theme."""
        self.wear(name)
        self.say(f"theme: {name}")

    def copy_text(self, text: str) -> str:
        """Offer a text to the terminal's clipboard. Gives what there is to say of it, with how the text begins.

        It is one line, and shows all that it is: it holds words of the job's, and may be pasted into a shell.
        """
        if not self.may_copy:
            return "the clipboard is off (clipboard = false)"
        whole = one_line(text[: MOST_COPIED + 1]).encode()
        kept = whole[:MOST_COPIED].decode(errors="ignore")
        sent = terminal.copy(self, kept)
        begin = cut(clean(kept), SAID, self.glyphs.ellipsis)
        return f"{sent}: {begin}" + (f" (the first {MOST_COPIED // 1000} kB)" if len(whole) > MOST_COPIED else "")
