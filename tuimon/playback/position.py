"""Where a replay stands, and where somebody wants it to."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NamedTuple

_CLOCK = re.compile(r"(\d{1,2}):(\d\d)(?::(\d\d))?")
_TIME = re.compile(r"([+-]?)(?:(\d+)h)? ?(?:(\d+)m)? ?(?:(\d+(?:\.\d+)?)s)?")
DAY_S = 86_400
LONGEST = 80
"""Characters of a place: no number in so many is too large for anything here."""

FORMS = "a step (1204), a time of day (03:12), a time since the begin (90s, 2m30s), from here (+30s, -1m), a share (50%)"


class Position(NamedTuple):
    """Where a replay stands."""

    step: int | None
    """The index of the latest step that is over; None before the first."""
    at_s: float
    """Seconds since the recording began."""
    of_s: float
    """How long it is, as far as it is read."""
    speed: float | None
    """Times the job's own pace; None: as fast as it goes."""
    paused: bool
    over: bool
    """It stands at the end."""
    loaded: float
    """The share of it that has been read, 0 to 1."""
    rows: int
    """Samples that have been read."""
    of_rows: int | None
    """Samples in it."""
    going: str = ""
    """Where it is going at the moment, in words; "": nowhere."""


@dataclass(frozen=True, slots=True)
class Place:
    """Somewhere in a recording: just behind a step, at a time, or at a share of it."""

    words: str
    step: int | None = None
    """The step's index: it is over there."""
    at_ns: int = 0
    """Since the begin of the recording."""
    share: float | None = None


def place(text: str, *, at_s: float, of_s: float | None, began_s: float | None, utc_offset_s: int = 0) -> Place | str:
    """The place that a person has typed, see FORMS; or a sentence on what is wrong with it.

    `at_s` is where the replay stands and `of_s` how long it is, None where that is not known yet; `began_s` is the Unix time at
    which it began.
    """
    text = text.strip().lower()
    if len(text) > LONGEST:
        return f"where is that? {FORMS}"
    if text.removeprefix("step ").isdecimal() and len(text) < 18:
        step = int(text.removeprefix("step "))
        return Place(f"step {step}", step)
    if text.endswith("%") and re.fullmatch(r"\d{1,3}(\.\d+)?%", text):
        return Place(text, share=min(100.0, float(text[:-1])) / 100)
    clock = _CLOCK.fullmatch(text)
    if clock is not None:
        if began_s is None:
            return "this recording does not tell when it began: a time of day cannot be found in it"
        hours, minutes, second = (int(one or 0) for one in clock.groups())
        begin = began_s + utc_offset_s
        since = (hours * 3600 + minutes * 60 + second - begin % DAY_S) % DAY_S
        if of_s is not None and since > of_s:
            return f"{text} is not in this recording: it begins at {_of_day(begin)} and is {_span(of_s)} long"
        return Place(text, at_ns=int(since * 1e9))
    time = _TIME.fullmatch(text)
    if time is not None and text.strip("+-"):
        way, *parts = time.groups()
        seconds = sum(float(one or 0) * each for one, each in zip(parts, (3600.0, 60.0, 1.0), strict=True))
        if way:
            seconds = at_s + (seconds if way == "+" else -seconds)
        return Place(text, at_ns=max(0, int(seconds * 1e9)))
    return f"where is that? {FORMS}"


def _of_day(unix_s: float) -> str:
    seconds = int(unix_s % DAY_S)
    return f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"


def _span(seconds: float) -> str:
    whole = int(seconds)
    return f"{whole // 3600}h{whole // 60 % 60:02}m" if whole >= 3600 else f"{whole // 60}m{whole % 60:02}s"
