"""The phases of an experiment, as somebody marked them in a recording: which steps belong to which.

A mark comes late: whoever sets it sees the job ten times a second. It says when the phase began, and the steps that began since
then are taken over. A step belongs to the phase in which it begins.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tuimon import events as ev
from tuimon.model.statistics import WINDOW, Durations, Summary
from tuimon.model.steps.parts import StepAccount

if TYPE_CHECKING:
    from tuimon.model.model import Model

MOST_PHASES = 64


@dataclass
class MarkedPhase:
    """A phase, and the steps that began in it."""

    name: str
    planned: str
    first_step: int
    begin_ns: int
    end_ns: int | None = None
    """None while it lasts."""
    n: int = 0
    """Steps that are over."""
    total_ns: int = 0
    accounts: deque[StepAccount] = field(default_factory=lambda: deque(maxlen=WINDOW))
    """Of the latest of them, oldest first."""

    @property
    def last_step(self) -> int | None:
        """The index of the latest of them; None while there is none."""
        return self.accounts[-1].index if self.accounts else None

    @property
    def summary(self) -> Summary:
        """How long they took."""
        durations = Durations()
        for account in self.accounts:
            durations.add(account.took_ns)
        latest = durations.summary
        return Summary(self.n, latest.median, latest.p10, latest.p90, self.total_ns / 1e9)

    def holds(self, t_ns: int) -> bool:
        """Whether it lasted at this time."""
        return self.begin_ns <= t_ns and (self.end_ns is None or t_ns < self.end_ns)

    def add(self, account: StepAccount) -> None:
        """A step that began in it is over. One that it has already was not told to the end: this is how it is now."""
        if self.accounts and self.accounts[-1].index == account.index:
            self._drop()
        self.n += 1
        self.total_ns += account.took_ns
        self.accounts.append(account)

    def end(self, t_ns: int) -> None:
        """It was over at this time: steps that began later are none of its."""
        self.end_ns = t_ns
        while self.accounts and self.accounts[-1].begin_ns >= t_ns:
            self._drop()

    def _drop(self) -> None:
        self.n -= 1
        self.total_ns -= self.accounts.pop().took_ns

    def clear(self) -> None:
        """It has had no step."""
        self.n = self.total_ns = 0
        self.accounts.clear()


class MarkedPhases:
    """All phases, oldest first."""

    def __init__(self, model: Model) -> None:
        self.all: list[MarkedPhase] = []
        self._model = model
        self._told = False
        """Steps are told to this: from the first phase on."""
        self.handlers: dict[type[ev.Event], Callable[[Any], None]] = {ev.PhaseMarked: self._marked}

    @property
    def now(self) -> MarkedPhase | None:
        """The phase that lasts."""
        return self.all[-1] if self.all and self.all[-1].end_ns is None else None

    def closed(self, account: StepAccount) -> None:
        """A step is over."""
        for phase in reversed(self.all):
            if phase.begin_ns <= account.begin_ns:
                if phase.holds(account.begin_ns):
                    phase.add(account)
                return

    def anew(self) -> None:
        """Steps were told otherwise than they are: what was counted is void."""
        for phase in self.all:
            phase.clear()

    def ended(self) -> None:
        """No more steps come."""

    def _marked(self, event: ev.PhaseMarked) -> None:
        # a plan that is begun anew, because steps are counted anew, takes back what was marked after its begin
        self.all = [phase for phase in self.all if phase.begin_ns < event.t_ns]
        for phase in self.all:
            if phase.end_ns is None or phase.end_ns > event.t_ns:
                phase.end(event.t_ns)
        if event.name and self._model.room("phases", self.all, MOST_PHASES):
            phase = MarkedPhase(event.name, event.planned, event.step, event.t_ns)
            for account in self._model.steps.accounts:
                if account.begin_ns >= event.t_ns:
                    phase.add(account)
            if not self._told:
                self._model.each_step(self)
                self._told = True
            self.all.append(phase)
        self._model.changed("steps")
