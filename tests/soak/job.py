"""A real job for so many minutes, watched all the while: its own counts against tuimon's, threads, files and memory of both.

    python -m tests.soak.job [--minutes 30] [--backend aot_eager]

The job (`tests.faults.counted_program`) is attached to without a screen and runs an epoch of fifty steps after the other.
Printed each minute: steps, and threads, open files and resident memory of the job and of tuimon. The status is 1 where tuimon's
counts of calls are not the job's own, the job's losses have changed, or something has grown since the first fifth of the time.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

from tests.faults.counted import Counted, Talking, ending, until

GROWTH_MB = 5.0


@dataclass(frozen=True)
class Look:
    """One process at one moment."""

    threads: int
    files: int
    mb: float

    @classmethod
    def at(cls, pid: int) -> Look:
        """Now."""
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
        threads, files = (len(os.listdir(f"/proc/{pid}/{what}")) for what in ("task", "fd"))
        return cls(threads, files, pages * os.sysconf("SC_PAGESIZE") / 1e6)

    def __str__(self) -> str:
        return f"{self.threads} threads, {self.files} files, {self.mb:.1f} MB"


@dataclass
class Outcome:
    """What a soak gave."""

    steps: int = 0
    wrong: list[str] = field(default_factory=list)
    looks: list[tuple[Look, Look]] = field(default_factory=list)


def soak(seconds: float, backend: str = "aot_eager", every: float = 60.0, say: bool = True) -> Outcome:
    """Run and watch for so long."""
    outcome = Outcome()
    with tempfile.TemporaryDirectory() as folder, ending(Counted(backend)) as job:
        out = Path(folder) / "report.json"
        words = ["-m", "tuimon", "attach", str(job.pid), "--headless", "--format", "json", "-o", str(out)]
        with ending(Talking([sys.executable, *words])) as tuimon:
            until(lambda: "attached to" in tuimon.said(), "the attach")
            begun = time.monotonic()
            following = begun
            while time.monotonic() < begun + seconds:
                job.run(10)
                if time.monotonic() >= following:
                    following += every
                    outcome.looks.append((Look.at(job.pid), Look.at(tuimon.process.pid)))
                    if say:
                        of_job, of_tuimon = outcome.looks[-1]
                        minutes = (time.monotonic() - begun) / 60
                        print(  # noqa: T201
                            f"{minutes:5.1f} min  {job.steps:>9,} steps  job: {of_job}  tuimon: {of_tuimon}",
                            flush=True,
                        )
            outcome.steps = job.run(0)["steps"]
            os.kill(tuimon.process.pid, signal.SIGINT)
            status = tuimon.process.wait(60)
            if status:
                outcome.wrong.append(f"tuimon ended with {status}: {tuimon.said()[-300:]}")
            else:
                outcome.wrong += counts(json.loads(out.read_text(encoding="utf-8")), outcome.steps)
            until(job.is_free, "the end of the hook")
    return outcome


def counts(report: dict[str, object], steps: int) -> list[str]:
    """Where the report does not say what the job has done."""
    regions, coverage = report["regions"], report["coverage"]
    assert isinstance(regions, list) and isinstance(coverage, dict)
    if coverage.get("dropped"):
        return [f"{coverage['dropped']} calls were dropped"]
    found = [(region["direction"], region["calls"]) for region in regions]
    if sorted(found) != sorted([("forward", steps), ("backward", steps)] * 2):
        return [f"of {steps} steps: {found}"]
    return []


def grown(looks: list[tuple[Look, Look]]) -> list[str]:
    """What has grown since the first fifth of the looks."""
    found = []
    warm = looks[max(1, len(looks) // 5) :] or looks
    for who, first, last in zip(("job", "tuimon"), warm[0], warm[-1], strict=True):
        if last.threads > first.threads or last.files > first.files or last.mb > first.mb + GROWTH_MB:
            found.append(f"{who}: {first} -> {last}")
    return found


def main(words: list[str] | None = None) -> int:
    """The command; gives the status."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.soak.job", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--backend", default="aot_eager")
    options = parser.parse_args(words)
    outcome = soak(options.minutes * 60, options.backend)
    wrong = outcome.wrong + grown(outcome.looks)
    print(f"{outcome.steps:,} steps; {'; '.join(wrong) or 'counts equal, nothing has grown'}")  # noqa: T201
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
