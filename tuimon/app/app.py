"""The Textual app: wiring only. What is shown is drawn elsewhere; when it is drawn, the pump says."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, cast

from textual.screen import Screen
from textual.timer import Timer

from tuimon.app.doing import PAGES, Doing
from tuimon.app.everywhere import Everywhere
from tuimon.app.feed import LET_GO_S, Feed, Group
from tuimon.app.later import Later
from tuimon.app.panels.target import Status
from tuimon.app.plane import Plane
from tuimon.app.pump import Pump
from tuimon.app.ranks import Standings
from tuimon.app.recording import Recordings
from tuimon.app.replaying import Replay
from tuimon.app.scene import Rank, Scene, Standing
from tuimon.app.screens.main import MainScreen
from tuimon.app.settings import Settings
from tuimon.app.tty import terminal

if TYPE_CHECKING:
    from tuimon.app.screens.help import HelpScreen
    from tuimon.app.screens.lab import LabScreen, LabSession
    from tuimon.app.screens.page import PageScreen

REFUSED = 3
"""The status where tuimon could attach to nothing."""

SEEN_NS = 100_000_000
"""So long, and until events are taken in again, ranks look alike."""

MESSAGE_S, READ_S = 4.0, 0.5
"""How long a word to the person stays, and how long a key does not take it away."""


class MonitorApp(Doing, Everywhere[None]):
    """The monitor."""

    ENABLE_COMMAND_PALETTE = False  # Textual's own; ours is a screen

    def __init__(
        self, feed: Feed | Group, settings: Settings, clock: Callable[[], int] = time.monotonic_ns, watch_terminal: bool = True
    ) -> None:
        super().__init__(settings.themes, settings.theme)
        self.feed = feed
        self.settings = settings
        self.glyphs, self.colour_off, self.may_copy = settings.glyphs, settings.colour_off, settings.clipboard
        self.main = MainScreen()
        self._clock = clock
        self.pump = Pump(feed, self, settings.hertz, clock, watch_terminal)
        self.replay = Replay(self.pump, self.say, lambda: self.utc_offset_s)
        self.recordings = Recordings(self.pump.watched)
        self.recorded = ""
        """What was recorded up to the end, in a sentence."""
        self._timer: Timer | None = None
        self._signals = terminal.Signals(self._leave_for_signal)
        self.plane = Plane(settings.roofline, reading=settings.figures is not None)
        self.ceilings = settings.ceilings
        self._later = Later(settings.figures)
        self._standings = Standings()
        self._seen: tuple[tuple[int, int], tuple[Rank, ...], tuple[Standing, ...]] | None = None
        """All ranks as they were looked at last: a key asks for them several times, and they may be hundreds."""
        self.stills: tuple[tuple[Rank, ...], tuple[Standing, ...]] | None = None
        self.events_at_freeze = 0
        self._message = ""
        self._message_until = 0
        self._leaving = False
        self._detaching: threading.Thread | None = None

    @cached_property
    def lab_session(self) -> LabSession:
        """The lab as it was left."""
        from tuimon.app.screens.lab import LabSession

        return LabSession()

    # ------------------------------------------------------------------------------------------ start

    def get_default_screen(self) -> Screen[None]:
        """The main screen is the bottom of the stack, so that nothing blank shows first."""
        return self.main

    def on_mount(self) -> None:
        """Everything is in place: the signals, the timer, the first picture."""
        if not self.is_headless:
            self._signals.install()
        self.title = self.feed.title
        if self.settings.problems:
            self.say("; ".join(self.settings.problems))
        self.set_timer_interval(1 / self.settings.hertz)
        self.pump.take()

    def on_unmount(self) -> None:
        """Signals as they were."""
        if not self.is_headless:
            self._signals.remove()

    # ------------------------------------------------------------------------------------------ for the pump

    def set_timer_interval(self, seconds: float) -> None:
        """The one timer, at another pace."""
        if self._timer is not None:
            self._timer.stop()
        self._timer = self.set_interval(seconds, self._beat)

    def _beat(self) -> None:
        self._look_for_later()
        self.pump.tick()

    def terminal_gone(self) -> bool:
        """Whether the terminal hung up."""
        return not self.is_headless and terminal.terminal_gone()

    def leave_gone_terminal(self) -> None:
        """Nobody looks any more: the way out, as for a hang-up."""
        self._leave(129)

    def leave_refused(self) -> None:
        """There is nothing to show; why, the command says, where it can be read afterwards."""
        self._leave(REFUSED)

    def paint(self) -> None:
        """Bring the screen that is on top up to date."""
        if not self.screen_stack:  # a late call, on the way out
            return
        self.replay.look()
        screen, scope = self.screen, getattr(self.screen, "SCOPE", "")
        if isinstance(screen, MainScreen) or scope in PAGES:
            cast("MainScreen | PageScreen", screen).sync(self.scene(), self._status(), self.still_scene(), self._clock())
        elif scope == "lab":
            cast("LabScreen", screen).sync(self.panel_scene(), self._status(), self._clock())
        elif scope == "help":
            cast("HelpScreen", screen).tell(self._status().message)

    def _look_for_later(self) -> None:
        """Load what the first picture does not need once it is on the terminal, or on its way there."""
        if self.is_headless or self.painter.bytes:
            self._later.begin()
        self._take_later()

    def _take_later(self) -> None:
        """What was loaded and read behind the first picture, once it is there."""
        there, figures = self._later.take()
        if not there:
            return
        self.recordings.load()
        if figures is not None:
            self.ceilings, self.plane.compute, self.plane.reading = figures.ceilings, figures.roofline, False
            self.main.panels["roofline"].view.touch()
            if figures.problems:
                self.say("; ".join((*self.settings.problems, *figures.problems)))

    # ------------------------------------------------------------------------------------------ what is shown

    @property
    def several(self) -> bool:
        """Whether more than one process is watched."""
        return len(self.pump.watched) > 1

    def scene(self) -> Scene:
        """What is known now."""
        if not self.several:
            return self._scene(tuple(one.rank() for one in self.pump.watched), ())
        now = self.pump.beats, self._clock() // SEEN_NS
        if self._seen is None or self._seen[0] != now:
            ranks = tuple(one.rank() for one in self.pump.watched)
            standings = self._standings.look(ranks, self._clock(), self.settings.glyphs, self.pump.jobs)
            self._seen = now, ranks, standings
        return self._scene(*self._seen[1:])

    def panel_scene(self) -> Scene:
        """What the panels show: what is known now, or was when the screen was frozen."""
        return self.still_scene() or self.scene()

    def still_scene(self) -> Scene | None:
        return self._scene(*self.stills) if self.stills is not None else None

    def _scene(self, ranks: Sequence[Rank], standings: tuple[Standing, ...]) -> Scene:
        shown = ranks[self.pump.selected]
        self.plane.here = self.pump.watched[self.pump.selected].here
        return Scene(
            model=shown.model,
            glyphs=self.settings.glyphs,
            now_ns=shown.now_ns,
            beat_ns=shown.beat_ns,
            ceilings=self.ceilings,
            plane=self.plane,
            nvml_waiting_s=shown.nvml_waiting_s,
            utc_offset_s=self.utc_offset_s,
            title=shown.title,
            silence=shown.silence,
            host=shown.host,
            ranks=tuple(ranks) if self.several else (),
            standings=standings,
            rank=self.pump.selected,
            verdicts=self._standings.verdicts,
            lateness=self.pump.jobs.of(self.pump.selected) if self.pump.jobs is not None else None,
            replay=self.replay.where,
            job_files=getattr(self.pump.watched[self.pump.selected].feed, "job_files", None),
        )

    @property
    def utc_offset_s(self) -> int:
        """Seconds east of Greenwich, for times of day."""
        offset = self.settings.utc_offset_s
        return offset if offset is not None else time.localtime().tm_gmtoff

    def _status(self) -> Status:
        if self._message and self._clock() > self._message_until and not self._leaving:
            self._message = ""
        frozen = self.pump.events - self.events_at_freeze if self.stills is not None else None
        line = self.line_words() if self.pump.slow_link else ""
        return Status(frozen, self.pump.hertz, self.pump.slow_link, self._message, self.recordings.mark(), line)

    def say(self, message: str) -> None:
        """A word to the person, at the bottom, for a few seconds."""
        self._message = message
        self._message_until = self._clock() + int(MESSAGE_S * 1e9)
        if self.is_running and self.screen_stack:
            self.paint()

    def before_key(self) -> None:
        """A key that is pressed: a word to the person was about what was before it."""
        if not self._leaving and self._clock() > self._message_until - int((MESSAGE_S - READ_S) * 1e9):
            self._message = ""

    # ------------------------------------------------------------------------------------------ the way out

    async def action_quit(self) -> None:
        """Let the job go, then leave; a second time: leave without waiting."""
        self._leave(0)

    def _leave_for_signal(self, number: int) -> None:
        self._leave(128 + number)

    def _leave(self, return_code: int) -> None:
        if self._leaving:
            self.exit(return_code=return_code)
            return
        self._leaving = True
        self.say(self._last_word())
        self.run_worker(self._detach_and_exit(return_code), exclusive=True, exit_on_error=False)

    def _last_word(self) -> str:
        going = [one.model.target for one in self.pump.watched if one.model.target.ended is None]
        if not going or self.replay.is_played:
            return "leaving"
        if all(target.attached_ns is None for target in going):
            return "cancelling the attach" if len(going) == 1 else "cancelling the attaches"
        return (
            "detaching from the job; it runs on" if len(going) == 1 else f"detaching from {len(going)} processes; they run on"
        )

    async def _detach_and_exit(self, return_code: int) -> None:
        if not await asyncio.to_thread(self.let_go):
            return_code = return_code or 1
        self.exit(return_code=return_code)

    def let_go(self) -> bool:
        """Detach from the job, once, however the monitor ends. Gives whether that is done.

        It talks to the job and may block, so it has a thread of its own: a job that does not answer must not keep us.
        """
        if self._detaching is None:
            self._detaching = threading.Thread(target=self._let_go, name="tuimon-detach", daemon=True)
            self._detaching.start()
        self._detaching.join(LET_GO_S)
        return not self._detaching.is_alive()

    def _let_go(self) -> None:
        self.feed.detach()
        self.recorded = self.recordings.close()
