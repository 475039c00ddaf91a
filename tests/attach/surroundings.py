"""Jobs in strange surroundings: namespaces, filters, limits, other users. Real processes that count their rounds in a file."""

from __future__ import annotations

import contextlib
import mmap
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from tuimon.attach import procfs

from .conftest import until

# what a job does: `before` puts it into its surroundings, then it counts, with naps in between
COUNT = """
import mmap, sys, time
with open(sys.argv[1], "r+b") as file:
    rounds = memoryview(mmap.mmap(file.fileno(), 4096)).cast("Q")
{before}
while True:
    for _ in range(200):
        rounds[0] += 1
    if rounds[1]:
        rounds[1] = 0
        act()
        rounds[2] += 1
    {pause}
"""

# def sandbox(default, rules): a seccomp filter on this thread; rules are {number: action} or {(number, argument, mask): action}
SANDBOX = """
def sandbox(default, rules):
    import ctypes, struct
    program = [(0x20, 0, 0, 0)]
    for key, action in rules.items():
        number, argument, mask = key if isinstance(key, tuple) else (key, None, 0)
        if argument is None:
            program += [(0x15, 0, 1, number), (0x06, 0, 0, action)]
        else:
            program += [(0x15, 0, 4, number), (0x20, 0, 0, 16 + 8 * argument), (0x45, 0, 1, mask), (0x06, 0, 0, action),
                        (0x20, 0, 0, 0)]
    program.append((0x06, 0, 0, default))
    raw = b"".join(struct.pack("<HBBI", *one) for one in program)
    room = ctypes.create_string_buffer(raw, len(raw))
    class Program(ctypes.Structure):
        _fields_ = [("length", ctypes.c_ushort), ("filter", ctypes.c_void_p)]
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(38, 1, 0, 0, 0):
        raise OSError("no_new_privs")
    if libc.prctl(22, 2, ctypes.byref(Program(len(program), ctypes.addressof(room))), 0, 0):
        raise OSError(ctypes.get_errno(), "seccomp")
"""
KILL, TRAP, ERRNO_EPERM, ALLOW = 0x80000000, 0x00030000, 0x00050001, 0x7FFF0000


class Job:
    """A counting process, perhaps started through others: `pid` is the Python that counts, as seen from here."""

    def __init__(self, process: subprocess.Popen[bytes], counter: Path, python: Callable[[], int]) -> None:
        self.process = process
        with open(counter, "r+b") as handle:
            self._rounds = memoryview(mmap.mmap(handle.fileno(), 4096)).cast("Q")
        until(lambda: self.rounds > 0 or process.poll() is not None)
        assert process.poll() is None, self.said()
        self.pid = python()

    @property
    def rounds(self) -> int:
        """How far it has come."""
        return self._rounds[0]

    def act(self, *, returns: bool = True) -> None:
        """Have it do once what its `act` does."""
        before = self._rounds[2]
        self._rounds[1] = 1
        if returns:
            until(lambda: self._rounds[2] > before or self.process.poll() is not None)
            assert self.process.poll() is None, self.said()

    def gets_on(self) -> None:
        """Fails unless it lives and counts."""
        before = self.rounds
        until(lambda: self.rounds > before or self.process.poll() is not None)
        assert self.process.poll() is None, self.said()

    def said(self) -> str:
        """What it wrote to stderr; ends it."""
        self.end()
        assert self.process.stderr is not None
        return self.process.stderr.read().decode(errors="replace")

    def end(self) -> None:
        """Kill it and what started it."""
        pids = [pid for pid in (getattr(self, "pid", 0),) if pid and pid != self.process.pid]
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, 9)
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()


Begin = Callable[..., Job]


@pytest.fixture
def job() -> Iterator[Begin]:
    """job(before=.., through=[..], python=..) gives a running Job; `through` are commands in front of Python."""
    running: list[Job] = []
    counters: list[Path] = []

    def begin(
        before: str = "",
        *,
        pause: str = "time.sleep(0.02)",
        through: Sequence[str] = (),
        python: str = sys.executable,
        **options: object,
    ) -> Job:
        handle, name = tempfile.mkstemp(dir="/dev/shm", prefix="tuimon-test-")  # other users cannot get into tmp_path
        counter = Path(name)
        counters.append(counter)
        os.ftruncate(handle, 4096)
        os.fchmod(handle, 0o666)
        os.close(handle)
        text = COUNT.format(before=before, pause=pause)
        options.setdefault("stdout", subprocess.DEVNULL)
        options.setdefault("stderr", subprocess.PIPE)
        process = subprocess.Popen([*through, python, "-c", text, str(counter)], **options)  # type: ignore[call-overload]
        try:
            made = Job(process, counter, lambda: counting(process.pid, str(counter)))
        except BaseException:
            process.kill()
            raise
        running.append(made)
        return made

    yield begin
    for made in running:
        made.end()
    for counter in counters:
        counter.unlink()


def counting(pid: int, counter: str) -> int:
    """The process that counts in that file: `pid` or the one below it that was executed last."""
    found = [pid]
    for name in os.listdir("/proc"):
        if name.isdigit() and int(name) != pid and pid in procfs.ancestors(int(name)):
            try:
                words = Path(f"/proc/{name}/cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if os.fsencode(counter) in words and words[1] == b"-c":
                found.append(int(name))
    return max(found, key=lambda one: len(list(procfs.ancestors(one))))
