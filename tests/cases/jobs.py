"""Starts the programs, with tuimon or without, and gives back what came of it."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from tests.cases.compare import Attached
from tests.support.command import TUIMON, environment, until

LIMIT_S = 600.0
WAIT_S = 0.0013
PACE_S = 0.0027
"""By these the steps are told apart from the programs' own pauses."""
WITHIN = Path(__file__).with_name("within.py")


class Failed(Exception):
    """The program or tuimon did not come to its end; the text says how."""


@contextmanager
def scratch() -> Iterator[Path]:
    """A folder for one case. It is removed afterwards."""
    folder = Path(tempfile.mkdtemp(prefix="tuimon-case-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def surroundings(folder: Path) -> dict[str, str]:
    """The environment of one run: nothing compiled before is found, and no other run's port is taken."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    own = {"TORCHINDUCTOR_CACHE_DIR": str(Path(tempfile.mkdtemp(dir=folder))), "MASTER_PORT": str(port)}
    threads = os.environ.get("TORCHINDUCTOR_COMPILE_THREADS", "1")
    given = environment(TORCHINDUCTOR_COMPILE_THREADS=threads)
    return {name: value for name, value in {**given, **own}.items() if name not in ("STEPS", "WAIT", "PACE", "CASE_OUT")}


def report_of_run(script: Path, python: str) -> dict[str, Any]:
    """What tuimon reports of one whole run of the program. Raises `Failed`."""
    with scratch() as folder:
        env = surroundings(folder)
        _run_under_tuimon([python, str(script)], folder, env)
        return read(folder / "report.json")


def _run_under_tuimon(program: Sequence[str], folder: Path, env: dict[str, str]) -> None:
    command = [*TUIMON, "run", "--headless", "--format", "json", "-o", str(folder / "report.json"), "--", *program]
    finish(command, env)


def finish(command: Sequence[str], env: dict[str, str]) -> None:
    """Run a command to its end. Raises `Failed`."""
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env=env,
        start_new_session=True,
    )
    try:
        _, told = process.communicate(timeout=LIMIT_S)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        raise Failed(f"no end after {LIMIT_S:g} s: {' '.join(command)}") from None
    if process.returncode:
        raise Failed(f"status {process.returncode}\n{told[-3000:]}")


def read(path: Path) -> dict[str, Any]:
    """The report in a file. Raises `Failed`."""
    try:
        report: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise Failed(f"no report: {error}") from None
    return report


@dataclass(slots=True)
class Held:
    """A program that stops at chosen steps, and what is known of it."""

    process: subprocess.Popen[str]
    folder: Path

    def reached(self, step: int) -> list[Attached]:
        """Wait until the program, or each of the processes that it forked to do its work, is held at this step.

        What each of them had compiled. Raises `Failed` where the program ends before.
        """

        def there() -> bool:
            if self.process.poll() is not None:
                raise Failed(f"the program ended before step {step} (status {self.process.returncode})\n{self._told()}")
            held = {int(path.name.rpartition("-")[2]) for path in self.folder.glob(f"reached-{step}-*")}
            return bool(held) and (self.process.pid in held or self._workers() <= held)

        try:
            until(there, f"step {step}", LIMIT_S)
        except AssertionError as error:
            raise Failed(str(error)) from None
        texts = [path.read_text() for path in sorted(self.folder.glob(f"reached-{step}-*"))]
        return [Attached(tuple((one, other) for one, other in json.loads(text))) for text in texts]

    def pids(self, step: int) -> list[int]:
        """The processes that are held at this step, after `reached`."""
        return sorted(int(path.name.rpartition("-")[2]) for path in self.folder.glob(f"reached-{step}-*"))

    def go(self, step: int) -> None:
        """Let it go on."""
        (self.folder / f"go-{step}").touch()

    def end(self) -> None:
        """Wait for its end. Raises `Failed` where it fails."""
        try:
            status = self.process.wait(LIMIT_S)
        except subprocess.TimeoutExpired:
            raise Failed(f"the program did not end within {LIMIT_S:g} s") from None
        if status:
            raise Failed(f"the program ended with status {status}\n{self._told()}")

    def _workers(self) -> set[int]:
        """Children that run the same command: forked by the program to do its work."""
        found = set()
        with suppress(psutil.Error):
            mine = psutil.Process(self.process.pid)
            command = mine.cmdline()
            for child in mine.children():
                with suppress(psutil.Error):
                    if child.cmdline() == command:
                        found.add(child.pid)
        return found

    def _told(self) -> str:
        return (self.folder / "told").read_text(errors="replace")[-3000:]


def within(folder: Path, python: str, script: Path, holds: Sequence[int], *, witness: bool) -> list[str]:
    """The command of a program that is held at these steps or leaves a witness."""
    options = {"folder": str(folder), "holds": list(holds), "wait": WAIT_S, "pace": PACE_S, "witness": witness}
    return [python, str(WITHIN), json.dumps(options), str(script)]


@contextmanager
def held(folder: Path, python: str, script: Path, holds: Sequence[int], *, witness: bool = False) -> Iterator[Held]:
    """A program that has been started and will stop at these steps (0: before the first). It is killed afterwards."""
    command = within(folder, python, script, holds, witness=witness)
    env = {**surroundings(folder), "WAIT": str(WAIT_S), "PACE": str(PACE_S)}
    with open(folder / "told", "wb") as told:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=told, stderr=told, env=env, start_new_session=True, text=True
        )
    job = Held(process, folder)
    try:
        yield job
    finally:
        with suppress(psutil.Error):
            for child in psutil.Process(process.pid).children(recursive=True):
                with suppress(psutil.Error):
                    child.kill()
        process.kill()
        process.wait()


class Watching:
    """A `tuimon attach` that runs."""

    def __init__(self, pids: Sequence[int], out: Path, env: dict[str, str]) -> None:
        words = ["--headless", "--format", "json", "-o", str(out), "--duration", str(LIMIT_S)]
        command = [*TUIMON, "attach", *map(str, pids), *words]
        self.out = out
        self._wanted = len(pids)
        self.lines: list[str] = []
        self.process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=env
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stderr is not None
        self.lines.extend(iter(self.process.stderr.readline, ""))

    def attached(self) -> None:
        """Wait until the hook is in, in all of them. Raises `Failed`."""

        def there() -> bool:
            if self.process.poll() is not None:
                raise Failed(f"tuimon attach ended with status {self.process.returncode}\n{self.told}")
            return sum("attached to" in line and "not attached" not in line for line in self.lines) >= self._wanted

        try:
            until(there, "tuimon to attach", LIMIT_S)
        except AssertionError as error:
            raise Failed(f"{error}\n{self.told}") from None

    def detach(self) -> None:
        """End the watching while the program runs, as Ctrl-C does."""
        self.process.send_signal(signal.SIGINT)
        self.report()

    def report(self) -> dict[str, Any]:
        """Wait for its end: the report. Raises `Failed`."""
        try:
            status = self.process.wait(LIMIT_S)
        except subprocess.TimeoutExpired:
            raise Failed(f"tuimon attach did not end\n{self.told}") from None
        self._reader.join(60)
        if status:
            raise Failed(f"tuimon attach ended with status {status}\n{self.told}")
        return read(self.out)

    @property
    def told(self) -> str:
        """What it wrote to stderr so far."""
        return "".join(self.lines)[-3000:]


@contextmanager
def watching(pids: Sequence[int], folder: Path) -> Iterator[Watching]:
    """`tuimon attach` to these processes. It is killed afterwards where it still runs."""
    watched = Watching(pids, folder / "report.json", environment())
    try:
        yield watched
    finally:
        if watched.process.poll() is None:
            watched.process.kill()
            watched.process.wait()


def report_of_attach(script: Path, python: str, at: int) -> tuple[Attached, dict[str, Any]]:
    """Attach to the program when `at` of its steps are over, watch it to its end.

    What it had compiled when tuimon came, and the report. Raises `Failed`.
    """
    with scratch() as folder, held(folder, python, script, [at]) as job:
        before = job.reached(at)
        with watching([job.process.pid], folder) as watched:
            watched.attached()
            job.go(at)
            job.end()
            return before[0], watched.report()


def report_of_ranks(script: Path, python: str) -> dict[str, Any]:
    """Attach to all processes of a program when their first step is over, at once, and watch them to their end: the report.

    Raises `Failed`.
    """
    with scratch() as folder, held(folder, python, script, [1]) as job:
        job.reached(1)
        with watching(job.pids(1), folder) as watched:
            watched.attached()
            job.go(1)
            job.end()
            return watched.report()


def witnesses_of_run(script: Path, python: str) -> dict[str, Any]:
    """What the program leaves under `tuimon run`, by process. Raises `Failed`."""
    with scratch() as folder:
        env = {**surroundings(folder), "WAIT": str(WAIT_S), "PACE": str(PACE_S)}
        _run_under_tuimon(within(folder, python, script, [], witness=True), folder, env)
        return _witnesses(folder)


def witnesses_of_attach(script: Path, python: str, spans: Sequence[tuple[int, int]]) -> dict[str, Any]:
    """What the program leaves, by process, while tuimon attaches at the first step of each span and detaches at the second.

    Without a span: what it leaves by itself. Raises `Failed`.
    """
    holds = sorted({step for span in spans for step in span})
    with scratch() as folder, held(folder, python, script, holds, witness=True) as job:
        for begin, end in spans:
            job.reached(begin)
            with watching([job.process.pid], folder) as watched:
                watched.attached()
                job.go(begin)
                job.reached(end)
                watched.detach()
            job.go(end)
        job.end()
        return _witnesses(folder)


def _witnesses(folder: Path) -> dict[str, Any]:
    found = {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in sorted(folder.glob("witness-*.json"))}
    if not found:
        raise Failed("the program left no witness")
    return found
