"""The monitor on a made-up job that goes on in real time: for tests in a real terminal, and for measuring.

    python -m tests.support.monitor_program SCENE [SECONDS]

SCENE: "still" (nothing happens), "quiet" (two steps a second), "busy" (200 regions, 40 steps a second), "ended", "ranks" (64
ranks with 40 regions each, two steps a second). After SECONDS
it ends itself; its CPU time and the events it took in go to the file named by MONITOR_REPORT, if that is set.
After each picture the file named by MONITOR_BEATS says how many there were, how many of the latest changed nothing, and whether
the line is slow.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from typing import Any

from tests.support import as_started  # noqa: F401 - before what is loaded next
from tests.support.fake_feed import MS, FakeFeed, FakeFleet, S, Script, ended
from tuimon import events as ev
from tuimon.app import run_monitor


class LiveFeed(FakeFeed):
    """A job that goes on with the clock."""

    def __init__(self, regions: int, steps_per_second: float, rank: int | None = None) -> None:
        super().__init__()
        self._script = script = Script()
        script.t = time.monotonic_ns()
        script.attach()
        script.add(ev.GpuUnavailable(script.t, "no NVIDIA driver on this machine (libnvidia-ml.so.1 not found)"))
        self._numbers = []
        for at in range(regions):
            script.add(ev.FrameSeen(script.t, f"layer_{at}.forward", "/home/user/model.py", at + 10, (f"{at}/0",)))
            if at % 10 == 0:
                script.breaks(f"{at}/0", at + 12, f"reason {at}", f"kind {at % 7}")
            self._numbers.append(script.instrument("forward", f"{at}/0", f"layer_{at}.forward", line=at + 10))
            if at % 10 == 0:
                self._numbers.append(script.instrument("resume", f"{at}/0", f"resume_{at}", line=at + 12))
        self._optimizer = script.instrument("optimizer", None, "Adam.step")
        self._roles = {event.instrument: event.role for event in script.events if isinstance(event, ev.InstrumentAdded)}
        self._period = int(S / steps_per_second) if steps_per_second else 0
        self._next = script.t
        self._host_at = script.t
        self._step = 0
        self.rank = rank
        self.label = "4242" if rank is None else f"rank {rank}"
        self.taken = 0

    def drain(self) -> list[ev.Event]:
        """The steps that are due by now."""
        script = self._script
        now = time.monotonic_ns()
        while self._period and self._next + self._period <= now:
            self._one_step()
        if now >= self._host_at and self._period:
            self._host_at += S
            script.t = now
            script.host(90 + self._step % 9)
            script.status(self._step * len(self._numbers), hook_s=self._step * 1e-5)
        events, script.events = script.events, []
        self.taken += sum(len(event.rows) if isinstance(event, ev.Samples) else 1 for event in events)
        return events

    def _one_step(self) -> None:
        t, self._next = self._next, self._next + self._period
        self._step += 1
        room = self._period * 9 // 10 // max(1, len(self._numbers))
        rows = []
        for at, number in enumerate(self._numbers):
            took = room * (50 + (at * 31 + self._step * 17) % 50) // 100
            end = t + took
            rows.append((number, 1, 0, end if self._roles[number] == "resume" else t, end))
            t = end
        rows.append((self._optimizer, 1, 0, self._next - MS, self._next))
        self._script.add(ev.Samples(self._next, tuple(rows)))


def tell_pictures(path: str) -> None:
    """Have each picture noted in a file: a test cannot see from outside whether a monitor has come to rest."""
    from tuimon.app.screens.main import MainScreen

    sync = MainScreen.sync
    pictures = still = 0

    def told(screen: MainScreen, *args: Any, **named: Any) -> int:
        nonlocal pictures, still
        changed = sync(screen, *args, **named)
        pictures, still = pictures + 1, 0 if changed or screen.monitor.plane.reading else still + 1
        with open(f"{path}.new", "w", encoding="utf-8") as file:
            json.dump({"pictures": pictures, "still": still, "slow": screen.monitor.pump.slow_link}, file)
        os.replace(f"{path}.new", path)
        return changed

    MainScreen.sync = told  # type: ignore[method-assign]


def tell_parts() -> dict[str, float]:
    """Have the CPU seconds of each part of the work counted: "fold", "draw", "paint", and "pictures" in number."""
    from textual.screen import Screen

    from tuimon.app.app import MonitorApp
    from tuimon.app.pump import Pump
    from tuimon.app.tty.painted import PaintedApp

    parts = {"fold": 0.0, "draw": 0.0, "paint": 0.0, "pictures": 0.0}

    def counted(owner: type[Any], name: str, part: str, inner: str | None = None) -> None:
        whole = getattr(owner, name)

        def timed(*args: Any, **named: Any) -> Any:
            began, within = time.thread_time(), parts[inner] if inner else 0.0
            try:
                return whole(*args, **named)
            finally:
                parts[part] += time.thread_time() - began - (parts[inner] - within if inner else 0.0)
                parts["pictures"] += part == "paint"

        setattr(owner, name, timed)

    counted(Pump, "take", "fold")
    counted(MonitorApp, "paint", "draw")
    counted(PaintedApp, "_display", "paint")
    counted(Screen, "_compositor_refresh", "draw", "paint")
    return parts


def main() -> int:
    """Run the scene."""
    scene = sys.argv[1]
    seconds = float(sys.argv[2]) if len(sys.argv) > 2 else None
    feeds = {
        "still": lambda: LiveFeed(4, 0),
        "quiet": lambda: LiveFeed(4, 2),
        "busy": lambda: LiveFeed(200, 40),
        "ended": lambda: FakeFeed(ended()),
        "ranks": lambda: FakeFleet([LiveFeed(40, 2, rank) for rank in range(64)]),
    }
    feed = feeds[scene]()
    members = feed.members if isinstance(feed, FakeFleet) else [feed]
    if seconds is not None:
        import signal

        threading.Timer(seconds, os.kill, (os.getpid(), signal.SIGTERM)).start()
    if os.environ.get("MONITOR_BEATS"):
        tell_pictures(os.environ["MONITOR_BEATS"])
    parts: dict[str, float] = {}
    if os.environ.get("MONITOR_PARTS_AFTER"):
        parts = tell_parts()
        forget = threading.Timer(float(os.environ["MONITOR_PARTS_AFTER"]), lambda: parts.update(dict.fromkeys(parts, 0.0)))
        forget.daemon = True
        forget.start()
    began = time.monotonic()
    cpu_began = time.process_time()
    status = run_monitor(feed, no_color=bool(os.environ.get("NO_COLOR")))
    report = os.environ.get("MONITOR_REPORT")
    if report:
        with open(report, "w", encoding="utf-8") as file:
            cpu = time.process_time() - cpu_began
            json.dump(
                {
                    "cpu_s": cpu,
                    "wall_s": time.monotonic() - began,
                    "events": sum(getattr(member, "taken", 0) for member in members),
                    "detached": feed.detached,
                    "status": status,
                    "parts": parts,
                },
                file,
            )
    return status


if __name__ == "__main__":
    sys.exit(main())
