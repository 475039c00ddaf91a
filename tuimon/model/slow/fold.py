"""The fold over slow steps: which were, and why; and over what the machine did meanwhile."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from tuimon import events as ev
from tuimon.model.about import About
from tuimon.model.eager import compiled_calls, eager_calls
from tuimon.model.slow.details import Details, was_reset, where
from tuimon.model.slow.idle import serves
from tuimon.model.slow.naming import EVENTS, Known, explain, sentence
from tuimon.model.slow.outside import Outsiders
from tuimon.model.slow.rule import OVER_NS, Judge, Slow, rule
from tuimon.model.slow.spots import Spots
from tuimon.model.slow.trends import Trends, period
from tuimon.model.steps.parts import SlowStep, StepAccount, StepEvidence

if TYPE_CHECKING:
    from tuimon.model.model import Model

PATIENCE_NS = 1_000_000_000
"""So long after its end a slow step waits for the reading from outside that closes it."""
WARMING = 3
"""Where one of the first so many steps is slow and nothing happened that has a name of its own, it is warming up."""
MOST_TEXTS = 20_000
MOST_PLACES = 256
INDICES = 256
"""Slow steps of one cause by which it is told whether they come periodically."""


@dataclass(slots=True)
class Tally:
    """All slow steps that had one first cause."""

    cause: str
    n: int = 0
    resets: int = 0
    """Those in which something was compiled again after a `torch._dynamo.reset()`."""
    lost_ns: int = 0
    """What they took beyond the usual, all together."""
    worst: SlowStep | None = None
    last: SlowStep | None = None
    where: str = ""
    """The place of the worst: `file:line`; empty where it has none, or it is not known."""
    places: Counter[str] = field(default_factory=Counter)
    """How many were slow at which place, of those whose place is known."""
    indices: deque[int] = field(default_factory=lambda: deque(maxlen=INDICES))

    @property
    def every(self) -> int | None:
        """They come every so many steps; None where they do not."""
        return period(list(self.indices))


class Slowness:
    """Judges each step as it is closed, and explains a slow one when the machine has been read once more after it."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self._judge = Judge()
        self._waiting: deque[Slow] = deque()
        self._texts: dict[tuple[str, int], str] = {}
        self.outside = Outsiders()
        self.trends = Trends()
        self.tallies: dict[str, Tally] = {}
        """By the first cause, without the job's first step."""
        self.handlers: dict[type[ev.Event], Callable[[Any], None]] = {
            ev.ThreadSampled: self._thread_sampled,
            ev.SourceSeen: self._source_seen,
        }

    @property
    def rule(self) -> str:
        """What makes a step slow, in words."""
        return rule(self._judge.over_ns)

    @property
    def over_ns(self) -> int:
        """A slow step takes at least so much longer than the usual."""
        return self._judge.over_ns

    def set_over(self, over_ns: int = OVER_NS) -> None:
        """From now on a step is slow only where it takes so much longer than the usual."""
        self._judge.over_ns = over_ns

    def text_of(self, file: str, line: int) -> str:
        """The text of a line of the job's source, stripped; empty where it is not known."""
        return self._texts.get((file, line), "")

    # ------------------------------------------------------------------------------------------ steps

    def closed(self, account: StepAccount) -> None:
        """A step has ended; `model.steps` has it already."""
        slow = self._judge.take(account)
        if slow:
            self._waiting.extend(slow)
        evidence = self._model.steps.evidences.get(account.index)
        if evidence is not None and evidence.looks:
            account = self._without_idling(account, evidence)
        if self.trends.take(account):
            self.trends.close(*self._calls())
            self._model.changed("steps")
        if self._waiting:
            self._settle()

    def _without_idling(self, account: StepAccount, evidence: StepEvidence) -> StepAccount:
        """The step without what it has waited for work: a server with fewer requests has not become slower."""
        if not serves(account, evidence):
            return account
        waits = Spots(self._model, evidence, self.text_of).waits(account.begin_ns, account.end_ns)
        idle = min(waits.ns, account.parts[-1]) if waits is not None else 0
        return replace(account, end_ns=account.end_ns - idle, parts=(*account.parts[:-1], account.parts[-1] - idle))

    def anew(self) -> None:
        """What was counted is void."""
        self._judge = Judge(self._judge.over_ns)
        self._waiting.clear()
        self.trends = Trends()
        self.tallies.clear()

    def ended(self) -> None:
        """No more steps come."""
        self._waiting.extend(self._judge.end())
        self._settle(at_once=True)

    def _calls(self) -> tuple[int | None, int | None]:
        eager = calls = 0
        for frame in self._model.frames.values():
            in_eager, _ = eager_calls(self._model, frame)
            compiled, _ = compiled_calls(self._model, frame)
            eager += in_eager or 0
            calls += (in_eager or 0) + (compiled or 0)
        return (eager, calls) if calls else (None, None)

    # ------------------------------------------------------------------------------------------ around them

    def host(self, event: ev.HostSampled) -> None:
        """A reading of the host."""
        self.outside.host(event)
        self._settle()

    def gpu(self, event: ev.GpuSampled) -> None:
        """A reading of a GPU."""
        self.outside.gpu(event)

    def _thread_sampled(self, event: ev.ThreadSampled) -> None:
        self.outside.thread(event)
        self._settle()

    def _source_seen(self, event: ev.SourceSeen) -> None:
        if len(self._texts) < MOST_TEXTS:
            self._texts[(event.file, event.line)] = event.text

    # ------------------------------------------------------------------------------------------ why

    def _settle(self, *, at_once: bool = False) -> None:
        """Explain those of which all that will be known is known by now, in their order."""
        while self._waiting:
            account = self._waiting[0].account
            evidence = self._model.steps.evidence(account.index)
            thread = evidence.thread if evidence is not None else self._model.step_thread
            native = None if thread is None else self._model.native(thread)
            late = self._model.now_ns >= account.end_ns + PATIENCE_NS
            if not (at_once or late or self.outside.settled(native, account.end_ns)):
                return
            self._explain(self._waiting.popleft(), native)

    def _explain(self, slow: Slow, native: int | None) -> None:
        steps, account = self._model.steps, self._now(slow.account)
        slow = replace(slow, account=account)
        evidence = steps.evidence(account.index)
        outside = self.outside.look(
            native, account.begin_ns, account.end_ns, slow.base.median_ns, self._clock(account, bool(evidence))
        )
        if outside.waited_ns:
            account = replace(account, waited_ns=min(outside.waited_ns, account.took_ns))
            self._put_back(account)
            slow = replace(slow, account=account)
        details = Details(self._model, account, evidence, self.text_of, serves=serves(account, evidence, slow.base))
        found = explain(slow, Known(outside, details.tell))
        if slow.first and not _worth(found):
            return
        steps.slow.append(found)
        steps.slow_n += 1
        if account.index > 0:  # the first one is slow in any job
            self._count(found, any(was_reset(self._model, one) for one in details.compilations))
        self._model.say(account.end_ns, "slow", sentence(found), About("step", str(account.index)))
        self._model.changed("steps")

    def _clock(self, account: StepAccount, known: bool) -> list[tuple[int, int]]:
        """Readings of the thread's CPU clock around a step: its own, and the first one after it."""
        if not known:
            return []
        found: set[tuple[int, int]] = set()
        for index in (account.index - 1, account.index, account.index + 1):
            evidence = self._model.steps.evidence(index)
            if evidence is not None:
                found.update(evidence.cpu)
        return sorted(found)

    def _now(self, account: StepAccount) -> StepAccount:
        """The account as the model has it now: that something of it was dropped is often learnt a moment later."""
        at = self._place(account)
        return account if at is None else self._model.steps.accounts[at]

    def _put_back(self, account: StepAccount) -> None:
        at = self._place(account)
        if at is not None:
            self._model.steps.accounts[at] = account

    def _place(self, account: StepAccount) -> int | None:
        accounts = self._model.steps.accounts
        at = account.index - accounts[0].index if accounts else -1
        return at if 0 <= at < len(accounts) and accounts[at].index == account.index else None

    def _count(self, found: SlowStep, reset: bool) -> None:
        cause = found.causes[0].cause
        tally = self.tallies.setdefault(cause, Tally(cause))
        tally.n += 1
        tally.resets += reset
        tally.lost_ns += found.account.took_ns - found.usual_ns
        tally.last = found
        tally.indices.append(found.account.index)
        at = where(self._model, found, self.text_of)
        if at and (at in tally.places or len(tally.places) < MOST_PLACES):
            tally.places[at] += 1
        if tally.worst is None or found.account.took_ns > tally.worst.account.took_ns:
            tally.worst, tally.where = found, at


def _worth(found: SlowStep) -> bool:
    """Whether a slow one of the first steps is told: it has a name, and is no mere warming up."""
    if not found.named:
        return False
    return found.account.index >= WARMING or any(one.cause in EVENTS for one in found.causes)
