"""Runs `tuimon` as a user does: a process of its own, with its streams."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.report.obeys import obeying

ROOT = Path(__file__).parents[2]
TUIMON = (sys.executable, "-m", "tuimon")
LIMIT_S = 600.0


def environment(**more: str) -> dict[str, str]:
    """The environment for tuimon and for jobs: this checkout importable, one thread for torch, no colour or theme of ours."""
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    kept = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "TUIMON_CONNECT")}
    return {**kept, "PYTHONPATH": path, "OMP_NUM_THREADS": "1", **more}


@dataclass(frozen=True)
class Ran:
    """What a run gave."""

    status: int
    out: str
    err: str

    @property
    def report(self) -> dict[str, Any]:
        """stdout as the JSON object that it has to be; a report and a comparison obey their published schema."""
        found: dict[str, Any] = json.loads(self.out)
        return obeying(found) if str(found.get("schema", "")).startswith(("tuimon.report/", "tuimon.compare/")) else found


def tuimon(*words: str, cwd: Path | None = None, stdin: str = "", limit: float = LIMIT_S, **env: str) -> Ran:
    """Run tuimon to its end, with nothing that is a terminal."""
    ran = subprocess.run(
        [*TUIMON, *words],
        input=stdin,
        capture_output=True,
        text=True,
        timeout=limit,
        env=environment(**env),
        cwd=cwd,
        check=False,
    )
    return Ran(ran.returncode, ran.stdout, ran.stderr)


def start(words: Sequence[str], **env: str) -> subprocess.Popen[str]:
    """Start a program with pipes for its output; it leads a process group of its own."""
    return subprocess.Popen(
        list(words),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(**env),
        start_new_session=True,
    )


def until(condition: Callable[[], object], what: str, seconds: float = 60.0) -> None:
    """Wait until the condition holds. Raises AssertionError, with what was waited for, when it does not in time."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"waited {seconds:g} s for {what}"
        time.sleep(0.02)
