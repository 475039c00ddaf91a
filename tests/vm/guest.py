"""What is run in the emulated machine: the injector against the targets of tests/attach. Standard library only.

A line for each combination: attaches made, faults the target found, the longest pause of a thread at a stop. A machine in
emulation says nothing about times; what counts is that nothing fails, hangs or comes out wrong.
"""

from __future__ import annotations

import argparse
import mmap
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from tuimon.attach import procfs, session
from tuimon.attach.inject import injector, room, threads
from tuimon.attach.machine import frame_aarch64
from tuimon.attach.refusal import Refused

HERE = Path(__file__).resolve().parent
PROGRAM = str(HERE.parent / "attach" / "target_program.py")
FURTHER = str(HERE / "targets.py")
END = "== end of the guest"
HIT = b"import __main__\n__main__.counters[2] += 1\n"
MODES = (
    "busy",
    "sleeping",
    "lock",
    "idle_threads",
    "busy_threads",
    "epoll",
    "raw_epoll",
    "forking",
    "memory",
    "floats",
    "alarms",
)
STILL = frozenset({"sleeping", "lock"})
"""Targets that make no rounds."""
LONGEST_S = 1.0
"""Within so long an attach is killed: about as long as it takes there."""
BITS = (128, 256, 512, 1024, 2048)


class Target:
    """A running target, and what became of it."""

    def __init__(self, command: list[str], still: bool = False, uid: int | None = None) -> None:
        handle, name = tempfile.mkstemp()
        os.write(handle, bytes(4096))
        os.fchmod(handle, 0o666)
        self.counters = memoryview(mmap.mmap(handle, 4096)).cast("Q")
        os.close(handle)
        self.still = still
        self.process = subprocess.Popen(
            [sys.executable, "-W", "ignore::DeprecationWarning", *command, name],
            stderr=subprocess.PIPE,
            preexec_fn=None if uid is None else lambda: become(uid),
        )
        self.pid = self.process.pid
        self._until(lambda: self.counters[0] > 0, 60.0)
        if still:  # it says so a moment before it falls asleep
            self._until(lambda: bool(threads.asleep_with_main(self.pid, 0.3)), 60.0)
        os.unlink(name)

    def _until(self, condition: Callable[[], bool], seconds: float) -> bool:
        deadline = time.monotonic() + seconds
        while not condition():
            if procfs.has_ended(self.pid) or time.monotonic() > deadline:
                return False
            time.sleep(0.01)
        return True

    def inject(self, form: str | None = None, seconds: float = 30.0) -> injector.Outcome:
        """Count a hit in it."""
        return injector.inject(self.pid, procfs.start_ticks(self.pid), HIT, seconds, lambda _: None, form)

    def alive(self) -> bool:
        """Whether it lives, and gets on if it is one that does."""
        before = self.counters[0]
        if self.still:
            return not procfs.has_ended(self.pid)
        return self._until(lambda: self.counters[0] > before, 60.0)

    def end(self) -> str:
        """End it; gives what it said."""
        self.process.kill()
        return self.process.communicate()[1].decode(errors="replace").strip()[-300:]


def become(uid: int) -> None:
    """Be that user for good."""
    os.setgroups([])
    os.setgid(uid)
    os.setuid(uid)


def mode(name: str) -> Target:
    """target_program.py in that mode."""
    return Target([PROGRAM, name], still=name in STILL)


def say(line: str) -> None:
    """One line of the report."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def verdict(good: bool, line: str) -> None:
    """A line with its verdict: `run` counts those that failed."""
    say(f"{'ok    ' if good else 'FAILED'} {line}")


def cycle(label: str, target: Target, form: str | None, cycles: int, *, may_leave: bool = False) -> None:
    """Attach so often, print the line. `may_leave`: there are times at which no thread can be had to clean up with."""
    done, kicks, mechanisms, left, worst, error = 0, 0, {}, 0, 0.0, ""
    begun = time.monotonic()
    for _ in range(cycles):
        try:
            outcome = target.inject(form)
        except (Refused, OSError) as refusal:
            error = f"{getattr(refusal, 'code', '')} {refusal}"
            break
        done += 1
        kicks += outcome.kicks
        left += bool(outcome.left)
        mechanisms[outcome.mechanism] = mechanisms.get(outcome.mechanism, 0) + 1
        worst = max(worst, *outcome.stops)
    alive, hits, faults = target.alive(), target.counters[2], target.counters[1]
    said = target.end()
    good = alive and done == cycles == hits and not faults and (may_leave or not left) and not error and not said
    ways = " ".join(f"{name}:{count}" for name, count in sorted(mechanisms.items()))
    verdict(
        good,
        f"{label:28} attaches {done}/{cycles} hits {hits} faults {faults} kicks {kicks} left {left} "
        f"pause<={worst * 1000:.1f}ms {ways} {time.monotonic() - begun:.0f}s {error} {said}",
    )


def modes(cycles: int) -> None:
    """Every kind of target, the form as it comes."""
    cycle("naps", Target([FURTHER, "naps"]), None, max(1, cycles // 6), may_leave=True)
    for name in MODES:
        cycle(name, mode(name), None, cycles)


def forms(cycles: int) -> None:
    """One form only."""
    for name in ("busy", "idle_threads", "epoll", "memory", "floats", "alarms"):
        cycle(f"{name} pending", mode(name), "pending", cycles)
    for name in ("sleeping", "lock", "idle_threads", "raw_epoll"):
        cycle(f"{name} thread", mode(name), "thread", cycles)


def vectors(cycles: int) -> None:
    """Live SVE registers of every width on the one thread that there is; and that the target notices where they are lost."""
    for bits in BITS:
        cycle(f"vectors of {bits} bits", Target([FURTHER, str(bits)]), "pending", cycles)
    kept = frame_aarch64._sve
    frame_aarch64._sve = lambda _live: b""
    target = Target([FURTHER, "256"])
    for _ in range(max(10, cycles // 3)):
        target.inject("pending")
    faults = target.counters[1]
    frame_aarch64._sve = kept
    target.end()
    verdict(bool(faults), f"{'the same without the record':28} faults {faults} (some are expected)")


def kills(cycles: int) -> None:
    """The tracing process is killed at random moments."""
    for name in ("busy", "lock", "floats", "alarms", "2048"):
        target = Target([FURTHER, name]) if name.isdigit() else mode(name)
        dice, longest, times = random.Random(name), LONGEST_S, 0
        for _ in range(cycles):
            child = os.fork()
            if child == 0:
                try:
                    while True:
                        target.inject()
                except BaseException:  # noqa: BLE001 - a child
                    os._exit(1)
            time.sleep(dice.random() * longest)
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            times += 1
            if target.process.poll() is not None:
                break
        alive, error = target.alive(), ""
        try:
            target.inject()
        except (Refused, OSError) as refusal:
            error = str(refusal)
        faults, hits = target.counters[1], target.counters[2]
        said = target.end()
        good = alive and not faults and not error and times == cycles and not said
        verdict(good, f"{name + ' kills':28} kills {times}/{cycles} hits {hits} faults {faults} {error} {said}")


def sessions(cycles: int) -> None:
    """All of it: helper, socket, the real hook (which finds no torch and waits for it), and the way out."""
    session.CONNECT_S = 30.0  # 3 s are not much for a busy target in emulation
    for name in ("busy", "sleeping"):
        target, done, left, error = mode(name), 0, 0, ""
        for _ in range(max(1, cycles // 6)):
            try:
                found = session.attach(target.pid, {})
                goodbye = found.detach(30.0)
                found.settled(30.0)
            except (Refused, OSError) as refusal:
                calls = [procfs.thread_call(target.pid, tid) for tid in procfs.thread_ids(target.pid)]
                error = f"{refusal} (its threads are in {[call and call.number for call in calls]})"
                break
            done += 1
            left += goodbye is None or bool(goodbye["left"]) or bool(found.report.left)
        alive = target.alive()
        said = target.end()
        verdict(alive and not (error or left or said), f"{name + ' sessions':28} sessions {done} left {left} {error} {said}")


def forks(cycles: int) -> None:
    """A target that forks all the time, ten times as often: a hung child is a fault."""
    cycle("forking, long", mode("forking"), None, 10 * cycles)


def scopes(_cycles: int) -> None:
    """Who may attach to whom under each setting of Yama, and what the others are told. The last setting cannot be undone."""
    setting = Path("/proc/sys/kernel/yama/ptrace_scope")
    if not setting.exists():
        say("skipped: this kernel has no Yama")
        return
    may = {
        0: {"root": "", "same": "", "other": "uid", "child": "", "permitted": ""},
        1: {"root": "", "same": "ptrace-scope-1", "other": "uid", "child": "", "permitted": ""},
        2: {"root": "", "same": "ptrace-scope-2", "other": "uid", "child": "ptrace-scope-2", "permitted": "ptrace-scope-2"},
        3: {"root": "ptrace-scope-3", "same": "ptrace-scope-3", "other": "uid", "child": "ptrace-scope-3",
            "permitted": "ptrace-scope-3"},
    }  # fmt: skip
    for scope, expected in may.items():
        setting.write_text(str(scope), encoding="ascii")
        for who, code in expected.items():
            got, sentence, alive = _try(who)
            good = got == code and alive
            verdict(good, f"scope {scope} {who:10} {got or 'attached':16} {sentence}")


def _try(who: str) -> tuple[str, str, bool]:
    """Attach as that one; gives the refusal's code and sentence, and whether the target lives."""
    reading, writing = os.pipe()
    own = who == "child"
    target = None
    if not own:
        target = Target([FURTHER, "permitting"] if who == "permitted" else [PROGRAM, "busy"], uid=1000)
    child = os.fork()
    if child == 0:
        try:
            if who != "root":
                become(1001 if who == "other" else 1000)
            mine = target or Target([PROGRAM, "busy"])
            try:
                mine.inject()
                answer = f"\n\n{mine.alive()}"
            except Refused as refusal:
                answer = f"{refusal.code}\n{refusal.sentence}\n{mine.alive()}"
            if own:
                mine.end()
        except BaseException as error:  # noqa: BLE001 - a child
            answer = f"error\n{error!r}\nFalse"
        os.write(writing, answer.encode())
        os._exit(0)
    os.waitpid(child, 0)
    os.close(writing)
    code, sentence, alive = os.read(reading, 4096).decode().split("\n")
    os.close(reading)
    if target is not None:
        target.end()
    return code, sentence, alive == "True"


GROUPS = {
    "vectors": vectors,
    "modes": modes,
    "forms": forms,
    "kills": kills,
    "sessions": sessions,
    "forks": forks,
    "scopes": scopes,
}


def main() -> None:
    """The groups and modes that are named, or all groups; then the end of the machine."""
    parser = argparse.ArgumentParser()
    parser.add_argument("groups", nargs="*")
    parser.add_argument("--cycles", type=int, default=60)
    given = parser.parse_args()
    system = os.uname()
    python = sys.version.split()[0]
    say(f"== Linux {system.release} {system.machine}, pages of {room.PAGE} bytes, Python {python}")
    for name in given.groups:
        if name in MODES:
            cycle(name, mode(name), None, given.cycles)
    for name, group in GROUPS.items():
        if not given.groups or name in given.groups:
            say(f"== {name}")
            try:
                group(given.cycles)
            except Exception as error:  # noqa: BLE001 - the others are to be run all the same
                verdict(False, f"{name}: {error!r}")
    say(END)


if __name__ == "__main__":
    main()
