"""A main thread that does not come by: the hook gets in beside it, or it is said what it does, and can be cancelled."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from itertools import pairwise
from pathlib import Path

import pytest

from tuimon.attach import calls, procfs, tracer
from tuimon.attach.inject import room
from tuimon.attach.refusal import Refused
from tuimon.attach.session import Waiting, attach

from .conftest import Program, Start, needs_tracing, until

pytestmark = needs_tracing
ROOT = Path(__file__).resolve().parents[2]
BLOCKED, BLOCK = 5, 6
NOWHERE = procfs.ThreadCall(0, None, (), 0, 0)


class Seen:
    """What can be seen of a program from outside: what has to be the same afterwards."""

    def __init__(self, program: Program) -> None:
        self.pid = program.pid
        mapped = procfs.mappings(self.pid)
        with procfs.Memory(self.pid) as memory:
            self.cave = room.cave(memory, mapped)
            self.code = {
                entry.start: memory.read(entry.start, entry.end - entry.start)
                for entry in mapped
                if entry.executable and entry.path.startswith("/")
            }
        self.strange = [entry for entry in mapped if entry.executable and not entry.path]
        self.threads = len(procfs.thread_ids(self.pid))
        self.files = sorted(os.listdir(f"/proc/{self.pid}/fd"))

    def difference(self, before: Seen) -> list[str]:
        """What differs, by name; libraries that the program has loaded since do not count."""
        code = {start: self.code.get(start) for start in before.code}
        return [
            name
            for name, same in (
                ("code", code == before.code),
                ("executable memory", self.strange == before.strange),
                ("threads", self.threads == before.threads),
                ("files", self.files == before.files),
            )
            if not same
        ]


class Blocked:
    """A program in its long call, and how it looked right before."""

    def __init__(self, start: Start, mode: str, until_: float | Path, environment: dict[str, str] | None = None) -> None:
        self.fifo = until_ if isinstance(until_, Path) else None
        if self.fifo is not None:
            os.mkfifo(self.fifo)
        self.program = start(mode, program="blocking_program.py", arguments=[str(until_)], environment=environment)
        self.pid = self.program.pid
        until(lambda: (procfs.thread_call(self.pid, self.pid) or NOWHERE).number is not None)
        self.before = Seen(self.program)
        self.program.counters[BLOCK] = 1
        until(lambda: self.program.counters[BLOCKED])
        if self.fifo is not None:
            until(lambda: self.main_is_in("read"))

    def main_is_in(self, call: str) -> bool:
        """Whether the main thread waits in a system call of this name."""
        number = (procfs.thread_call(self.pid, self.pid) or NOWHERE).number
        return number is not None and calls.name(number) == call

    def come_back(self) -> None:
        """End the call."""
        assert self.program.rounds == 1
        if self.fifo is not None:
            self.fifo.write_bytes(b"x")

    def nothing_stays(self) -> None:
        """Once the program has come back from its call, all of ours has gone, and it goes on."""
        until(lambda: self.program.rounds > 2, 60)
        until(lambda: not [entry for entry in procfs.mappings(self.pid) if entry.executable and not entry.path])
        until(lambda: Seen(self.program).difference(self.before) == [])
        self.program.gets_on()
        assert self.program.hits == 0


@pytest.fixture
def fifo(tmp_path: Path) -> Path:
    """The name of one."""
    return tmp_path / "fifo"


def test_hook_gets_in_beside_a_main_thread_that_sleeps(start: Start, dummy: dict[str, str]) -> None:
    target = Blocked(start, "sleeping", 60)
    session = attach(target.pid, {}, sources=dummy)
    assert session.mechanism == "thread"
    assert target.program.rounds == 1  # still in its call
    assert session.detach() is not None
    until(lambda: Seen(target.program).difference(target.before) == [])


def test_hook_gets_in_beside_a_main_thread_in_native_code_without_the_gil(start: Start, dummy: dict[str, str]) -> None:
    target = Blocked(start, "free", 6)
    session = attach(target.pid, {}, sources=dummy)
    assert session.mechanism == "thread"
    assert target.program.rounds == 1
    assert session.detach() is not None
    target.nothing_stays()  # the call that was queued first is taken away once the main thread has come by


def test_what_the_main_thread_does_is_said_until_it_is_in(start: Start, dummy: dict[str, str], fifo: Path) -> None:
    target = Blocked(start, "held", fifo)
    told: list[Waiting] = []

    def waiting(what: Waiting) -> None:
        told.append(what)
        if len(told) == 3:
            target.come_back()

    session = attach(target.pid, {}, sources=dummy, patience=None, waiting=waiting)
    assert session.detach() is not None
    assert len(told) >= 3
    assert {one.sentence for one in told[:3]} == {
        f"native code in process {target.pid} holds the GIL; the main thread waits in read"
    }
    assert all(0.0 < one.since_s < other.since_s for one, other in pairwise(told[:3]))
    target.nothing_stays()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root's helper is given priority")
def test_helper_that_waits_has_no_priority(
    start: Start, dummy: dict[str, str], fifo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = Blocked(start, "held", fifo)
    begin, helpers, policies = tracer.Tracer._start_helper, [], []

    def remember(self: tracer.Tracer, request: dict[str, object]) -> int:
        fd = begin(self, request)
        helpers.append(self.helper_pid)
        return fd

    def waiting(_what: Waiting) -> None:
        policies.append(os.sched_getscheduler(helpers[0] or 0))
        target.come_back()

    monkeypatch.setattr(tracer.Tracer, "_start_helper", remember)
    assert attach(target.pid, {}, sources=dummy, waiting=waiting).detach() is not None
    assert policies[:1] == [os.SCHED_OTHER]


@pytest.mark.parametrize(
    ("mode", "sentence"),
    [
        ("alone", "the main thread of process {} runs native code"),
        ("held_at_work", "the main thread of process {} runs native code"),
    ],
)
def test_native_code_that_does_not_come_back_is_said(start: Start, dummy: dict[str, str], mode: str, sentence: str) -> None:
    target = Blocked(start, mode, 60)
    told: list[Waiting] = []
    cancelled = threading.Event()

    def waiting(what: Waiting) -> None:
        told.append(what)
        cancelled.set()

    with pytest.raises(Refused) as refused:
        attach(target.pid, {}, sources=dummy, waiting=waiting, cancelled=cancelled)
    assert refused.value.code == "cancelled"
    assert told[0].sentence == sentence.format(target.pid)


@pytest.mark.parametrize(("mode", "form"), [("held", None), ("held_alone", None), ("held", "pending")])
def test_cancelling_leaves_no_trace(start: Start, dummy: dict[str, str], fifo: Path, mode: str, form: str | None) -> None:
    target = Blocked(start, mode, fifo)
    cancelled = threading.Event()
    with pytest.raises(Refused) as refused:
        attach(target.pid, {}, sources=dummy, form=form, patience=None, waiting=lambda _: cancelled.set(), cancelled=cancelled)
    assert refused.value.code == "cancelled"
    assert f"attaching to process {target.pid} was cancelled; nothing of it will run" in refused.value.sentence
    target.come_back()
    target.nothing_stays()
    assert attach(target.pid, {}, sources=dummy).detach() is not None


def test_patience_that_ends_leaves_no_trace_either(start: Start, dummy: dict[str, str], fifo: Path) -> None:
    target = Blocked(start, "held", fifo)
    with pytest.raises(Refused) as refused:
        attach(target.pid, {}, sources=dummy, patience=1.5)
    assert refused.value.code == "gil-held"
    assert refused.value.sentence == (
        f"a thread of process {target.pid} holds the GIL in a long native call (the main thread waits in read); cancelled: try "
        "again when it gets on"
    )
    target.come_back()
    target.nothing_stays()


@pytest.mark.parametrize("mode", ["held", "held_alone"])
def test_tuimon_that_is_killed_while_it_waits_leaves_no_trace(start: Start, fifo: Path, mode: str) -> None:
    target = Blocked(start, mode, fifo)
    text = (
        f"import sys; sys.path.insert(0, {str(ROOT)!r})\n"
        "from tuimon.attach.session import attach\n"
        f"attach({target.pid}, {{}}, patience=None, waiting=lambda waiting: print('waits', flush=True))\n"
    )
    with subprocess.Popen([sys.executable, "-c", text], stdout=subprocess.PIPE) as tuimon:
        assert tuimon.stdout is not None
        assert tuimon.stdout.readline() == b"waits\n"
        tuimon.send_signal(signal.SIGKILL)
    target.come_back()
    target.nothing_stays()


def test_another_attach_need_not_wait_for_what_was_cancelled(start: Start, dummy: dict[str, str], fifo: Path) -> None:
    target = Blocked(start, "held_alone", fifo)
    with pytest.raises(Refused) as refused:
        attach(target.pid, {}, sources=dummy, patience=0.3)
    assert refused.value.code in ("main-busy", "gil-held")
    second = attach(target.pid, {}, sources=dummy, waiting=lambda _: None if target.program.rounds > 1 else target.come_back())
    assert second.detach() is not None
    target.nothing_stays()


BLOCK_C = """
#include <sys/types.h>
#include <unistd.h>
void block(int seconds) { if (vfork() == 0) { sleep(seconds); _exit(0); } }
"""


def test_uninterruptible_sleep_is_named(start: Start, dummy: dict[str, str], tmp_path: Path) -> None:
    source, library = tmp_path / "block.c", tmp_path / "block.so"
    source.write_text(BLOCK_C)
    try:
        subprocess.run(["cc", "-shared", "-fPIC", "-o", str(library), str(source)], check=True)
    except (OSError, subprocess.SubprocessError):
        pytest.skip("no C compiler here")
    target = Blocked(start, "disk", 5, environment={"BLOCK_LIBRARY": str(library)})
    until(lambda: procfs.stat_fields(target.pid)[0] == "D")
    told: list[Waiting] = []
    with pytest.raises(Refused) as refused:
        attach(target.pid, {}, sources=dummy, patience=1.3, waiting=told.append)
    assert refused.value.code == "uninterruptible"
    assert "is in uninterruptible sleep" in refused.value.sentence
    assert told and all("is in uninterruptible sleep" in waiting.sentence for waiting in told)
    target.nothing_stays()
