"""The fold over steps: what ends a step, how long steps take, where their time went, and which of them are steady.

Steps are told by what the user marked, else by an optimizer's `step()`, else by the order of the calls (`inferring`). A better
source that comes later takes over, and what was counted until then is void: two kinds of steps are never mixed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tuimon import events as ev
from tuimon.model.parts import Compilation
from tuimon.model.steps import account as of
from tuimon.model.steps.counting import Counting
from tuimon.model.steps.gap import Gap
from tuimon.model.steps.inferring import MOST_BETWEEN, Inference
from tuimon.model.steps.lanes import LONG_NS, MOST_SPANS, Lane, Lanes
from tuimon.model.steps.long import Long
from tuimon.model.steps.looping import FORWARD
from tuimon.model.steps.marked import Compiled, Marks, Optimizers
from tuimon.model.steps.parts import LongRow
from tuimon.model.steps.timing import Timed, compile_row
from tuimon.model.steps.turning import Item, Loops, turn

if TYPE_CHECKING:
    from tuimon.model.model import Model

MORE_ANCHORS = 32
"""Another thread that has run twice as many calls and so many more is the one that steps run on."""

NOTHING_TO_TELL_BY = (
    "neither a call of a compiled function, nor a backward, nor an optimizer's step was seen; mark the steps: "
    "tuimon.step() in the loop, or --step module:function"
)

UNKNOWN_NS = 1 << 62
"""A doubt of how much is a step's that has no bound."""

_FIRST = ("call", "engine", "next")
"""What begins in the next step, wherever in it."""


class StepFold:
    """Takes what happened on the job's threads, and has its steps counted."""

    def __init__(self, model: Model) -> None:
        self.counting = Counting(model)
        self.lanes = Lanes()
        self._held = self.lanes.held
        self._model = model
        self._loops = Loops()
        self._marks = Marks(model, self.counting)
        self._optimizers = Optimizers()
        self._compiled = Compiled(self._loops)
        self.gap: Gap | None = None
        """What came since the step of an optimizer that ended one."""
        self.first_call = self.last_call = 0
        """Where an optimizer tells the steps: the instruments of the latest step's first call and of the latest call."""
        self._before = 0
        """The instrument of the call that came last before the latest step."""
        self._turned = False
        """Between the two the loop of the steps was seen to turn."""
        self._has_engine = False
        self._order: Inference | None = None
        self._ended = False
        self.folded = False
        """Steps are counted elsewhere, and come as digests (`model.folded`): here, none is told, whatever else comes."""

    # ------------------------------------------------------------------------------------------ what is told of threads

    @property
    def thread(self) -> int | None:
        """The ident of the thread that steps run on."""
        lane = self.counting.lane
        return lane.thread if lane is not None else None

    def thread_seen(self, event: ev.ThreadSeen, most: int) -> None:
        """A thread's name; at most so many are kept."""
        for row in self.lanes.seen(event, most):
            self._compile_span(event.thread, row)

    def _lane_of(self, thread: int) -> Lane:
        return self._held.get(thread) or self.lanes.make(thread, self.counting.lane)

    # ------------------------------------------------------------------------------------------ what happens

    def added(self, event: ev.InstrumentAdded, entry: str, frame: str, *, is_optimizer: bool) -> Timed | None:
        """Something is timed from now on: a call of `entry`, of a `frame`. Gives what `row` wants; None: no rows of it."""
        if event.role == "crossing":
            return None  # tells nothing of steps
        self._has_engine = self._has_engine or event.role == "engine"
        return Timed.of(event, entry, frame, is_optimizer=is_optimizer)

    def row(self, timed: Timed, thread: int, flags: int, begin_ns: int, end_ns: int) -> bool:
        """A timed call ended, or an instant passed, of steps that are not `folded`. Gives whether the steps have changed."""
        lane = self._held.get(thread) or self._lane_of(thread)
        counting, gap, kind, category = self.counting, self.gap, timed.kind, timed.counts_as
        if counting.begin_ns is None and timed.tells_begin:
            counting.began(begin_ns)
        if gap is not None and kind is not None and lane is gap.lane:
            self._behind_the_optimizer(gap, Item(kind, begin_ns, end_ns, "", "", timed.number))
        if category is not None:
            if lane.quiet is not None:
                lane.quiet_until(begin_ns)
            if kind == "engine" and len(self._held) > 1:
                self._take_children(lane, begin_ns, end_ns)
            spans = lane.spans
            if end_ns - begin_ns < LONG_NS:
                spans.append((end_ns, -begin_ns, category, None))
            else:
                lane.add(begin_ns, end_ns, category, Long(timed, thread, flags, begin_ns, end_ns))
            if len(spans) > MOST_SPANS:
                self.make_room(lane)
        if counting.is_told and not timed.tells:
            return False
        if timed.is_apart:
            return self._apart(timed, lane, begin_ns, end_ns)
        if counting.is_told:
            if kind == "call":
                self.last_call = timed.number
                if not self.first_call:
                    self.first_call = timed.number
            elif timed.turns:
                self._optimizers.turned(lane)
            return False
        if kind is None and timed.role == "backward" and not self._has_engine and not lane.helper:
            kind = "backward"
        if kind is None:
            return False
        return self._infer(lane, Item(kind, begin_ns, end_ns, timed.entry, timed.frame, timed.number))

    def _take_children(self, lane: Lane, begin_ns: int, end_ns: int) -> None:
        """A call of the engine is over: what its own threads ran within it is the caller's."""
        for other in self._held.values():
            if other is not lane and other.helper:
                lane.take_children(other, begin_ns, end_ns)

    def _apart(self, timed: Timed, lane: Lane, begin_ns: int, end_ns: int) -> bool:
        """What is no call of the job's own. Gives whether the steps have changed."""
        if timed.role == "optimizer":
            return self._optimizer(timed, lane, begin_ns, end_ns)
        if timed.role == "mark":
            self._settle(None)
            self._order = None
            return self._marks.marked(timed.number, lane, begin_ns, end_ns, how=timed.event.counted)
        lane.cpu.append((begin_ns, end_ns))
        return False

    def boundary(self, thread: int, key: str, function: str, file: str, line: int, begin_ns: int, end_ns: int) -> None:
        """The stretch of a boundary, with all that ran within it."""
        if self.folded:
            return
        lane = self._lane_of(thread)
        row = None
        if end_ns - begin_ns >= LONG_NS:
            row = LongRow("boundary", of.BOUNDARY, 0, function, function, file, line, begin_ns, end_ns, thread, boundary=key)
        lane.add(begin_ns, end_ns, of.BOUNDARY, row)

    def compiled(self, compilation: Compilation) -> bool:
        """A compilation is over. Gives whether the steps have changed."""
        if compilation.ended_ns <= compilation.began_ns:
            return False
        if self.counting.begin_ns is None:
            self.counting.began(compilation.began_ns)
        row = compile_row(compilation)
        number = self.lanes.number(compilation.thread, row)
        return number is not None and self._compile_span(number, row)

    def _compile_span(self, thread: int, row: LongRow) -> bool:
        if self.folded:
            return False
        lane = self._lane_of(thread)
        row.thread = thread
        if self.gap is not None and lane is self.gap.lane:
            self._behind_the_optimizer(self.gap, Item("next", row.begin_ns, row.end_ns))
        lane.quiet_until(row.begin_ns)
        lane.add(row.begin_ns, row.end_ns, of.COMPILE, row)
        if self.counting.is_told:
            return False
        return self._infer(lane, Item("next", row.begin_ns, row.end_ns))

    def make_room(self, lane: Lane) -> None:
        """More than MOST_SPANS rows wait on that thread."""
        if self.gap is not None and self.gap.first is not None and lane is self.gap.lane:
            self._settle(self.gap.first, unsure=True)  # no longer to be held
        begin = self.counting.first_begin_ns if lane is self.counting.lane else None
        if begin is None:
            lane.make_room(None, 0)
        elif self.counting.is_told:
            lane.make_room(begin, lane.spans[-1][0] if self.gap is None else self.gap.last.end_ns)
        else:
            lane.make_room(begin, self._order.settled_ns if self._order is not None else 0)

    # ------------------------------------------------------------------------------------------ where the job was seen

    def loops(self, event: ev.LoopsSeen) -> None:
        """Where a call stands, and in which loops."""
        if self.folded:
            return
        within: set[int] = set()
        for number, _ in event.site:
            code = self._model.code(number)
            if within or (code is not None and code.function in FORWARD):
                within.add(number)
        around = [(head, number in within) for head, number, _, _ in event.heads]
        bodies = [(number, head, jump) for _, number, head, jump in event.heads if number not in within]
        self._loops.learn(event.anchor, event.site, around, bodies[-1] if bodies else None)

    def site(self, event: ev.SiteSeen) -> None:
        """Where a long call was made from."""
        if self.folded:
            return
        self._lane_of(event.thread).site(event)
        if self.thread != event.thread:
            return
        path = event.path or ((event.code, event.lasti),)
        if self.gap is not None:
            for one in self.gap.between:
                if (one.instrument, one.end_ns) == (event.instrument, event.t_ns):
                    one.path = path
        elif self._order is not None:
            self._order.seen_at(event.instrument, event.t_ns, path)

    def look(self, event: ev.StackSeen) -> bool:
        """A look at a thread's stack. Gives whether the steps have changed."""
        if self.folded:
            return False
        lane = self._lane_of(event.thread)
        lane.looks.append(event)
        if lane is not self.counting.lane or not event.rows:
            return False
        if self.counting.is_told:
            generator = self._loops.generator(event.rows, self.last_call, self.first_call)
        else:
            generator = self._order.generator(event.rows) if self._order is not None else None
        if generator is None:
            lane.quiet_until(event.t_ns)
        else:
            code = self._model.code(generator)
            lane.generator(event, code.qualname if code is not None else "a generator", code.file if code is not None else "")
        path = tuple((code, offset) for code, _, offset, _ in event.rows)
        item = Item("look", event.since_ns, event.t_ns, path=path)
        if self.gap is not None and lane is self.gap.lane:
            self._behind_the_optimizer(self.gap, item)
        if self.counting.is_told or self._order is None:
            return False
        return self._infer(lane, item)

    # ------------------------------------------------------------------------------------------ optimizers

    def _optimizer(self, timed: Timed, lane: Lane, begin_ns: int, end_ns: int) -> bool:
        """An optimizer's `step()` ended. Gives whether the steps have changed."""
        steps, counting, number = self._model.steps, self.counting, timed.number
        if steps.source == "marked":
            return False
        frame = self._model.frames.get(timed.frame) if timed.frame else None
        name = f"compiled: {frame.function}" if frame is not None else timed.event.name
        who = self._compiled.who(number, timed.frame)
        several = len(self._optimizers.names) > 1  # of one alone nothing asks whether its first step is known
        ends = self._optimizers.stepped(who, name, lane, begin_ns, end_ns, first_known=several and counting.from_begin)
        if not ends:
            return False
        if self.gap is not None:
            self._settle(Item("call", *ends[0]))
        if steps.source != "optimizer":
            if steps.source is not None:
                counting.anew("optimizer", end_ns, keep=counting.from_begin)
            counting.told_by("optimizer", self._optimizers.how)
            self._order = None
        counting.lane = lane
        # its first call comes behind that of the step before it: nobody saw the loop turn in between
        unsure = not self._turned and self._loops.same_turn(self.first_call, self._before)
        for _, each_ns in ends:
            begin = counting.begin_ns if counting.begin_ns is not None else counting.first_begin_ns
            if begin is None:  # it began before the attach
                lane.skip(each_ns)
                counting.open(each_ns)
                counting.count(None, 0, False, False)
            else:
                each_ns, is_last = max(begin, each_ns), each_ns == ends[-1][1]
                counting.close(lane, begin, each_ns, certain=not unsure, late=len(ends) > 1, tell=not is_last)
        last_begin_ns, last_end_ns = ends[-1]
        self.gap = Gap(lane, Item("former", last_begin_ns, last_end_ns, "", "", number), begin is None, self.last_call)
        return True

    def _behind_the_optimizer(self, gap: Gap, item: Item) -> None:
        heads = self._loops.heads
        if item.kind == "loop":
            gap.passed.add(item.instrument)
            if gap.first is not None and heads <= gap.passed:
                gap.between.append(item)
                self._settle(item)
                return
        if item.kind in _FIRST:
            if heads <= gap.passed:
                self._settle(item)
            elif gap.first is None:
                gap.first, gap.held = item, len(gap.between)
        elif len(gap.between) < MOST_BETWEEN:
            gap.between.append(item)
        elif item.kind != "look":
            gap.between[-1] = item

    def _settle(self, first: Item | None, *, unsure: bool = False) -> None:
        """The next step has begun, with `first` in it; None: there is no more. `unsure`: or later, for all that is known."""
        gap, self.gap = self.gap, None
        if gap is None:
            return
        heads = self._loops.heads
        self._turned, self._before = bool(heads) and heads <= gap.passed, gap.before
        if gap.first is not None and (first is None or first.kind != "loop"):
            first, gap.between = gap.first, gap.between[: gap.held]
            self._loops.not_turned()
        if gap.between or gap.first is not None or first is None or first.begin_ns - gap.last.end_ns >= LONG_NS:
            cut = turn(self._loops, gap.last, first, gap.between)
            self.counting.reach(gap.lane, cut.at_ns, UNKNOWN_NS if unsure else cut.doubt_ns)
        if not gap.told:
            self.counting.tell()
        self.first_call = first.instrument if first is not None and first.kind == "call" else 0
        if len(self._optimizers.names) > 1 or self._compiled.doubt:
            self._model.steps.how = self._optimizers.how + self._compiled.doubt

    # ------------------------------------------------------------------------------------------ inferred

    def _infer(self, lane: Lane, item: Item) -> bool:
        counting = self.counting
        if item.kind in ("call", "engine", "backward"):
            if item.kind == "call":
                lane.called_ns = item.end_ns
            else:
                running = self._model.running.get(lane.name or "")
                if running is not None and running.since_ns > lane.called_ns:
                    return False  # the compiler's own: it traces backwards, too
            lane.anchors += 1
            if counting.lane is None:
                counting.lane = lane
            elif lane is not counting.lane and lane.anchors > 2 * counting.lane.anchors + MORE_ANCHORS:
                self._move(lane, item.end_ns)
        elif counting.lane is None and lane.name == "main":
            counting.lane = lane  # until a call says otherwise
        if lane is not counting.lane:
            return False
        changed = False
        order = self._order = self._order or Inference(self._loops, whole=self._model.target.how == "run")
        for cut in order.add(item):
            if cut.anew:
                counting.anew("inferred", cut.at_ns, keep=True, over=cut.over)
            else:
                self._inferred(lane, cut.at_ns, cut.doubt_ns)
            changed = True
        steps = self._model.steps
        if steps.source is None and steps.why_not != order.why_not:
            steps.why_not = order.why_not
            changed = True
        return changed

    def _move(self, lane: Lane, at_ns: int) -> None:
        """Steps run on another thread than was thought."""
        self.counting.lane = lane
        self._order = Inference(self._loops, whole=False)
        self.counting.anew("inferred", at_ns, keep=False)
        lane.skip(max((span[0] for span in lane.spans), default=0))

    def _inferred(self, lane: Lane, at_ns: int, doubt_ns: int) -> None:
        """A step ends there, and the next one begins."""
        steps, counting = self._model.steps, self.counting
        assert self._order is not None
        begin = counting.first_begin_ns
        if counting.begin_ns is None and begin is not None:
            begin = min(begin, at_ns)
        steps.source = "inferred"
        steps.how, steps.why_not = self._order.how, ""
        if begin is None:  # the first whole step begins here
            lane.skip(at_ns)
            counting.open(at_ns, doubt_ns)
            counting.forget_shares(at_ns)
            return
        at_ns = max(at_ns, begin)
        counting.shares_until(at_ns)
        counting.close(lane, begin, at_ns, doubt_ns=doubt_ns, certain=self._order.certain)

    def ended(self, event: ev.TargetEnded) -> bool:
        """The job is over: what is left is told. Gives whether the steps have changed."""
        if self._ended:
            return False
        self._ended = True
        steps, changed = self._model.steps, self.gap is not None
        self._settle(None)
        if not self.folded and steps.source in (None, "inferred") and event.how in ("exited", "lost"):
            lane = self.counting.lane
            if lane is not None and self._order is not None:
                for cut in self._order.finish():
                    self._inferred(lane, cut.at_ns, cut.doubt_ns)
                    changed = True
            if steps.source is None:
                steps.why_not = (self._order.why_not if self._order is not None else "") or NOTHING_TO_TELL_BY
                changed = True
        for one in self.counting.listeners:
            one.ended()
        return changed
