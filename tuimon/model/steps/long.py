"""What took long within a step, as it is kept until somebody asks for it: of nearly all steps nobody does."""

from __future__ import annotations

from operator import attrgetter

from tuimon.events import SiteSeen, StackSeen
from tuimon.model.steps.account import EAGER, ENGINE, FORWARD
from tuimon.model.steps.parts import LongRow, StepEvidence
from tuimon.model.steps.timing import Timed, long_row

Row = tuple[int, int, int, int, int]
"""As in `events.Samples`."""

_by_begin = attrgetter("begin_ns", "end_ns")


class Long:
    """A timed call that took long. It is a `LongRow` to those who read the model.

    Who makes one gives it `timed`, `told` and `own_ns`: some steps have many of them, and an `__init__` takes longer than that.
    """

    __slots__ = ("_row", "_site", "own_ns", "timed", "told")

    timed: Timed
    told: Row
    own_ns: int
    """0 to begin with."""
    _row: LongRow
    _site: SiteSeen | None
    """Both are there once they are asked for, or told."""

    @property
    def instrument(self) -> int:
        """The instrument that timed it."""
        return self.timed.number

    @property
    def begin_ns(self) -> int:
        """When it began."""
        return self.told[3]

    @property
    def end_ns(self) -> int:
        """When it ended."""
        return self.told[4]

    @property
    def site(self) -> SiteSeen | None:
        """Where it was called, where that was told."""
        return getattr(self, "_site", None)

    @site.setter
    def site(self, site: SiteSeen | None) -> None:
        self._site = site

    @property
    def row(self) -> LongRow:
        """As it is now; always the same one."""
        try:
            row = self._row
        except AttributeError:
            row = self._row = long_row(self.timed, *self.told[1:])
        row.own_ns, row.site = self.own_ns, self.site
        return row


class Seen(StepEvidence):
    """What was seen of a step, its rows as they are kept."""

    __slots__ = ("_backwards", "_forwards", "in_order", "kinds", "long")

    def __init__(
        self,
        thread: int,
        long: list[Long | LongRow],
        looks: list[StackSeen],
        cpu: list[tuple[int, int]],
        forwards: int,
        backwards: int,
        kinds: bytes = b"",
        in_order: bool = False,
    ) -> None:
        """`forwards` and `backwards` are without those of `kinds`, of the latest calls: they are counted when it is asked.

        `in_order`: `long` is; else it is sorted by begin when it is asked for.
        """
        self.thread = thread
        self.long = long
        self.looks = looks
        self.cpu = cpu
        self._forwards = forwards
        self._backwards = backwards
        self.kinds = kinds
        self.in_order = in_order

    def __reduce__(self) -> tuple[type[Seen], tuple[object, ...]]:
        """For a copy, or a state that is kept: without making the rows."""
        return Seen, (self.thread, self.long, self.looks, self.cpu, self._forwards, self._backwards, self.kinds, self.in_order)

    def ordered(self) -> list[Long | LongRow]:
        """What took long, by begin."""
        return self.long if self.in_order else sorted(self.long, key=_by_begin)

    def go_on(self, rest: Seen) -> None:
        """The step was longer than it was taken for: this was seen of the rest of it."""
        self.long, self.in_order = self.ordered() + rest.ordered(), True
        self.looks += rest.looks
        self.cpu += [reading for reading in rest.cpu if reading not in self.cpu]

    @property
    def forwards(self) -> int:  # type: ignore[override]
        """Calls of forward regions, and of frames in eager."""
        return self._forwards + self.kinds.count(FORWARD) + self.kinds.count(EAGER)

    @property
    def backwards(self) -> int:  # type: ignore[override]
        """Runs of the autograd engine."""
        return self._backwards + self.kinds.count(ENGINE)

    @property
    def rows(self) -> list[LongRow]:  # type: ignore[override]
        """The longest, by begin."""
        return [one if isinstance(one, LongRow) else one.row for one in self.ordered()]
