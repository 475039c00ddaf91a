"""Where in the gap between two steps the loop turned: the cut, by the strongest evidence there is.

The gap lies between the end of the last call of a step and the begin of the first call of the next. In it, from strong to weak:

1. a passage of the loop's own head: the cut itself;
2. where in the loop's body the job was seen (stack samples, sites of long rows), against the instruction of the calls: behind
   it the step goes on, before it the next one has begun;
3. what belongs to one side by its kind: waiting for data and compiling begin a step; a collective, a profiler's step and an
   optimizer end one;
4. nothing: then the gap belongs to the next step, as loading is the commoner thing, and that is said where it matters.

A gap that is as long as it always is goes where those before it went, whether or not something was seen in this one: the job is
looked at now and then only, and steps of which one has two gaps and the next one none would be slow and fast by our doing.

Behind the last step of all there is no next one: the job leaves its loop, cleans up and ends. Of that only what was seen within
the loop is the step's.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

FORMER, NEXT = "former", "next"

MOST_SITES = 1024
TRUSTED = 3
"""In so many gaps the head of a loop was passed once, less those in which it was not: it is that of the steps."""

LEAST_NS = 1_000_000
"""Shorter gaps are nobody's concern."""
MOST_GAPS = 16
LEAST_GAPS = 3
LIKE_OTHERS = 1.5
"""A gap no longer than so many times the median of the latest between the same two calls, of at least three, is usual."""

Path = Sequence[tuple[int, int]]
"""(code, offset) of frames, outermost first."""


@dataclass(slots=True)
class Item:
    """Something in the order of a thread's calls."""

    kind: str
    """"call", "engine", "backward", "former", "next", "gc", "loop", "look"."""
    begin_ns: int
    end_ns: int
    entry: str = ""
    """Of a call: what is called."""
    frame: str = ""
    """Of a call: whose entry that is."""
    instrument: int = 0
    path: Path = ()
    """Of a look or a long row: where the job was seen."""

    @property
    def seen_from_ns(self) -> int:
        """From when on the job is known to have been at that place: a look begins where nothing was known yet."""
        return self.end_ns if self.kind == "look" else self.begin_ns


@dataclass(slots=True)
class Cut:
    """One step ends and the next begins."""

    at_ns: int
    doubt_ns: int = 0
    """So much of the time behind it may belong to the step before it: the length of a gap in which nothing tells."""
    anew: bool = False
    """All cuts before it were wrong: what they parted is one step."""
    over: bool = False
    """And that one ends where the last of them was."""


@dataclass(slots=True)
class Loops:
    """What is known of the loops and of the instructions at which the calls stand."""

    sites: dict[int, dict[int, int]] = field(default_factory=dict)
    """Instrument of a call -> code -> offset."""
    latest: dict[int, int] = field(default_factory=dict)
    """The same, of the call told last: for calls of which nothing was told, as after a recompile."""
    score: dict[int, int] = field(default_factory=dict)
    """Loop's instrument -> in how many gaps its head was passed once, less those in which it was not."""
    heads: frozenset[int] = frozenset()
    """Of those the highest, where it says that a step ends where they have been passed; else none."""

    bodies: dict[int, tuple[int, int, int] | None] = field(default_factory=dict)
    """Instrument of a call -> (code, offset of the head, offset of the jump back) of the innermost loop around it that is none
    within a module's `forward`."""
    latest_body: tuple[int, int, int] | None = None
    """The same, of the call told last."""
    gaps: dict[tuple[int, int], deque[tuple[int, str]]] = field(default_factory=dict)
    """Instruments of the calls before and behind a gap -> how long the latest of them were, and whose they were."""
    around: dict[int, Sequence[tuple[int, bool]]] = field(default_factory=dict)
    """Instrument of a call -> the loops around it, outermost first: (the head's instrument, 0 where its passages are not told;
    whether it is one within a module's `forward`)."""

    def learn(
        self,
        instrument: int,
        site: Path,
        around: Sequence[tuple[int, bool]] = (),
        body: tuple[int, int, int] | None = None,
    ) -> None:
        """A call of this instrument stands there, within these loops, in the body of that one."""
        if instrument in self.sites or len(self.sites) < MOST_SITES:
            self.latest = self.sites[instrument] = dict(site)
            self.around[instrument] = around
            self.latest_body = self.bodies[instrument] = body

    def behind(self, call: Item, other: Item) -> bool:
        """Whether a call stands behind another one in the body of a loop: then it may come in the same turn."""
        mine, others = self.sites.get(call.instrument, {}), self.sites.get(other.instrument, {})
        for code, offset in mine.items():
            if code in others and others[code] != offset:
                return offset > others[code]
        return False

    def side(self, path: Path, last: Item | None, first: Item | None) -> str | None:
        """On which side of the turn a place is: `last` is the former step's last call, `first` the next one's first."""
        if last is not None and self._compared(path, last) > 0:
            return FORMER
        if first is not None and self._compared(path, first) < 0:
            return NEXT
        return None

    def habit(self, last: Item, first: Item, ns: int) -> str | None:
        """On which side gaps between these two calls are, where this one is as long as they are; None where that is open."""
        known = self.gaps.get((last.instrument, first.instrument), ())
        if len(known) < LEAST_GAPS or ns > LIKE_OTHERS * sorted(known)[len(known) // 2][0]:
            return None
        return FORMER if 2 * [side for _, side in known].count(FORMER) > len(known) else NEXT

    def note(self, last: Item, first: Item, ns: int, side: str) -> None:
        """A gap between these two calls was so long, and on that side."""
        between = (last.instrument, first.instrument)
        known = self.gaps.get(between)
        if known is None:
            if len(self.gaps) >= MOST_SITES:
                return
            known = self.gaps[between] = deque(maxlen=MOST_GAPS)
        known.append((ns, side))

    def not_turned(self) -> None:
        """The heads that are trusted were not passed from one step to the next: they are so no more, if that goes on."""
        for head in self.heads:
            self.score[head] //= 2

    def same_turn(self, instrument: int, before: int) -> bool:
        """Whether a call stands behind another one in the body of the innermost loop around that: in the same turn, maybe."""
        body = self.bodies.get(before)
        if body is None:
            return False
        code, _, jump = body
        mine, others = self.sites[before].get(code), self.sites.get(instrument, {}).get(code)
        return mine is not None and others is not None and mine < others <= jump

    def place(self, instrument: int) -> tuple[int, int, int] | None:
        """Where in the body of which loop a call stands: (code, offset of the head, offset); None where that is not known."""
        body = self.bodies.get(instrument)
        at = self.sites[instrument].get(body[0]) if body is not None else None
        return None if body is None or at is None else (body[0], body[1], at)

    def within(self, path: Path, call: Item) -> bool:
        """Whether a place is in the body of the loop around that call."""
        body = self.bodies.get(call.instrument, self.latest_body)
        return body is not None and any(code == body[0] and body[1] <= offset <= body[2] for code, offset in path)

    def generator(self, rows: Sequence[tuple[int, int, int, int]], last: int, first: int) -> int | None:
        """The code of the generator that the loop has called for its next batch, where a look shows one at work.

        `last` and `first`: the instruments of the latest call, and of the first one of its step.
        """
        site = self.sites.get(last, self.latest)
        for (code, _, offset, _), (inner, _, _, generator) in pairwise(rows):
            at = site.get(code)
            if at is None or at == offset:
                continue
            before = self.sites.get(first, self.latest).get(code, offset)
            return inner if generator and offset < before else None
        return None

    def _compared(self, path: Path, call: Item) -> int:
        """Below 0: it is before that call in the loop's body; above 0: behind it; 0: not known."""
        site = self.sites.get(call.instrument, self.latest)
        for code, offset in path:
            at = site.get(code)
            if at is not None and at != offset:
                return 1 if offset > at else -1
        return 0


def turn(loops: Loops, last: Item, first: Item | None, between: Iterable[Item]) -> Cut:
    """The cut in the gap behind `last`; `first` is None at the end of the job."""
    between = list(between)
    if not between and first is not None:  # nothing was seen in it, as in most
        passage = _passage(loops, between)
        if passage is not None:
            return Cut(passage)
        return _by_habit(loops, last, first, last.end_ns, max(last.end_ns, first.begin_ns), None)
    if first is None:
        # an instant is that of a resume function: of the last call itself
        between = [
            one
            for one in between
            if (loops.within(one.path, last) if one.path else one.kind in ("loop", "next") or one.begin_ns == one.end_ns)
        ]
    low = last.end_ns
    high = max([low, *(one.end_ns for one in between)]) if first is None else max(low, first.begin_ns)
    passage = _passage(loops, [one for one in between if one.kind == "loop" and low <= one.begin_ns <= high])
    if passage is not None:
        return Cut(passage)
    sides = [loops.side(one.path, last, first or last) if one.path else None for one in between]
    for one, side in zip(between, sides, strict=True):
        if side == NEXT:
            break
        if one.kind == "former" or (one.kind == "next" and side == FORMER):
            low = max(low, one.end_ns) if one.end_ns <= high else low
        elif one.kind == "next":
            if one.begin_ns >= low:
                high = min(high, one.begin_ns)
            break
    former = None
    seen = None
    unseen = 0  # of the gap, on the other side of where it was seen
    for one, side in zip(between, sides, strict=True):
        if side is None or one.end_ns < low or one.begin_ns > high:
            continue
        if side == FORMER:
            if one.kind not in ("former", "next"):
                former = min(high, one.end_ns)
        elif side == NEXT:
            since = min(high, max(low, one.seen_from_ns))
            if former is not None:  # it has turned between the two looks
                return Cut(former, max(0, since - former))
            seen, unseen = NEXT, since - low
            break
    if former is not None:
        seen, unseen = FORMER, high - former
    if first is None:
        return Cut(high if seen == FORMER else low)
    return _by_habit(loops, last, first, low, high, seen, unseen)


def _by_habit(loops: Loops, last: Item, first: Item, low: int, high: int, seen: str | None, unseen: int = 0) -> Cut:
    """The cut in what is left of a gap, from `low` to `high`: at one of its ends. `seen`: whose it was seen to be.

    For `unseen` of it nobody looked. Where that is nearly all of it, and it is not as it always is, it may be the other's.
    """
    if high - low < LEAST_NS:
        return Cut(high) if seen == FORMER else Cut(low, 0 if seen else high - low)
    usual = loops.habit(last, first, high - low)
    whose = usual or seen or NEXT
    loops.note(last, first, high - low, whose)
    telling = whose == seen and (usual is not None or 4 * unseen <= 3 * (high - low))
    return Cut(high if whose == FORMER else low, 0 if telling else unseen if whose == seen else high - low)


def _passage(loops: Loops, passages: list[Item]) -> int | None:
    """When the head of the steps' loop was passed, of all the heads that were passed in a gap."""
    if len(passages) == 1 and len(loops.score) == 1 and passages[0].instrument in loops.score:
        # in nearly all gaps: the one loop there is, once
        head = passages[0].instrument
        once_more = loops.score[head] = min(64, loops.score[head] + 1)
        if (head in loops.heads) != (once_more >= TRUSTED):
            loops.heads = frozenset((head,)) if once_more >= TRUSTED else frozenset()
        return passages[0].begin_ns
    if not passages and not loops.score:
        return None  # no loop's head has ever been passed in a gap
    times: dict[int, list[int]] = {}
    for one in passages:
        times.setdefault(one.instrument, []).append(one.begin_ns)
    score = loops.score
    for instrument in {*score, *times}:
        if instrument in score or len(score) < MOST_SITES:
            once = len(times.get(instrument, ())) == 1
            score[instrument] = max(-8, min(64, score.get(instrument, 0) + (1 if once else -1)))
    most = max(score.values(), default=0)
    loops.heads = frozenset(each for each, times_once in score.items() if times_once == most >= TRUSTED)
    best = max(times, key=lambda instrument: (score.get(instrument, 0), instrument), default=None)
    if best is None or (score.get(best, 0) <= 0 and len(times[best]) != 1):
        return None
    return times[best][-1]
