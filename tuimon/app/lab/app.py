"""`tuimon lab`: the lab alone, without a job and without the monitor."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from textual.screen import Screen

from tuimon.app.action import Scope
from tuimon.app.commands import Command, Place, listed
from tuimon.app.everywhere import Everywhere
from tuimon.app.keymap import HEADINGS
from tuimon.app.lab.keys import lab_subject
from tuimon.app.look.themed import choose_theme
from tuimon.app.look.themes import Loaded
from tuimon.app.panels.help import Subject
from tuimon.app.screens.lab import LabScreen, LabSession
from tuimon.app.tty import terminal
from tuimon.app.tty.background import depth, fitting_theme
from tuimon.draw.glyphs import GlyphSet
from tuimon.lab import state
from tuimon.lab.state import Lab

HUNG_UP = 129
WATCH_S = 2.0
"""So often it is looked whether the terminal is still there."""


class LabApp(Everywhere[None]):
    """The lab's screen, and the way out."""

    ENABLE_COMMAND_PALETTE = False
    AUTO_FOCUS = None

    def __init__(
        self,
        session: LabSession,
        themes: Loaded,
        theme: str,
        glyphs: GlyphSet,
        *,
        colour_off: bool = False,
        clipboard: bool = True,
        walk: Path | None = None,
        watch: bool = True,
    ) -> None:
        """`walk`: the file of the guided walk; None: ours. `watch`: leave when the terminal is gone."""
        super().__init__(themes, theme)
        self.lab_screen = LabScreen(session, glyphs, walk=walk, live=False)
        self.glyphs, self.colour_off, self.may_copy = glyphs, colour_off, clipboard
        self._watch = watch
        self._signals = terminal.Signals(lambda number: self.exit(return_code=128 + number))

    def get_default_screen(self) -> Screen[None]:
        """There is one."""
        return self.lab_screen

    def on_mount(self) -> None:
        """Signals end it as a key does."""
        if not self.is_headless:
            self._signals.install()
            if self._watch:
                self.set_interval(WATCH_S, self._look)

    def on_unmount(self) -> None:
        """Signals as they were."""
        if not self.is_headless:
            self._signals.remove()

    def _look(self) -> None:
        if terminal.terminal_gone():
            self.exit(return_code=HUNG_UP)

    def say(self, message: str) -> None:
        """Where the lab says things."""
        self.lab_screen.tell(message)

    def subject(self) -> Subject:
        """The lab; over it there is nothing else to ask about."""
        scope: Scope = getattr(self.screen, "SCOPE", "lab")
        return lab_subject() if scope == "lab" else Subject(scope, HEADINGS[scope])

    def commands(self) -> Iterable[Command]:
        """All that can be done."""
        return listed(self, [Place("lab", self.lab_screen)])


def run(
    lab: Lab,
    *,
    theme: str | None,
    ascii: bool,  # noqa: A002 - the name of the option
    no_color: bool,
    walk: Path | None = None,
    walking: bool = False,
    mouse: bool | None = None,
    background: str = "auto",
    clipboard: bool = True,
    problems: Sequence[str] = (),
) -> int:
    """Show the lab until someone leaves it; gives the status to exit with.

    `walking`: begin with the guided walk. The terminal has to be able to show a screen (`why_no_screen`).
    """
    terminal.prepare_environment()
    os.environ.pop("NO_COLOR", None)  # as in `run`: our theme without colours does it
    fitting = fitting_theme(theme, background, "none" if no_color else depth())
    themes, chosen, found = choose_theme(fitting, no_color)
    if problems or found:
        lab = state.told(lab, "; ".join([*problems, *found]))
    app = LabApp(
        LabSession(lab), themes, chosen, terminal.choose_glyphs(ascii), colour_off=no_color, walk=walk, clipboard=clipboard
    )
    if walking:
        app.lab_screen.begin_walk()
    try:
        app.run(mouse=mouse if mouse is not None else not terminal.over_ssh())
    except OSError:
        if not terminal.terminal_gone():
            raise
        return HUNG_UP
    return app.return_code or 0
