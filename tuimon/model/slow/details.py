"""Where and what, in a person's words, for each category of one step: from the long rows, looks and compilations in it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from tuimon.model.findings.finding import many, place, seconds, shown
from tuimon.model.identity import is_wrapper
from tuimon.model.reading import reading_of
from tuimon.model.slow.naming import OTHER, Told
from tuimon.model.slow.spots import Spot, Spots, TextOf, shortened
from tuimon.model.steps.parts import CATEGORIES, LongRow, StepAccount, StepEvidence

if TYPE_CHECKING:
    from tuimon.model.model import Model
    from tuimon.model.parts import Compilation, Recompile
    from tuimon.model.steps.parts import SlowStep

MOST = 2
"""So many compilations are told by name in one detail."""
LONGEST_PART = 0.8
"""From this part of all the time of its kind on, the longest call is told alone."""

_COLLECTIVES = {
    "allreduce": "all_reduce", "allgather": "all_gather", "_allgather_base": "all_gather_into_tensor", "alltoall": "all_to_all",
    "_reduce_scatter_base": "reduce_scatter_tensor", "alltoall_base": "all_to_all_single",
}  # fmt: skip
"""The names of `torch.distributed` for its process group's methods, where they differ."""


class Details:
    """What is known of one step, category by category."""

    def __init__(
        self, model: Model, account: StepAccount, evidence: StepEvidence | None, text_of: TextOf, *, serves: bool = False
    ) -> None:
        """`serves`: the step is one of a job that trains nothing, which may wait for work (`idle.serves`)."""
        self._model = model
        self._serves = serves
        self._account = account
        self._evidence = evidence or StepEvidence(0)
        self._text_of = text_of
        self._told: dict[str, Told] = {}

    def tell(self, category: str) -> Told:
        """The details of one of CATEGORIES."""
        if category not in self._told:
            special = {
                "compile": self._compile, "gc": self._gc, "data wait": self._data, "communication": self._communication, OTHER:
                self._other,
            }.get(category)  # fmt: skip
            self._told[category] = special() if special is not None else self._longest(category)
        return self._told[category]

    # ------------------------------------------------------------------------------------------ compile

    @property
    def compilations(self) -> list[Compilation]:
        """Those that ran within the step, longest first."""
        account, found = self._account, []
        for one in reversed(self._model.compilations):
            if one.before_attach:
                continue
            if one.ended_ns <= account.begin_ns:
                break  # they are in the order of their ends
            if one.began_ns < account.end_ns:
                found.append(one)
        # those on other threads are nothing that this step waited for, where it is known which are its own
        own = {row.compile_id.split()[0] for row in self._evidence.rows if row.role == "compile" and row.compile_id}
        mine = [one for one in found if one.compile_id in own] or found
        return sorted(mine, key=lambda one: -(one.total_s or 0.0))

    def _compile(self) -> Told:
        found = self.compilations
        if not found:
            return Told()
        words = [compilation_words(self._model, one) for one in found[:MOST]]
        if len(found) > MOST:
            words.append(f"and {len(found) - MOST} more")
        evidence = []
        for one in found[:MOST]:
            caches = ", ".join(f"{cache} {result}" for cache, result in one.cache.items())
            told = f", {caches}" if caches else ""
            evidence.append(
                f"[{one.compile_id}] {one.direction}: {seconds(one.total_s or 0.0)}{told} (torch's compilation metrics)"
            )
        return Told("; ".join(words), tuple(evidence))

    # ------------------------------------------------------------------------------------------ rows

    def _rows(self, category: str) -> list[LongRow]:
        """Long rows of a category, most own time first."""
        at, mine = CATEGORIES.index(category), self._evidence.rows
        if category in ("gc", OTHER):  # within a compilation or a call of the profiler they are part of that
            around = [row for row in mine if row.role in ("compile", "profiler")]
            mine = [row for row in mine if not any(_within(row, one) for one in around)]
        return sorted((row for row in mine if row.category == at), key=lambda row: -row.own_ns)

    def _gc(self) -> Told:
        rows = self._rows("gc")
        if not rows:
            return Told("many short collections")
        first = rows[0]
        generation = "?" if first.generation is None else first.generation
        text = self._site_text(first)
        asked = "collect" in text
        how = "automatic collection" if text and not asked else "collection"
        more = f"; {many(len(rows) - 1, 'more collection')}" if len(rows) > 1 else ""
        line = f": {text}" if asked else ""
        detail = f"{how} of generation {generation}{self._at(first)}{line}, {seconds(_took(first))}{more}"
        return Told(detail, (f"{seconds(sum(map(_took, rows)))} in {many(len(rows), 'collection')} (gc.callbacks)",))

    def _data(self) -> Told:
        rows = self._rows("data wait")
        if not rows:
            return Told()
        first = rows[0]
        if first.role == "look":
            spot = Spots(self._model, self._evidence, self._text_of).most(first.begin_ns, first.end_ns)
            inner = f": {spot.words}" if spot is not None else self._at(first)
            looks = f", in {spot.count} of {many(spot.of, 'look')}" if spot is not None else ""
            return Told(
                f"next() of {first.name or first.function}{inner}, {seconds(_took(first))}",
                (f"{seconds(_took(first))} with nothing else timed{looks} (stack of the thread, at most every 20 ms)",),
            )
        total = sum(row.own_ns for row in rows)
        of = f" of {seconds(total / 1e9)} in {many(len(rows), 'call')}" if first.own_ns < LONGEST_PART * total else ""
        return Told(f"{first.name}{self._at(first)}, {seconds(_took(first))}{of}", (self._timed(rows),))

    def _communication(self) -> Told:
        rows = self._rows("communication")
        if not rows:
            return Told()
        first = rows[0]
        name = first.name
        for raw, public in _COLLECTIVES.items():
            if name == raw or name.endswith(f" {raw}"):
                name = name[: -len(raw)] + public
        number = f", number {first.sequence} of its group" if first.sequence else ""
        return Told(f"{name}{self._at(first)}, {seconds(_took(first))}{number}", (self._timed(rows),))

    def _longest(self, category: str) -> Told:
        """The row with most own time of a category that has no words of its own."""
        rows = self._rows(category)
        if not rows:
            return Told()
        first = rows[0]
        boundary = self._model.boundaries.get(first.boundary or "")
        if boundary is not None:
            kind = f": {boundary.kind}" if boundary.kind else ""
            at = place(boundary.user_file or boundary.file, boundary.user_line or boundary.line)
            name = f"the boundary in {shown(boundary.function)} at {at}{kind}"
        elif first.compile_id:
            name = f"{shown(first.function)} [{first.compile_id}]"
        elif category == "profiler":
            name = f"{first.name} ({first.function}){self._at(first)}"
        else:
            name = f"{first.name or first.function}{self._at(first)}"
        return Told(f"{name}, {seconds(first.own_ns / 1e9)}", (self._timed(rows),))

    def _timed(self, rows: list[LongRow]) -> str:
        total = sum(row.own_ns for row in rows)
        names = list(dict.fromkeys(row.function or row.name for row in rows))
        timed = ", ".join(names[:MOST]) + (f" and {len(names) - MOST} more" if len(names) > MOST else "")
        return f"{seconds(total / 1e9)} in {many(len(rows), 'call')} of a millisecond or more ({timed}, timed)"

    def _at(self, row: LongRow) -> str:
        """` at train.py:15`: where the call was made from, or else what was called."""
        site = row.site
        if site is not None:
            code = self._model.code(site.code)
            if code is not None:
                return f" at {place(code.file, site.line)}"
            if site.stack:
                return f" at {place(site.stack[-1][0], site.stack[-1][1])}"
        return f" at {place(row.file, row.line)}" if row.file else ""

    def _site_text(self, row: LongRow) -> str:
        if row.site is None:
            return ""
        code = self._model.code(row.site.code)
        return "" if code is None else shortened(self._text_of(code.file, row.site.line))

    # ------------------------------------------------------------------------------------------ looks

    def _other(self) -> Told:
        begin, end = self._account.begin_ns, self._account.end_ns
        spots = Spots(self._model, self._evidence, self._text_of)
        waits = spots.waits(begin, end) if self._serves else None
        told = self._seen(spots.all(begin, end, working=waits is not None))
        return told if waits is None else replace(told, waits_ns=waits.ns, waits=waits.words)

    def _seen(self, found: Sequence[Spot]) -> Told:
        """Where the thread was, while it was not waiting for work."""
        spot = found[0] if found else None
        engines = [row for row in self._rows(OTHER) if row.role == "engine"]
        engine = sum(row.own_ns for row in engines)
        if engine > (spot.ns if spot is not None else 0):
            told = f"the autograd engine (a backward in eager), {seconds(engine / 1e9)}"
            return Told(told, (f"{seconds(engine / 1e9)} in {many(len(engines), 'run')} of the engine (timed)",), engine)
        if spot is None:
            return Told()
        looks = f"{spot.count} of {many(spot.of, 'look')}"
        words, second, part = f"{spot.words}, in {looks}", "", 0.0
        if len(found) > 1 and found[1].count > 1:  # a single look may have come by chance
            second = f"{found[1].words}, in {found[1].count} of {many(spot.of, 'look')}"
            part = found[1].ns / max(1, spot.ns + found[1].ns)
        return Told(
            words,
            (f"{seconds(spot.ns / 1e9)} there by {looks} at the thread's stack (at most every 20 ms while nothing is timed)",),
            spot.all_ns,
            second,
            part,
        )


def _within(row: LongRow, around: LongRow) -> bool:
    return around.begin_ns <= row.begin_ns and row.end_ns <= around.end_ns


def _took(row: LongRow) -> float:
    return (row.end_ns - row.begin_ns) / 1e9


def where(model: Model, slow: SlowStep, text_of: TextOf) -> str:
    """`file:line` from which the longest call behind the first cause was made, or at which the thread was seen most.

    Empty where there is none, or what was seen in the step is no longer held.
    """
    evidence, category = model.steps.evidence(slow.account.index), slow.causes[0].cause
    if evidence is None or category not in CATEGORIES:
        return ""
    at = CATEGORIES.index(category)
    for row in sorted(evidence.rows, key=lambda row: -row.own_ns):
        if row.category == at and row.site is not None:
            code = model.code(row.site.code)
            if code is not None:
                return f"{code.file}:{row.site.line}"
    if category not in (OTHER, "data wait"):
        return ""
    spot = Spots(model, evidence, text_of).most(slow.account.begin_ns, slow.account.end_ns)
    return spot.where if spot is not None else ""


# ------------------------------------------------------------------------------------------------- compilations


def compilation_words(model: Model, one: Compilation) -> str:
    """`recompile of encode [0/1]: size of x at 0 was 8, is 6 (4.42 s)`."""
    name = f"{shown(one.function)} [{one.compile_id}]"
    took = f" ({seconds(one.total_s)})" if one.total_s is not None else ""
    cached = ", from the cache" if "hit" in one.cache.values() and "miss" not in one.cache.values() else ""
    if one.refused:
        return f"recompile of {name} refused by the limit{took}"
    recompile = recompile_of(model, one)
    if one.direction == "backward":
        first = "" if recompile is not None or not one.compile_id.endswith("/0") else "first "
        return f"{first}backward of {name}{cached}{took}"
    if recompile is not None:
        reading = reading_of(model, recompile)
        return f"recompile of {name}: {reading.sentence or recompile.guard}{cached}{took}"
    if was_reset(model, one):
        return f"{name} compiled again after torch._dynamo.reset(){cached}{took}"
    return f"first compile of {name}{cached}{took}"


def recompile_of(model: Model, one: Compilation) -> Recompile | None:
    """The recompile that a compilation is, None for one that is none."""
    for recompile in reversed(model.recompiles):
        if recompile.compilation is one:
            return recompile
    return None


def was_reset(model: Model, one: Compilation) -> bool:
    """Whether the same function had been compiled before a `torch._dynamo.reset()`, and be it before the attach."""
    frame = model.frames.get(one.frame or "")
    if frame is None or one.generation == 0:
        return False
    return any(
        other.generation < one.generation
        and (other.file, other.line, other.function) == (frame.file, frame.line, frame.function)
        and (not one.owner or not is_wrapper(frame.file) or one.owner in other.owners)
        for other in model.frames.values()
    )
