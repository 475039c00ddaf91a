"""The first line of a screen, part of it held for a while: near a threshold, what costs most would take turns each second."""

from __future__ import annotations

import re
from typing import Any

from tuimon.app.panels.standing import standing
from tuimon.app.scene import Scene
from tuimon.draw.text import Line

HOLD_S = 3.0
"""For so long what stands behind the pace stays before something else may take its place. Numbers go on meanwhile."""
PACE = "strong"
"""The role of the pace, `step 260, 24.0 ms`. It is never held, nor is a line without it: it would contradict the panels."""

_NUMBERS = re.compile(r"[\d,.]+")
_NAMES = ("place", "frame", "region", "gpu")
"""Roles of names: with another one it is another answer, whatever its digits are."""


def shape(line: Line) -> tuple[str, ...]:
    """What the answer is, without its numbers."""
    return tuple(text if role in _NAMES else _NUMBERS.sub("0", text) for text, role in line)


class Steady:
    """Holds what the first line says."""

    def __init__(self) -> None:
        self._of: tuple[Any, ...] = ()
        self._shape: tuple[str, ...] = ()
        self._line: Line = []
        self._since_ns = 0

    def line(
        self, screen: str, scene: Scene, answer: Line, clock_ns: int | None, due: bool = True, rows: int | None = None
    ) -> Line:
        """What to show where `answer` is the one of now. Another screen, another process, how it stands with the job and how
        its steps go are answered at once; without a clock everything is.

        `due`: whether the table of `rows` that the screen shows follows its numbers now; its answer goes with it.
        """
        target = scene.model.target
        state = target.ended, target.attached_ns is None, shape(standing(scene))
        of = screen, scene.rank, id(scene.model), state, rows
        if not due and of == self._of:
            return self._line
        now = shape(answer)
        held = not screen and clock_ns is not None and of == self._of and clock_ns - self._since_ns < HOLD_S * 1e9
        if held and now != self._shape and _paced(answer) and _paced(self._line):
            return [answer[0], *self._line[1:]]
        if now != self._shape or of != self._of:
            self._since_ns = clock_ns or 0
        self._of, self._shape, self._line = of, now, answer
        return answer


def _paced(line: Line) -> bool:
    return bool(line) and line[0][1] == PACE
