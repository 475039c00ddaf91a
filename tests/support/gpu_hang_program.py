"""The monitor on a made-up job and on the real source of GPUs, over whatever NVML the loader finds: for a driver that hangs.

    python -m tests.support.gpu_hang_program SCENE

SCENE is one of `tests.support.monitor_program`. Every `BEAT_S` a beat on the thread of the screen notes the time; when the
monitor ends, the file named by GPU_HANG_REPORT has how late the latest beat was at most, how late while NVML was silent, and
for how much of the latter the thread was ready to run and no core was free for it, which no monitor can help.
"""

from __future__ import annotations

import json
import os
import sys
import time

from tests.support.monitor_program import LiveFeed
from tuimon import events as ev
from tuimon.app import run_monitor
from tuimon.app.app import MonitorApp
from tuimon.sources.inbox import Inbox
from tuimon.sources.nvml.source import NvmlSource

BEAT_S = 0.01
SCENES = {"quiet": (4, 2.0), "busy": (200, 40.0)}


def waited_s() -> float:
    """For how long this thread has waited for a core; 0 where the kernel does not keep it."""
    try:
        with open("/proc/thread-self/schedstat", encoding="ascii") as file:
            return int(file.read().split()[1]) / 1e9
    except (OSError, ValueError, IndexError):
        return 0.0


class Beats:
    """Times between beats."""

    def __init__(self) -> None:
        self.last = 0.0
        self.largest = 0.0
        self.largest_silent = self.waited_silent = self.largest_own = 0.0
        self.beats = self.beats_silent = 0
        self.silent = False
        self._waited = waited_s()

    def beat(self) -> None:
        """One more."""
        now = time.monotonic()
        gap = now - self.last if self.last else 0.0
        self.last = now
        before, self._waited = self._waited, waited_s()
        self.beats += 1
        self.largest = max(self.largest, gap)
        if self.silent:
            self.beats_silent += 1
            if gap > self.largest_silent:
                self.largest_silent, self.waited_silent = gap, self._waited - before
            self.largest_own = max(self.largest_own, gap - (self._waited - before))


class HangFeed(LiveFeed):
    """The made-up job's events, and those of the GPUs of this host."""

    def __init__(self, beats: Beats, regions: int, steps_per_second: float) -> None:
        super().__init__(regions, steps_per_second)
        self._beats = beats
        self._inbox = Inbox()
        self.gpus = NvmlSource(self._inbox.put)

    def drain(self) -> list[ev.Event]:
        """What has come of both."""
        ours = [event for event in super().drain() if not isinstance(event, ev.GpuUnavailable)]
        told = self._inbox.drain()
        for event in told:
            if isinstance(event, ev.GpuSilent):
                self._beats.silent = event.since_s is not None
        return [*ours, *told]


def main() -> int:
    """Run it until somebody leaves."""
    beats = Beats()
    feed = HangFeed(beats, *SCENES[sys.argv[1]])
    mounted = MonitorApp.on_mount

    def on_mount(app: MonitorApp) -> None:
        mounted(app)
        app.set_timer(1.0, lambda: app.set_interval(BEAT_S, beats.beat))  # not the start, which is no frame yet

    MonitorApp.on_mount = on_mount  # type: ignore[method-assign]
    feed.gpus.start()
    status = run_monitor(feed)
    began = time.monotonic()
    ended = feed.gpus.stop(0.5)
    report = {
        "beats": beats.beats,
        "beats_silent": beats.beats_silent,
        "largest_s": beats.largest,
        "largest_silent_s": beats.largest_silent,
        "waited_silent_s": beats.waited_silent,
        "largest_own_s": beats.largest_own,
        "stop_s": time.monotonic() - began,
        "stopped": ended,
    }
    with open(os.environ["GPU_HANG_REPORT"], "w", encoding="utf-8") as file:
        json.dump(report, file)
    return status


if __name__ == "__main__":
    sys.exit(main())
