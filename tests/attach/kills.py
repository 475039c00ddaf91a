"""SIGKILL tuimon at random moments while it attaches to, or streams from, a real compiled training run.

    python -m tests.attach.kills [--attaching 300] [--streaming 100] [--python PATH] [--backend aot_eager]

Attaching: the moment of each kill is drawn over the whole attach, and so is who is killed: tuimon's process, its helper (a
session of its own), or both. Streaming: tuimon's process, once the hook is in and samples come. Each time the job has to be
alive, its losses have to be those of a run that nobody touched, to the bit; the hook (its thread, its socket, its entry in
sys.modules) has to be gone within a second; and the next attach has to work. The status is 1 where one of these is not so.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import signal
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from tuimon.attach import procfs
from tuimon.attach.refusal import Refused

from .matrix_cells import milliseconds
from .matrix_pythons import Interpreter, specified
from .matrix_target import HOOKED, ROUNDS, TORCH, Residue, Running, Wrong, attach_by, start, until

ROOT = Path(__file__).resolve().parents[2]
WHO = ("tuimon", "helper", "both")
MONITOR = f"""
import os, sys
sys.path.insert(0, {str(ROOT)!r})
from tuimon.attach.refusal import Refused
from tuimon.attach.session import attach
def say(text):
    os.write(1, text.encode() + b"\\n")  # whole lines, from two threads
def sink(kind, _body):
    if kind == 2 and not samples:
        samples.append(1)
        say("samples")
say("up")
sys.stdin.readline()
samples = []
try:
    session = attach(int(sys.argv[1]), {{}})
    session.start(sink, lambda _reason: None)
    say("attached")
except Refused as refusal:
    say("refused " + refusal.code)
sys.stdin.readline()
"""


def say(text: str) -> None:
    """A line of progress, at once."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


@dataclass
class Tally:
    """What came of the kills."""

    kills: int = 0
    who: dict[str, int] = field(default_factory=dict)
    seen: int = 0
    """The hook could still be seen after the kill."""
    helper_was_at_work: int = 0
    gone_s: list[float] = field(default_factory=list)
    """From each kill until the hook could not be seen any more."""
    regions: int = 0
    """Executable regions that killed helpers have left: harmless, and no longer used by anybody."""
    files: int = 0
    """Sockets' names left in the file system."""


class Monitor:
    """A tuimon in a process of its own, ready to attach."""

    def __init__(self, pid: int) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", MONITOR, str(pid)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={name: value for name, value in os.environ.items() if name != "PYTHONPATH"},
        )
        self.helpers: set[int] = set()
        assert self._out.readline() == b"up\n"

    @property
    def _out(self) -> IO[bytes]:
        assert self.process.stdout is not None
        return self.process.stdout

    def go(self) -> None:
        """Attach now."""
        assert self.process.stdin is not None
        self.process.stdin.write(b"go\n")
        self.process.stdin.flush()

    def hear(self, *beginnings: bytes) -> None:
        """Wait for a line that begins in one of these ways. Raises Wrong where another end comes."""
        for line in self._out:
            if line.startswith(beginnings):
                return
            if line.startswith(b"refused"):
                raise Wrong(f"the attach was {line.decode().strip()}")
        raise Wrong("the monitor has ended by itself")

    def find_helper(self) -> int | None:
        """The helper's pid, where there is one now."""
        for pid in children(self.process.pid):
            if alive(pid):
                self.helpers.add(pid)
                return pid
        return None

    def kill(self, who: str) -> None:
        """SIGKILL, to one or to both."""
        helper = self.find_helper()
        if who in ("tuimon", "both"):
            self.process.kill()
        if who in ("helper", "both") and helper is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(helper, signal.SIGKILL)

    def end(self) -> None:
        """Have it gone, and collected."""
        self.process.kill()
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()
        self.process.wait()


def children(pid: int) -> list[int]:
    """The child processes of one process."""
    try:
        return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def hook_is_in(target: Running, before: Residue) -> bool:
    """Whether anything of the hook can be seen: a thread, a socket, the module."""
    now = target.residue()
    return now.threads > before.threads or now.sockets > before.sockets or bool(target.counters[HOOKED])


def watch_it_go(target: Running, before: Residue, killed: float, helpers: set[int]) -> tuple[bool, float]:
    """(whether the hook was seen, seconds from the kill to the first look that did not see it, for good).

    A helper that lives on finishes what it has begun, so the hook may come after the kill: the watch ends when helper and hook
    are both gone.
    """
    seen, gone, rounds = False, 0.0, 0
    deadline = time.monotonic() + 20.0
    while True:
        at_work = any(alive(helper) for helper in helpers)
        if hook_is_in(target, before):
            seen, gone = True, 0.0
        else:
            gone = gone or time.monotonic() - killed
            if at_work:
                rounds = 0
            else:
                # the program writes down once a round whether the module is there: let one pass
                rounds = rounds or target.counters[ROUNDS]
                if target.counters[ROUNDS] > rounds + 1:
                    return seen, gone
        target.check()
        if time.monotonic() > deadline:
            helper = "at work" if at_work else "gone"
            raise Wrong(f"20 s after the kill: helper {helper}, {before} before, {target.residue()} now")
        time.sleep(0.001)


def alive(pid: int) -> bool:
    """Whether a process runs."""
    return not procfs.has_ended(pid)


def attaching(target: Running, kills: int, chance: random.Random) -> Tally:
    """Kill at a random moment of an attach."""
    tally = Tally()
    threads = len(procfs.thread_ids(target.pid))
    length, at_work = how_long(target)
    before = settled(target, threads)
    say(f"an attach takes about {length * 1e3:.0f} ms here, of which the helper lives {at_work * 1e3:.0f} ms")
    for number in range(kills):
        monitor = Monitor(target.pid)
        who = chance.choice(WHO)
        monitor.go()
        if who == "helper":
            # over its life; tuimon's and both: over the whole attach, and a little more
            until(monitor.find_helper, 20, "the start of the helper")
        deadline = time.monotonic() + chance.uniform(0.0, 1.2 * (at_work if who == "helper" else length))
        while time.monotonic() < deadline:
            monitor.find_helper()
            time.sleep(0.001)
        tally.helper_was_at_work += monitor.find_helper() is not None
        killed = time.monotonic()
        monitor.kill(who)
        if who == "helper":
            # tuimon lives on: it says that the helper has died, or it has attached already; then it goes as well
            monitor.hear(b"attached", b"refused helper")
            killed = time.monotonic()
        monitor.end()
        note(tally, target, before, killed, monitor.helpers, who)
        if number % 10 == 9:
            next_attach(target)
            say(f"attaching: {number + 1} of {kills} kills, gone after {milliseconds(tally.gone_s)} ms")
    finish(tally, target, before)
    return tally


def streaming(target: Running, kills: int, chance: random.Random) -> Tally:
    """Kill while samples come."""
    tally = Tally()
    threads = len(procfs.thread_ids(target.pid))
    next_attach(target)
    before = settled(target, threads)
    for number in range(kills):
        monitor = Monitor(target.pid)
        monitor.go()
        monitor.hear(b"samples")
        time.sleep(chance.uniform(0.0, 0.3))
        killed = time.monotonic()
        monitor.kill("tuimon")
        monitor.end()
        note(tally, target, before, killed, monitor.helpers, "tuimon")
        if number % 10 == 9:
            next_attach(target)
            say(f"streaming: {number + 1} of {kills} kills, gone after {milliseconds(tally.gone_s)} ms")
    finish(tally, target, before)
    return tally


def note(tally: Tally, target: Running, before: Residue, killed: float, helpers: set[int], who: str) -> None:
    """See the hook go, and keep count."""
    seen, gone = watch_it_go(target, before, killed, helpers)
    tally.kills += 1
    tally.who[who] = tally.who.get(who, 0) + 1
    tally.seen += seen
    tally.gone_s.append(gone)
    target.check()


def finish(tally: Tally, target: Running, before: Residue) -> None:
    """What is left at the end, and that it still works."""
    next_attach(target)
    now = target.residue()
    tally.regions, tally.files = now.executable - before.executable, len(now.names - before.names)


def how_long(target: Running) -> tuple[float, float]:
    """Seconds of an attach, from a monitor that is up to the hook's answer, and of the helper's life: medians of five."""
    took, lives = [], []
    for _ in range(5):
        monitor = Monitor(target.pid)
        begun = time.monotonic()
        monitor.go()
        until(monitor.find_helper, 20, "the start of the helper")
        born = time.monotonic()
        until(lambda monitor=monitor: not monitor.find_helper(), 60, "the end of the helper")
        lives.append(time.monotonic() - born)
        monitor.hear(b"attached")
        took.append(time.monotonic() - begun)
        monitor.end()
        until(lambda: not target.counters[HOOKED], 20, "the end of the hook")
    return statistics.median(took), statistics.median(lives)


def settled(target: Running, threads: int) -> Residue:
    """What is there once the hook's thread has ended. `threads`: how many the job had before."""
    until(lambda: len(procfs.thread_ids(target.pid)) <= threads or target.process.poll() is not None, 20, "the end of the hook")
    target.check()
    return target.residue()


def next_attach(target: Running) -> None:
    """Raises Wrong unless attaching and detaching work."""
    try:
        goodbye = attach_by(target.pid, None, 30.0, None).detach(20.0)
    except Refused as refusal:
        raise Wrong(f"the next attach was refused: {refusal.code}: {refusal.sentence}") from None
    if goodbye is None or goodbye["left"]:
        raise Wrong(f"the next detach: {goodbye}")
    until(lambda: not target.counters[HOOKED], 20, "the end of the hook")


def report(name: str, tally: Tally, limit: float) -> bool:
    """Print it; gives whether the hook was gone in time each time."""
    late = [value for value in tally.gone_s if value > limit]
    whom = ", ".join(f"{who} {count}" for who, count in sorted(tally.who.items()))
    say(f"{name}: {tally.kills} kills ({whom}), the job alive each time")
    say(f"    the helper was at work at {tally.helper_was_at_work} of them; the hook was seen after {tally.seen}")
    gone = milliseconds(tally.gone_s)
    say(f"    hook gone after the kill: median / p99 / most {gone} ms; later than {limit:g} s: {len(late)}")
    say(f"    left by killed helpers: {tally.regions} regions of memory, {tally.files} names of sockets")
    return not late


def run(options: argparse.Namespace) -> int:
    """All of it; gives the status."""
    python = specified(options.python)
    if python is None or not python.has_torch:
        say(f"{options.python} is no Python with torch")
        return 1
    chance = random.Random(options.seed)
    well = True
    try:
        alone = untouched(python, options.backend)
        with start(python, TORCH, "training", options.backend) as target:
            say(f"{python.label}: compiled training ({options.backend}), process {target.pid}")
            tallies = [
                ("attaching", attaching(target, options.attaching, chance)) if options.attaching else None,
                ("streaming", streaming(target, options.streaming, chance)) if options.streaming else None,
            ]
            facts = target.finish()
        for tally in tallies:
            if tally is not None:
                well = report(*tally, options.gone_within) and well
        same = facts["losses"] == alone["losses"]
        as_alone = "equal to the bit to" if same else "DIFFERENT from"
        say(f"losses: {facts['epochs']} epochs of 50 steps, {as_alone} those of a run never touched")
        say(f"Dynamo's counters: {'equal' if facts['counters'] == alone['counters'] else 'DIFFERENT'}")
        if facts["counters"] != alone["counters"]:
            say(f"    alone: {alone['counters']}\n    now:   {facts['counters']}")
        well = well and same and facts["counters"] == alone["counters"]
    except Wrong as wrong:
        say(f"FAILED: {wrong}")
        return 1
    return 0 if well else 1


def untouched(python: Interpreter, backend: str) -> dict[str, object]:
    """The last facts of the same program, run alone for some epochs."""
    with start(python, TORCH, "training", backend) as target:
        first = target.counters[ROUNDS]
        until(lambda: target.counters[ROUNDS] > first + 200, 300, "200 steps")
        return target.finish()


def arguments(words: list[str] | None = None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.attach.kills", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--attaching", type=int, default=300, help="kills while it attaches (default 300)")
    parser.add_argument("--streaming", type=int, default=100, help="kills while it streams (default 100)")
    parser.add_argument("--python", default=sys.executable, metavar="PATH", help="the job's Python (default: this one)")
    parser.add_argument("--backend", default="aot_eager")
    parser.add_argument(
        "--gone-within", type=float, default=1.0, metavar="S", help="the hook has to be gone by then (default 1)"
    )
    parser.add_argument("--seed", type=int, default=1)
    return parser.parse_args(words)


if __name__ == "__main__":
    sys.exit(run(arguments()))
