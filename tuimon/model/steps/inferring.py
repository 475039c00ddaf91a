"""Steps of a job that has no optimizer and no mark: inferred from the order of its calls on one thread.

Rule B, where backwards are seen: a step ends with its backward and what belongs to it; forward calls without a backward belong
to the step whose backward follows. Rule F, where none are: the order of the calls repeats, and so does the step. In both the
calls tell only *that* a step passed; `turning` says where in the gap.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Sequence
from functools import partial
from itertools import compress
from operator import attrgetter

from tuimon.model.steps.looping import Turns
from tuimon.model.steps.repeating import BETTER, LOOKED_AT, agreement, period_of
from tuimon.model.steps.turning import Cut, Item, Loops, Path, turn

FIRST_LOOK = 16
"""Calls before a period is told."""
PATIENCE = 96
"""Calls before it is told that all are alike, where the turns of their loop are soon known."""
LATER_LOOKS = (32, 64, 128, 256, LOOKED_AT)
"""Calls after which it is checked again."""

MOST_WAITING = 4096
"""Calls, and things between them, that are kept until it is known how steps are told."""
MOST_BETWEEN = 512
"""Things in one gap that are kept."""
MOST_TOLD = 64

_ANCHORS = ("call", "engine", "backward")
_entry, _kind = attrgetter("entry"), attrgetter("kind")

IN_FORWARD = (
    "the compiled functions are called in a loop of a module's own, and where the loop around that turns is not known on this "
    "Python; mark the steps: tuimon.step(), or --step module:function"
)
NESTED = "in two loops, one within the other, and a step may be a turn of the outer one: mark the steps to be sure"
NO_ORDER = "the calls of the regions come in no order that repeats; mark the steps: tuimon.step(), or --step module:function"


class Inference:
    """Tells where steps end, from the calls of one thread in the order in which they end."""

    def __init__(self, loops: Loops, *, whole: bool) -> None:
        """`whole`: the first item is the job's first, so that a step begins with it."""
        self.loops = loops
        self.why_not = ""
        self.certain = True
        """Whether what is taken for a step is one, for all that is known."""
        self._turns = Turns(loops)
        self._whole = whole
        self._told: dict[tuple[int, int], Path] = {}
        self._waiting: list[Item] = []
        """Items that no rule has been found for yet; None of them lies within another."""
        self._rule = ""
        self._period = 0
        self._place = 0
        """Of the mark within a period; it is at 0 wherever that can be told."""
        self._is_mark: Callable[[Item], bool] | None = None
        self._calls: deque[Item] = deque(maxlen=max(LATER_LOOKS))
        self._n_calls = 0
        self._recheck = True
        # the step that is under way
        self._in_step = 0
        self._at = 0
        self._has_backward = False
        self._backward: Item | None = None
        """The latest run of the engine, or of a backward."""
        self._first: Item | None = None
        self._last: Item | None = None
        self._between: list[Item] = []
        # until two backwards have been seen
        self._forwards: list[int] = []
        """Calls before each backward."""
        self._doubted = False
        """Rule F was followed before the first backward, and it is not yet known whether it was right."""

    @property
    def last_call(self) -> Item | None:
        """The latest call that has been folded in."""
        if self._waiting:
            return next((one for one in reversed(self._waiting) if one.kind in _ANCHORS), self._last)
        return self._last

    @property
    def settled_ns(self) -> int:
        """No cut will come before that time."""
        if not self._rule:
            return self._waiting[0].begin_ns if self._waiting else 0
        return self._last.begin_ns if self._last is not None else 0

    @property
    def how(self) -> str:
        """In words, how steps are told."""
        if self._rule == "B":
            return "inferred: a step ends with its backward"
        if self._rule == "F" and self._period == 1:
            one = "inferred: a step is one call of the compiled function"
            return one if self.certain else f"{one}; it stands {NESTED}"
        return f"inferred: the order of the calls repeats every {self._period} calls" if self._rule else ""

    def add(self, item: Item) -> Sequence[Cut]:
        """One more item. Gives the cuts that are known by it."""
        if item.kind == "gc" and self._told:
            item.path = self._told.pop((item.instrument, item.end_ns), ())
        self._turns.take(item)
        if self._rule:
            return self._take(item)
        waiting = self._waiting
        while waiting and waiting[-1].begin_ns >= item.begin_ns and item.kind != "look" and waiting[-1].kind != "look":
            within = waiting.pop().kind  # a call of the engine, or of a loader
            if within == "call":
                self._n_calls -= 1
            elif within != item.kind and within in _ANCHORS and self._forwards:
                self._forwards.pop()
        waiting.append(item)
        if item.kind == "call":
            self._n_calls += 1
            if not self._forwards and self._n_calls >= FIRST_LOOK and (self._n_calls <= 256 or self._n_calls % 64 == 0):
                period = self._turn_of(item, self._n_calls, period_of(self._latest()))
                if period:
                    return self._follow("F", [one for one in waiting if one.kind == "call"], period)
        elif item.kind == "engine" or (item.kind == "backward" and self._new_backward()):
            self._forwards.append(self._n_calls - sum(self._forwards))
            if len(self._forwards) == 2:
                return self._backwards_seen()
        if len(waiting) > MOST_WAITING:
            self.why_not = NO_ORDER
            del waiting[: MOST_WAITING // 2]
            self._n_calls = sum(one.kind == "call" for one in waiting)
            self._forwards.clear()
            self._whole = False
        return ()

    def seen_at(self, instrument: int, end_ns: int, path: Path) -> None:
        """Where a collection that was told as an item happened; one that comes before the item waits for it."""
        for one in reversed(self._between or self._waiting):
            if one.instrument == instrument and one.end_ns == end_ns:
                one.path = path
                return
        self._told[instrument, end_ns] = path
        if len(self._told) > MOST_TOLD:
            del self._told[next(iter(self._told))]

    def generator(self, rows: Sequence[tuple[int, int, int, int]]) -> int | None:
        """The code of the generator that the loop has called for its next batch, where a look shows one at work."""
        last = self.last_call
        return None if last is None else self.loops.generator(rows, last.instrument, (self._first or last).instrument)

    def _new_backward(self) -> bool:
        """Whether a backward region, where runs of the engine are not told, is the first since the last call."""
        for one in reversed(self._waiting[:-1]):
            if one.kind in ("call", "backward"):
                return one.kind == "call"
        return True

    def finish(self) -> Sequence[Cut]:
        """The job is over. Gives the cuts that are left, the end of the last step among them."""
        cuts: list[Cut] = []
        if not self._rule:
            calls = [one for one in self._waiting if one.kind == "call"]
            if self._forwards:
                cuts += self._backwards_seen()
            elif calls:
                period = period_of([one.entry for one in calls]) or (1 if len(calls) < 3 else 0)
                period = self._turn_of(calls[-1], len(calls), period, last=True)
                if not period:
                    self.why_not = self.why_not or NO_ORDER
                    return cuts
                cuts += self._follow("F", calls, period)
        if self._last is not None and (self._in_step or self._has_backward):
            cuts.append(turn(self.loops, self._last, None, self._between))
        return cuts

    # ------------------------------------------------------------------------------------------ which rule

    def _backwards_seen(self) -> list[Cut]:
        """Two backwards (or all that there were): were the calls before the first of them one step's, or steps of their own?"""
        before = self._forwards[0]
        usual = self._forwards[1] if len(self._forwards) > 1 else before
        if usual >= 1 and 2 * usual <= before:
            calls = []
            for one in self._waiting:
                if one.kind in ("engine", "backward"):
                    break
                if one.kind == "call":
                    calls.append(one)
            if (period_of([one.entry for one in calls]) or usual) == usual:
                return self._follow("F", calls, usual)
        return self._follow("B", [], 0)

    def _latest(self) -> list[str]:
        """What the last calls that wait have called, as many as a period is looked for in."""
        others = len(self._waiting) - self._n_calls
        tail = self._waiting[-LOOKED_AT - others :]
        return list(compress(map(_entry, tail), map("call".__eq__, map(_kind, tail))))

    def _turn_of(self, call: Item, n_calls: int, period: int, *, last: bool = False) -> int:
        """The period, of calls that may all look alike; 0 where it cannot be told, or not yet. `call`: the last of so many."""
        if period != 1:
            return period
        instrument = call.instrument
        if self._turns.hidden(instrument):
            self.why_not = IN_FORWARD
            return 0
        if self._turns.expected(instrument) and n_calls < PATIENCE and not last:
            return 0
        self.certain = self._turns.certain(instrument)
        return self._turns.calls(instrument) or period

    def _follow(self, rule: str, calls: list[Item], period: int) -> list[Cut]:
        """From now on steps are told like that; the items that have waited come first."""
        self._rule, self._period = rule, period
        if rule == "F":
            if not self._whole and period > 1:
                calls = _rotated(calls, period)
            self._place, self._is_mark = _mark(calls[:period])
        waiting, self._waiting = self._waiting, []
        self._n_calls = 0
        self.why_not = ""
        cuts: list[Cut] = []
        skip = calls[0] if not self._whole and calls and self._place else None
        for item in waiting:
            if skip is not None:  # the first whole period begins here
                if item is not skip:
                    continue
                skip = None
            cuts += self._take(item)
        return cuts

    def _check(self) -> list[Cut]:
        """Whether another period fits better by now."""
        calls = list(self._calls)
        entries = [one.entry for one in calls]
        period = period_of(entries)
        if self._turns.hidden(calls[-1].instrument):
            period = 0
        elif period == 1:
            self.certain = self._turns.certain(calls[-1].instrument)
            period = self._turns.calls(calls[-1].instrument) or 1
            if period != self._period and self._is_mark is None:
                self._period, self._at = period, 0
                return [Cut(self._last.end_ns, anew=True)] if self._last is not None else []
        if not period or period == self._period or agreement(entries, period) < agreement(entries, self._period) + BETTER:
            return []
        pattern = calls[-period:]
        mark = self._is_mark
        if mark is not None and self._place == 0 and sum(map(mark, pattern)) == 1:
            self._period = period  # the same call still tells one step: what was counted is right
            return []
        self._period = period
        place, mark = _mark(calls[:period] if self._whole and len(calls) == self._n_calls else pattern)
        self._place, self._is_mark = place, mark
        self._at = 0
        return [Cut(self._last.end_ns, anew=True)] if self._last is not None else []

    # ------------------------------------------------------------------------------------------ following it

    def _take(self, item: Item) -> Sequence[Cut]:
        kind = item.kind
        cuts: Sequence[Cut] = ()
        if kind == "call":
            if self._begins(item):
                cuts = [self._cut(item)]
            if not self._in_step and not self._has_backward:
                self._first = item
            self._in_step += 1
            self._last = item
            self._between.clear()
            if self._rule == "F" and self._recheck:
                self._calls.append(item)
                self._n_calls += 1
                if self._n_calls in LATER_LOOKS:
                    cuts = [*cuts, *self._check()]
                elif self._n_calls > LATER_LOOKS[-1]:
                    self._recheck = False
                    self._calls.clear()
            return cuts
        if kind == "backward" and self._has_backward:  # the next graph of the same backward
            self._last = item
            self._between.clear()
            return cuts
        if kind in ("engine", "backward"):
            encloses = self._last is not None and item.begin_ns <= self._last.begin_ns
            if self._rule == "F":
                self._rule, self._doubted = "B", True
                self._forwards = [self._in_step]
                self._recheck = False
            else:
                if self._has_backward and not encloses:
                    cuts = [self._cut(item)]
                if self._doubted:
                    cuts = [*cuts, *self._doubt()]
            self._has_backward = True
            self._last = self._backward = item
            self._between.clear()
            return cuts
        between = self._between
        if kind != "look":
            while between and between[-1].begin_ns >= item.begin_ns and between[-1].kind != "look":
                between.pop()
        if len(between) < MOST_BETWEEN:
            between.append(item)
        elif kind != "look":
            between[-1] = item
        return cuts

    def _doubt(self) -> Sequence[Cut]:
        """Rule F was followed until the first backward. With the second it is known whether its steps were steps."""
        self._doubted = False
        if self._in_step > self._period and self._forwards[0] <= self._period:
            # several periods make one step: all before the first backward was one
            return [Cut(self._last.end_ns if self._last else 0, anew=True, over=True)]
        return ()

    def _begins(self, call: Item) -> bool:
        """Whether a new step begins with this call."""
        if self._rule == "B":
            return self._has_backward and (self._backward is None or not self.loops.behind(call, self._backward))
        head = self._turns.head(call.instrument) if self._is_mark is None else 0
        if head and self._in_step and any(one.instrument == head and one.kind == "loop" for one in self._between):
            self._at = self._period
        if self._is_mark is not None and self._is_mark(call):
            turned = self._place == 0 and self._in_step > 0
            self._at = self._place
        else:
            turned = (self._is_mark is None or self._place > 0) and self._at >= self._period
            if turned:
                self._at = 0
        self._at += 1
        return turned

    def _cut(self, first: Item) -> Cut:
        assert self._last is not None
        between = [one for one in self._between if one.end_ns <= first.begin_ns or one.kind == "look"]
        cut = turn(self.loops, self._last, first, between)
        self._in_step = 0
        self._has_backward = False
        self._first = first
        return cut


def _mark(pattern: Sequence[Item]) -> tuple[int, Callable[[Item], bool] | None]:
    """Which call of a period tells its steps: its place in it, and how it is known. None: they can only be counted."""
    frames, entries = Counter(one.frame for one in pattern), Counter(one.entry for one in pattern)
    for place in (0, None):
        for of_frames in (True, False):
            for at, one in enumerate(pattern):
                if place is not None and at != place:
                    continue
                if of_frames and one.frame and frames[one.frame] == 1:
                    return at, partial(_is_of_frame, one.frame)
                if not of_frames and entries[one.entry] == 1:
                    return at, partial(_is_of_entry, one.entry)
    return 0, None


def _is_of_frame(frame: str, call: Item) -> bool:
    return call.frame == frame


def _is_of_entry(entry: str, call: Item) -> bool:
    return call.entry == entry


def _rotated(calls: list[Item], period: int) -> list[Item]:
    """The calls from the first begin of a step on, where they are not the job's first: a step begins behind the longest gap."""
    gaps: list[list[int]] = [[] for _ in range(period)]
    for at in range(1, len(calls)):
        gaps[at % period].append(calls[at].begin_ns - calls[at - 1].end_ns)
    medians = [sorted(one)[len(one) // 2] if one else 0 for one in gaps]
    return calls[max(range(period), key=lambda at: (medians[at], -at)) :]
