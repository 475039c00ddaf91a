"""The fold over steps: what ends a step, how long steps take, where their time went, and which of them are steady.

Steps are told by what the user marked, else by an optimizer's `step()`, else by the order of the calls (`inferring`). A better
source that comes later takes over, and what was counted until then is void: two kinds of steps are never mixed.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Protocol

from tuimon import events as ev
from tuimon.model import account as of
from tuimon.model.inferring import Inference
from tuimon.model.lanes import LONG_NS, MOST_SPANS, Lane, Lanes
from tuimon.model.parts import Compilation, StepShare
from tuimon.model.statistics import Durations
from tuimon.model.step_parts import CATEGORIES, LongRow, StepAccount
from tuimon.model.timing import Timed, compile_row, long_row
from tuimon.model.turning import Item

if TYPE_CHECKING:
    from tuimon.model.model import Model

HAND_ON = 5
"""So many steps of one other optimizer in a row, and the mark is handed on to it: the job has moved to another phase."""

MORE_ANCHORS = 32
"""Another thread that has run twice as many calls and so many more is the one that steps run on."""
DOUBTFUL = 10
"""Where more than one part in so many of a step may be its neighbour's, its index is not certain."""
MOST_EVIDENCES = 512
MOST_SHARES = 4096

NOTHING_TO_TELL_BY = (
    "neither a call of a compiled function, nor a backward, nor an optimizer's step was seen; mark the steps: "
    "tuimon.step() in the loop, or --step module:function"
)


class Told(Protocol):
    """Who wants to know of steps: see `StepFold.listeners`."""

    def closed(self, account: StepAccount) -> None:
        """A step is over, and all that is known of it is in the model."""

    def anew(self) -> None:
        """What was counted is void."""

    def ended(self) -> None:
        """The job is over: no more steps come."""


class StepFold:
    """Counts the job's steps and keeps their accounts.

    A job with several optimizers takes one step where each of them takes one, so one is the mark: the first that is seen.
    When another has stepped `HAND_ON` times while the mark was silent, it becomes the mark and those steps are counted too.
    Marks that the user has set are taken alike.
    """

    def __init__(self, model: Model) -> None:
        self.listeners: list[Told] = []
        self._model = model
        self._mark: int | None = None
        self._rivals: dict[int, list[tuple[int, int]]] = {}
        self._touched: list[StepShare] = []
        self._shares: deque[tuple[int, StepShare, int | None]] = deque()
        """What happened, with its time, where it is not known yet in which step: steps are told late."""
        self._first_ns: int | None = None
        self._timed: dict[int, Timed] = {}
        self._has_engine = False
        self.lanes = Lanes()
        self._lane: Lane | None = None
        self._order: Inference | None = None
        self._begin_ns: int | None = None
        """Where the step under way begins, in a job whose steps have been told already."""
        self._doubt_ns = 0
        """So much of its begin may belong to the step before it."""
        self._void: tuple[int, list[int], bool] | None = None
        """Begin, parts and whether a compilation ran, of steps that turned out to be the first part of one."""
        self._all = [0] * len(CATEGORIES)
        self._all_begin_ns: int | None = None
        self._dropped = 0
        self._incomplete = False
        self._status_ns = 0
        self._joined = False
        """Steps are counted anew from some time on: what came before that is none of them."""
        self._ended = False

    # ------------------------------------------------------------------------------------------ what is told of threads

    @property
    def thread(self) -> int | None:
        """The ident of the thread that steps run on."""
        return self._lane.thread if self._lane is not None else None

    def thread_seen(self, event: ev.ThreadSeen, most: int) -> None:
        """A thread's name; at most so many are kept."""
        for row in self.lanes.seen(event, most):
            self._compile_span(event.thread, row)

    @property
    def _from_begin(self) -> bool:
        """Whether the first step begins with the job."""
        return self._model.target.how == "run" and not self._joined

    def _lane_of(self, thread: int) -> Lane:
        return self.lanes.held.get(thread) or self.lanes.make(thread, self._lane)

    # ------------------------------------------------------------------------------------------ what happens

    def began(self, t_ns: int) -> None:
        """Something of the job was seen at this time: with `tuimon run`, where its first step may begin."""
        if self._first_ns is None or t_ns < self._first_ns:
            self._first_ns = t_ns

    def share(self, share: StepShare, took_ns: int | None, at_ns: int) -> None:
        """Something took so long, until `at_ns`, within a step; None where that is not known."""
        if self._model.steps.source in ("optimizer", "marked"):
            self._note(share, took_ns)
            return
        self._shares.append((at_ns, share, took_ns))
        if len(self._shares) > MOST_SHARES:
            _, share, took_ns = self._shares.popleft()
            self._note(share, took_ns)

    def _note(self, share: StepShare, took_ns: int | None) -> None:
        if share.pending_count == 0:
            self._touched.append(share)
        share.note(took_ns)

    def added(self, event: ev.InstrumentAdded, entry: str, frame: str, *, is_optimizer: bool) -> None:
        """Something is timed from now on: a call of `entry`, of a `frame`."""
        self._timed[event.instrument] = Timed.of(event, entry, frame, is_optimizer=is_optimizer)
        self._has_engine = self._has_engine or event.role == "engine"

    def row(self, number: int, thread: int, flags: int, begin_ns: int, end_ns: int) -> bool:
        """A timed call ended, or an instant passed. Gives whether the steps have changed."""
        timed = self._timed.get(number)
        if timed is None or timed.role == "crossing":
            return False
        lane = self._lane_of(thread)
        role = timed.role
        if role == "cpu":
            lane.cpu.append((begin_ns, end_ns))
            return False
        if self._begin_ns is None and role not in ("gc", "optimizer", "mark"):
            self.began(begin_ns)
        if timed.category is not None or role == "eager":
            if lane.quiet is not None:
                lane.quiet_until(begin_ns)
            if role == "engine" and len(self.lanes.held) > 1:
                for other in self.lanes.held.values():
                    if other is not lane and other.helper:
                        lane.take_children(other, begin_ns, end_ns)
            long = long_row(timed, number, thread, flags, begin_ns, end_ns) if end_ns - begin_ns >= LONG_NS else None
            lane.add(begin_ns, end_ns, of.OTHER if timed.category is None else timed.category, role, long)
            if len(lane.spans) > MOST_SPANS:
                self._make_room(lane)
        if role == "optimizer":
            return self.optimizer(number, begin_ns, end_ns, thread)
        if role == "mark":
            return self._marked(number, lane, begin_ns, end_ns)
        kind = timed.kind
        if kind is None and role == "backward" and not self._has_engine and not lane.helper:
            kind = "backward"
        if kind is None or self._model.steps.source in ("optimizer", "marked"):
            return False
        return self._infer(lane, Item(kind, begin_ns, end_ns, timed.entry, timed.frame, number))

    def boundary(self, thread: int, key: str, function: str, file: str, line: int, begin_ns: int, end_ns: int) -> None:
        """The stretch of a boundary, with all that ran within it."""
        lane = self._lane_of(thread)
        row = None
        if end_ns - begin_ns >= LONG_NS:
            row = LongRow("boundary", of.BOUNDARY, 0, function, function, file, line, begin_ns, end_ns, thread, boundary=key)
        lane.add(begin_ns, end_ns, of.BOUNDARY, "boundary", row)

    def compiled(self, compilation: Compilation) -> bool:
        """A compilation is over. Gives whether the steps have changed."""
        if compilation.ended_ns <= compilation.began_ns:
            return False
        if self._begin_ns is None:
            self.began(compilation.began_ns)
        row = compile_row(compilation)
        number = self.lanes.number(compilation.thread, row)
        return number is not None and self._compile_span(number, row)

    def _compile_span(self, thread: int, row: LongRow) -> bool:
        lane = self._lane_of(thread)
        row.thread = thread
        lane.quiet_until(row.begin_ns)
        lane.add(row.begin_ns, row.end_ns, of.COMPILE, "compile", row)
        if self._model.steps.source in ("optimizer", "marked"):
            return False
        return self._infer(lane, Item("next", row.begin_ns, row.end_ns))

    def _make_room(self, lane: Lane) -> None:
        begin = self._begin_ns if lane is self._lane else None
        if lane is self._lane and begin is None and self._from_begin:
            begin = self._first_ns
        if begin is None:
            lane.make_room(None, 0)
        elif self._model.steps.source in ("optimizer", "marked"):
            lane.make_room(begin, lane.spans[-1][0])
        else:
            lane.make_room(begin, self._order.settled_ns if self._order is not None else 0)

    # ------------------------------------------------------------------------------------------ where the job was seen

    def loops(self, event: ev.LoopsSeen) -> None:
        """Where a call stands, and in which loops."""
        self._inference().loops.learn(event.anchor, event.site)

    def site(self, event: ev.SiteSeen) -> None:
        """Where a long call was made from."""
        self._lane_of(event.thread).site(event)
        if self._order is not None and self._lane is not None and self._lane.thread == event.thread:
            self._order.seen_at(event.instrument, event.t_ns, ((event.code, event.lasti),))

    def look(self, event: ev.StackSeen) -> bool:
        """A look at a thread's stack. Gives whether the steps have changed."""
        lane = self._lane_of(event.thread)
        lane.looks.append(event)
        if lane is not self._lane or self._order is None or not event.rows:
            return False
        path = tuple((code, offset) for code, _, offset, _ in event.rows)
        generator = self._order.generator(event.rows)
        if generator is None:
            lane.quiet_until(event.t_ns)
        else:
            code = self._model.code(generator)
            lane.generator(event, code.qualname if code is not None else "a generator", code.file if code is not None else "")
        if self._model.steps.source in ("optimizer", "marked"):
            return False
        return self._infer(lane, Item("look", event.since_ns, event.t_ns, path=path))

    def status(self, event: ev.HookStatus) -> None:
        """What the hook says of itself: where something was dropped, steps since its last word may lack it."""
        if event.dropped > self._dropped:
            self._incomplete = True
            accounts = self._model.steps.accounts
            for at in range(len(accounts) - 1, -1, -1):
                one = accounts[at]
                if one.end_ns <= self._status_ns:
                    break
                accounts[at] = StepAccount(
                    one.index, one.begin_ns, one.end_ns, one.parts, one.compiled, False, one.index_certain, one.waited_ns
                )
        self._dropped = event.dropped
        self._status_ns = event.t_ns

    # ------------------------------------------------------------------------------------------ inferred

    def _inference(self) -> Inference:
        if self._order is None:
            self._order = Inference(whole=self._model.target.how == "run")
        return self._order

    def _infer(self, lane: Lane, item: Item) -> bool:
        if item.kind in ("call", "engine", "backward"):
            running = self._model.running.get(lane.name or "")
            if item.kind == "call":
                lane.called_ns = item.end_ns
            elif running is not None and running.since_ns > lane.called_ns:
                return False  # the compiler's own: it traces backwards, too
            lane.anchors += 1
            if self._lane is None:
                self._lane = lane
            elif lane is not self._lane and lane.anchors > 2 * self._lane.anchors + MORE_ANCHORS:
                self._move(lane, item.end_ns)
        elif self._lane is None and lane.name == "main":
            self._lane = lane  # until a call says otherwise
        if lane is not self._lane:
            return False
        changed = False
        for cut in self._inference().add(item):
            if cut.anew:
                self._anew("inferred", cut.at_ns, keep=True)
            else:
                self._inferred(cut.at_ns, cut.doubt_ns)
            changed = True
        return changed

    def _move(self, lane: Lane, at_ns: int) -> None:
        """Steps run on another thread than was thought."""
        self._lane = lane
        before = self._order
        self._order = Inference(whole=False)
        if before is not None:
            self._order.loops = before.loops
        self._anew("inferred", at_ns, keep=False)
        lane.skip(max((span[0] for span in lane.spans), default=0))

    def _inferred(self, at_ns: int, doubt_ns: int) -> None:
        steps, lane = self._model.steps, self._lane
        assert lane is not None and self._order is not None
        begin = self._begin_ns
        if begin is None and self._from_begin and self._first_ns is not None:
            begin = min(self._first_ns, at_ns)
        steps.source = "inferred"
        steps.how, steps.why_not = self._order.how, ""
        if begin is None:  # the first whole step begins here
            lane.skip(at_ns)
            self._open(at_ns, doubt_ns)
            while self._shares and self._shares[0][0] <= at_ns:
                self._shares.popleft()
            return
        at_ns = max(at_ns, begin)
        while self._shares and self._shares[0][0] <= at_ns:
            _, share, took = self._shares.popleft()
            self._note(share, took)
        self._close(lane, begin, at_ns, doubt_ns=doubt_ns)
        for compilation in reversed(self._model.compilations):  # they ended before it was known that their step had begun
            if compilation.ended_ns <= begin:
                break
            if not compilation.before_attach and begin <= compilation.began_ns < at_ns:
                compilation.step = steps.n - 1

    # ------------------------------------------------------------------------------------------ optimizer, marks

    def optimizer(self, instrument: int, begin_ns: int, end_ns: int, thread: int) -> bool:
        """An optimizer's `step()` ended. Gives whether the steps have changed."""
        if self._model.steps.source == "marked":
            return False
        if self._model.steps.source != "optimizer":
            if self._model.steps.source is not None:
                self._anew("optimizer", end_ns, keep=self._from_begin)
            self._take_over("optimizer", "the ends of an optimizer's step()")
            self._mark = None
        if self._mark is None:
            self._mark = instrument
        if instrument == self._mark:
            self._rivals.clear()
            last = self._model.steps.last_end_ns
            if last is not None and begin_ns < last and self._begin_ns is not None:
                return False  # a subclass that calls its base's step: the inner call has been counted
            self._lane = self._lane_of(thread)
            self._optimized(end_ns)
            return True
        ends = self._rivals.setdefault(instrument, [])
        if ends and begin_ns < ends[-1][1]:
            return False
        ends.append((begin_ns, end_ns))
        if len(ends) < HAND_ON:
            return False
        self._mark = instrument
        self._rivals.clear()
        self._lane = self._lane_of(thread)
        for _, end in ends:
            self._optimized(end, late=True)
        return True

    def _optimized(self, end_ns: int, *, late: bool = False) -> None:
        """One more step. A `late` one is not steady: what happened within it was not told apart from its neighbours."""
        begin, lane = self._begin_ns, self._lane
        assert lane is not None
        if begin is None and self._from_begin:
            begin = self._first_ns
        if begin is None:  # it began before the attach
            lane.skip(end_ns)
            self._open(end_ns)
            self._count(None, 0, False, False)
            return
        self._close(lane, begin, max(begin, end_ns), late=late)
        self._open(end_ns)

    def _marked(self, instrument: int, lane: Lane, begin_ns: int, end_ns: int) -> bool:
        """A step begins that the user has marked; or one has run as a whole."""
        steps = self._model.steps
        if steps.source != "marked":
            if steps.source is not None:
                self._anew("marked", end_ns, keep=False)
            self._take_over("marked", "the marks that the user has set")
            self._mark, self._lane = instrument, lane
            self._begin_ns = None
        elif instrument != self._mark or lane is not self._lane:
            ends = self._rivals.setdefault(instrument, [])
            ends.append((begin_ns, end_ns))
            if len(ends) < HAND_ON:
                return False
            self._mark, self._lane = instrument, lane
            self._begin_ns = None
        self._rivals.clear()
        if end_ns > begin_ns:
            lane.skip(begin_ns)
            self._close(lane, begin_ns, end_ns)
            return True
        if self._begin_ns is None:
            lane.skip(begin_ns)
            self._forget_shares()
            self._open(begin_ns)
        elif begin_ns > self._begin_ns:
            self._close(lane, self._begin_ns, begin_ns)
        return True

    def _take_over(self, source: str, how: str) -> None:
        steps = self._model.steps
        steps.source = source
        steps.how = f"{how}; counted anew by them" if self._void is not None or steps.how else how
        steps.why_not = ""
        self._order = None
        while self._shares:
            _, share, took = self._shares.popleft()
            self._note(share, took)

    # ------------------------------------------------------------------------------------------ counting

    def _anew(self, source: str, at_ns: int, *, keep: bool) -> None:
        """What was counted is void. With `keep` it was all one step, the first; else steps are counted from here on."""
        steps = self._model.steps
        if keep and self._all_begin_ns is not None:
            compiled = any(one.compiled for one in steps.accounts)
            self._void = self._all_begin_ns, self._all, compiled
        elif not keep:
            self._begin_ns = None
            self._joined = True
        steps.n = steps.steady_n = steps.steady_ns = steps.slow_n = 0
        steps.durations = Durations()
        for held in (steps.recent, steps.accounts, steps.slow):
            held.clear()
        steps.evidences.clear()
        self._all, self._all_begin_ns = [0] * len(CATEGORIES), None
        for compilation in self._model.compilations:
            compilation.step = None
        self._model.warmup.anew()
        self._model.say(at_ns, "tuimon", f"steps are counted anew: {source}")
        self._model.changed("steps", "compiles", "recompiles")
        for one in self.listeners:
            one.anew()

    def _open(self, begin_ns: int, doubt_ns: int = 0) -> None:
        self._begin_ns, self._doubt_ns = begin_ns, doubt_ns
        self._model.steps.last_end_ns = begin_ns

    def _close(self, lane: Lane, begin_ns: int, end_ns: int, *, doubt_ns: int = 0, late: bool = False) -> None:
        """The step from here to there is over, and the next one begins."""
        model, steps = self._model, self._model.steps
        lost = lane.lost
        parts, evidence = lane.close(begin_ns, end_ns)
        # on any thread: a first backward is compiled on the thread of the autograd engine
        anywhere = model.compiling_between(None, begin_ns, end_ns) > 0
        compiled = parts[of.COMPILE] > 0 or (anywhere and model.compiling_between(lane.thread, begin_ns, end_ns) > 0)
        void, self._void = self._void, None
        if void is not None and void[0] <= begin_ns:
            begin_ns, before, compiled_before = void
            rest = end_ns - begin_ns - sum(parts) - sum(before)  # nothing, or what lay between them
            parts = tuple(a + b for a, b in zip(parts, before, strict=True))
            parts = (*parts[:-1], parts[-1] + max(0, rest))
            compiled, anywhere = compiled or compiled_before, anywhere or compiled_before
        doubt = max(doubt_ns, self._doubt_ns)
        certain = doubt <= max(LONG_NS, (end_ns - begin_ns) // DOUBTFUL)
        account = StepAccount(steps.n, begin_ns, end_ns, parts, compiled, not lost and not self._incomplete, certain)
        self._incomplete = False
        if self._all_begin_ns is None:
            self._all_begin_ns = begin_ns
        self._all = [a + b for a, b in zip(self._all, parts, strict=True)]
        steps.accounts.append(account)
        if evidence.rows or evidence.looks or evidence.cpu:
            steps.evidences[account.index] = evidence
            if len(steps.evidences) > MOST_EVIDENCES:
                del steps.evidences[next(iter(steps.evidences))]
        self._open(end_ns, doubt_ns)
        self._count(account.took_ns, account.index, anywhere, late)
        for one in self.listeners:
            one.closed(account)

    def _count(self, took_ns: int | None, index: int, compiled: bool, late: bool) -> None:
        steps = self._model.steps
        steady = took_ns is not None and not compiled and not late
        if took_ns is not None:
            steps.durations.add(took_ns)
            steps.recent.append((index, took_ns, compiled))
            if steady:
                steps.steady_n += 1
                steps.steady_ns += took_ns
        steps.n += 1
        host = self._model.surroundings.host
        self._model.warmup.step(steady, steps.n, host.rss_bytes if host is not None else None)
        for share in self._touched:
            share.close(steady)
        self._touched.clear()

    def _forget_shares(self) -> None:
        """What has been noted belongs to no step."""
        for share in self._touched:
            share.close(False)
        self._touched.clear()
        self._shares.clear()

    def ended(self, event: ev.TargetEnded) -> bool:
        """The job is over: what is left is told. Gives whether the steps have changed."""
        if self._ended:
            return False
        self._ended = True
        steps, changed = self._model.steps, False
        if steps.source in (None, "inferred") and event.how in ("exited", "lost"):
            if self._lane is not None and self._order is not None:
                for cut in self._order.finish():
                    self._inferred(cut.at_ns, cut.doubt_ns)
                    changed = True
            if steps.source is None:
                steps.why_not = (self._order.why_not if self._order is not None else "") or NOTHING_TO_TELL_BY
                changed = True
        for one in self.listeners:
            one.ended()
        return changed
