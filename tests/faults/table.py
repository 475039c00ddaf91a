"""What a fault is here: something that goes wrong at a tuimon or at a job, tried so many times, each try judged by itself."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tests.support.hooked import DYNAMO
from tests.support.imported import imported

ROOT = Path(__file__).resolve().parents[2]
LONGEST_S = 3600.0

Tries = Iterator[str]
"""One word a try: "" where all was well, else what was wrong."""


class CannotTry(Exception):
    """This machine lacks what the fault takes; the text says what."""


@dataclass(frozen=True)
class Fault:
    """One line of the table."""

    name: str
    short: int
    """Tries in CI."""
    full: int
    attempt: Callable[[int, random.Random], Tries]


@dataclass
class Result:
    """What came of the tries of one fault."""

    name: str
    tries: int = 0
    wrong: list[str] = field(default_factory=list)
    not_tried: str = ""
    seconds: float = 0.0

    @property
    def line(self) -> str:
        """A line of a Markdown table."""
        failed = f"not tried: {self.not_tried}" if self.not_tried else str(len(self.wrong))
        return f"| {self.name} | {self.tries} | {failed} |"


HEAD = "| fault | tries | failed |\n|---|---|---|"


def attempt(fault: Fault, tries: int, seed: int) -> Result:
    """Try it. What a try raises is a failure, and the last try of its fault."""
    result = Result(fault.name)
    begun = time.monotonic()
    try:
        for wrong in fault.attempt(tries, random.Random(seed)):
            result.tries += 1
            if wrong:
                result.wrong.append(wrong)
    except CannotTry as why:
        result.not_tried = str(why)
    except Exception as error:  # noqa: BLE001 - the other faults are to be tried as well
        result.tries += 1
        result.wrong.append(f"{type(error).__name__}: {str(error)[:600]}")
    result.seconds = time.monotonic() - begun
    return result


def in_a_job(text: str, tries: int, chance: random.Random) -> Tries:
    """What a program with torch prints, a JSON word a try; its `sys.argv[1:]` are the tries and a seed. Its None is its end.

    It is a fork of a process that has torch: to import it takes longer than most tries.
    """
    text = f"import sys\nsys.argv[1:] = [{str(tries)!r}, {str(chance.randrange(1 << 30))!r}]\n{text}\nprint('null')\n"
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / "job.py"
        script.write_text(text, encoding="utf-8")
        ran = imported(*DYNAMO).run(script, LONGEST_S)
    for line in ran.stdout.splitlines():
        said = json.loads(line)
        if said is None:
            return
        yield said
    yield f"the job has ended with status {ran.returncode}: {ran.stderr[-600:]}"


def by_tests(*nodes: str) -> Callable[[int, random.Random], Tries]:
    """The tests of that name, run so many times; a file's own tests know better what is to be seen."""

    def run(tries: int, _chance: random.Random) -> Tries:
        for _ in range(tries):
            ran = subprocess.run(
                [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *nodes],
                cwd=ROOT,
                env={**os.environ, "OMP_NUM_THREADS": "1"},
                capture_output=True,
                text=True,
                check=False,
            )
            yield "" if ran.returncode == 0 else (ran.stdout + ran.stderr)[-600:]

    return run
