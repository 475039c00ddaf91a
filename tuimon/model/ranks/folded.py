"""The fold over steps that another tuimon has counted: on the job's node, where every call of it was taken in.

Here they come as digests, some times a second. What the calls of regions took is not known then, but for those that are passed
on while somebody looks at this rank; where the steps' time went and why some were slow is.
"""

from __future__ import annotations

import json
from collections import deque
from statistics import median
from typing import TYPE_CHECKING, Any, TypeVar

from tuimon import events as ev
from tuimon.model.about import About
from tuimon.model.ranks.digest import SlowNote, StepDigest, unpack
from tuimon.model.steps.parts import CATEGORIES, Cause, SlowStep, StepAccount

if TYPE_CHECKING:
    from tuimon.model.model import Model
    from tuimon.model.steps.stepping import StepFold

Item = TypeVar("Item")

MOST_STEPS, MOST_SLOW, MOST_LINES = 256, 64, 200
"""Accounts, slow steps and lines of the log that are kept of a job that is one of many."""
MOST_ANEW = 8
WHY_NOT = "its calls are counted on its node; here, while this rank is shown"
UNREAD = "some steps"


class FoldedSteps:
    """Puts steps that were folded elsewhere into the model, in place of those that it would count itself."""

    def __init__(self, model: Model, steps: StepFold) -> None:
        self._model = model
        self._steps = steps
        self._anew = 0
        self._unread = 0

    @property
    def begun(self) -> bool:
        """Whether the steps come folded."""
        return self._steps.folded

    def take(self, event: ev.StepsFolded) -> None:
        """What was folded since the last time."""
        model, steps = self._model, self._model.steps
        if not self._steps.folded:
            self._begin()
        for row in self._read(event.rows):
            try:
                told = unpack(row)
            except ValueError as error:
                self._not_read(error)
                continue
            if isinstance(told, SlowNote):
                self._slow(told)
            else:
                self._step(told, event.source)
        steps.source, steps.how = event.source, event.how
        if event.rows:
            model.changed("steps")

    def _read(self, rows: tuple[str, ...]) -> list[Any]:
        try:
            found: list[Any] = json.loads(f"[{','.join(rows)}]")  # at once: it is a third of the work
        except (ValueError, RecursionError) as error:
            self._not_read(error)
            return []
        return found

    def _not_read(self, error: Exception) -> None:
        self._unread += 1
        why = f"{self._unread} of its node's messages could not be read; the last one: {str(error)[:200]}"
        self._model.coverage.not_available[UNREAD] = why
        self._model.changed("coverage")

    def _begin(self) -> None:
        model, steps = self._model, self._model.steps
        self._steps.folded = True
        steps.accounts = _shorter(steps.accounts, MOST_STEPS)
        steps.slow = _shorter(steps.slow, MOST_SLOW)
        model.log = _shorter(model.log, MOST_LINES)
        model.coverage.not_available["calls of regions"] = WHY_NOT
        model.changed("coverage", "log")

    def _step(self, told: StepDigest, source: str) -> None:
        model, steps, counting = self._model, self._model.steps, self._steps.counting
        for _ in range(min(max(0, told.anew - self._anew), MOST_ANEW)):
            counting.anew(source, told.begin_ns, keep=False)
        self._anew = max(self._anew, told.anew)
        if told.anew < self._anew or told.index < steps.n:
            return  # told before
        steps.n = told.index  # what the line could not carry is missing, and the count is right all the same
        steps.accounts.append(
            StepAccount(told.index, told.begin_ns, told.end_ns, told.parts, told.compiled, told.complete)
        )  # fmt: skip
        model.now_ns = max(model.now_ns, told.end_ns)
        counting.open(told.end_ns)
        counting.count(told.took_ns, told.index, told.compiled, late=False)
        model.digester.give(told)

    def _slow(self, told: SlowNote) -> None:
        from tuimon.model.slow.naming import sentence  # which imports the findings, and they the model

        model, steps = self._model, self._model.steps
        if told.anew != self._anew:
            return
        account = next((one for one in reversed(steps.accounts) if one.index == told.index), None)
        if account is None:
            return
        plain = [one for one in steps.accounts if one.index < told.index and not one.compiled]
        usual = tuple(int(median(one.parts[at] for one in plain)) if plain else 0 for at in range(len(CATEGORIES)))
        slow = SlowStep(account, told.usual_ns, usual, (Cause(told.cause, 1.0, told.words),), told.named)
        steps.slow.append(slow)
        steps.slow_n += 1
        model.say(account.end_ns, "slow", sentence(slow), About("step", str(account.index)))


def _shorter(held: deque[Item], most: int) -> deque[Item]:
    return deque(held, maxlen=most)
