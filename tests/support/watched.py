"""Watches a job as tuimon does, in this process: a real feed, a real model, and every step's account kept.

A job tells the truth of itself in the last line that it prints, as JSON, with times of its own `time.perf_counter_ns()`: on
Linux that is the clock of the hook, so what the job has measured can be laid beside what tuimon tells.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import tempfile
import time
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.support.command import environment
from tuimon.attach.launch import launch
from tuimon.attach.session import attach
from tuimon.feed import LiveFeed
from tuimon.model import Model
from tuimon.model.steps.parts import StepAccount

LIMIT_S = 600.0


@dataclass
class Watched:
    """What came of it."""

    truth: Any
    """What the job has said last."""
    model: Model
    accounts: list[StepAccount] = field(default_factory=list)
    """All of them, however many."""
    restarts: int = 0
    """How often steps were counted anew."""

    # what the fold tells whoever listens

    def closed(self, account: StepAccount) -> None:
        self.accounts.append(account)

    def anew(self) -> None:
        self.accounts.clear()
        self.restarts += 1

    def ended(self) -> None:
        pass


def watch_run(script: Path, *words: str, python: str = sys.executable, hook: dict[str, object] | None = None) -> Watched:
    """Run a program from its first line on, to its end. Raises AssertionError with what it wrote where it fails."""
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as told:
        process, session = launch(
            [python, str(script), *words], hook or {}, env=_env(), stdin=subprocess.DEVNULL, stdout=out, stderr=told
        )
        return _to_the_end(LiveFeed(session, script.name, process), process, out, told)


def watch_attach(
    script: Path,
    *words: str,
    python: str = sys.executable,
    hook: dict[str, object] | None = None,
    after_s: tuple[float, float] = (0.2, 0.8),
    seed: int = 0,
) -> Watched:
    """Start a program, and attach at a random moment within `after_s` of its first line of output.

    Its standard input is closed when that is done: a program that goes on for a time can count it from there.
    """
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as told:
        process = subprocess.Popen(
            [python, str(script), *words], env=_env(), stdin=subprocess.PIPE, stdout=out, stderr=told, start_new_session=True
        )
        assert process.stdin is not None
        try:
            _await(lambda: os.fstat(out.fileno()).st_size > 0 or process.poll() is not None, "the job's first line")
            time.sleep(random.Random(seed).uniform(*after_s))
            session = attach(process.pid, hook or {})
            process.stdin.close()
            return _to_the_end(LiveFeed(session, script.name, None), process, out, told)
        finally:
            process.stdin.close()
            process.kill()
            process.wait()


def _env() -> dict[str, str]:
    return environment(PYTHONUNBUFFERED="1", PYTHONDONTWRITEBYTECODE="1")


def _to_the_end(feed: LiveFeed, process: subprocess.Popen[Any], out: Any, told: Any) -> Watched:
    watched = Watched(None, feed.model)
    feed.model.each_step(watched)
    feed.start()
    try:

        def over() -> bool:
            feed.pump()
            return feed.model.target.ended is not None and process.poll() is not None

        _await(over, "the job to end")
    finally:
        feed.detach()
        process.kill()
    out.seek(0)
    told.seek(0)
    assert process.wait() == 0, told.read()[-4000:]
    watched.truth = json.loads(out.read().splitlines()[-1])
    return watched


def _await(condition: Callable[[], object], what: str) -> None:
    deadline = time.monotonic() + LIMIT_S
    while not condition():
        assert time.monotonic() < deadline, f"waited {LIMIT_S:g} s for {what}"
        time.sleep(0.02)


def iterations(accounts: Sequence[StepAccount], moments: Sequence[int]) -> list[int | None]:
    """For each step the iteration that it stands for: that of the only one of `moments`, one an iteration, that lies within it.

    None for a step in which several of them lie, or none.
    """
    found: list[int | None] = []
    for one in accounts:
        at = bisect_left(moments, one.begin_ns)
        after = bisect_left(moments, one.end_ns)
        found.append(at if after - at == 1 else None)
    return found
