"""The fold over steps: which call ends a step, how long steps take, and which of them are steady."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tuimon.model.parts import StepShare

if TYPE_CHECKING:
    from tuimon.model.model import Model

HAND_ON = 5
"""So many steps of one other optimizer in a row, and the mark is handed on to it: the job has moved to another phase."""


class StepFold:
    """Counts the job's steps by the ends of one optimizer's `step()`.

    A job with several optimizers takes one step where each of them takes one, so one is the mark: the first that is seen.
    When another has stepped `HAND_ON` times while the mark was silent, it becomes the mark and those steps are counted too.
    """

    def __init__(self, model: Model) -> None:
        self._model = model
        self._mark: int | None = None
        self._rivals: dict[int, list[tuple[int, int]]] = {}
        self._touched: list[StepShare] = []
        self._first_ns: int | None = None

    def began(self, t_ns: int) -> None:
        """Something of the job was seen at this time: with `tuimon run`, where its first step may begin."""
        if self._first_ns is None:
            self._first_ns = t_ns

    def share(self, share: StepShare, took_ns: int | None) -> None:
        """Something took so long within the step that is running now; None where that is not known."""
        if share.pending_count == 0:
            self._touched.append(share)
        share.note(took_ns)

    def optimizer(self, instrument: int, begin_ns: int, end_ns: int) -> bool:
        """An optimizer's `step()` ended. Gives whether the steps have changed."""
        if self._mark is None:
            self._mark = instrument
        if instrument == self._mark:
            self._rivals.clear()
            last = self._model.steps.last_end_ns
            if last is not None and begin_ns < last:
                return False  # a subclass that calls its base's step: the inner call has been counted
            self._count(end_ns)
            return True
        ends = self._rivals.setdefault(instrument, [])
        if ends and begin_ns < ends[-1][1]:
            return False
        ends.append((begin_ns, end_ns))
        if len(ends) < HAND_ON:
            return False
        self._mark = instrument
        self._rivals.clear()
        for _, end in ends:
            self._count(end, late=True)
        return True

    def _count(self, end_ns: int, *, late: bool = False) -> None:
        """One more step. A `late` one is not steady: what happened within it was not told apart from its neighbours."""
        steps = self._model.steps
        steps.source = "optimizer"
        begin = steps.last_end_ns
        if begin is None and self._model.target.how == "run":
            begin = self._first_ns
        steps.last_end_ns = end_ns
        steady = False
        if begin is not None:
            took = max(0, end_ns - begin)
            # on any thread: a first backward is compiled on the thread of the autograd engine
            compiled = self._model.compiling_between(None, begin, end_ns) > 0
            steady = not compiled and not late
            steps.durations.add(took)
            steps.recent.append((steps.n, took, compiled))
            if steady:
                steps.steady_n += 1
                steps.steady_ns += took
        steps.n += 1
        host = self._model.surroundings.host
        self._model.warmup.step(steady, steps.n, host.rss_bytes if host is not None else None)
        for share in self._touched:
            share.close(steady)
        self._touched.clear()
