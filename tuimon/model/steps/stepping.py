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
from tuimon.model.steps.gap import Gaps
from tuimon.model.steps.inferring import Inference
from tuimon.model.steps.lanes import LONG_NS, MOST_SPANS, Lane, Lanes
from tuimon.model.steps.long import Long
from tuimon.model.steps.looping import FORWARD
from tuimon.model.steps.marked import Marks
from tuimon.model.steps.parts import LongRow
from tuimon.model.steps.timing import Timed, compile_row
from tuimon.model.steps.turning import Item, Loops

if TYPE_CHECKING:
    from tuimon.model.model import Model

MORE_ANCHORS = 32
"""Another thread that has run twice as many calls and so many more is the one that steps run on."""

NOTHING_TO_TELL_BY = (
    "neither a call of a compiled function, nor a backward, nor an optimizer's step was seen; mark the steps: "
    "tuimon.step() in the loop, or --step module:function"
)


class StepFold:
    """Takes what happened on the job's threads, and has its steps counted."""

    def __init__(self, model: Model) -> None:
        self.counting = Counting(model)
        self.lanes = Lanes()
        self._held = self.lanes.held
        self._model = model
        self._loops = Loops()
        self._marks = Marks(model, self.counting)
        self.gaps = Gaps(model, self.counting, self._loops)
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
        counting, gaps, kind, category = self.counting, self.gaps, timed.kind, timed.counts_as
        if counting.begin_ns is None and timed.tells_begin:
            counting.began(begin_ns)
        if gaps.open is not None and kind is not None and lane is gaps.open.lane:
            gaps.begins(gaps.open, timed, begin_ns, end_ns)
        if category is not None:
            if lane.quiet is not None:
                lane.quiet_until(begin_ns)
            if kind == "engine" and len(self._held) > 1:
                self._take_children(lane, begin_ns, end_ns)
            spans = lane.spans
            if end_ns - begin_ns < LONG_NS:
                spans.append((end_ns, begin_ns, category, None))
            else:
                long = Long()
                long.timed, long.told, long.own_ns = timed, (timed.number, thread, flags, begin_ns, end_ns), 0
                lane.add(begin_ns, end_ns, category, long)
            if len(spans) > MOST_SPANS:
                self.make_room(lane)
        if counting.is_told and not timed.tells:
            return False
        if timed.is_apart:
            return self._apart(timed, lane, begin_ns, end_ns)
        if counting.is_told:
            if kind == "call":
                gaps.last_call = timed.number
                if not gaps.first_call:
                    gaps.first_call = timed.number
            elif timed.turns and lane is gaps.optimizers.lane:
                gaps.optimizers.turned += 1
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
            if not self.gaps.stepped(timed, lane, begin_ns, end_ns):
                return False
            self._order = None
            return True
        if timed.role == "mark":
            self.gaps.settle(None)
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
        gap = self.gaps.open
        if gap is not None and lane is gap.lane:
            self.gaps.take(gap, Item("next", row.begin_ns, row.end_ns))
        lane.quiet_until(row.begin_ns)
        lane.add(row.begin_ns, row.end_ns, of.COMPILE, row)
        if self.counting.is_told:
            return False
        return self._infer(lane, Item("next", row.begin_ns, row.end_ns))

    def make_room(self, lane: Lane) -> None:
        """More than MOST_SPANS rows wait on that thread."""
        gap = self.gaps.open
        if gap is not None and gap.first is not None and lane is gap.lane:
            self.gaps.settle(gap.first, unsure=True)  # no longer to be held
            gap = None
        begin = self.counting.first_begin_ns if lane is self.counting.lane else None
        if begin is None:
            lane.make_room(None, 0)
        elif self.counting.is_told:
            lane.make_room(begin, lane.spans[-1][0] if gap is None else gap.end_ns)
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
        if self.gaps.open is not None:
            for one in self.gaps.open.between:
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
            generator = self._loops.generator(event.rows, self.gaps.last_call, self.gaps.first_call)
        else:
            generator = self._order.generator(event.rows) if self._order is not None else None
        if generator is None:
            lane.quiet_until(event.t_ns)
        else:
            code = self._model.code(generator)
            lane.generator(event, code.qualname if code is not None else "a generator", code.file if code is not None else "")
        path = tuple((code, offset) for code, _, offset, _ in event.rows)
        item = Item("look", event.since_ns, event.t_ns, path=path)
        gap = self.gaps.open
        if gap is not None and lane is gap.lane:
            self.gaps.take(gap, item)
        if self.counting.is_told or self._order is None:
            return False
        return self._infer(lane, item)

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
        steps, changed = self._model.steps, self.gaps.open is not None
        self.gaps.settle(None)
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
