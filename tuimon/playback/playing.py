"""A recording in place of a job: it is played at a pace, paused, taken step by step, and gone through from place to place.

Three threads: the loading one (`loading`), one that brings the model to where somebody wants it and then reads ahead, and the
owner's, which drains. The model is swapped where a place was reached, see `restarted`.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from typing import Literal

from tuimon import events as ev
from tuimon.model import Model
from tuimon.playback.fold import Fold, weight
from tuimon.playback.loading import Loading
from tuimon.playback.position import Place, Position, place
from tuimon.sources.files import Opened, Piece, no_progress

SPEEDS: tuple[float | None, ...] = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, None)
AHEAD = 40_000
"""Rows that are read ahead."""
A_BEAT, A_FAST_BEAT = 10_000, 20_000
"""Rows that are given out at once, at a stated speed and as fast as it goes: the screen waits while they are folded."""
LONGEST_BEAT_NS = 1_000_000_000
"""Whoever did not look for longer (the terminal was stopped) goes on where he was."""
BEGIN = Place("the begin")


class Playback:
    """One recording."""

    recorded: Literal[True] = True

    def __init__(
        self,
        opened: Opened,
        *,
        speed: float | None = 1.0,
        paused: bool = False,
        judge: Callable[[Model], None] = lambda _: None,
        clock: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        """`judge` sets by what a model tells slow steps; `clock` is tuimon's own, in ns."""
        self.title = opened.path.name
        self.label = opened.label
        self.rank = opened.rank
        self.host: str | None = "its host"
        self.pid: int | None = None
        self.job: str | None = None
        self.restarted = 0
        """How often `model` has become another one, or was moved on in here."""
        self.opened = opened
        self.local = opened.local
        """The job ran on this very machine."""
        self.began_s = opened.began_s
        self._fold = Fold.new(judge)
        self.model = self._fold.model
        """What has been played."""
        self._loading = Loading(opened, judge)
        self._changed = self._loading.changed
        self._clock = clock
        self._drained: int | None = None
        self._speed = speed
        self._paused = paused
        self._at_ns = 0
        self._due_ns = 0
        """Paused or not, it goes on until there."""
        self._behind: tuple[int, int] | None = None
        """Paused or not, it goes on until so many steps are over (`Fold.steps`)."""
        self._wanted: Place | None = BEGIN
        self._back: tuple[int, int] | None = None
        """Where `_wanted` is a step: in which count of steps, where that is known."""
        self._reached: tuple[Fold, int] | None = None
        self._ahead: deque[Piece] = deque()
        self._weight = 0
        self._all_read = False
        self._word = ""
        self._stop = self._started = False
        self._thread = threading.Thread(target=self._play, name=f"tuimon-play {opened.label}", daemon=True)

    @property
    def refused(self) -> str | None:
        """Why the file could not be read; None while it may still be, and where it was."""
        return self._loading.refused

    # ------------------------------------------------------------------------------------------ what a feed does

    def start(self) -> None:
        """Begin to read; at the first `drain` otherwise, so that nothing holds up the first picture."""
        if not self._started:
            self._started = True
            self._loading.start()
            self._thread.start()

    def wait(self, seconds: float | None = None) -> bool:
        """Until all is read, or for so long; gives whether it is."""
        return self._started and self._loading.wait(seconds)

    def drain(self) -> list[ev.Event]:
        """What is due now, by the clock and the speed; nothing while it goes to some place."""
        self.start()
        now = self._clock()
        passed = 0 if self._drained is None else min(now - self._drained, LONGEST_BEAT_NS)
        self._drained = now
        with self._changed:
            if self._reached is not None:
                self._fold, self._at_ns = self._reached
                self.model = self._fold.model
                self._reached, self._due_ns, self._behind = None, self._at_ns, None
                self.restarted += 1
                passed = 0
        if self.refused is not None and self.model.target.ended is None:
            return [ev.TargetEnded(0, "refused", self.refused)]
        if self._wanted is not None:
            return []
        if self._behind is not None:
            self._step_on(self._behind)
            return []
        if self._paused and self._due_ns <= self._at_ns:
            return []
        if self._paused:
            if self._is_over:
                self._due_ns = self._at_ns
            return self._give(self._due_ns, A_BEAT)
        if self._speed is None:
            return self._give(None, A_FAST_BEAT)
        return self._give(max(self._due_ns, self._at_ns + int(passed * self._speed)), A_BEAT)

    def _give(self, until_ns: int | None, most: int) -> list[ev.Event]:
        """What comes up to then, or as much as is there; about so many rows."""
        found: list[ev.Event] = []
        given = 0
        with self._changed:
            while self._ahead and given < most and (until_ns is None or self._ahead[0].at_ns <= until_ns):
                piece = self._ahead.popleft()
                found += piece.events
                given += weight(piece.events)
                self._at_ns = max(self._at_ns, piece.at_ns)
            self._weight -= given
            if until_ns is not None and given < most and self._ahead:
                self._at_ns = max(self._at_ns, until_ns)
            self._changed.notify_all()
        return found

    def _step_on(self, steps: tuple[int, int]) -> None:
        """Fold on, here and now, until so many steps are over."""
        given = 0
        with self._changed:
            while self._ahead and given < A_BEAT:
                piece = self._ahead.popleft()
                more = weight(piece.events)
                given += more
                self._weight -= more
                self._at_ns = self._due_ns = max(self._at_ns, piece.at_ns)
                rest = self._fold.until(piece.events, steps)
                if rest is not None:
                    if rest:
                        self._ahead.appendleft(Piece(piece.block, piece.at_ns, rest))
                        self._weight += weight(rest)
                    self._behind = None
                    break
            if self._is_over:
                self._behind = None
            self._changed.notify_all()
        self.restarted += 1

    def show(self, on: bool) -> None:
        """Nothing: all of it comes anyway."""

    def command(self, message: dict[str, object]) -> str | None:
        """There is nobody to ask."""
        return "this is a recording; nothing can be asked of it"

    def detach(self) -> None:
        """Read no further."""
        self._loading.stop()
        with self._changed:
            self._stop = True
            self._changed.notify_all()

    def nvml_waiting(self) -> float | None:
        """No driver is asked."""
        return None

    def silence(self) -> tuple[float, str | None] | None:
        """Nothing is missed where nothing is heard."""
        return None

    def clock(self) -> int:
        """The time in the recording, in ns: it stands still where nothing is played."""
        return self._at_ns

    # ------------------------------------------------------------------------------------------ what a person does

    @property
    def _is_over(self) -> bool:
        return self._all_read and not self._ahead

    def position(self) -> Position:
        """Where it stands."""
        loading, wanted = self._loading, self._wanted
        steps = self.model.steps.n
        going = wanted.words if wanted is not None and wanted is not BEGIN else ""
        if self._behind is not None:
            going = "a step on"
        elif not going and self._paused and self._due_ns > self._at_ns:
            going = "the same time"
        return Position(
            step=steps - 1 if steps else None,
            at_s=self._at_ns / 1e9,
            of_s=loading.at_ns / 1e9,
            speed=self._speed,
            paused=self._paused,
            over=wanted is None and self._is_over and self._loading.whole,
            loaded=loading.share,
            rows=loading.rows,
            of_rows=self.opened.rows,
            going=going,
        )

    def play(self, on: bool) -> None:
        """Play, or pause. At the end: from the begin again."""
        if on and self._wanted is None and self._is_over:
            self.seek(BEGIN)
        self._paused = not on
        self._due_ns = self._at_ns
        self._behind = None

    def speed(self, way: int) -> float | None:
        """The next faster (1) or slower (-1) speed; gives it."""
        at = SPEEDS.index(self._speed) if self._speed in SPEEDS else SPEEDS.index(1.0)
        self._speed = SPEEDS[min(max(0, at + way), len(SPEEDS) - 1)]
        return self._speed

    def step(self, count: int) -> str | None:
        """So many steps on, or back where it is negative; it pauses. Gives a sentence where that cannot be."""
        self._paused = True
        anew, steps = self._fold.steps
        if count > 0:
            if self._wanted is None and self._is_over:
                return "this is the end of the recording"
            self._behind = (anew, steps + count)
            return None
        if steps + count <= 0:
            self.seek(BEGIN)
            return None if steps else "there is no step before this"
        step = steps + count - 1
        self.seek(Place(f"step {step}", step), (anew, step + 1))
        return None

    def seek(self, where: Place, steps: tuple[int, int] | None = None) -> None:
        """Go there. What is not read yet is waited for; another call takes the place of one that is under way."""
        with self._changed:
            self._wanted, self._back, self._behind = where, steps, None
            self._changed.notify_all()

    def follow(self, at_ns: int) -> None:
        """Be at this time as well, as another recording of the same job is."""
        if at_ns >= self._at_ns:
            self._due_ns = at_ns
        elif self._wanted is None or self._wanted.at_ns != at_ns:
            self.seek(Place("the same time", at_ns=max(0, at_ns)))

    def go(self, text: str, utc_offset_s: int = 0) -> str | None:
        """Go to the place that somebody has typed. Gives a sentence where that is none."""
        of_s = self._loading.at_ns / 1e9 if self._loading.whole else None
        where = place(text, at_s=self._at_ns / 1e9, of_s=of_s, began_s=self.opened.began_s, utc_offset_s=utc_offset_s)
        if isinstance(where, str):
            return where
        if self._loading.whole and where.step is not None and self._loading.count_of(where.step) is None:
            last = max(self._loading.counts)
            return f"there is no step {where.step}: the last one is {last - 1}" if last else "this recording has no step"
        self._paused = self._paused or where.step is not None
        self.seek(where)
        return None

    def finding(self, way: int) -> str:
        """Go to where the next (1) or the previous (-1) thing to look at came up. Gives what it is, or that there is none."""
        known = self._loading.found
        if way > 0:
            found = next((one for one in known if one.at_ns > self._at_ns), None)
        else:
            found = next((one for one in reversed(known) if one.at_ns < self._at_ns), None)
        if found is None:
            read = "" if self._loading.whole else f" in the {self._loading.share:.0%} that are read"
            return f"nothing to look at comes up {'behind' if way > 0 else 'before'} this{read}"
        others = sum(one.at_ns == found.at_ns for one in known) - 1
        first = next(one for one in known if one.at_ns == found.at_ns)
        self._paused = True
        self.seek(Place("a finding", at_ns=found.at_ns))
        return f"came up here{f' (with {others} more)' if others else ''}: {first.words}"

    # ------------------------------------------------------------------------------------------ on its own thread

    def _play(self) -> None:
        reader: Iterator[Piece] | None = None
        try:
            while True:
                with self._changed:
                    self._changed.wait_for(lambda: self._stop or self._wanted is not None or self._has_room)
                    if self._stop:
                        return
                    wanted, steps = self._wanted, self._back
                    if wanted is not None and not self._is_reachable(wanted):
                        self._changed.wait(0.5)
                        continue
                if wanted is not None:
                    reader = self._go_to(wanted, steps)
                    continue
                piece = next(reader, None) if reader is not None else None
                with self._changed:
                    if self._wanted is not None:
                        continue
                    if piece is None:
                        self._all_read = True
                    else:
                        self._ahead.append(piece)
                        self._weight += weight(piece.events)
                    self._changed.notify_all()
        except Exception as error:  # noqa: BLE001 - it would be lost with this thread
            why = f"it could not be read on: {type(error).__name__}: {error}"
            with self._changed:
                self._wanted, self._all_read = None, True
                self._ahead.append(Piece(0, self._at_ns, [ev.NotAvailable(0, "the rest of the recording", why)]))

    @property
    def _has_room(self) -> bool:
        return self._weight < AHEAD and not self._all_read

    def _is_reachable(self, where: Place) -> bool:
        """Whether all up to there is read."""
        loading = self._loading
        if where is BEGIN or loading.whole:
            return True
        if where.share is not None:
            return False
        return loading.at_ns > where.at_ns if where.step is None else loading.count_of(where.step) is not None

    def _go_to(self, where: Place, steps: tuple[int, int] | None) -> Iterator[Piece] | None:
        """Bring a fold there, for `drain` to take; gives what reads on there. None: another place is wanted by now."""
        loading = self._loading
        loading.free.clear()
        try:
            with self._changed:
                if where.step is not None and steps is None:
                    count = loading.count_of(where.step)
                    steps = (count, where.step + 1) if count is not None else (len(loading.counts), 0)
                to_ns = where.at_ns if where.share is None else int(where.share * loading.at_ns)
                begin = loading.state_before(steps, to_ns)
                fine = loading.block_of(steps) if steps is not None else 0
            fold, at_ns = Fold.of(begin.state), begin.at_ns
            reader = loading.again(begin.block, no_progress)
            rest: list[Piece] = []
            for piece in reader:
                if self._wanted is not where or self._stop:
                    return None
                if steps is None and piece.at_ns > to_ns:
                    rest = [piece]
                    break
                if steps is None or piece.block < fine:
                    fold.model.apply(piece.events)
                    at_ns = piece.at_ns
                    continue
                left = fold.until(piece.events, steps)
                at_ns = piece.at_ns
                if left is not None:
                    rest = [Piece(piece.block, piece.at_ns, left)] if left else []
                    break
            with self._changed:
                if self._wanted is not where:
                    return None
                self._wanted = None
                self._reached = fold, max(at_ns, min(to_ns, loading.at_ns)) if steps is None else at_ns
                self._ahead = deque(rest)
                self._weight = sum(weight(one.events) for one in rest)
                self._all_read = False
                self._changed.notify_all()
            return reader
        finally:
            loading.free.set()
