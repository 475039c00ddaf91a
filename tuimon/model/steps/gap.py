"""Steps that end with an optimizer's: what is kept behind such an end, while it is not known yet where the loop turns."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tuimon.model.steps.counting import Counting
from tuimon.model.steps.inferring import MOST_BETWEEN
from tuimon.model.steps.lanes import LONG_NS, Lane
from tuimon.model.steps.marked import IN_TURN, Compiled, Ends, Optimizers
from tuimon.model.steps.timing import Timed
from tuimon.model.steps.turning import Item, Loops, turn

if TYPE_CHECKING:
    from tuimon.model.model import Model

UNKNOWN_NS = 1 << 62
"""A doubt of how much is a step's that has no bound."""

_FIRST = ("call", "engine", "next")
"""What begins in the next step, wherever in it."""


class Gap:
    """Open from an optimizer's step that ends one of the job's until something says where the next one begins."""

    __slots__ = ("_began_ns", "_instrument", "before", "between", "end_ns", "first", "held", "lane", "passed", "told")

    def __init__(self, lane: Lane) -> None:
        self.anew(lane, 0, 0, 0, False, 0)

    def anew(self, lane: Lane, began_ns: int, end_ns: int, instrument: int, told: bool, before: int) -> None:
        """It is the one behind another step. The optimizer's ran from `began_ns` to `end_ns`, timed by that `instrument`."""
        self.lane = lane
        self._began_ns = began_ns
        self.end_ns = end_ns
        self._instrument = instrument
        self.told = told
        """There is no step that the listeners are still to be told of."""
        self.before = before
        """The instrument of the call that came last before the optimizer."""
        self.between: list[Item] = []
        self.passed: frozenset[int] = frozenset()
        """The loops whose heads have been passed since."""
        self.first: Item | None = None
        """What would begin the next step, had the loop of the steps not been still to turn: an evaluation's call."""
        self.held = 0
        """So many of `between` came before it."""

    @property
    def last(self) -> Item:
        """The optimizer's step."""
        return Item("former", self._began_ns, self.end_ns, "", "", self._instrument)


class Gaps:
    """Has the steps counted that end with an optimizer's."""

    def __init__(self, model: Model, counting: Counting, loops: Loops) -> None:
        self._model = model
        self._counting = counting
        self._loops = loops
        self.optimizers = Optimizers()
        self._compiled = Compiled(loops)
        self.open: Gap | None = None
        """What came since the step of an optimizer that ended one."""
        self._gap: Gap | None = None
        """The one there is: there are never two at a time."""
        self.first_call = self.last_call = 0
        """The instruments of the latest step's first call and of the latest call."""
        self._before = 0
        """The instrument of the call that came last before the latest step."""
        self._turned = False
        """Between the two the loop of the steps was seen to turn."""

    def stepped(self, timed: Timed, lane: Lane, begin_ns: int, end_ns: int) -> bool:
        """An optimizer's `step()` ended. Gives whether the steps have changed."""
        steps, counting, number, optimizers = self._model.steps, self._counting, timed.number, self.optimizers
        if steps.source == "optimizer" and self.open is None and optimizers.alone(number, lane, begin_ns, end_ns):
            self._end(lane, number, ((begin_ns, end_ns),))  # as below, of most
            return True
        if steps.source == "marked":
            return False
        frame = self._model.frames.get(timed.frame) if timed.frame else None
        name = f"compiled: {frame.function}" if frame is not None else timed.event.name
        who = self._compiled.who(number, timed.frame)
        several = len(optimizers.names) > 1  # of one alone nothing asks whether its first step is known
        ends = optimizers.stepped(who, name, lane, begin_ns, end_ns, first_known=several and counting.from_begin)
        if not ends:
            return False
        if self.open is not None:
            self.settle(Item("call", *ends[0]))
        if steps.source != "optimizer":
            if steps.source is not None:
                counting.anew("optimizer", end_ns, keep=counting.from_begin)
            counting.told_by("optimizer", optimizers.how)
        counting.lane = lane
        self._end(lane, number, ends)
        return True

    def _end(self, lane: Lane, number: int, ends: Ends) -> None:
        """Steps end there."""
        counting = self._counting
        # its first call comes behind that of the step before it: nobody saw the loop turn in between
        unsure = not self._turned and self._loops.same_turn(self.first_call, self._before)
        late, (last_begin_ns, last_end_ns) = len(ends) > 1, ends[-1]
        for _, each_ns in ends:
            begin = counting.begin_ns if counting.begin_ns is not None else counting.first_begin_ns
            if begin is None:  # it began before the attach
                lane.skip(each_ns)
                counting.open(each_ns)
                counting.count(None, 0, False, False)
            else:
                tell = late and each_ns != last_end_ns
                counting.close(lane, begin, each_ns if each_ns > begin else begin, certain=not unsure, late=late, tell=tell)
        gap = self.open = self._gap or Gap(lane)
        self._gap = gap
        gap.anew(lane, last_begin_ns, last_end_ns, number, begin is None, self.last_call)

    def begins(self, gap: Gap, timed: Timed, begin_ns: int, end_ns: int) -> None:
        """Something of a kind has run behind the optimizer."""
        kind, heads = timed.kind or "", self._loops.heads
        at_once = kind in _FIRST and begin_ns - gap.end_ns < LONG_NS and not gap.between and gap.first is None
        if at_once and (not heads or heads <= gap.passed):  # the next step, and nothing is between: as in `take`, of most
            self.open = None
            self._turned, self._before = bool(heads), gap.before
            self._settled(gap, timed.number if kind == "call" else 0)
        else:
            self.take(gap, Item(kind, begin_ns, end_ns, "", "", timed.number))

    def take(self, gap: Gap, item: Item) -> None:
        """Something came behind the optimizer."""
        heads = self._loops.heads
        if item.kind == "loop":
            gap.passed |= {item.instrument}
            if gap.first is not None and heads <= gap.passed:
                gap.between.append(item)
                self.settle(item)
                return
        if item.kind in _FIRST:
            if heads <= gap.passed:
                self.settle(item)
            elif gap.first is None:
                gap.first, gap.held = item, len(gap.between)
        elif len(gap.between) < MOST_BETWEEN:
            gap.between.append(item)
        elif item.kind != "look":
            gap.between[-1] = item

    def settle(self, first: Item | None, *, unsure: bool = False) -> None:
        """The next step has begun, with `first` in it; None: there is no more. `unsure`: or later, for all that is known."""
        gap, self.open = self.open, None
        if gap is None:
            return
        heads = self._loops.heads
        self._turned, self._before = bool(heads) and heads <= gap.passed, gap.before
        if gap.first is not None and (first is None or first.kind != "loop"):
            first, gap.between = gap.first, gap.between[: gap.held]
            self._loops.not_turned()
        if gap.between or gap.first is not None or first is None or first.begin_ns - gap.end_ns >= LONG_NS:
            cut = turn(self._loops, gap.last, first, gap.between)
            self._counting.reach(gap.lane, cut.at_ns, UNKNOWN_NS if unsure else cut.doubt_ns)
        self._settled(gap, first.instrument if first is not None and first.kind == "call" else 0)

    def _settled(self, gap: Gap, first_call: int) -> None:
        if not gap.told:
            self._counting.tell()
        self.first_call = first_call
        if len(self.optimizers.names) > 1 or self._compiled.changes >= IN_TURN:
            self._model.steps.how = self.optimizers.how + self._compiled.doubt
