"""Which threads are sent off, and what counts as proof that one of them is back."""

from __future__ import annotations

import ctypes
import mmap
import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

from tuimon.attach import procfs
from tuimon.attach.inject import borrowing, injector, ptrace, threads
from tuimon.attach.inject.borrowing import Borrower, Sent
from tuimon.attach.inject.ptrace import Again
from tuimon.attach.procfs import Memory
from tuimon.attach.refusal import Refused

from .conftest import needs_tracing, until

pytestmark = needs_tracing

PAGE = 4096
OURS = (0x7000_0001_F000, 0x7000_0002_2000)
"""Our code, over a border of 64 kB."""
MASK, OTHER = bytes(8), b"\1" + bytes(7)


class Stack:
    """Memory of this process that plays a stack."""

    def __init__(self, pages: int) -> None:
        self.room = mmap.mmap(-1, pages * PAGE)  # shared: no neighbour becomes one mapping with it
        self.start = ctypes.addressof(ctypes.c_char.from_buffer(self.room))

    def put(self, at: int, word: int) -> None:
        self.room[at : at + 8] = word.to_bytes(8, "little")


@pytest.fixture
def borrower() -> Iterator[Borrower]:
    with Memory(os.getpid()) as memory:
        yield Borrower(os.getpid(), memory, [OURS])


def left(borrower: Borrower, sp: int, mask: bytes = MASK) -> bool:
    """What it says of a thread that is stopped with that sp."""
    borrower._stacks = borrower._mapped()
    return borrower._left(1, 0x1234, sp, mask)


@pytest.mark.parametrize("pointer", [OURS[0], OURS[0] + 0x1008, OURS[1] - 1])
def test_handler_on_the_threads_own_stack_is_going_to_return(borrower: Borrower, pointer: int) -> None:
    stack = Stack(64)
    sp = stack.start + 40 * PAGE
    borrower.out[1] = Sent(MASK, (0x1000, sp), sp)
    stack.put(40 * PAGE - 1024, pointer)
    assert not left(borrower, sp - 8 * PAGE)  # though it blocks no signal
    assert left(borrower, sp + 64)  # it has returned from the function that it was in then
    stack.put(40 * PAGE - 1024, OURS[1])
    assert left(borrower, sp - 8 * PAGE)
    assert left(borrower, sp - 8 * PAGE, OTHER)  # nor does it matter what it blocks for good


def test_handler_on_an_alternate_stack_is_going_to_return(borrower: Borrower) -> None:
    stack = Stack(64)
    sp = stack.start + 40 * PAGE
    borrower.out[1] = Sent(MASK, (0x1000, 0x5000_0800), 0x5000_0800)
    assert left(borrower, sp)
    assert not left(borrower, sp, OTHER)  # it looks like a handler all the same
    stack.put(44 * PAGE, OURS[0] + 16)
    assert not left(borrower, sp)
    assert left(borrower, sp + 5 * PAGE)


def test_frame_on_the_stack_that_a_coroutine_has_left_counts(borrower: Borrower) -> None:
    stack = Stack(64)
    sp = stack.start + 40 * PAGE
    borrower.out[1] = Sent(MASK, (0x1000, sp), sp)
    other = Stack(1)
    elsewhere = other.start
    assert left(borrower, elsewhere)
    stack.put(40 * PAGE - 1024, OURS[0])
    assert not left(borrower, elsewhere)


def test_thread_in_the_call_that_it_was_sent_from_is_back(borrower: Borrower) -> None:
    stack = Stack(64)
    sp = stack.start + 40 * PAGE
    stack.put(41 * PAGE, OURS[0])
    borrower.out[1] = Sent(MASK, (0x1234, sp), sp)
    assert left(borrower, sp)
    assert left(borrower, sp + 8)  # higher up: a frame to return by would lie below where it was sent with
    assert left(borrower, sp - 8)
    stack.put(40 * PAGE - 16, OURS[0])
    assert not left(borrower, sp - 64)


def test_thread_in_our_code_or_on_our_stack_or_on_none_is_not_back(borrower: Borrower) -> None:
    assert not borrower._left(1, OURS[0], 0x1000, MASK)
    assert not borrower._left(1, 0x1234, OURS[1] - 8, MASK)
    assert not left(borrower, 0x1000)  # where nothing is mapped


def test_stops_that_prove_nothing_are_few(borrower: Borrower, monkeypatch: pytest.MonkeyPatch) -> None:
    def borrow(*_: object) -> None:
        raise Again("it is not back")

    borrower.out[1] = Sent(MASK)
    monkeypatch.setattr(procfs, "has_thread", lambda _pid, _tid: True)
    monkeypatch.setattr(procfs, "thread_call", lambda _pid, tid: procfs.ThreadCall(tid, None, (), 0, 0))
    monkeypatch.setattr(borrowing, "LEAVE_S", 1.2)
    tried: list[object] = []
    monkeypatch.setattr(ptrace, "borrow", lambda *given: (tried.append(given), borrow())[1])
    assert not borrower.is_back(1)
    assert len(tried) <= borrowing.MOST_STOPS


def run(body: str) -> subprocess.Popen[bytes]:
    """A program that says when it is ready."""
    process = subprocess.Popen([sys.executable, "-c", body], stdout=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.readline()
    return process


def inject(pid: int, script: bytes = b"pass") -> injector.Outcome:
    return injector.inject(pid, procfs.start_ticks(pid), script, 10, lambda _mechanism: None)


CHANGES_ITS_MASK = """
import signal
print(flush=True)
number = 0
while True:
    number += 1
    signal.pthread_sigmask(signal.SIG_SETMASK, [34 + bit for bit in range(30) if number >> bit & 1])
    for _ in range(20000):
        pass
"""


def test_program_that_changes_its_signal_mask_all_the_time() -> None:
    with run(CHANGES_ITS_MASK) as process:
        try:
            for _ in range(3):
                outcome = inject(process.pid)
                assert outcome.left == []
                assert len(outcome.stops) < 50
            assert process.poll() is None
        finally:
            process.kill()


HAS_A_WORKER = """
import ctypes, threading
parameters = (ctypes.c_uint32 * 30)(0, 0, 2)  # IORING_SETUP_SQPOLL: it comes with a thread of the kernel's
print(ctypes.CDLL(None).syscall(425, 4, parameters), flush=True)
threading.Event().wait()
"""


def test_workers_of_the_kernel_are_no_threads_to_borrow() -> None:
    with subprocess.Popen([sys.executable, "-c", HAS_A_WORKER], stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            if int(process.stdout.readline()) < 0:
                pytest.skip("no io_uring here")
            assert len(os.listdir(f"/proc/{process.pid}/task")) == 2
            assert procfs.thread_ids(process.pid) == [process.pid]
            until(lambda: threads.carriers(process.pid) == [process.pid])
            assert inject(process.pid).left == []
        finally:
            process.kill()


SEIZES = """
import ctypes, sys, time
print(ctypes.CDLL(None).ptrace(0x4206, int(sys.argv[1]), None, None), flush=True)
sys.stdin.read()
"""


def test_thread_that_somebody_else_traces_is_left_alone() -> None:
    body = "import threading; threading.Thread(target=threading.Event().wait, daemon=True).start(); print(flush=True)\n"
    with run(body + "threading.Event().wait()") as process:
        try:
            other = procfs.thread_ids(process.pid)[1]
            for tid in (other, process.pid):
                command = [sys.executable, "-c", SEIZES, str(tid)]
                with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as tracer:
                    assert tracer.stdout is not None and tracer.stdout.readline() == b"0\n"
                    if tid == other:
                        assert inject(process.pid).left == []
                    else:
                        with Memory(process.pid) as memory, pytest.raises(Refused) as refused:
                            ptrace.borrow(process.pid, tid, memory, lambda _stopped: None, [])
                        assert refused.value.code == "traced"
        finally:
            process.kill()
