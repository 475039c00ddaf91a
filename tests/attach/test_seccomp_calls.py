"""The system calls that seccomp filters are asked about are all that attaching has the job make: nothing else is made.

The job puts a filter on itself that lets pass what is in the tables, argument for argument where a filter might look at one,
and hands every other call to this process, which notes it and lets it go on.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import select
import struct
import sys
import threading
from pathlib import Path

import pytest

from tests.attach.conftest import needs_tracing, until
from tests.attach.matrix_pythons import discover
from tests.attach.surroundings import Begin, Job, job
from tuimon.attach.inject import bpf, needs
from tuimon.attach.session import Session, attach

__all__ = ["job"]
pytestmark = [
    needs_tracing,
    pytest.mark.skipif(os.uname().machine != "x86_64", reason="the numbers are those of x86_64"),
    pytest.mark.skipif(os.geteuid() != 0, reason="reading another process's filter needs root"),
]

MMAP, MPROTECT, IOCTL, MADVISE, SOCKET, GETSOCKOPT, FCNTL, PRCTL, FUTEX, OPENAT = 9, 10, 16, 28, 41, 55, 72, 157, 202, 257
TELLING = {
    MMAP: (2,), MPROTECT: (2,), IOCTL: (1,), MADVISE: (2,), SOCKET: (0, 1), GETSOCKOPT: (1, 2), FCNTL: (1,), PRCTL: (0,),
    FUTEX: (1,), OPENAT: (2,),
}  # fmt: skip
"""The arguments that say what a call does."""
PIDFD_GETFD, RECEIVE, SEND = 438, 0xC0502100, 0xC0182101
NOTIFICATION, GO_ON = struct.Struct("<QIIiIQ6Q"), struct.Struct("<QqiI")
ALL_IN = 20
"""Frames of samples, one in a tick: by then all that the hook puts in some time after the attach is in."""
_libc = ctypes.CDLL(None, use_errno=True)


def known() -> dict[int, set[tuple[int, ...]]]:
    """What the tables hold: numbers, and what the telling arguments may be."""
    listed = [*needs.BORROWED, *needs.THREAD, *needs.HOOK, *needs.EITHER, *needs.MAY_FAIL_WITH]
    found: dict[int, set[tuple[int, ...]]] = {}
    for name, numbers, arguments in [*listed, *((name, numbers, ()) for name, numbers in needs.MAY_FAIL.items())]:
        if numbers[0] is not None:
            telling = TELLING.get(numbers[0], ())
            assert len(arguments) > max(telling, default=-1), f"{name} is judged without an argument that filters look at"
            found.setdefault(numbers[0], set()).add(tuple(arguments[at] for at in telling))
    return found


def allowing_the_known() -> bytes:
    """The filter."""
    program = [(0x20, 0, 0, 0)]
    for number, ways in known().items():
        block = []
        for way in sorted(ways):
            for left, (at, value) in reversed(list(enumerate(zip(TELLING.get(number, ()), way, strict=True)))):
                block += [(0x20, 0, 0, 16 + 8 * at), (0x15, 0, 2 * left + 1, value)]
            block.append((0x06, 0, 0, bpf.ALLOW))
        program += [(0x15, 0, len(block) + 1, number), *block, (0x06, 0, 0, bpf.USER_NOTIF)]
    program.append((0x06, 0, 0, bpf.USER_NOTIF))
    return b"".join(bpf.INSTRUCTION.pack(*one) for one in program)


PUT_ON = """
import ctypes, struct
raw = bytes.fromhex({raw!r})
room = ctypes.create_string_buffer(raw, len(raw))
program = ctypes.create_string_buffer(struct.pack("<HxxxxxxQ", len(raw) // 8, ctypes.addressof(room)))
{before}
ctypes.CDLL(None).prctl(38, 1, 0, 0, 0)
rounds[3] = ctypes.CDLL(None).syscall(317, 1, 8, program) + 1  # with a listener
rounds[0] = 1
def act():
    import _thread
    _thread.start_new_thread(time.sleep, (1000,))
"""


class Listener:
    """Notes what the filter hands over."""

    def __init__(self, target: Job) -> None:
        self.calls: set[tuple[int, ...]] = set()
        process = os.pidfd_open(target.pid)
        self._file = _libc.syscall(PIDFD_GETFD, process, target._rounds[3] - 1, 0)
        os.close(process)
        if self._file < 0:
            pytest.skip("this kernel does not hand a process's descriptor over")
        self._stop, self._stopped = os.pipe()
        self._thread = threading.Thread(target=self._listen, daemon=True)
        self._thread.start()

    def _listen(self) -> None:
        while True:
            ready, _, _ = select.select([self._file, self._stop], [], [])
            if self._stop in ready:
                return
            message = bytearray(NOTIFICATION.size)
            try:
                fcntl.ioctl(self._file, RECEIVE, message)
                number, _, _, call, _, _, *arguments = NOTIFICATION.unpack(message)
                self.calls.add((call, *(arguments[at] & 0xFFFFFFFF for at in TELLING.get(call, ()))))
                fcntl.ioctl(self._file, SEND, GO_ON.pack(number, 0, 0, 1))
            except OSError:
                continue  # the call has been given up meanwhile: interrupted, or its thread ended

    def close(self) -> None:
        """Stop it, once the job has ended: nobody answers its calls from then on."""
        os.close(self._stopped)
        self._thread.join()
        os.close(self._stop)
        os.close(self._file)


def unknown_calls(job: Begin, forms: list[str | None], before: str = "", samples: bool = False, **options: object) -> list[str]:
    """What is made that is not in the tables, in attaching by each of these forms, a session, and detaching."""
    target = job(PUT_ON.format(raw=allowing_the_known().hex(), before=before), **options)
    listener = Listener(target)
    try:
        until(lambda: target.rounds > 1000)
        own = set(listener.calls)
        for form in forms:
            if form == "thread":
                target.act()  # it needs one that sleeps
            session = attach(target.pid, {}, form=form)
            _use(session, samples)
        target.gets_on()
    finally:
        target.end()
        listener.close()
    return [" ".join(map(hex, call)).replace("0x", f"call {call[0]}: 0x", 1) for call in sorted(listener.calls - own)]


def _use(session: Session, samples: bool) -> None:
    kinds: list[int] = []
    session.start(lambda kind, _body: kinds.append(kind), lambda _reason: None)
    until(lambda: len(kinds) > 4 if not samples else kinds.count(2) > ALL_IN)
    goodbye = session.detach()
    assert goodbye is not None and goodbye["left"] == []
    until(lambda: session.report.left == [])


@pytest.fixture(scope="module")
def pythons() -> dict[int, str]:
    """One of each minor version."""
    return {python.version[1]: python.executable for python in discover() if python.root == "/"}


@pytest.mark.parametrize("minor", range(10, 15))
def test_nothing_is_called_that_filters_are_not_asked_about(job: Begin, pythons: dict[int, str], minor: int) -> None:
    if minor not in pythons:
        pytest.skip(f"no Python 3.{minor} here")
    forms: list[str | None] = ["pending", "thread", *(["remote_exec"] if minor >= 14 else [])]
    assert unknown_calls(job, forms, python=pythons[minor]) == []


def test_nor_where_imports_write_what_they_compile(job: Begin, tmp_path: Path) -> None:
    before = f"sys.pycache_prefix, sys.dont_write_bytecode = {str(tmp_path)!r}, False"
    assert unknown_calls(job, [None], before) == []
    assert list(tmp_path.rglob("selectors.*.pyc")), "the hook's imports have written nothing"


@pytest.mark.live
def test_nor_with_samples_from_torch(job: Begin) -> None:
    pytest.importorskip("torch")
    before = """
import torch
compiled = torch.compile(lambda x: (x * 2).sin() + 1, backend="eager")
model = torch.nn.Linear(2, 2)
optimizer = torch.optim.SGD(model.parameters(), 0.1)
def step():
    compiled(torch.ones(3))
    model(torch.ones(2)).sum().backward()
    optimizer.step()
step()
"""
    assert unknown_calls(job, [None], before, samples=True, pause="step(); time.sleep(0.02)", python=sys.executable) == []
