"""The keys of the main screen while a recording is played."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from tuimon.app.keymap.replay import REPLAY
from tuimon.app.screens import asking

if TYPE_CHECKING:
    from tuimon.app.replaying import Replay
    from tuimon.app.screens.main import MainScreen

ACTIONS = frozenset(action.call.partition("(")[0] for action in REPLAY)
"""Names of the actions that are live while a recording is played."""


class ReplayKeys:
    """What these keys do; a part of the main screen."""

    @property
    def _replay(self) -> Replay:
        return cast("MainScreen", self).monitor.replay

    def action_play(self) -> None:
        """Pause, or play."""
        self._replay.turn()
        cast("MainScreen", self).monitor.paint()

    def action_replay_step(self, count: int) -> None:
        """So many steps on or back."""
        self._replay.step(count)
        cast("MainScreen", self).monitor.paint()

    def action_finding(self, way: int) -> None:
        """Where something to look at came up."""
        self._replay.finding(way)

    def action_speed(self, way: int) -> None:
        """Faster or slower."""
        self._replay.speed(way)

    def action_go_to(self) -> None:
        """Ask where to go."""
        asking.ask_for_place(cast("MainScreen", self))

    def action_to_begin(self) -> None:
        """Back to the begin."""
        self._replay.go("0s")
