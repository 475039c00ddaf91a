"""What steps need to know of instruments: what a call's time counts as, and what it tells of the order of steps."""

from __future__ import annotations

from dataclasses import dataclass

from tuimon import events as ev
from tuimon.model.parts import Compilation
from tuimon.model.steps import account as of
from tuimon.model.steps.parts import LongRow

_CATEGORY: dict[str, int | None] = {
    "forward": of.FORWARD, "backward": of.BACKWARD, "optimizer": of.OPTIMIZER, "data": of.DATA, "engine": of.OTHER,
    "gc": of.GC, "profiler": of.PROFILER, "communication": of.COMMUNICATION,
}  # fmt: skip
_KIND = {
    "forward": "call", "eager": "call", "engine": "engine", "resume": "former", "communication": "former",
    "profiler": "former", "data": "next", "gc": "gc", "loop": "loop",
}  # fmt: skip
_COUNTS_AS = {"eager": of.EAGER, "engine": of.ENGINE}
_NO_BEGIN = ("gc", "optimizer", "mark", "cpu")
"""Roles of what says nothing of where the job's first step begins."""
_FLAGGED = ("gc", "communication")
"""Roles whose flags say more than that a call raised."""
_APART = ("optimizer", "mark", "cpu")

TAKES_TIME, IS_CALL, TURNS, ENCLOSES, APART, NOTHING = range(6)
"""Ways: it only takes its thread's time; it is a call, too, of which the first and the last of a step matter; it says that a
loop has turned; what other threads run within it is its own thread's; it ends or marks steps, or reads a clock;
it is nothing to steps."""


@dataclass(frozen=True, slots=True)
class Timed:
    """What steps need to know of an instrument."""

    role: str
    category: int | None
    kind: str | None
    entry: str
    frame: str
    event: ev.InstrumentAdded
    counts_as: int | None
    """What its time is in an account (one of CATEGORIES, EAGER, ENGINE); None for what takes none."""
    tells_begin: bool
    """Whether the job's first step may begin with it."""
    head: tuple[str, int, int, str, str, str, int]
    """What all its long rows begin with."""
    number: int
    """The instrument's."""
    tells: bool
    """It says something of steps that are told: it ends or turns one, or it is a call, where its first and last matter."""
    turns: bool
    """The head of a loop was passed, or data waited for."""
    is_apart: bool
    """It ends or marks steps, or reads a clock: it is none of the calls in whose order steps are looked for."""
    way: int
    """What there is to do with it where steps are told and it is known where the latest one ends: one of the ways above."""

    @classmethod
    def of(cls, event: ev.InstrumentAdded, entry: str, frame: str, *, is_optimizer: bool) -> Timed:
        """Of an instrument that times calls of `entry`, of a `frame`; a region can be a compiled optimizer's step."""
        kind = _KIND.get(event.role)
        category = _CATEGORY.get(event.role)
        if is_optimizer:
            kind, category = "former", of.OPTIMIZER
        elif event.role == "optimizer":
            is_optimizer = True
        role = "optimizer" if is_optimizer else event.role
        counts_as = _COUNTS_AS.get(role, category)
        at = of.OTHER if category is None else category
        head = role, at, event.instrument, event.name, event.function, event.file, event.line
        turns, is_apart = kind in ("loop", "next"), role in _APART
        tells = turns or is_apart or kind == "call"
        way = APART if is_apart else TURNS if turns else ENCLOSES if kind == "engine" else IS_CALL if tells else TAKES_TIME
        return cls(
            role,
            category,
            kind,
            entry,
            frame,
            event,
            counts_as,
            role not in _NO_BEGIN,
            head,
            event.instrument,
            tells,
            turns,
            is_apart,
            way,
        )


def long_row(timed: Timed, thread: int, flags: int, begin_ns: int, end_ns: int) -> LongRow:
    """A call that took long."""
    role, raised = timed.role, bool(flags & 1)
    if role not in _FLAGGED:
        return LongRow(*timed.head, begin_ns, end_ns, thread, 0, None, 0, None, timed.event.compile_id, None, raised)
    generation = flags >> 8 & 0xFF if role == "gc" else None
    sequence = flags >> 8 & 0xFFFFFF if role == "communication" else 0
    return LongRow(*timed.head, begin_ns, end_ns, thread, 0, generation, sequence, None, timed.event.compile_id, None, raised)


def compile_row(compilation: Compilation) -> LongRow:
    """A compilation; its thread is filled in where its number is known."""
    return LongRow(
        "compile",
        of.COMPILE,
        0,
        compilation.direction,
        compilation.function,
        compilation.file,
        compilation.line,
        compilation.began_ns,
        compilation.ended_ns,
        0,
        compile_id=compilation.compile_id,
    )
