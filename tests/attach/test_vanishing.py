"""A process that ends, or becomes another program, while tuimon attaches: it is said at once, and nobody waits for it."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading

import pytest

from tuimon.attach.connection import Session
from tuimon.attach.inject.waiting import Wait
from tuimon.attach.refusal import Refused
from tuimon.attach.session import attach

from .conftest import needs_tracing, until

pytestmark = needs_tracing

WAYS = {
    "exit": "sys.exit(0)",
    "_exit": "os._exit(3)",
    "killed": "os.kill(os.getpid(), 9)",
    "exec": "os.execv('/bin/sleep', ['sleep', '0.3'])",
    "itself": "os.execv(sys.executable, [sys.executable, '-c', ''])",
}
PROGRAM = (
    "import os, sys, time\nprint(flush=True)\nend = time.monotonic() + {}\nwhile time.monotonic() < end: sum(range(99))\n{}"
)


def to_its_end(session: Session) -> None:
    """Watch until the target is no more."""
    ended = threading.Event()
    session.start(lambda kind, body: None, lambda how: ended.set())
    until(ended.is_set)
    session.detach()


@pytest.mark.parametrize("way", WAYS)
def test_a_target_that_goes_away_meanwhile(way: str) -> None:
    rng = random.Random(way)
    for _ in range(4):
        text = PROGRAM.format(rng.uniform(0, 0.4), WAYS[way])
        with subprocess.Popen([sys.executable, "-c", text], stdout=subprocess.PIPE) as program:
            assert program.stdout is not None
            program.stdout.readline()
            try:
                session = attach(program.pid, {})
            except Refused as refused:
                assert refused.code in ("dead", "ending", "not-python", "zombie"), refused
            else:
                to_its_end(session)
            program.wait()
            assert program.returncode == {"_exit": 3, "killed": -9}.get(way, 0)


def test_a_wait_for_an_answer_is_over_with_the_process() -> None:
    with subprocess.Popen([sys.executable, "-c", PROGRAM.format(60, "")], stdout=subprocess.PIPE) as program:
        assert program.stdout is not None
        program.stdout.readline()
        wait = Wait(program.pid, None)
        wait.for_answer()
        assert not wait.is_gone()
        os.kill(program.pid, signal.SIGKILL)  # and nobody collects it: a zombie is gone, too
        until(wait.is_gone)
        with pytest.raises(Refused, match="has just ended"):
            until(wait.for_answer)
