"""The monitor on many ranks at once: what it takes, when the late rank is named, how fast a key answers. Asserts nothing.

    python -m tests.bench.many_ranks [--ranks 512] [--per-node 8] [--rate 2 10] [--played] [--raw] [--seconds 40]

The job and its nodes are simulated in a process of their own (`tests/support/cluster.py`) from one rank's recorded stream; from
the relay's connections on, all is real: links, sessions, feeds, pump, model, screen, on a pseudo-terminal. Printed for each
rate: the monitor's share of a core, its largest memory, its threads, the seconds from the start until the late rank stands on
the screen by name, the times from a key to its picture, and how far the simulation itself was behind.
"""

from __future__ import annotations

import argparse
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.support.terminal import Terminal

TICKS = os.sysconf("SC_CLK_TCK")
NAMED = "rank {} is late"


def cpu_s(pid: int) -> float:
    """The CPU time of a process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def status(pid: int, name: str) -> int:
    """A number of /proc/PID/status: kB for memory."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(name + ":"):
            return int(line.split()[1])
    return 0


class Run:
    """One monitor on one simulated job."""

    def __init__(
        self, ranks: int, per_node: int, rate: float, late: int, fold: bool, size: tuple[int, int], profile: str | None = None
    ) -> None:
        self.late = late
        self.folder = tempfile.TemporaryDirectory(prefix="tuimon-ranks-")
        path = f"{self.folder.name}/far"
        words = [sys.executable, "-m", "tests.support.cluster"]
        self.far = subprocess.Popen(
            [*words, "far", path, str(ranks), str(per_node), str(rate), str(late)], stderr=subprocess.PIPE, text=True
        )
        env = {**os.environ, "TERM": "xterm-256color", "COLORTERM": "truecolor", "LANG": "C.UTF-8",
               "XDG_CONFIG_HOME": self.folder.name}  # fmt: skip
        env.pop("SSH_CONNECTION", None)
        self.began = time.monotonic()
        if profile is not None:
            words = [sys.executable, "-m", "cProfile", "-o", profile, *words[1:]]
        self.terminal = Terminal([*words, "near", path, str(ranks), str(per_node), "1" if fold else "0"], *size, env)
        self.pid = self.terminal.pid

    def named(self, seconds: float) -> float | None:
        """How long after the start the late rank stood on the screen by name; None: not within so many seconds."""
        if self.terminal.wait_for(lambda: self.terminal.sees(NAMED.format(self.late)), seconds):
            return time.monotonic() - self.began
        return None

    def key(self, key: str, until: str, seconds: float = 10.0) -> float:
        """From a key to the text that it brings, in seconds."""
        began = time.monotonic()
        self.terminal.write(key)
        while not self.terminal.sees(until):
            self.terminal.read(0.01)
            if time.monotonic() - began > seconds:
                return float("inf")
        return time.monotonic() - began

    def share(self, seconds: float) -> float:
        """The monitor's share of a core over so long."""
        began, used = time.monotonic(), cpu_s(self.pid)
        while time.monotonic() - began < seconds:
            self.terminal.read(0.2)
        return (cpu_s(self.pid) - used) / (time.monotonic() - began)

    def text(self) -> str:
        """The screen."""
        return "\n".join(line.rstrip() for line in self.terminal.screen.display)

    def close(self) -> str:
        """End all; gives what the simulation says of itself."""
        self.terminal.write("q")
        if self.terminal.ended(20.0) is None:
            self.terminal.close()
        try:
            _, said = self.far.communicate(timeout=5)
        except subprocess.TimeoutExpired:
            self.far.send_signal(signal.SIGKILL)
            _, said = self.far.communicate()
        self.terminal.close()
        self.folder.cleanup()
        return said.strip()


def measure(
    ranks: int, per_node: int, rate: float, seconds: float, fold: bool, size: tuple[int, int], show: bool, profile: str | None
) -> None:
    """One run, printed."""
    run = Run(ranks, per_node, rate, ranks * 5 // 8, fold, size, profile)
    try:
        named = run.named(seconds)
        share = run.share(seconds / 2)
        there = [run.key("a", "show this rank"), run.key("a", "enter details")]
        run.key("a", "show this rank")
        table = run.share(seconds / 4)
        if show:
            print(run.text())  # noqa: T201
        keys = []
        run.key("g", f"rank {run.late}, pid")
        for at in range(10):
            keys.append(run.key("j", f"rank {at}, pid"))
        peak, threads = status(run.pid, "VmHWM"), status(run.pid, "Threads")
    finally:
        said = run.close()
    what = "folded" if fold else "raw"
    print(  # noqa: T201
        f"{ranks} ranks on {-(-ranks // per_node)} nodes, {rate:g} steps/s, {what}, {size[0]}x{size[1]}: "
        f"{share:.2f} of a core on the panels, {table:.2f} on the table of all; "
        f"{peak / 1024:.0f} MB at most, {threads} threads; "
        f"late rank named after {'-' if named is None else f'{named:.1f} s'}; table opens in {there[0] * 1e3:.0f} ms, "
        f"closes in {there[1] * 1e3:.0f} ms, keys there {statistics.median(keys) * 1e3:.0f} ms (worst {max(keys) * 1e3:.0f})\n"
        f"    simulation: {said}; load {os.getloadavg()[0]:.1f}",
        flush=True,
    )


def played(ranks: int, per_node: int, rate: float, seconds: int, fold: bool, size: tuple[int, int]) -> None:
    """CPU time alone, on a clock of its own: taking frames in, folding and comparing, painting; and what a key takes."""
    import asyncio
    import resource

    from tests.support.monitor import screen_text, settings
    from tests.support.played import Played
    from tuimon.app.app import MonitorApp
    from tuimon.app.run import collect_seldom

    collect_seldom()  # as for a screen of many
    play = Played(fold=fold, ranks=ranks, late=ranks * 5 // 8, rate=rate, per_node=per_node)
    app = MonitorApp(play.fleet, settings(), clock=play.clock, watch_terminal=False)
    spent = {"frames": 0.0, "folding and comparing": 0.0, "painting": 0.0}
    of_keys: dict[str, list[float]] = {}
    named: float | None = None
    take = app.pump.take

    def timed() -> None:
        began = time.process_time()
        take()
        spent["folding and comparing"] += time.process_time() - began

    async def run() -> None:
        nonlocal named
        async with app.run_test(size=size) as pilot:
            for at in range(seconds * 4):
                coming = play.frames(0.25)
                app.pump.take = timed  # type: ignore[method-assign]
                began = time.process_time()
                for rank, frame in coming:
                    play.give(rank, frame)
                read = time.process_time()
                before = spent["folding and comparing"]
                app.pump.tick()
                await pilot.pause()
                spent["frames"] += read - began
                spent["painting"] += time.process_time() - read - (spent["folding and comparing"] - before)
                if named is None and NAMED.format(play.job.late) in screen_text(app):
                    named = (at + 1) / 4
            for key in ("a", *("j" for _ in range(10)), "s", "a", "right_square_bracket"):
                began = time.process_time()
                await pilot.press(key)
                await pilot.pause()
                of_keys.setdefault(key, []).append(time.process_time() - began)

    asyncio.run(run())
    steps = play.job.step / seconds
    parts = ", ".join(f"{what} {used / seconds:.2f}" for what, used in spent.items())
    keys = ", ".join(f"{key.replace('right_square_bracket', ']')} {max(took) * 1e3:.0f}" for key, took in of_keys.items())
    print(  # noqa: T201
        f"{ranks} ranks, {steps:.1f} steps/s, {'folded' if fold else 'raw'}, {size[0]}x{size[1]}, CPU time only: "
        f"{sum(spent.values()) / seconds:.2f} of a core ({parts}); "
        f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB at most, the simulation included; "
        f"late rank named after {'-' if named is None else f'{named:g} s'}; ms of CPU time a key: {keys}; "
        f"load {os.getloadavg()[0]:.1f}",
        flush=True,
    )


def main() -> None:
    """Measure as asked."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", type=int, default=512)
    parser.add_argument("--per-node", type=int, default=8)
    parser.add_argument("--rate", type=float, nargs="*", default=[2.0, 10.0])
    parser.add_argument("--played", action="store_true", help="without lines and terminal, CPU time alone")
    parser.add_argument("--raw", action="store_true", help="every row of every rank, as without --fold")
    parser.add_argument("--seconds", type=float, default=40.0)
    parser.add_argument("--size", default="120x40")
    parser.add_argument("--show", action="store_true", help="print the screen too")
    parser.add_argument("--profile", metavar="FILE", help="what cProfile says of the monitor's main thread")
    args = parser.parse_args()
    width, height = (int(part) for part in args.size.split("x"))
    for rate in args.rate:
        if args.played:
            played(args.ranks, args.per_node, rate, int(args.seconds), not args.raw, (width, height))
            continue
        measure(args.ranks, args.per_node, rate, args.seconds, not args.raw, (width, height), args.show, args.profile)


if __name__ == "__main__":
    main()
