"""The page of one step: as other pages, and from one slow step to the next."""

from __future__ import annotations

from typing import ClassVar

from textual.binding import Binding, BindingType

from tuimon.app.action import Scope
from tuimon.app.details import step
from tuimon.app.details.paged import paged
from tuimon.app.keymap.page import STEP
from tuimon.app.panels.timeline import beside, none_beside
from tuimon.app.scene import Scene
from tuimon.app.screens.page import PageScreen

BINDINGS: list[BindingType] = [
    Binding(",".join(action.keys), action.call, action.label, id=action.id, show=False) for action in STEP
]


class StepScreen(PageScreen):
    """A step's account, evidence and neighbours."""

    BINDINGS = BINDINGS
    SCOPE: ClassVar[Scope] = "step"

    def __init__(self, opened: step.Opened) -> None:
        super().__init__(
            step.title(opened), lambda scene, width: paged(step.lines(scene, self.step, width), self.step.sentence)
        )
        self.step = opened

    def action_slow_step(self, way: int) -> None:
        """The page of the next slow step, or of the one before."""
        near = beside(self.step.model, self.step.index, way)
        scene: Scene = self.monitor.panel_scene()
        opened = step.opened(scene, near.account.index, self.step.model) if near is not None else None
        if opened is None:
            self.monitor.say(none_beside(self.step.model, way))
            return
        self.step, self.page_title, self.top, self.selected = opened, step.title(opened), 0, None
        self.monitor.main.select_step(opened.account)
        self.monitor.paint()
