"""What keys do in the monitor, whichever screen they were pressed on."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, cast

from tuimon import events as ev
from tuimon.app import accepting
from tuimon.app.action import Scope
from tuimon.app.commands import Command, Place, listed
from tuimon.app.keymap import HEADINGS
from tuimon.app.panels.frame import plural
from tuimon.app.scene import Panel
from tuimon.app.screens import points

if TYPE_CHECKING:
    from tuimon.app.app import MonitorApp
    from tuimon.app.panels.help import Subject
    from tuimon.app.screens.page import PageScreen
    from tuimon.roofline.ceilings import Ceiling
    from tuimon.roofline.points import Point

PAGES: tuple[Scope, ...] = ("page", "step", "window")

PAGE_TEXT = (
    "All that is known of one thing. A line with an edge sign leads on: tab selects it, enter follows, to the evidence, and "
    "then to the line of source; esc goes back. The page stays live while it is open, unless the screen is frozen.",
)

LOGGED = 600
"""So many characters of what was copied go into the log."""

WINDOW_MOST_S = 10
"""A profiler window is closed after so long, however few steps have ended."""


class Doing:
    """What keys do; a part of the monitor."""

    @property
    def _app(self) -> MonitorApp:
        return cast("MonitorApp", self)

    def freeze(self) -> None:
        """Stop the screen, or let it catch up. The model takes everything in all the while."""
        from tuimon.app.still import still

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
        from tuimon.app.details.opening import open_page
        from tuimon.app.screens.page import PageScreen

        page = open_page(panel.id, self._app.panel_scene(), key)
        if page is None:
            self._app.say("there is no row here yet")
            return
        self._app.push_screen(PageScreen(*page))

    def open_step(self, index: int) -> None:
        """The page of a step."""
        from tuimon.app.details import step
        from tuimon.app.screens.step import StepScreen

        opened = step.opened(self._app.panel_scene(), index)
        if opened is None:
            self._app.say(f"step {index} is no longer kept")
            return
        self._app.push_screen(StepScreen(opened))

    def copy(self, sentence: str) -> None:
        """A sentence to the clipboard, as far as the terminal takes it, and into the log in any case."""
        said = self._app.copy_text(sentence)
        model = self._app.pump.watched[self._app.pump.selected].model
        model.apply([ev.Line(model.now_ns, f"copied: {sentence[:LOGGED]}")])
        self._app.say(f"{said}; it is in the log (7)")

    def open_windows(self) -> None:
        """The page of profiler windows, from which one is opened."""
        from tuimon.app.screens.window import WindowScreen

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
        from tuimon.app.screens.lab import LabScreen

        self._app.push_screen(LabScreen(self._app.lab_session, self._app.settings.glyphs, point, ceiling))

    def accept(self, key: str, note: str | None) -> None:
        """Accept the boundary of this key with a note; with None: no longer accept it."""
        self._app.say(accepting.accept(self._app.pump.watched[self._app.pump.selected], key, note))
        self._app.main.panels["boundaries"].view.touch()

    # ------------------------------------------------------------------------------------------ for every screen

    def action_freeze(self) -> None:
        """Stop the screen, or let it catch up."""
        self.freeze()

    def subject(self) -> Subject:
        """What the help is to be about."""
        from tuimon.app.panels.help import Subject, of_panel

        app, screen = self._app, self._app.screen
        over: Scope = getattr(screen, "SCOPE", "page")
        if over == "lab":
            from tuimon.app.lab.keys import lab_subject

            return lab_subject()
        if screen is app.main:
            panel = app.main.focused_panel.panel
            scope: Scope = "roofline" if panel.id == points.PANEL else "main"
            return of_panel(panel, scope, app.several, app.replay.is_played, app.panel_scene().model.slowness.rule)
        if over in PAGES:
            return Subject(over, cast("PageScreen", screen).page_title, PAGE_TEXT, app.several)
        return Subject(over, HEADINGS[over], (), app.several)

    def commands(self) -> Iterable[Command]:
        """All that can be done, here first."""
        app, screen = self._app, self._app.screen
        main = app.main
        roofline = Place("roofline", main, "" if main.focus_id == points.PANEL else "only while the roofline has the keys (6)")
        replay = Place("replay", main, "" if app.replay.is_played else "no recording is played")
        panels = [replay, Place("main", main), roofline] if app.replay.is_played else [Place("main", main), roofline, replay]
        pages = [Place(scope, why_not=f"only on {HEADINGS[scope]}") for scope in PAGES]
        lab = Place("lab", why_not="only in the lab (L)")
        if getattr(screen, "SCOPE", "") == "lab":
            return listed(app, [Place("lab", screen), *panels, *pages], app.several)
        if screen is main:
            first = roofline if main.focus_id == points.PANEL else panels[0]
            return listed(app, [first, *(place for place in panels if place is not first), *pages, lab], app.several)
        scope: Scope = getattr(screen, "SCOPE", "page")
        own = [Place(scope, screen), *([Place("page", screen)] if scope in PAGES else [])]
        return listed(app, [*own, *panels, *(page for page in pages if page.scope not in (scope, "page")), lab], app.several)
