"""Disks that are full: where a report or an export goes, and where the job's own temporary files lie.

Each full disk is a tmpfs in a mount namespace of its own (root). What a person asked to be written is refused in a sentence
with status 1, what stood there before stays whole, and nothing half-written stays beside it; a job whose TMPDIR is full is
attached to.
"""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

from tests.support.command import environment

from .counted import Counted, Monitor, counts_wrong, ending, until
from .table import CannotTry, Tries

FULL = """
mount -t tmpfs -o size=64k tuimon "$1" || exit 77
if [ -n "$2" ]; then printf old > "$1/$2"; fi
cat /dev/zero > "$1/filler" 2>/dev/null
shift 2
exec "$@"
"""
OLD = "old"


@cache
def in_full() -> tuple[str, ...]:
    """Words that run a program with a full disk; behind them: the folder, the name of an old file there, the program."""
    if shutil.which("unshare") is None:
        raise CannotTry("no unshare")
    words = ("unshare", "-m", "sh", "-c", FULL, "sh")
    with tempfile.TemporaryDirectory() as folder:
        if subprocess.run([*words, folder, "", "true"], capture_output=True, check=False).returncode:
            raise CannotTry("may not mount a tmpfs here (needs root)")
    return words


def written(tries: int, _chance: random.Random) -> Tries:
    """-o of a report, of a comparison and of an export, onto a full disk."""
    words = in_full()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "full").mkdir()
        recording = _recording(folder)
        ways = {
            "report": ["report", str(recording), "--format", "json"],
            "markdown": ["report", str(recording), "--format", "md"],
            "compare": ["compare", str(recording), str(recording), "--format", "json"],
            "export": ["export", str(recording), "--to", "perfetto"],
            "csv": ["export", str(recording), "--to", "csv"],
        }
        for number in range(tries):
            way, command = list(ways.items())[number % len(ways)]
            before = number // len(ways) % 2 == 0
            yield _one(words, folder / "full", way, command, before=before)


def _one(words: tuple[str, ...], full: Path, way: str, command: list[str], *, before: bool) -> str:
    target = full / "out.json"
    look = f'"$0" -m tuimon "$@"; s=$?; ls -A {full} >&3; cat {target} >&4 2>/dev/null; exit $s'
    with tempfile.TemporaryFile("w+") as listed, tempfile.TemporaryFile("w+") as content:
        shell = f"exec 3>&{listed.fileno()} 4>&{content.fileno()}; " + look
        ran = subprocess.run(
            [*words, str(full), target.name if before else "", "sh", "-c", shell, sys.executable, *command, "-o", str(target)],
            capture_output=True,
            text=True,
            env=environment(),
            pass_fds=(listed.fileno(), content.fileno()),
            check=False,
        )
        listed.seek(0)
        content.seek(0)
        names, held = listed.read().split(), content.read()
    if ran.returncode != 1 or "No space left" not in ran.stderr or "Traceback" in ran.stderr:
        return f"{way}: status {ran.returncode}: {ran.stderr[-300:]}"
    if before and held != OLD:
        return f"{way}: the old file holds {held[:60]!r} now"
    if set(names) - {"filler", *([target.name] if before else [])}:
        return f"{way}: {names} lie there now"
    return ""


def _recording(folder: Path) -> Path:
    """Some seconds of a job, kept."""
    with ending(Counted()) as job:
        path = folder / "run.tuimon"
        ran = subprocess.Popen(
            [sys.executable, "-m", "tuimon", "record", str(job.pid), "-o", str(path)], env=environment(), stderr=subprocess.PIPE
        )
        until(lambda: job.run(0)["hooked"], "the attach")
        job.run(3)
        ran.terminate()
        ran.communicate(timeout=60)
    return path


def of_the_job(tries: int, _chance: random.Random) -> Tries:
    """The job's TMPDIR is full: it is attached to, a profiler window ends in a file or in words, all calls are told."""
    words = in_full()
    with tempfile.TemporaryDirectory() as name:
        full = Path(name) / "full"
        full.mkdir()
        with ending(Counted(through=(*words, str(full), ""), env={"TMPDIR": str(full)})) as job:
            for _ in range(tries):
                with ending(Monitor()) as monitor:
                    begun = job.steps
                    monitor.attach(job.pid)
                    monitor.ask("window")
                    steps = job.run(4)["steps"] - begun
                    yield counts_wrong(steps, monitor.ask("detach"))
                until(job.is_free, "the end of the hook")
            inside = Path(f"/proc/{job.pid}/root{full}")
            left = [entry for entry in os.listdir(inside) if entry != "filler"]
            if left:
                yield f"left in the job's folder: {left}"
