"""The form of one finding."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

State = Literal["ok", "note", "problem"]
"""A "note" is worth knowing and stands in nobody's way."""


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was looked at. `part` groups them: "machine", "attaching", "GPU", "terminal", "process"."""

    part: str
    name: str
    state: State
    what: str
    next_step: str | None = None
    """What to do about it, where there is something to do."""


def ok(part: str, name: str, what: str) -> Check:
    """It is as it should be."""
    return Check(part, name, "ok", what)


def note(part: str, name: str, what: str, next_step: str | None = None) -> Check:
    """Worth knowing; stands in nobody's way."""
    return Check(part, name, "note", what, next_step)


def problem(part: str, name: str, what: str, next_step: str | None = None) -> Check:
    """Something does not work because of it."""
    return Check(part, name, "problem", what, next_step)


class TooSlow(Exception):
    """It has not come back in time."""


def within(seconds: float, work: Callable[[], Any]) -> Any:
    """The result of `work`, done on a thread of its own; raises what it raises, or TooSlow: the thread then is left alone."""
    outcome: list[tuple[bool, Any]] = []

    def body() -> None:
        try:
            outcome.append((True, work()))
        except BaseException as error:  # noqa: BLE001 - is raised again below
            outcome.append((False, error))

    thread = threading.Thread(target=body, name="tuimon-doctor", daemon=True)
    thread.start()
    thread.join(seconds)
    if not outcome:
        raise TooSlow
    worked, value = outcome[0]
    if worked:
        return value
    raise value
