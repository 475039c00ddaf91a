"""Accounts of made-up steps, for the tests of the rule, the causes and the trends."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tuimon.model.slow.rule import Judge, Slow
from tuimon.model.steps.parts import CATEGORIES, StepAccount

MS = 1_000_000


def account(
    index: int, ms: float, parts: Mapping[str, float] | None = None, *, begin: int = 0, compiled: bool = False
) -> StepAccount:
    """A step that took so many ms, of which `parts` (category -> ms) are known; the rest is other python."""
    took = round(ms * MS)
    known = {name: round(value * MS) for name, value in (parts or {}).items()}
    rest = took - sum(known.values())
    told = tuple(known.get(name, 0) if name != "other python" else rest for name in CATEGORIES)
    return StepAccount(index, begin, begin + took, told, compiled)


def accounts(times: Iterable[float], compiled: Iterable[int] = ()) -> list[StepAccount]:
    """Steps of so many ms, one after the other, with nothing known of what they did."""
    found, at, with_compilation = [], 0, set(compiled)
    for index, ms in enumerate(times):
        one = account(index, ms, begin=at, compiled=index in with_compilation)
        found.append(one)
        at = one.end_ns
    return found


def judged(times: Iterable[float], compiled: Iterable[int] = (), judge: Judge | None = None) -> list[Slow]:
    """What the rule finds slow among steps of so many ms, to the end of the job."""
    judge = judge or Judge()
    found = [slow for one in accounts(times, compiled) for slow in judge.take(one)]
    return found + judge.end()


def slow(times: Iterable[float], compiled: Iterable[int] = (), judge: Judge | None = None) -> list[int]:
    """Their indices."""
    return [one.account.index for one in judged(times, compiled, judge)]
