"""Following a model while it is fed, for what is written as it goes: steps as they end, and times that begin at 0."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from tuimon import events as ev
from tuimon.model import Model
from tuimon.model.steps.parts import StepAccount

HEAD_BATCHES = 64
"""In so many of the first batches it is looked for when the first thing happened."""


class StepsSeen:
    """Tells each step once, when nothing of it can change any more; and when all that was told is void.

    Steps that the model infers are void when an optimizer tells them otherwise; the latest one can still grow.
    """

    def __init__(self, model: Model, write: Callable[[StepAccount], None], void: Callable[[], None]) -> None:
        self._model = model
        self._write = write
        self._void = void
        self._held: StepAccount | None = None
        self._last = -1
        model.each_step(self)

    def closed(self, account: StepAccount) -> None:
        """A step is over."""
        self._give()
        self._held, self._last = account, account.index

    def anew(self) -> None:
        """What was counted is void."""
        self._held, self._last = None, -1
        self._void()

    def ended(self) -> None:
        """No more steps come."""

    def fed(self) -> None:
        """The model was given events: steps that were counted elsewhere are told to nobody, they are only there."""
        if self._model.folded.begun:
            self._take_those_untold()

    def finish(self) -> None:
        """Tell the one that was held back, and one of which nobody knows yet where the next begins."""
        self._take_those_untold()
        self._give()
        self._held = None

    def _take_those_untold(self) -> None:
        for account in [one for one in self._model.steps.accounts if one.index > self._last]:
            self.closed(account)

    def _give(self) -> None:
        held = self._held
        if held is None:
            return
        for account in reversed(self._model.steps.accounts):  # as it is by now
            if account.index <= held.index:
                held = account if account.index == held.index else held
                break
        self._write(held)


def begin_of(batches: Iterable[list[ev.Event]]) -> tuple[list[list[ev.Event]], int | None, float | None]:
    """The first batches, and when the first of what they tell happened: on the job's clock in ns, and as Unix time in s.

    None where that is not in them. What comes before the target is known is on another clock.
    """
    head: list[list[ev.Event]] = []
    first: int | None = None
    offset_s: float | None = None
    for batch in batches:
        head.append(batch)
        for event in batch:
            if isinstance(event, ev.TargetSeen) and offset_s is None:
                offset_s = event.wall_s - event.t_ns / 1e9
            times = _times(event)
            if times:
                first = min(times) if first is None else min(first, *times)
        if offset_s is not None or len(head) >= HEAD_BATCHES:
            break
    return head, first, None if first is None or offset_s is None else first / 1e9 + offset_s


def _times(event: ev.Event) -> list[int]:
    """When what an event tells of began and ended; nothing where it is of before the attach, or tuimon's own."""
    if isinstance(event, ev.Samples):
        return [min(row[3] for row in event.rows)] if event.rows else []
    if isinstance(event, ev.CompileFinished):
        return [] if event.before_attach else [event.began_ns]
    if isinstance(event, (ev.Attaching, ev.CompileStarted, ev.Line, ev.NotAvailable)) or not event.t_ns:
        return [event.t_ns] if isinstance(event, ev.CompileStarted) and not event.before_attach else []
    return [event.t_ns]
