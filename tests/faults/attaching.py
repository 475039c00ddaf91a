"""What happens to a target, or to another tuimon, while one attaches."""

from __future__ import annotations

import glob
import os
import random
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

from tuimon.attach import procfs, tracer
from tuimon.attach.refusal import Refused
from tuimon.attach.session import attach

from .counted import Counted, Monitor, ending, until
from .table import Tries

LONG_S = 3.0
"""After the target's end, an attach that is still at it has not noticed."""
PROGRAM = (
    "import os, sys, time\nprint(flush=True)\nend = time.monotonic() + {}\nwhile time.monotonic() < end: sum(range(99))\n{}"
)
ENDS = {
    "exit": ("sys.exit(0)", 0),
    "_exit": ("os._exit(3)", 3),
    "killed": ("os.kill(os.getpid(), 9)", -9),
    "raises": ("raise SystemExit(5)", 5),
}
EXECS = {
    "exec": ("os.execv('/bin/sleep', ['sleep', '0.3'])", 0),
    "itself": ("os.execv(sys.executable, [sys.executable, '-c', ''])", 0),
}
SENTENCES = {
    "dead": ("has just ended", "is just ending", "has just executed another program", "has ended"),
    "ending": ("process",),
    "zombie": ("has already ended",),
    "not-python": ("",),
}


def exits(tries: int, chance: random.Random) -> Tries:
    """The target ends at a random moment of an attach."""
    return _goes_away(tries, chance, ENDS)


def execs(tries: int, chance: random.Random) -> Tries:
    """The target executes another program at a random moment of an attach."""
    return _goes_away(tries, chance, EXECS)


def begins(tries: int, chance: random.Random) -> Tries:
    """The target is attached to in the first moments of its program, and ends in the next ones.

    Its dynamic linker may still be at work then, its Python come up, or go down again. The helper is ready before, as it takes
    longer to start than such a program to end.
    """
    for _ in range(tries):
        tracer.get_ready()
        helper = tracer._ready[-1].process.pid
        until(lambda helper=helper: int(procfs.status(helper)["SigBlk"], 16), "the start of the helper")  # type: ignore[misc]
        with subprocess.Popen([sys.executable, "-c", ""]) as program:
            time.sleep(chance.uniform(0, 0.06))
            wrong = ""
            try:
                attach(program.pid, {}).detach()
            except Refused as refused:
                if refused.code not in ("dead", "zombie", "ending", "not-python", "starting"):
                    wrong = f"refused {refused.code}: {refused.sentence}"
            program.wait()
            if program.returncode:
                wrong = f"the target's status is {program.returncode}"
            yield wrong


def _goes_away(tries: int, chance: random.Random, ways: dict[str, tuple[str, int]]) -> Tries:
    for _ in range(tries):
        way, (text, status) = chance.choice(sorted(ways.items()))
        left = _names()
        text = PROGRAM.format(chance.uniform(0.0, 1.1), text)
        with subprocess.Popen([sys.executable, "-c", text], stdout=subprocess.PIPE) as program:
            assert program.stdout is not None
            program.stdout.readline()
            gone: list[float] = []
            watch = threading.Thread(target=_see_it_go, args=(program.pid, gone))
            watch.start()
            wrong = _attach_to(program.pid)
            took = time.monotonic()
            watch.join()
            if not wrong and gone and took - gone[0] > LONG_S:
                wrong = f"it took {took - gone[0]:.1f} s after the target was gone"
            program.wait()
            if not wrong and program.returncode != status:
                wrong = f"the target's status is {program.returncode}, not {status}"
            # a tidier of a process that is gone may still be at it
            deadline = time.monotonic() + 5
            while _names() - left and time.monotonic() < deadline:
                time.sleep(0.02)
            yield wrong and f"{way}: {wrong}"


def _see_it_go(pid: int, gone: list[float]) -> None:
    """Note when the process has ended or is another program; nobody collects it."""
    started, program = procfs.start_ticks(pid), os.readlink(f"/proc/{pid}/exe")
    while not procfs.has_ended(pid):
        try:
            words = Path(f"/proc/{pid}/cmdline").read_bytes()
            if os.readlink(f"/proc/{pid}/exe") != program or b"end = time" not in words or procfs.start_ticks(pid) != started:
                break
        except OSError:
            break
        time.sleep(0.005)
    gone.append(time.monotonic())


def _attach_to(pid: int) -> str:
    """Attach and watch to the end; what is wrong with how that went."""
    try:
        session = attach(pid, {})
    except Refused as refused:
        known = SENTENCES.get(refused.code)
        if known is None or not any(words in refused.sentence for words in known):
            return f"refused {refused.code}: {refused.sentence}"
        return ""
    ended = threading.Event()
    session.start(lambda kind, body: None, lambda how: ended.set())
    told = ended.wait(LONG_S + 1.2)
    session.detach()
    return "" if told else "attached, and the end was not told"


def _names() -> set[str]:
    return {name for place in ("/tmp", "/dev/shm", "/var/tmp") for name in glob.glob(f"{place}/.tuimon-*")}


def two_at_once(tries: int, chance: random.Random) -> Tries:
    """Two attach at once, or one is killed while the other one attaches: at most one is in, the job trains as before."""
    with ending(Counted()) as job:
        for number in range(tries):
            with ending(Monitor()) as one, ending(Monitor()) as other:
                one.tell(f"attach {job.pid}")
                time.sleep(chance.uniform(0, 0.3))
                other.tell(f"attach {job.pid}")
                killed = number % 3 == 2
                if killed:
                    time.sleep(chance.uniform(0, 0.3))
                    os.killpg(one.process.pid, signal.SIGKILL)
                answers = [other.hear()] if killed else [one.hear(), other.hear()]
                job.run(1)
                inside = sum(bool(answer.get("attached")) for answer in answers)
                codes = {answer["refused"] for answer in answers if "refused" in answer}
                if codes - {"already-attached", "traced"} or (inside != 1 and not killed):
                    yield f"killed: {killed}; {answers}"
                    continue
                for monitor, answer in zip([other] if killed else [one, other], answers, strict=True):
                    if answer.get("attached"):
                        monitor.ask("detach")
            until(job.is_free, "the end of the hook")
            with ending(Monitor()) as third:
                third.attach(job.pid)
                third.ask("detach")
            until(job.is_free, "the end of the hook")
            yield ""
