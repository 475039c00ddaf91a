"""Recordings that are played, as one: what a person does with the one on the panels, the other ranks do as well."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from tuimon.app.feed import Played, Where

if TYPE_CHECKING:
    from tuimon.app.pump import Pump


class Replay:
    """The recordings among what is watched; nothing where jobs are live."""

    def __init__(self, pump: Pump, say: Callable[[str], None], utc_offset_s: Callable[[], int]) -> None:
        self._pump = pump
        self._say = say
        self._utc_offset_s = utc_offset_s
        self._lead: Played | None = None
        """That of several which goes somewhere: the others follow when it is there."""

    @property
    def _shown(self) -> Played | None:
        return self._pump.watched[self._pump.selected].played

    @property
    def is_played(self) -> bool:
        """Whether what the panels show is a recording."""
        return self._shown is not None

    @property
    def where(self) -> Where | None:
        """Where it stands; None: it is none."""
        return self._shown.position() if self._shown is not None else None

    @property
    def is_over(self) -> bool:
        """Whether all stand at the end."""
        return all(one.position().over for one in self._all())

    def _all(self) -> list[Played]:
        return [one.played for one in self._pump.watched if one.played is not None]

    def look(self) -> None:
        """After each beat: the others follow the one that was sent somewhere."""
        lead = self._lead
        if lead is None or lead.position().going:
            return
        self._lead = None
        for one in self._all():
            if one is not lead:
                apart_s = (lead.began_s or 0.0) - (one.began_s or 0.0) if lead.began_s and one.began_s else 0.0
                one.follow(lead.clock() + int(apart_s * 1e9))

    def turn(self) -> None:
        """Pause, or play."""
        if self._shown is None:
            return
        where = self._shown.position()
        on = where.paused or where.over
        for one in self._all():
            one.play(on)
        self._lead = None

    def speed(self, way: int) -> None:
        """Faster or slower."""
        speeds = [one.speed(way) for one in self._all()]
        if speeds:
            self._say("playing as fast as it goes" if speeds[0] is None else f"playing at {speeds[0]:g} times its pace")

    def step(self, count: int) -> None:
        """So many steps on or back."""
        self._send(lambda shown: shown.step(count))

    def finding(self, way: int) -> None:
        """To the next or the previous thing to look at."""
        self._send(lambda shown: shown.finding(way))

    def go(self, text: str) -> None:
        """To a place that was typed."""
        self._send(lambda shown: shown.go(text, self._utc_offset_s()))

    def _send(self, how: Callable[[Played], str | None]) -> None:
        shown = self._shown
        if shown is None:
            return
        said = how(shown)
        paused = shown.position().paused
        others = [one for one in self._all() if one is not shown]
        for one in others:
            if paused and not one.position().paused:
                one.play(False)
        self._lead = shown if others else None
        if said:
            self._say(said)
