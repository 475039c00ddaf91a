"""A program to attach to, under any Python of this machine, and what can be seen of it from outside."""

from __future__ import annotations

import contextlib
import ctypes
import glob
import json
import mmap
import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from tuimon.attach import procfs
from tuimon.attach.inject import injector
from tuimon.attach.session import Session, attach

from .matrix_pythons import Interpreter

HERE = Path(__file__).resolve().parent
PLAIN, TORCH = HERE / "target_program.py", HERE / "targets" / "torch_program.py"
ROUNDS, FAULTS, HITS, HOOKED, ANSWERED, WANTED, STOP = 0, 1, 2, 3, 5, 6, 7
PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None)
START_S = 600.0
"""Importing torch and compiling for the first time on a busy machine."""


class Wrong(AssertionError):
    """A target that was harmed, or something of ours that stayed."""


def until(condition: Callable[[], object], seconds: float, what: str) -> None:
    """Wait for a condition. Raises Wrong, saying what has not happened."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise Wrong(f"{what} did not happen within {seconds:g} s")
        time.sleep(0.002)


class Residue(NamedTuple):
    """What an attach could leave, as seen from outside."""

    threads: int
    sockets: int
    descriptors: int
    executable: int
    """Anonymous mappings that can be executed."""
    maps: int
    """Mappings but those of shared libraries: the modules of Python that the hook imports stay loaded."""
    rss: int
    names: frozenset[str]
    """Sockets of ours at which nobody listens, in the directories where they may lie."""


def abandoned_sockets(root: str) -> frozenset[str]:
    """Names of ours at which nobody listens any more."""
    found = set()
    for place in ("tmp", "dev/shm", "var/tmp"):
        for name in glob.glob(os.path.join(root, place, ".tuimon-*", "s")):
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as asking:
                try:
                    asking.connect(name)
                except ConnectionRefusedError:
                    found.add(name)
                except OSError:  # a stream socket that listens has another type than ours; or it is gone
                    pass
    return frozenset(found)


class Running:
    """A target at work. Use `start`."""

    def __init__(self, process: subprocess.Popen[bytes], counters: memoryview, file: Path, python: Interpreter) -> None:
        self.process, self.counters, self.file, self.python = process, counters, file, python
        self.pid = process.pid

    def check(self) -> None:
        """Raises Wrong where it has died or has found its own results to be wrong."""
        if self.process.poll() is not None:
            raise Wrong(f"the target has died (status {self.process.returncode}): {self.said()[-600:]}")
        if self.counters[FAULTS]:
            raise Wrong(f"the target counts {self.counters[FAULTS]} faults")

    def gets_on(self, seconds: float = 60.0) -> None:
        """Raises Wrong unless it makes progress."""
        before = self.counters[ROUNDS]
        until(lambda: self.counters[ROUNDS] > before or self.process.poll() is not None, seconds, "progress of the target")
        self.check()

    def said(self) -> str:
        """What it has written to its standard output and error."""
        with contextlib.suppress(OSError):
            return self.file.with_suffix(".out").read_text(errors="replace")
        return ""

    def residue(self) -> Residue:
        """What there is of threads, descriptors, mappings, and files of ours."""
        maps = procfs.mappings(self.pid)
        links = []
        with contextlib.suppress(OSError):
            for number in os.listdir(f"/proc/{self.pid}/fd"):
                with contextlib.suppress(OSError):
                    links.append(os.readlink(f"/proc/{self.pid}/fd/{number}"))
        return Residue(
            len(procfs.thread_ids(self.pid)),
            sum(link.startswith("socket:") for link in links),
            len(links),
            sum(entry.executable and not entry.path for entry in maps),
            sum(not entry.path.endswith(".so") and ".so." not in entry.path for entry in maps),
            int(procfs.status(self.pid)["VmRSS"].split()[0]) * 1024,
            abandoned_sockets(self.python.root),
        )

    def snapshot(self) -> dict[str, Any]:
        """What the program itself sees (the torch programs only)."""
        wanted = self.counters[ANSWERED] + 1
        self.counters[WANTED] = wanted
        until(lambda: self.counters[ANSWERED] == wanted or self.process.poll() is not None, 120, "the snapshot")
        self.check()
        facts = json.loads(self.file.with_suffix(".snapshot").read_text())
        assert isinstance(facts, dict)
        return facts

    def finish(self, seconds: float = 120.0) -> dict[str, Any]:
        """Have it end by itself; gives its last facts. Raises Wrong where it does not end well."""
        self.counters[STOP] = 1
        try:
            status = self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            raise Wrong("the target does not come to its end") from None
        if status:
            raise Wrong(f"the target ended with status {status}: {self.said()[-600:]}")
        facts = json.loads(self.file.with_suffix(".end").read_text())
        assert isinstance(facts, dict)
        return facts


@contextlib.contextmanager
def start(python: Interpreter, program: Path, mode: str, argument: str = "", nice: int = 0) -> Iterator[Running]:
    """A target, warmed up; killed at the end, with its children."""
    with python.folder() as (outside, inside):
        shutil.copy(program, outside / "program.py")
        file = outside / "counters"
        file.write_bytes(bytes(4096))
        environment = {
            **{name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONHOME", "TMPDIR")},
            "OMP_NUM_THREADS": "1",
            "OPENBLAS_NUM_THREADS": "1",
            "MKL_NUM_THREADS": "1",
            # one worker: inductor's pool of compile workers is none of our business here
            "TORCHINDUCTOR_COMPILE_THREADS": "1",
            "TORCHINDUCTOR_CACHE_DIR": inside + "/cache",
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        enter = python.enter()

        def prepare() -> None:
            _libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)  # whatever ends us ends it
            if enter is not None:
                enter()
            os.nice(nice)

        with open(file.with_suffix(".out"), "wb") as out:
            process = subprocess.Popen(
                [python.executable, inside + "/program.py", mode, inside + "/counters", *([argument] if argument else [])],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                env=environment,
                preexec_fn=prepare,
                start_new_session=True,
                cwd="/" if python.root != "/" else outside,
            )
        with open(file, "r+b") as handle:
            counters = memoryview(mmap.mmap(handle.fileno(), 4096)).cast("Q")
        target = Running(process, counters, file, python)
        try:
            until(lambda: counters[ROUNDS] > 0 or process.poll() is not None, START_S, "the start of the target")
            target.check()
            yield target
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, 9)  # its own session: the loader's workers and the forked children too
            process.wait()


def attach_by(
    pid: int, form: str | None, patience: float, sources: dict[str, str] | None, options: dict[str, object] | None = None
) -> Session:
    """`attach` by one form only; None: by the ladder. Raises Refused."""
    return attach(pid, options or {}, patience=patience, form=form, sources=sources)


def inject_by(pid: int, form: str | None, script: bytes, seconds: float) -> injector.Outcome:
    """Only the injection, traced by this very process: ten times as quick as a whole attach. Raises Refused."""
    return injector.inject(pid, procfs.start_ticks(pid), script, seconds, lambda _mechanism: None, form=form)


def nothing_left(target: Running, before: Residue, seconds: float = 5.0, growth: int = 40) -> Residue:
    """Raises Wrong where something of ours is still there; a moment is given, as threads end after their goodbye."""
    deadline = time.monotonic() + seconds
    while True:
        now = target.residue()
        wrong = [
            f"{name}: {was} before, {is_} now"
            for name, was, is_ in (
                ("threads", before.threads, now.threads),
                ("sockets", before.sockets, now.sockets),
                ("descriptors", before.descriptors, now.descriptors),
                ("executable memory without a name", before.executable, now.executable),
            )
            if is_ > was
        ]
        # memory for the C library's own arenas, nothing of ours
        if now.maps > before.maps + growth:
            wrong.append(f"mappings: {before.maps} before, {now.maps} now")
        if not wrong:
            return now
        if time.monotonic() > deadline or target.process.poll() is not None:
            raise Wrong("left behind: " + "; ".join(wrong))
        time.sleep(0.01)
