"""A wall clock that is set back or on while tuimon watches: the job's, and tuimon's own."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from .counted import Counted, Talking, ending, until
from .table import CannotTry, Tries

SOURCE = Path(__file__).with_name("clock.c")
JUMPS = (-3600.0, 86400.0)


class Clock:
    """What a process has to be started with to live by it, and the setting of it."""

    def __init__(self, folder: Path) -> None:
        if shutil.which("gcc") is None:
            raise CannotTry("no gcc")
        library, self._file = folder / "clock.so", folder / "clock"
        subprocess.run(["gcc", "-shared", "-fPIC", "-O1", "-o", library, SOURCE, "-ldl"], check=True)
        self.set(0.0)
        self.env = {"LD_PRELOAD": str(library), "TUIMON_TEST_CLOCK": str(self._file)}

    def set(self, seconds: float) -> None:
        """How far it is off from now on."""
        with open(self._file, "r+b" if self._file.exists() else "wb") as file:
            file.write(struct.pack("d", seconds))


def jumps(tries: int, _chance: random.Random) -> Tries:
    """The job's clock or tuimon's goes an hour back or a day on while it records: counts, ages, the recording are right."""
    with tempfile.TemporaryDirectory() as name:
        clock = Clock(Path(name))
        for number in range(tries):
            of_job, jump = bool(number & 1), JUMPS[number // 2 % 2]
            clock.set(0.0)
            recording = Path(name) / f"{number}.tuimon"
            with ending(Counted(env=clock.env if of_job else {})) as job:
                words = ["-m", "tuimon", "record", str(job.pid), "-o", str(recording)]
                with ending(Talking([sys.executable, *words], env={} if of_job else clock.env)) as tuimon:
                    until(lambda tuimon=tuimon: "attached to" in tuimon.said(), "the attach")
                    job.run(1)
                    clock.set(jump)
                    steps = job.run(3)["steps"]
                    os.kill(tuimon.process.pid, signal.SIGINT)
                    tuimon.process.wait(60)
                    said = tuimon.said()
            yield _judged(recording, steps, said)


def _judged(recording: Path, steps: int, said: str) -> str:
    ran = subprocess.run(
        [sys.executable, "-m", "tuimon", "report", str(recording), "--format", "json"],
        capture_output=True,
        text=True,
        check=False,
    )
    if ran.returncode:
        return f"the recording is not read: {ran.stderr[-400:]} {said[-400:]}"
    report = json.loads(ran.stdout)
    calls = sorted(region["calls"] for region in report["regions"] if region.get("calls"))
    negative = [path for path, value in _numbers(report) if value < 0 and "delta" not in path and "change" not in path]
    if negative:
        return f"negative: {negative[:5]}"
    seconds = [(path, value) for path, value in _numbers(report) if path.endswith("_s") and 3000 < value < 1e6]
    if seconds:
        return f"durations of hours: {seconds[:5]}"
    return "" if calls == [steps] * 4 else f"{steps} steps, calls {calls}"


def _numbers(value: Any, path: str = "") -> Iterator[tuple[str, float]]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _numbers(inner, f"{path}.{key}")
    elif isinstance(value, list):
        for inner in value:
            yield from _numbers(inner, path)
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        yield path, value
