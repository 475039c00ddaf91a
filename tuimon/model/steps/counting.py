"""The count of steps: where the one under way began, the accounts of those that are over, and what happened in which.

Who knows where steps end (an optimizer, the user's marks, the order of calls) says so here, and all that reads the model finds
the step in it from then on.
"""

from __future__ import annotations

from collections import deque
from operator import add
from typing import TYPE_CHECKING, Protocol

from tuimon import events as ev
from tuimon.model.parts import StepShare
from tuimon.model.statistics import Durations
from tuimon.model.steps import account as of
from tuimon.model.steps.lanes import LONG_NS, Lane
from tuimon.model.steps.long import Seen
from tuimon.model.steps.parts import CATEGORIES, StepAccount

if TYPE_CHECKING:
    from tuimon.model.model import Model

DOUBTFUL = 10
"""Where more than one part in so many of a step may be its neighbour's, its index is not certain."""
MOST_EVIDENCES = 512
MOST_SHARES = 4096


class Told(Protocol):
    """Who wants to know of steps: see `Counting.listeners`."""

    def closed(self, account: StepAccount) -> None:
        """A step is over, and all that is known of it is in the model."""

    def anew(self) -> None:
        """What was counted is void."""

    def ended(self) -> None:
        """The job is over: no more steps come."""


class Counting:
    """Closes one step after the other."""

    def __init__(self, model: Model) -> None:
        self.listeners: list[Told] = []
        self.is_told = False
        """Somebody tells the steps, an optimizer or marks: they need not be inferred."""
        self.lane: Lane | None = None
        """The thread that steps run on."""
        self.begin_ns: int | None = None
        """Where the step under way begins, in a job whose steps have been told already."""
        self.first_ns: int | None = None
        """When the first thing that is known of the job began."""
        self._model = model
        self.shared: list[tuple[StepShare, int | None]] = []
        """What happened in the step under way, of the samples that are being folded: see `share`."""
        self._touched: list[StepShare] = []
        """Those that have been given something of the step under way by earlier samples."""
        self._shares: deque[tuple[int, StepShare, int | None]] = deque()
        """What happened, with its time, where it is not known yet in which step: steps are told late."""
        self._doubt_ns = 0
        """So much of the begin of the step under way may belong to the step before it."""
        self._void: tuple[int, list[int], bool] | None = None
        """Begin, parts and whether a compilation ran, of steps that turned out to be the first part of one."""
        self._all = [0] * len(CATEGORIES)
        """The parts of all steps that were inferred: should an optimizer come, they were one step."""
        self._all_begin_ns: int | None = None
        self._kept: deque[int] = deque()
        """The steps of which there is evidence."""
        self._dropped = 0
        self._incomplete = False
        self._status_ns = 0
        self._is_steady = False
        """The step that was closed last is a steady one."""
        self._joined = False
        """Steps are counted anew from some time on: what came before that is none of them."""

    @property
    def from_begin(self) -> bool:
        """Whether the first step begins with the job."""
        return self._model.target.how == "run" and not self._joined

    @property
    def since(self) -> str:
        """In words, from where on steps are counted."""
        if self.from_begin:
            return "the job's begin"
        if self._model.target.how == "run":
            return "where it was seen how they are told"
        return "the attach"

    @property
    def first_begin_ns(self) -> int | None:
        """Where the step under way begins, the first one too; None where it began before the attach."""
        return self.first_ns if self.begin_ns is None and self.from_begin else self.begin_ns

    def began(self, t_ns: int) -> None:
        """Something of the job was seen at this time: with `tuimon run`, where its first step may begin."""
        if self.first_ns is None or t_ns < self.first_ns:
            self.first_ns = t_ns

    # ------------------------------------------------------------------------------------------ shares of steps

    def share(self, share: StepShare, took_ns: int | None, at_ns: int) -> None:
        """Something took so long, until `at_ns`, within a step; None where that is not known."""
        if self.is_told:
            self.shared.append((share, took_ns))
            return
        self._shares.append((at_ns, share, took_ns))
        if len(self._shares) > MOST_SHARES:
            self.shared.append(self._shares.popleft()[1:])

    def put_off(self) -> None:
        """The step that is under way goes on with later samples: its shares hold what they were given."""
        for share, took_ns in self.shared:
            if share.pending_count == 0:
                self._touched.append(share)
            share.note(took_ns)
        self.shared.clear()

    def shares_until(self, at_ns: int | None) -> None:
        """The step under way reaches that far; None: all that has happened is part of it."""
        while self._shares and (at_ns is None or self._shares[0][0] <= at_ns):
            self.shared.append(self._shares.popleft()[1:])

    def forget_shares(self, until_ns: int | None = None) -> None:
        """What happened until then belongs to no step; None: all, and what the step under way has been given."""
        if until_ns is None:
            for share in self._touched:
                share.close(False)
            self._touched.clear()
            self.shared.clear()
            self._shares.clear()
        else:
            while self._shares and self._shares[0][0] <= until_ns:
                self._shares.popleft()

    # ------------------------------------------------------------------------------------------ steps

    def anew(self, source: str, at_ns: int, *, keep: bool, over: bool = False) -> None:
        """What was counted is void. With `keep` it was all one step, the first; else steps are counted from here on.

        `over`: that first step ended where the last one did that was counted.
        """
        steps = self._model.steps
        if keep and self._all_begin_ns is not None:
            compiled = any(one.compiled for one in steps.accounts)
            self._void = self._all_begin_ns, self._all, compiled
        elif not keep:
            self.begin_ns = None
            self._joined = True
        steps.n = steps.first = steps.steady_n = steps.steady_ns = steps.slow_n = 0
        steps.durations = Durations()
        for held in (steps.recent, steps.accounts, steps.slow):
            held.clear()
        steps.evidences.clear()
        self._kept.clear()
        self._all, self._all_begin_ns = [0] * len(CATEGORIES), None
        for compilation in self._model.compilations:
            compilation.step = None
        self._model.warmup.anew()
        self._model.say(at_ns, "tuimon", f"steps are counted anew: {source}")
        self._model.changed("steps", "compiles", "recompiles")
        for one in self.listeners:
            one.anew()
        if over and self._void is not None and self.begin_ns is not None:
            (begin, parts, compiled), self._void = self._void, None
            rest = self.begin_ns - begin - sum(parts)
            self._add(StepAccount(0, begin, self.begin_ns, (*parts[:-1], parts[-1] + rest), compiled), compiled, False)
            self.tell()

    def _add(self, account: StepAccount, compiled: bool, late: bool) -> None:
        """One more account. `compiled`: on any thread."""
        if not self.is_told:
            if self._all_begin_ns is None:
                self._all_begin_ns = account.begin_ns
            self._all = list(map(add, self._all, account.parts))
        self._model.steps.accounts.append(account)
        self.count(account.end_ns - account.begin_ns, account.index, compiled, late)

    def told_by(self, source: str, how: str) -> None:
        """From now on steps are told like that, by the optimizer or by marks."""
        steps = self._model.steps
        steps.source, self.is_told = source, True
        steps.how = f"{how}; counted anew by them" if self._void is not None or steps.how else how
        steps.why_not = ""
        self.shares_until(None)

    def open(self, begin_ns: int, doubt_ns: int = 0) -> None:
        """A step begins there."""
        self.begin_ns, self._doubt_ns = begin_ns, doubt_ns
        self._model.steps.last_end_ns = begin_ns

    def close(
        self,
        lane: Lane,
        begin_ns: int,
        end_ns: int,
        *,
        doubt_ns: int = 0,
        certain: bool = True,
        late: bool = False,
        tell: bool = True,
    ) -> None:
        """The step from here to there is over, and the next one begins.

        `certain`: it is one for all that is known, but for `doubt_ns` of the next one that may be its own. A `late` one is not
        steady: what happened within it was not told apart from its neighbours. Without `tell` the listeners are told by `tell`.
        """
        model, steps = self._model, self._model.steps
        lost = lane.lost
        parts, evidence = lane.close(begin_ns, end_ns)
        # on any thread: a first backward is compiled on the thread of the autograd engine
        anywhere = begin_ns < model.compiled_until_ns and model.compiling_between(None, begin_ns, end_ns) > 0
        compiled = parts[of.COMPILE] > 0 or (anywhere and model.compiling_between(lane.thread, begin_ns, end_ns) > 0)
        void, self._void = self._void, None
        if void is not None and void[0] <= begin_ns:
            begin_ns, before, compiled_before = void
            rest = end_ns - begin_ns - sum(parts) - sum(before)  # nothing, or what lay between them
            parts = tuple(map(add, parts, before))
            parts = (*parts[:-1], parts[-1] + max(0, rest))
            compiled, anywhere = compiled or compiled_before, anywhere or compiled_before
        doubt = self._doubt_ns if self._doubt_ns > doubt_ns else doubt_ns
        certain = certain and (doubt <= LONG_NS or doubt <= (end_ns - begin_ns) // DOUBTFUL)
        account = StepAccount(steps.n, begin_ns, end_ns, parts, compiled, not lost and not self._incomplete, certain)
        self._incomplete = False
        if evidence is not None:
            self._keep(account.index, evidence)
        self.begin_ns = steps.last_end_ns = end_ns
        self._doubt_ns = doubt_ns
        if self.is_told:
            steps.accounts.append(account)
            self.count(end_ns - begin_ns, account.index, anywhere, late)
        else:
            self._add(account, anywhere, late)
        for compilation in reversed(model.compilations):  # they ended before it was known that their step had begun
            if compilation.ended_ns <= begin_ns:
                break
            if not compilation.before_attach and begin_ns <= compilation.began_ns < end_ns:
                compilation.step = account.index
        if tell:
            for one in self.listeners:
                one.closed(account)

    def tell(self) -> None:
        """Tell the listeners of the latest step."""
        account = self._model.steps.accounts[-1]
        for one in self.listeners:
            one.closed(account)

    def reach(self, lane: Lane, until_ns: int, doubt_ns: int) -> None:
        """The step that was closed last, or what came before the first whole one, has gone on until then."""
        steps, begin = self._model.steps, self.begin_ns
        assert begin is not None
        if until_ns - begin < LONG_NS:
            until_ns = begin
        elif not steps.accounts:
            lane.skip(until_ns)
        else:
            parts, evidence = lane.close(begin, until_ns, whatever=True)
            assert evidence is not None
            last = steps.accounts[-1]
            added = until_ns - begin
            parts = tuple(map(add, last.parts, parts))
            compiled = last.compiled or parts[of.COMPILE] > 0
            steps.durations.grow(added)
            if self._is_steady and not compiled:
                steps.steady_ns += added
            elif self._is_steady:
                self._is_steady = False
                steps.steady_n -= 1
                steps.steady_ns -= last.took_ns
            steps.accounts[-1] = StepAccount(
                last.index, last.begin_ns, until_ns, parts, compiled, last.complete, last.index_certain, last.waited_ns
            )
            steps.recent[-1] = (last.index, last.took_ns + added, steps.recent[-1][2])
            known = steps.evidences.get(last.index)
            if not isinstance(known, Seen):
                self._keep(last.index, evidence)
            else:
                known.go_on(evidence)
        self.open(until_ns, doubt_ns)

    def _keep(self, index: int, evidence: Seen) -> None:
        held = self._model.steps.evidences
        held[index] = evidence
        self._kept.append(index)
        if len(held) > MOST_EVIDENCES:
            del held[self._kept.popleft()]

    def count(self, took_ns: int | None, index: int, compiled: bool, late: bool) -> None:
        """One more step; None: it began before the attach."""
        steps = self._model.steps
        self._is_steady = steady = took_ns is not None and not compiled and not late
        if took_ns is not None:
            steps.durations.add(took_ns)
            steps.recent.append((index, took_ns, compiled))
            if steady:
                steps.steady_n += 1
                steps.steady_ns += took_ns
        elif not steps.n:
            steps.first = 1
        steps.n += 1
        warmup = self._model.warmup
        if warmup.steps is None:
            host = self._model.surroundings.host
            warmup.step(steady, steps.n, host.rss_bytes if host is not None else None)
        elif steady:  # nearly all: it is over
            warmup.in_a_row += 1
        else:
            warmup.in_a_row = 0
        if self._touched:
            for share in self._touched:
                share.close(steady)
            self._touched.clear()
        if steady:
            for share, ns in self.shared:
                share.count += 1
                if ns is None:
                    share.untimed += 1
                else:
                    share.ns += ns
        self.shared.clear()

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
