"""What a finding is, and the words that all of them share."""

from __future__ import annotations

import os
from dataclasses import dataclass

from tuimon.model.about import About
from tuimon.model.identity import plain_function
from tuimon.model.parts import Frame


@dataclass(frozen=True, slots=True)
class Finding:
    """Something to look at."""

    kind: str
    """"boundary", "recompile", "late compile", "limit", "near limit", "skipped frame", "failed compilation",
    "compiled nothing", "stance", "disabled", "guards off", "suppress_errors", "slow_step", "slower",
    "more_eager", "late_rank", "slow_rank", "graph_order", "compile_skew", "gpu_waiting", "gpu_held_back", "gpu_lost", "xid",
    "gpu_ecc", "gpu_full", "cpu_quota", "cpu_starved", "oom_near"."""
    title: str
    where: str
    """"file:line", or empty where it is about the whole process."""
    cost_s: float | None
    """Seconds seen so far, None where the cost is not known."""
    evidence: tuple[str, ...]
    next_step: str
    calls: int | None = None
    """Calls that ran in eager, where it is about them and they are counted."""
    about: About | None = None
    """What it is about, where that can be looked at."""


def shown(function: str) -> str:
    """What to call a frame in a sentence; a resume function by the function that it goes on with."""
    plain = plain_function(function)
    return function if plain == function else f"{plain} (the part after its graph break)"


def place(file: str, line: int) -> str:
    """`model.py:57`."""
    return f"{os.path.basename(file)}:{line}"


def where(frame: Frame) -> str:
    """`file:line` of a frame; the user's line that calls it, where the frame is a library's and that is known."""
    if frame.user_file:
        return f"{frame.user_file}:{frame.user_line}"
    return f"{frame.file}:{frame.line}"


def many(number: int, one: str) -> str:
    """`1 call`, `20 calls`."""
    return f"{number:,} {one}{'' if number == 1 else 's'}"


def seconds(value: float) -> str:
    """A time in a sentence: `3.20 s`, `41.3 ms`, `412 us`."""
    if value >= 1:
        return f"{value:.2f} s"
    return f"{value * 1e3:.1f} ms" if value >= 1e-3 else f"{value * 1e6:.0f} us"
