"""Which calls end a step where that is told: by the job's optimizers, or by the marks that the user has set.

A job with several optimizers takes one step where each of them takes one, and the step ends with the last of such a round. With
`tuimon run` the first that is seen begins a round; where tuimon came in the middle, a round begins where the job has waited for
data or its loop has turned. An optimizer that steps several times in a round of another's is the one that counts. When one
has stepped `HAND_ON` times while the one that counts was silent, the job has moved to another phase; those steps are counted
too. Marks that the user has set are taken alike.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from tuimon.model.steps.counting import Counting
from tuimon.model.steps.lanes import Lane
from tuimon.model.steps.turning import MOST_SITES, Loops

if TYPE_CHECKING:
    from tuimon.model.model import Model

HAND_ON = 5
"""So many steps of one other optimizer in a row, and it is the one that counts."""
HAND_ON_THREAD = 50
"""So many where the other one is on another thread: the job may train on both."""
ROUNDS = 3
"""So many rounds are looked at to see who steps how often."""

IN_TURN = 8
"""So many times in a row another graph of the same optimizer's step was called than before."""
TWO_IN_TURN = (
    "; two compiled graphs of it take turns: if they are two optimizers, an iteration counts as two steps; "
    "mark the steps to be sure"
)

Ends = Sequence[tuple[int, int]]
"""(begin, end) of calls that each end a step."""


class Optimizers:
    """Tells which calls of an optimizer's `step()` end a step."""

    def __init__(self) -> None:
        self.names: dict[int | str, str] = {}
        """All that have stepped, by what they are known by."""
        self._counts: int | str | None = None
        self.lane: Lane | None = None
        """The thread that the one that counts steps on."""
        self._round: list[int | str] = []
        """Who has stepped since the one that counts has, in their order."""
        self._silent: dict[int | str, list[tuple[int, int]]] = {}
        """What others have stepped since then."""
        self._in_row = 0
        """How often the one that counts has stepped before others did."""
        self._rounds = 0
        """Rounds of several that have been looked at."""
        self._turns: dict[int | str, int] = {}
        """Behind whose steps the loop has turned, or data was waited for; without what is still in `turned`."""
        self.turned = 0
        """How often the head of a loop was passed on the thread of `lane`, or data waited for, since somebody has stepped."""
        self._latest: int | str | None = None
        self._latest_end_ns = 0
        self._alone: int | str | None = None
        """The only one that has ever stepped, where that is known."""

    def alone(self, number: int, lane: Lane, begin_ns: int, end_ns: int) -> bool:
        """Whether this is one more step of the only one that ever has stepped; it is noted then, as by `stepped`."""
        if number != self._alone or lane is not self.lane or begin_ns < self._latest_end_ns:
            return False
        if self.turned:
            self._note_turns()
        self._latest_end_ns = end_ns
        self._in_row += 1
        return True

    def _note_turns(self) -> None:
        if self._latest is not None and self._rounds < ROUNDS:
            self._turns[self._latest] = self._turns.get(self._latest, 0) + self.turned
        self.turned = 0

    def stepped(self, who: int | str, name: str, lane: Lane, begin_ns: int, end_ns: int, *, first_known: bool) -> Ends | None:
        """One has stepped. Gives the ends of steps that are known by it; None for what is no step of its own.

        `first_known`: the first that was seen is the first of the job's.
        """
        if self.turned:
            self._note_turns()
        if who == self._latest and begin_ns < self._latest_end_ns and lane is self.lane:
            return None  # a subclass that calls its base's step: the inner call has been counted
        if who not in self.names:
            self.names[who] = name
            self._alone = None
        if lane is self.lane or self.lane is None:
            self._latest, self._latest_end_ns = who, end_ns
        if self._counts is None:
            self._counts, self.lane = who, lane
        if who != self._counts:
            return self._other(who, lane, begin_ns, end_ns)
        self.lane = lane
        if not self._round and not self._silent:
            if len(self.names) == 1 and self._latest == who:
                self._alone = who
            self._in_row += 1
            return ((begin_ns, end_ns),)
        passed, self._round = self._round, []
        self._silent.clear()
        in_row, self._in_row = self._in_row, 1 if passed else self._in_row + 1
        if passed and self._rounds < ROUNDS:
            self._rounds += 1
            most, times = Counter(passed).most_common(1)[0]
            if times > in_row:
                self._counts, self._in_row = most, times  # it steps more often
                return ()
            last = self._last(who, passed, first_known) if self._rounds == 1 and times == in_row else who
            if last != who:
                self._counts, self._in_row = last, 1
                self._round = [who]
                return ()
        return ((begin_ns, end_ns),)

    def _last(self, who: int | str, passed: list[int | str], first_known: bool) -> int | str:
        """Who ends a round of these."""
        everybody = [who, *passed]
        most = max(self._turns.get(each, 0) for each in everybody)
        likely = [each for each in everybody if self._turns.get(each, 0) == most]
        if len(likely) == 1:
            return likely[0]
        return passed[-1] if first_known else who

    def _other(self, who: int | str, lane: Lane, begin_ns: int, end_ns: int) -> Ends:
        if lane is self.lane:
            self._round.append(who)
        ends = self._silent.setdefault(who, [])
        ends.append((begin_ns, end_ns))
        if len(ends) < (HAND_ON if lane is self.lane else HAND_ON_THREAD):
            return ()
        self._counts, self.lane = who, lane
        self._rounds = self._in_row = 0
        self._round = []
        self._turns.clear()
        self._silent.clear()
        return ends

    @property
    def how(self) -> str:
        """In words, what ends a step."""
        if len(self.names) < 2:
            return "the ends of an optimizer's step()"
        return f"the ends of one optimizer's step() ({self.names.get(self._counts or 0, '')}), of {len(self.names)} that step"


class Compiled:
    """Tells compiled optimizers apart.

    The graphs of one frame are one optimizer's, compiled again; two optimizers of one class share a frame, too. They are two
    where they were called at two places in the body of one loop.
    """

    def __init__(self, loops: Loops) -> None:
        self._loops = loops
        self._apart: dict[str, bool] = {}
        """Frame -> whether its graphs are told apart: the place of the first that stepped was known."""
        self._who: dict[int, str] = {}
        self._latest: tuple[int, int | str] = (0, 0)
        self.changes = 0
        """How often in a row another graph of the same optimizer's step was called than before."""

    def who(self, number: int, frame: str) -> int | str:
        """Whose step a call of this instrument is."""
        who = (self._who.get(number) or self._found(number, frame)) if frame else number
        latest, before = self._latest
        self.changes = self.changes + 1 if who == before and number != latest else 0
        self._latest = number, who
        return who

    def _found(self, number: int, frame: str) -> int | str:
        place = self._loops.place(number)
        who = frame
        if self._apart.setdefault(frame, place is not None):
            if place is None:  # not yet known
                return self._latest[1] if str(self._latest[1]).startswith(frame) else frame
            who = f"{frame} {place}"
        if len(self._who) < MOST_SITES:
            self._who[number] = who
        return who

    @property
    def doubt(self) -> str:
        """What is to be said where two graphs that count as one optimizer's have taken turns for long."""
        return TWO_IN_TURN if self.changes >= IN_TURN else ""


class Marks:
    """Counts the steps that the user has marked."""

    def __init__(self, model: Model, counting: Counting) -> None:
        self._model = model
        self._counting = counting
        self._mark: int | None = None
        self._others: Counter[int] = Counter()

    def marked(self, instrument: int, lane: Lane, begin_ns: int, end_ns: int, *, how: str = "") -> bool:
        """A step begins that the user has marked; or one has run as a whole. Gives whether the steps have changed."""
        steps, counting = self._model.steps, self._counting
        if steps.source != "marked":
            if steps.source is not None:
                counting.anew("marked", end_ns, keep=False)
            counting.told_by("marked", how or "the marks that the user has set")
            self._mark, counting.lane = instrument, lane
            counting.begin_ns = None
        elif instrument != self._mark or lane is not counting.lane:
            self._others[instrument] += 1
            if self._others[instrument] < HAND_ON:
                return False
            self._mark, counting.lane = instrument, lane
            counting.begin_ns = None
        self._others.clear()
        if end_ns > begin_ns:
            lane.skip(begin_ns)
            counting.close(lane, begin_ns, end_ns)
            return True
        if counting.begin_ns is None:
            lane.skip(begin_ns)
            counting.forget_shares()
            counting.open(begin_ns)
        elif begin_ns > counting.begin_ns:
            counting.close(lane, counting.begin_ns, begin_ns)
        return True
