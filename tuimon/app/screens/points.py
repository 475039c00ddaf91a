"""The keys of the roofline on the main screen: along its points, to other ceilings and boundaries, the whole process."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from tuimon.app.keymap.roofline import ROOFLINE
from tuimon.app.moves import select_row
from tuimon.app.panels import roofline
from tuimon.app.panels.points import selected_point

if TYPE_CHECKING:
    from tuimon.app.screens.main import MainScreen

PANEL = roofline.PANEL.id

ACTIONS = frozenset(action.call.partition("(")[0] for action in ROOFLINE)
"""Names of the actions that are live while the roofline has the keys."""


def _changed(screen: MainScreen, said: str) -> None:
    screen.panels[PANEL].view.touch()
    screen.monitor.say(said)


def next_ceiling(screen: MainScreen) -> None:
    """Another ceiling."""
    scene = screen.monitor.panel_scene()
    name = scene.plane.next_ceiling(scene.model, scene.ceilings)
    _changed(screen, f"ceiling: {name}" if name is not None else "no ceiling is declared")


def next_boundary(screen: MainScreen) -> None:
    """Another memory boundary for all points, and after the last one each at its own."""
    scene = screen.monitor.panel_scene()
    name = scene.plane.next_boundary(scene.model)
    if name is None:
        _changed(screen, "no other boundary is known: there are no figures of this machine")
    else:
        _changed(screen, f"all points at {name}" if name else "each point where its bytes mean most")


def turn_trails(screen: MainScreen) -> None:
    """Trails, or none."""
    plane = screen.monitor.plane
    plane.trails = not plane.trails
    _changed(screen, f"trails {'on' if plane.trails else 'off'}")


def turn_whole(screen: MainScreen) -> None:
    """One point of all regions together, or all points."""
    plane = screen.monitor.plane
    plane.whole = not plane.whole
    _changed(screen, "the whole process: all regions together" if plane.whole else "each point by itself")


def take_into_lab(screen: MainScreen) -> None:
    """The selected point and the selected ceiling as a hypothesis; or the point's own ceiling, where its bytes are counted
    at another boundary than the selected one."""
    scene = screen.monitor.panel_scene()
    point = selected_point(scene, screen.panels[PANEL].view)
    ceilings, selected = scene.plane.ceilings(scene.model, scene.ceilings)
    if point is None or not ceilings:
        screen.monitor.say(
            "select a point first (left, right): there is none here yet" if point is None else "no ceiling is declared"
        )
        return
    ceiling = ceilings[selected] if 0 <= selected < len(ceilings) else ceilings[0]
    if point.boundary and ceiling.boundary != point.boundary:
        ceiling = next((one for one in ceilings if one.name == point.ceiling), ceiling)
    screen.monitor.open_lab(point, ceiling)


def select_line(screen: MainScreen, line: int) -> None:
    """The point whose row was clicked at."""
    key = screen.monitor.plane.rows.get(line)
    if key is not None:
        select_row(screen.panels[PANEL].view, key)


class RooflineKeys:
    """What the roofline's own keys do; a part of the main screen."""

    @property
    def _main(self) -> MainScreen:
        return cast("MainScreen", self)

    def action_point(self, step: int) -> None:
        """Another point."""
        self._main.action_move(step)

    def action_boundary(self) -> None:
        """The next memory boundary."""
        next_boundary(self._main)

    def action_trails(self) -> None:
        """Trails, or none."""
        turn_trails(self._main)

    def action_whole(self) -> None:
        """The whole process as one point, or all points."""
        turn_whole(self._main)

    def action_window(self) -> None:
        """The page of profiler windows."""
        self._main.monitor.open_windows()

    def action_hypothesis(self) -> None:
        """The selected point into the lab."""
        take_into_lab(self._main)
