"""`--phases initial=1,steady=200,guard=50`: a plan of an experiment, and who marks its phases while the job runs.

The plan changes nothing in the job. What the phases are of (a first call, compatible calls, inputs that change a guard) is the
program's affair; tuimon marks which steps belong to which, and the report and `compare` keep them apart.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from tuimon import events as ev
from tuimon.model import Model

MOST = 32
"""Phases of one plan."""
_ONE = re.compile(r"([A-Za-z][\w -]{0,39})=(\d+(?:\.\d+)?)(s|)")


@dataclass(frozen=True)
class PhasePlan:
    """One phase: so many steps, or so many seconds."""

    name: str
    steps: int | None
    seconds: float | None

    @property
    def planned(self) -> str:
        """In words: "200 steps", "30 s"."""
        if self.steps is not None:
            return f"{self.steps} step{'' if self.steps == 1 else 's'}"
        return f"{self.seconds:g} s"


def phases(text: str) -> tuple[PhasePlan, ...]:
    """The plan that a command line names. Raises ValueError, with a sentence, where it is none."""
    found: list[PhasePlan] = []
    for word in text.split(","):
        told = _ONE.fullmatch(word.strip())
        if told is None:
            raise ValueError(f"{word.strip()!r} is no phase: name=200 (steps) or name=30s (seconds), with commas")
        name, number, unit = told[1].strip(), told[2], told[3]
        if any(one.name == name for one in found):
            raise ValueError(f"the phase {name!r} is there twice")
        if unit:
            value = float(number)
            if not 0 < value < math.inf:
                raise ValueError(f"{name} must last longer than 0 s")
            found.append(PhasePlan(name, None, value))
        else:
            if not number.isdecimal() or len(number) > 9 or int(number) <= 0:
                raise ValueError(f"{name}={number}: a whole number of steps above 0, or seconds: {name}={number}s")
            found.append(PhasePlan(name, int(number), None))
    if len(found) > MOST:
        raise ValueError(f"{len(found)} phases are too many: at most {MOST}")
    return tuple(found)


class Phases:
    """Marks the phases of a plan, by the steps that a model has counted or by its clock. The model is read, never written."""

    def __init__(self, plan: tuple[PhasePlan, ...]) -> None:
        self._plan = plan
        self._at = -1
        """The phase that lasts; -1 before the first one begins."""
        self._first = self._counted = 0
        self._began_ns = 0

    @property
    def over(self) -> bool:
        """All of them are over."""
        return self._at >= len(self._plan)

    def marks(self, model: Model) -> list[ev.PhaseMarked]:
        """What is to be applied to the model now; to be asked whenever it was given events. The first phase begins with the
        attach, so that it holds the first step. Where steps are counted anew, the plan begins anew."""
        found: list[ev.PhaseMarked] = []
        attached = model.target.attached_ns
        if attached is None or not self._plan:
            return found
        done = model.steps.n
        if self._at < 0 or done < self._counted:
            self._at = -1
            self._begin(found, 0, attached)
        self._counted = done
        while not self.over:
            one = self._plan[self._at]
            if one.steps is not None:
                if done - self._first < one.steps:
                    break
                self._begin(found, self._first + one.steps, self._end_of(model, self._first + one.steps - 1))
            else:
                until = self._began_ns + round((one.seconds or 0.0) * 1e9)
                if model.now_ns < until:
                    break
                self._begin(found, self._steps_until(model, until), until)
        return found

    def _begin(self, found: list[ev.PhaseMarked], step: int, at_ns: int) -> None:
        self._at += 1
        self._first, self._began_ns = step, at_ns
        name, planned = ("", "") if self.over else (self._plan[self._at].name, self._plan[self._at].planned)
        found.append(ev.PhaseMarked(at_ns, name, step, planned))

    def _end_of(self, model: Model, index: int) -> int:
        """When this step was over; now, where that is no longer kept."""
        for account in reversed(model.steps.accounts):
            if account.index <= index:
                return account.end_ns if account.index == index else model.now_ns
        return model.now_ns

    def _steps_until(self, model: Model, t_ns: int) -> int:
        """How many steps were over at this time."""
        late = 0
        for account in reversed(model.steps.accounts):
            if account.end_ns <= t_ns:
                break
            late += 1
        return model.steps.n - late
