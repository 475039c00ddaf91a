"""What keys do in the monitor, whichever screen they were pressed on."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, cast

from textual.app import SystemCommand
from textual.screen import Screen

from tuimon import events as ev
from tuimon.app import accepting, terminal
from tuimon.app.details import look, open_page, step
from tuimon.app.looks import own_name, textual_name
from tuimon.app.palette import commands
from tuimon.app.panels import help as help_page
from tuimon.app.panels.frame import plural
from tuimon.app.scene import Panel
from tuimon.app.screens.lab import LabScreen
from tuimon.app.screens.page import PageScreen
from tuimon.app.screens.step import StepScreen
from tuimon.app.screens.window import WindowScreen
from tuimon.app.still import still
from tuimon.roofline.ceilings import Ceiling
from tuimon.roofline.points import Point

if TYPE_CHECKING:
    from tuimon.app.app import MonitorApp

HELP_TITLE = "help"

WINDOW_MOST_S = 10
"""A profiler window is closed after so long, however few steps have ended."""


class Doing:
    """What keys do; a part of the monitor."""

    @property
    def _app(self) -> MonitorApp:
        return cast("MonitorApp", self)

    def freeze(self) -> None:
        """Stop the screen, or let it catch up. The model takes everything in all the while."""
        if self._app.stills is None:
            self._app.events_at_freeze = self._app.pump.events
            now = self._app.scene()
            ranks = tuple(replace(rank, model=still(rank.model)) for rank in (one.rank() for one in self._app.pump.watched))
            self._app.stills = ranks, now.standings
        else:
            self._app.stills = None
        self._app.paint()

    def record(self) -> None:
        """Begin to record what is watched, or stop."""
        self._app.say(self._app.recordings.turn())

    def select_rank(self, at: int) -> None:
        """The panels show this one of the processes."""
        if at != self._app.pump.selected:
            self._app.pump.selected = at
            self._app.main.another_rank()
        self._app.paint()

    def next_rank(self, step: int) -> None:
        """The panels show the next one, or the one before; round and round."""
        if not self._app.several:
            self._app.say("one process is watched")
            return
        self.select_rank((self._app.pump.selected + step) % len(self._app.pump.watched))

    def change_rate(self, step: int) -> None:
        """Draw more or less often."""
        self._app.say(f"drawing {self._app.pump.choose(step):g} times a second")

    def open_details(self, panel: Panel, key: str | None) -> None:
        """The page behind a row, or behind a panel that has none."""
        page = open_page(panel.id, self._app.panel_scene(), key)
        if page is None:
            self._app.say("there is no row here yet")
            return
        self._app.push_screen(PageScreen(*page))

    def open_step(self, index: int) -> None:
        """The page of a step."""
        opened = step.opened(self._app.panel_scene(), index)
        if opened is None:
            self._app.say(f"step {index} is no longer kept")
            return
        self._app.push_screen(StepScreen(opened))

    def copy(self, sentence: str) -> None:
        """A sentence to the clipboard, as far as the terminal takes it, and into the log in any case."""
        sent = terminal.copy(self._app, sentence)
        model = self._app.pump.watched[self._app.pump.selected].model
        model.apply([ev.Line(model.now_ns, f"copied: {sentence}")])
        self._app.say(f"{sent}; it is in the log (7)")

    def open_windows(self) -> None:
        """The page of profiler windows, from which one is opened."""
        self._app.push_screen(WindowScreen())

    def ask_window(self, steps: int) -> None:
        """Ask the hook for a profiler window."""
        watched = self._app.pump.watched[self._app.pump.selected]
        number = watched.next_window()
        why_not = watched.feed.command({"cmd": "window", "window": number, "steps": steps, "most_s": WINDOW_MOST_S})
        self._app.say(why_not or f"asked for a window of {plural(steps, 'step')}")

    def cancel_window(self) -> None:
        """Cancel the window that waits or is open."""
        watched = self._app.pump.watched[self._app.pump.selected]
        going = next((one for one in reversed(watched.model.windows) if not one.over), None)
        if going is None:
            self._app.say("no window waits or is open")
            return
        why_not = watched.feed.command({"cmd": "window_cancel", "window": going.number})
        self._app.say(why_not or f"window {going.number} is to be cancelled")

    def open_lab(self, point: Point | None = None, ceiling: Ceiling | None = None) -> None:
        """The roofline lab as it was left; with a point and the selected ceiling, on their numbers as a hypothesis."""
        self._app.push_screen(LabScreen(self._app.lab_session, self._app.settings.glyphs, point, ceiling))

    def open_look(self) -> None:
        """The page of what to look at first."""
        self._app.push_screen(PageScreen(look.TITLE, look.lines))

    def accept(self, key: str, note: str | None) -> None:
        """Accept the boundary of this key with a note; with None: no longer accept it."""
        self._app.say(accepting.accept(self._app.pump.watched[self._app.pump.selected], key, note))
        self._app.main.panels["boundaries"].view.touch()

    def action_show_help(self) -> None:
        """The help page, for the panel that has the keys."""
        if isinstance(self._app.screen, PageScreen) and self._app.screen.page_title == HELP_TITLE:
            self._app.say("this is the help page; esc goes back")
            return
        panel = self._app.main.focused_panel.panel
        played = self._app.replay.is_played
        self._app.push_screen(
            PageScreen(
                HELP_TITLE,
                lambda scene, width: help_page.lines(panel, width, self._app.several, scene.model.slowness.rule, replay=played),
            )
        )

    def action_theme(self) -> None:
        """The next theme."""
        if self._app.settings.colour_off:
            self._app.say("colours are off (NO_COLOR or --no-color)")
            return
        names = list(self._app.settings.themes.themes)
        self.use_theme(names[(names.index(own_name(self._app.theme)) + 1) % len(names)])

    def use_theme(self, name: str) -> None:
        """This theme."""
        self._app.theme = textual_name(name)
        self._app.say(f"theme: {name}")

    def action_palette(self) -> None:
        """Find a command by name."""
        if self._app.settings.glyphs.name == "ascii":
            self._app.say("the list of commands needs a UTF-8 terminal; ? shows every key")
            return
        self._app.action_command_palette()

    def get_system_commands(self, screen: Screen[object]) -> Iterable[SystemCommand]:
        """The command palette."""
        return commands(self._app)
