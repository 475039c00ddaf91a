"""The one timer: events into the model, and from the model to what is visible. Nothing else moves anything on the screen."""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol

from tuimon import events as ev
from tuimon.app.feed import Group, Played, members_of
from tuimon.app.scene import Rank
from tuimon.marks import Marks
from tuimon.model import Model

if TYPE_CHECKING:
    from tuimon.app.feed import Feed
    from tuimon.model.ranks.jobs import Jobs

RATES = (10.0, 5.0, 4.0, 2.0, 1.0, 0.5)
"""Times a second that a person can choose from."""

SLOWEST_HZ = 0.5
CLEAN_S, CLEAN_TICKS = 2.0, 2
"""So long, and at least so many ticks, without a backlog, and a slowed line gets faster again."""

SHARE = 0.5
"""The part of a slow line that pictures of the job may take; the rest is for what a person does."""
ROOM = 1.25
"""So much more than that has to be free before the rate goes up again."""


class Surface(Protocol):
    """What the pump needs of the screen."""

    def paint(self) -> None:
        """Bring everything visible up to date."""

    def backlog(self) -> int:
        """How much the terminal has not taken in time; 0: it keeps up."""

    def line_rate(self) -> float | None:
        """Bytes a second that the line to the terminal carries; None: as many as there were so far."""

    def sent(self) -> int:
        """Bytes of pictures that have gone to the terminal since the start."""

    def set_timer_interval(self, seconds: float) -> None:
        """Call `tick` that often from now on."""

    def terminal_gone(self) -> bool:
        """Whether nobody can see the screen any more."""

    def leave_gone_terminal(self) -> None:
        """End the monitor."""

    def leave_refused(self) -> None:
        """End the monitor: tuimon could attach to nothing."""


class Watched:
    """One of the processes: its feed, and the time on its job's clock."""

    def __init__(self, feed: Feed, clock: Callable[[], int]) -> None:
        self.feed = feed
        self.beat_ns = 0
        """The time on the job's clock when events were last taken in. That none has come can be said up to here."""
        self.marks = Marks(here=feed.host is None)
        """The accepted boundaries, as the files have them."""
        self.played = feed if isinstance(feed, Played) else None
        """Where it is a recording that is played: that."""
        self._clock = clock if self.played is None else self.played.clock
        self._restarted = 0
        self._former: deque[Model] = deque([feed.model], maxlen=4)
        """Kept a while: panels tell models apart by their place in memory, which another one may get."""
        self._accepted: list[ev.Event] = []
        """What a person has accepted since: not in the recording."""
        self._anchor: tuple[int, int] | None = None
        self._marked = -1
        self._windows = 0

    @property
    def here(self) -> bool:
        """Whether the job runs, or ran, on this machine: what was measured of it holds for the job."""
        return self.feed.host is None or getattr(self.feed, "local", False)

    @property
    def model(self) -> Model:
        """What its events go into."""
        return self.feed.model

    def now_ns(self) -> int:
        """The time on the job's clock: that of the latest event, and on from there. It stands still when the job is over."""
        model = self.model
        if self._anchor is None or model.target.ended is not None:
            return model.now_ns
        at_event, at_clock = self._anchor
        return max(model.now_ns, at_event + self._clock() - at_clock)

    def next_window(self) -> int:
        """The number of the next profiler window to ask for: above all that it has heard of."""
        self._windows = 1 + max((self._windows, *(window.number for window in self.model.windows)))
        return self._windows

    def take(self) -> int:
        """Fold in what has come; gives how many events, a batch of samples counted by its samples."""
        events = self.feed.drain()
        restarted = getattr(self.feed, "restarted", 0)
        if restarted != self._restarted:
            self._restarted = restarted
            self._restart()
        if events:
            before = self.model.now_ns
            self.model.apply(events)
            # it goes back where the first word of a job on another host has come, which has a clock of its own
            if self.model.now_ns != before or self._anchor is None:
                self._anchor = (self.model.now_ns, self._clock())
        boundaries = self.model.versions["boundaries"]
        if boundaries != self._marked and self.played is None:  # nothing else brings up a file; a recording has them
            self._marked = boundaries
            self.model.apply(self.marks.news(self.model))
        self.beat_ns = self.now_ns()
        return sum(len(event.rows) if isinstance(event, ev.Samples) else 1 for event in events)

    def accept(self, events: Sequence[ev.Event]) -> None:
        """A person has accepted a boundary, or taken that back."""
        self._accepted += events
        self.model.apply(events)

    def _restart(self) -> None:
        """The model is another one, or was moved on."""
        self._anchor = self.model.now_ns, self._clock()
        if self._former[-1] is self.model:
            return
        self._former.append(self.model)
        self._marked, self._windows = -1, 0
        if self.played is None:
            self.marks = Marks(here=self.feed.host is None)
        self.model.apply(self._accepted)

    def rank(self) -> Rank:
        """What panels see of it now."""
        feed = self.feed
        return Rank(
            label=feed.label,
            rank=feed.rank,
            host=feed.host,
            pid=feed.pid,
            title=feed.title,
            model=feed.model,
            now_ns=self.now_ns(),
            beat_ns=self.beat_ns,
            silence=feed.silence(),
            job=feed.job,
            nvml_waiting_s=feed.nvml_waiting(),
        )


class Pump:
    """Drains, applies, paints. Slows down by itself where the terminal does not keep up, and says so."""

    def __init__(
        self,
        feed: Feed | Group,
        surface: Surface,
        hertz: float,
        clock: Callable[[], int] = time.monotonic_ns,
        watch_terminal: bool = True,
    ) -> None:
        self.watched = [Watched(member, clock) for member in members_of(feed)]
        self._group = feed if isinstance(feed, Group) else None
        self._selected = 0
        if len(self.watched) > 1:
            self.watched[0].feed.show(True)
        self._surface = surface
        self._clock = clock
        self._watch_terminal = watch_terminal
        self.chosen_hertz = hertz
        self.hertz = hertz
        """What it is now: less than chosen on a slow line."""
        self._clean = 0
        self._sent = 0
        self._picture = 0.0
        """Bytes from one picture of the job to the next, of late."""
        self._looked_ns = 0
        self.beats = 0
        """How often events were taken in."""
        self.events = 0
        """Events taken in, of all jobs, a batch of samples counted by its samples."""

    @property
    def slow_link(self) -> bool:
        """Whether it draws less often than a person chose, because the terminal does not keep up."""
        return self.hertz < self.chosen_hertz

    @property
    def jobs(self) -> Jobs | None:
        """What is known of ranks beside each other; None where one process is watched."""
        return self._group.jobs if self._group is not None else None

    @property
    def selected(self) -> int:
        """Which of them the panels show."""
        return self._selected

    @selected.setter
    def selected(self, at: int) -> None:
        if at != self._selected:
            self.watched[self._selected].feed.show(False)
            self.watched[at].feed.show(True)
            self._selected = at

    def now_ns(self) -> int:
        """The time on the clock of the job that the panels show."""
        return self.watched[self.selected].now_ns()

    def take(self) -> None:
        """Fold in what has come, of every job; no painting."""
        self.beats += 1
        for one in self.watched:
            self.events += one.take()
        if self._group is not None:
            self._group.compare()

    def tick(self) -> None:
        """One beat of the timer."""
        self.take()
        if all(one.model.target.ended == "refused" for one in self.watched):
            self._surface.leave_refused()
            return
        now = self._clock()
        if self._watch_terminal and now - self._looked_ns >= 1_000_000_000:
            self._looked_ns = now
            if self._surface.terminal_gone():
                self._surface.leave_gone_terminal()
                return
        fits = self._fitting_hertz()
        if self._surface.backlog() > 0:
            # painting on top of a backlog only makes the picture older; the data is in already
            self._clean = 0
            self._change(max(SLOWEST_HZ, self.hertz / 2))
            return
        self._clean += 1
        if self.hertz > fits:
            self._clean = 0
            self._change(max(SLOWEST_HZ, self.hertz / 2))
        elif self.slow_link and self._clean >= max(CLEAN_TICKS, CLEAN_S * self.hertz) and 2 * self.hertz * ROOM <= fits:
            self._clean = 0
            self._change(min(self.chosen_hertz, self.hertz * 2))
        self._surface.paint()

    def _fitting_hertz(self) -> float:
        """How often pictures like those of late may be drawn on this line."""
        sent, self._sent = self._surface.sent() - self._sent, self._surface.sent()
        self._picture = (self._picture + sent) / 2
        rate = self._surface.line_rate()
        return SHARE * rate / self._picture if rate is not None and self._picture > 1 else math.inf

    def choose(self, step: int) -> float:
        """One rate faster (1) or slower (-1), by a person. Gives the new one, in Hz."""
        nearest = min(range(len(RATES)), key=lambda at: abs(RATES[at] - self.chosen_hertz))
        self.chosen_hertz = RATES[min(max(0, nearest - step), len(RATES) - 1)]
        self._change(self.chosen_hertz)
        return self.chosen_hertz

    def _change(self, hertz: float) -> None:
        if hertz != self.hertz:
            self.hertz = hertz
            self._surface.set_timer_interval(1 / hertz)
