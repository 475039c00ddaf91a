"""Where the thread of a step was seen while nothing was timed: by lines, by calls, and whether it only waited for work."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tuimon.events import StackSeen
from tuimon.model.findings.finding import many, place
from tuimon.model.identity import is_library
from tuimon.model.slow.idle import where_idle
from tuimon.model.steps.parts import StepEvidence

if TYPE_CHECKING:
    from tuimon.model.model import Model

LOOK_NS = 20_000_000
"""A look stands for the time back to the look or row before it; the last one of a stretch also for so long after it."""
LONGEST_TEXT = 80
"""Characters of a line's text in a detail."""
_REMARK = re.compile(r"\s+#[^'\"]*$")

TextOf = Callable[[str, int], str]
"""The text of a line, stripped; empty where it is not known."""


@dataclass(frozen=True, slots=True)
class Spot:
    """The line at which a thread was seen most."""

    words: str
    """`main train.py:10: time.sleep(0.12)`."""
    where: str
    """`file:line`, empty where it is not known."""
    count: int
    of: int
    """So many looks saw it, of so many."""
    ns: int
    all_ns: int
    """The time that these, and all of them, stand for."""


def _in_common(paths: Sequence[Sequence[int]]) -> int:
    """How many functions, from the outermost on, all of these have in common."""
    shortest = min(map(len, paths), default=0)
    return next((at for at in range(shortest) if len({path[at] for path in paths}) > 1), shortest)


class Spots:
    """Where the looks of a step have seen its thread."""

    def __init__(self, model: Model, evidence: StepEvidence, text_of: TextOf) -> None:
        self._model = model
        self._text_of = text_of
        self._busy = [(row.begin_ns, row.end_ns) for row in evidence.rows if row.role not in ("engine", "look")]
        self._ends = sorted(begin for begin, _ in self._busy)
        self._looks = evidence.looks

    def most(self, begin_ns: int, end_ns: int) -> Spot | None:
        """The line seen most between these times; None where the thread was not seen at all."""
        return next(iter(self.all(begin_ns, end_ns)), None)

    def all(self, begin_ns: int, end_ns: int, *, working: bool = False) -> list[Spot]:
        """Where the thread was seen between these times, the place seen for longest first; `working`: without waiting for work.

        A place is a line of the function that all looks have in common, or else a call from there, whatever it came to: then
        the line told is that at which the call was seen most.
        """
        held = [(look, ns) for look, ns in self._held(begin_ns, end_ns) if not (working and self._idle(look.rows))]
        spent: Counter[tuple[int, int]] = Counter()
        lines: dict[tuple[int, int], Counter[tuple[int, int]]] = {}
        inner: dict[tuple[int, int], tuple[str, str]] = {}
        paths = [self._path(look.rows) for look, _ in held]
        common = _in_common(paths)
        for at, (look, ns) in enumerate(held):
            line, within = self._line(look.rows)
            spot = (paths[at][common], 0) if len(paths[at]) > common else line
            spent[spot] += ns
            lines.setdefault(spot, Counter())[line] += 1
            inner.setdefault(line, within)
        total, found = sum(spent.values()), []
        for spot in sorted(lines, key=lambda one: (-spent[one], -lines[one].total())):
            line, _ = lines[spot].most_common(1)[0]
            code = self._model.code(line[0])
            where = "" if code is None else f"{code.file}:{line[1]}"
            more = f" and {many(len(lines[spot]) - 1, 'more line')}" if len(lines[spot]) > 1 else ""
            words = self._words(line, inner[line]) + more
            found.append(Spot(words, where, lines[spot].total(), len(held), spent[spot], total))
        return found

    def waits(self, begin_ns: int, end_ns: int) -> Spot | None:
        """Where the thread was seen waiting for work between these times; None where it was not."""
        held = self._held(begin_ns, end_ns)
        seen = [(self._line(look.rows)[0], how, ns) for look, ns in held if (how := self._idle(look.rows))]
        if not seen:
            return None
        (line, how), _ = Counter((line, how) for line, how, _ in seen).most_common(1)[0]
        words = f"{self._words(line, (how, ''))}, in {len(seen)} of {many(len(held), 'look')}"
        ns = sum(ns for *_, ns in seen)
        return Spot(words, "", len(seen), len(held), ns, ns)

    def _held(self, begin_ns: int, end_ns: int) -> list[tuple[StackSeen, int]]:
        """The looks between these times at which nothing was timed, and the time (ns) that each stands for."""
        looks = [one for one in self._looks if one.rows and begin_ns <= one.t_ns <= end_ns]
        looks = [one for one in looks if not any(began <= one.t_ns <= ended for began, ended in self._busy)]
        found, reached = [], begin_ns
        for at, look in enumerate(looks):
            following = looks[at + 1] if at + 1 < len(looks) else None
            start = max(reached, look.since_ns, begin_ns)
            until = look.t_ns
            if following is None or following.since_ns >= look.t_ns:  # the last one of a quiet stretch
                free = next((one for one in self._ends if one >= look.t_ns), end_ns)
                until = min(look.t_ns + LOOK_NS, free, end_ns)
            reached = until
            found.append((look, max(0, until - start)))
        return found

    def _idle(self, rows: Iterable[tuple[int, int, int, int]]) -> str:
        """What a stack waits for work in; empty where it does not."""
        seen = [self._model.code(code) for code, *_ in rows]
        return where_idle([("", "") if one is None else (one.file, one.function) for one in seen])

    def _path(self, rows: Iterable[tuple[int, int, int, int]]) -> list[int]:
        """The user's functions on a stack, outermost first."""
        seen = ((code, self._model.code(code)) for code, *_ in rows)
        return [code for code, told in seen if told is not None and not is_library(told.file)]

    def _line(self, rows: Iterable[tuple[int, int, int, int]]) -> tuple[tuple[int, int], tuple[str, str]]:
        """The user's innermost line, and function and file of the innermost frame where that is a library's."""
        ordered = list(rows)
        last = self._model.code(ordered[-1][0])
        for code, line, _, _ in reversed(ordered):
            seen = self._model.code(code)
            if seen is not None and not is_library(seen.file):
                library = last is not None and last is not seen and is_library(last.file)
                return (code, line), (last.function, last.file) if library and last is not None else ("", "")
        return (ordered[-1][0], ordered[-1][1]), ("", "")

    def _words(self, spot: tuple[int, int], within: tuple[str, str]) -> str:
        code = self._model.code(spot[0])
        if code is None:
            return f"line {spot[1]} of a function that is not known"
        text = shortened(self._text_of(code.file, spot[1]))
        told = f"{code.function} {place(code.file, spot[1])}" + (f": {text}" if text else "")
        return told + (f" (in {within[0]})" if within[0] else "")


def shortened(text: str) -> str:
    """A line's text without the remark at its end, cut to what fits into a sentence."""
    told = _REMARK.sub("", text)
    return told if len(told) <= LONGEST_TEXT else f"{told[: LONGEST_TEXT - 2]}.."
