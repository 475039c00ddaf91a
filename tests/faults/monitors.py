"""What happens to a tuimon that watches: killed, stopped, killed with a profiler window open. The job must not notice."""

from __future__ import annotations

import os
import random
import signal
import sys
import time

from tests.attach import kills
from tests.attach.matrix_pythons import specified
from tests.attach.matrix_target import ROUNDS, TORCH, start
from tests.attach.matrix_target import until as until_target
from tuimon.attach import procfs

from .counted import STEPS, Counted, Monitor, counts_wrong, ending, until
from .table import CannotTry, Tries

STOPPED_S = 30.0
SHORT_S = 2.0
EACH_ATTACH = 25
"""Profiler windows."""
MOST_EPOCHS = 400
STREAMED = 0.4
"""The share of the kills that fall while it streams; the others, while it attaches."""


def killed(tries: int, chance: random.Random) -> Tries:
    """SIGKILL while it attaches or streams (`tests.attach.kills`), one try a kill."""
    python = specified(sys.executable)
    if python is None or not python.has_torch:
        raise CannotTry("this Python has no torch")
    streaming = round(tries * STREAMED)
    kills.say = lambda text: None
    with start(python, TORCH, "training", "aot_eager") as target:
        until_target(lambda: target.counters[ROUNDS] > 100, 300, "100 steps")  # the losses that are to be met again
        for attempt, count in ((kills.streaming, streaming), (kills.attaching, tries - streaming)):
            tally = attempt(target, count, chance)
            for gone in tally.gone_s:
                yield "" if gone <= 1.0 else f"the hook was gone only {gone:.1f} s after the kill"
        facts = target.finish()
        if len(facts["losses"]) != 1:
            yield f"{len(facts['losses'])} different losses"


def killed_in_a_window(tries: int, chance: random.Random) -> Tries:
    """SIGKILL with a profiler window open: the profiler is ended, losses, threads and descriptors are as before."""
    with ending(Counted()) as job:
        with ending(Monitor()) as monitor:  # what a first window imports, and the profiler's own threads
            monitor.attach(job.pid)
            monitor.ask("window")
            job.run(1)
            monitor.ask("detach")
        until(job.is_free, "the end of the hook")
        before, files = job.run(0), _files(job.pid)
        for _ in range(tries):
            with ending(Monitor()) as monitor:
                monitor.attach(job.pid)
                monitor.ask("window")
                job.tell("4")
                time.sleep(chance.uniform(0.0, 0.15))
                os.kill(monitor.process.pid, signal.SIGKILL)
                job.answer_of(job.hear())
            until(job.is_free, "the end of the hook")
            until(lambda: len(procfs.thread_ids(job.pid)) <= before["threads"], "the end of the hook's thread")
            until(lambda: _files(job.pid) <= files, "the end of the profiler's files")
            now = job.run(0)
            same = now["threads"] <= before["threads"] and now["fds"] <= before["fds"]
            yield "" if same else f"threads {before['threads']} -> {now['threads']}, files {before['fds']} -> {now['fds']}"


def _files(pid: int) -> int:
    return len(os.listdir(f"/proc/{pid}/fd"))


def windows(tries: int, _chance: random.Random) -> Tries:
    """One profiler window after the other, each to its end: the job goes on, and every call is told.

    A thread of the job that is in an operator when torch frees what it records to would crash.
    """
    with ending(Counted()) as job:
        while tries > 0:
            with ending(Monitor()) as monitor:
                begun = steps = job.steps
                monitor.attach(job.pid)
                for number in range(1, 1 + min(tries, EACH_ATTACH)):
                    tries -= 1
                    monitor.ask("window")
                    for _ in range(MOST_EPOCHS):
                        steps = job.run(1)["steps"]
                        over = sum(monitor.ask("told")["windows"].get(state, 0) for state in ("closed", "cancelled", "refused"))
                        if over >= number:
                            break
                    if number < EACH_ATTACH and tries:
                        yield "" if over == number else f"window {number} is not over after {MOST_EPOCHS} epochs"
                told = monitor.ask("detach")
                closed = told["windows"].get("closed", 0)
                yield counts_wrong(steps - begun, told) or ("" if closed == number else f"{closed} of {number} were closed")
            until(job.is_free, "the end of the hook")


def stopped(tries: int, _chance: random.Random) -> Tries:
    """SIGSTOP for a while: the job goes on, and afterwards every call is told, or told as dropped."""
    seconds = STOPPED_S if tries > 1 else SHORT_S
    with ending(Counted()) as job:
        for _ in range(tries):
            with ending(Monitor()) as monitor:
                begun = job.steps
                monitor.attach(job.pid)
                job.run(1)
                os.kill(monitor.process.pid, signal.SIGSTOP)
                deadline = time.monotonic() + seconds
                while time.monotonic() < deadline:
                    job.run(2)
                    time.sleep(0.1)
                os.kill(monitor.process.pid, signal.SIGCONT)
                steps = job.run(1)["steps"] - begun
                yield counts_wrong(steps, monitor.ask("detach"))
            until(job.is_free, "the end of the hook")


def overflowing(tries: int, _chance: random.Random) -> Tries:
    """SIGSTOP for so many calls that they have to be dropped: as many as are missing are told as dropped."""
    with ending(Counted()) as job:
        for _ in range(tries):
            with ending(Monitor(narrow=True)) as monitor:
                begun = job.steps
                monitor.attach(job.pid)
                os.kill(monitor.process.pid, signal.SIGSTOP)
                steps = job.run(60)["steps"] - begun
                os.kill(monitor.process.pid, signal.SIGCONT)
                told = monitor.ask("detach")
                wrong = counts_wrong(steps, told)
                yield wrong or ("" if told["dropped"] else f"{60 * STEPS} steps have not been enough to fill the queue")
            until(job.is_free, "the end of the hook")
