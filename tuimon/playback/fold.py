"""A model on its way through a recording: it can be kept as bytes, and stopped right behind a step."""

from __future__ import annotations

import pickle
import zlib
from collections.abc import Callable

from tuimon import events as ev
from tuimon.model import Model
from tuimon.model.steps.parts import StepAccount


class Anew:
    """How often steps were counted anew: another count, other steps."""

    def __init__(self) -> None:
        self.times = 0

    def closed(self, account: StepAccount) -> None:
        """A step is over."""

    def anew(self) -> None:
        """What was counted is void."""
        self.times += 1

    def ended(self) -> None:
        """No more steps come."""


class Fold:
    """A model, and how often its steps were counted anew."""

    def __init__(self, model: Model, anew: Anew) -> None:
        self.model = model
        self._anew = anew

    @classmethod
    def new(cls, judge: Callable[[Model], None] = lambda _: None) -> Fold:
        """Of nothing so far; `judge` sets by what slow steps are told."""
        model, anew = Model(), Anew()
        judge(model)
        model.each_step(anew)
        return cls(model, anew)

    def __bytes__(self) -> bytes:
        """To be kept in memory, for `of`: never in a file."""
        return zlib.compress(pickle.dumps((self.model, self._anew), pickle.HIGHEST_PROTOCOL), 1)

    @classmethod
    def of(cls, kept: bytes) -> Fold:
        """As it was when these bytes were made, by this process."""
        return cls(*pickle.loads(zlib.decompress(kept)))

    @property
    def steps(self) -> tuple[int, int]:
        """(how often they were counted anew, how many are over): it grows."""
        return self._anew.times, self.model.steps.n

    def until(self, events: list[ev.Event], steps: tuple[int, int]) -> list[ev.Event] | None:
        """Fold these in until so many steps are over. Gives what is left of them then; None: it has not come to that."""
        for at, event in enumerate(events):
            if self.steps >= steps:
                return events[at:]
            if not isinstance(event, ev.Samples):
                self.model.apply([event])
                continue
            last = len(event.rows) - 1
            for number, row in enumerate(event.rows):
                self.model.apply([ev.Samples(event.t_ns if number == last else row[4], (row,))])
                if self.steps >= steps and number < last:
                    return [ev.Samples(event.t_ns, event.rows[number + 1 :]), *events[at + 1 :]]
        return [] if self.steps >= steps else None


def weight(events: list[ev.Event]) -> int:
    """About how long these take to fold, in rows of samples."""
    return sum(len(event.rows) if type(event) is ev.Samples else 4 for event in events)
