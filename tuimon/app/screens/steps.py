"""The keys of the timeline on the main screen: to slow steps, along the line, to the page of a step, to the clipboard."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tuimon.app.details.step import opened
from tuimon.app.panels import now, timeline
from tuimon.app.scene import PanelView
from tuimon.app.screens import asking
from tuimon.model import Model
from tuimon.model.steps.parts import StepAccount

if TYPE_CHECKING:
    from tuimon.app.screens.main import MainScreen

PANEL = now.PANEL.id

PAGE = 10
"""So many steps a page key goes along the line."""


def _shown(screen: MainScreen) -> tuple[Model, PanelView]:
    return screen.monitor.panel_scene().model, screen.panels[PANEL].view


def go(screen: MainScreen, way: int) -> None:
    """Select the slow step after the selected one, or the one before; where none is selected, the latest."""
    model, view = _shown(screen)
    chosen = timeline.selected(model, view)
    near = timeline.beside(model, None if chosen is None else chosen.index, way)
    if near is None:
        screen.monitor.say(timeline.none_beside(model, way))
        return
    select(screen, near.account)
    if screen.plan.tiny:  # no line to select it in
        screen.monitor.open_step(near.account.index)


def select(screen: MainScreen, account: StepAccount | None) -> None:
    """The timeline stands still around this step and has the keys; None: it follows the newest again."""
    timeline.select(screen.panels[PANEL].view, account)
    if account is not None and not screen.plan.tiny:
        if screen.asking.is_open:
            asking.close(screen, keep=True)
        screen.focus_id = PANEL
        if screen.zoomed not in (None, PANEL):
            screen.zoomed = PANEL
            screen.lay_out(screen.size.width, screen.size.height)
    screen.monitor.paint()


def move(screen: MainScreen, step: int) -> bool:
    """So many steps along the line, if it has the keys."""
    if screen.focus_id != PANEL:
        return False
    timeline.move(*_shown(screen), step)
    screen.monitor.paint()
    return True


def move_to_end(screen: MainScreen, way: int) -> bool:
    """To the oldest step, or to following the newest again, if the line has the keys."""
    if screen.focus_id != PANEL:
        return False
    timeline.move_to_end(*_shown(screen), way)
    screen.monitor.paint()
    return True


def open_selected(screen: MainScreen) -> bool:
    """The page of the selected step, if the line has the keys and one is selected."""
    account = timeline.selected(*_shown(screen)) if screen.focus_id == PANEL else None
    if account is None:
        return False
    screen.monitor.open_step(account.index)
    return True


def copy(screen: MainScreen) -> None:
    """The sentence on the selected step, else on the latest slow one, to the clipboard and into the log."""
    model, view = _shown(screen)
    account = timeline.selected(model, view)
    if account is None:
        latest = timeline.beside(model, None, 0)
        account = latest.account if latest is not None else None
    found = opened(screen.monitor.panel_scene(), account.index) if account is not None else None
    if found is None:
        screen.monitor.say(timeline.none_beside(model, 0))
        return
    screen.monitor.copy(found.sentence)
