"""What took long within a step, as it is kept until somebody asks for it: of nearly all steps nobody does."""

from __future__ import annotations

from tuimon.events import SiteSeen, StackSeen
from tuimon.model.steps.parts import LongRow, StepEvidence
from tuimon.model.steps.timing import Timed, long_row


class Long:
    """A timed call that took long. It is a `LongRow` to those who read the model."""

    __slots__ = ("_row", "begin_ns", "end_ns", "flags", "own_ns", "site", "thread", "timed")

    def __init__(self, timed: Timed, thread: int, flags: int, begin_ns: int, end_ns: int) -> None:
        self.timed = timed
        self.thread = thread
        self.flags = flags
        self.begin_ns = begin_ns
        self.end_ns = end_ns
        self.own_ns = 0
        self.site: SiteSeen | None = None
        self._row: LongRow | None = None

    @property
    def instrument(self) -> int:
        """The instrument that timed it."""
        return self.timed.number

    @property
    def row(self) -> LongRow:
        """As it is now; always the same one."""
        row = self._row
        if row is None:
            row = self._row = long_row(self.timed, self.thread, self.flags, self.begin_ns, self.end_ns)
        row.own_ns, row.site = self.own_ns, self.site
        return row


class Seen(StepEvidence):
    """What was seen of a step, its rows as they are kept."""

    __slots__ = ("long",)

    def __init__(
        self,
        thread: int,
        long: list[Long | LongRow],
        looks: list[StackSeen],
        cpu: list[tuple[int, int]],
        forwards: int,
        backwards: int,
    ) -> None:
        """`long`: by begin."""
        self.thread = thread
        self.long = long
        self.looks = looks
        self.cpu = cpu
        self.forwards = forwards
        self.backwards = backwards

    def __reduce__(self) -> tuple[type[Seen], tuple[object, ...]]:
        """For a copy, or a state that is kept: without making the rows."""
        return Seen, (self.thread, self.long, self.looks, self.cpu, self.forwards, self.backwards)

    @property
    def rows(self) -> list[LongRow]:  # type: ignore[override]
        """The longest, by begin."""
        return [one if isinstance(one, LongRow) else one.row for one in self.long]
