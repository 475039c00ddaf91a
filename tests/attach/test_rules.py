"""The rules that an injector has to keep, each by name. Some have a test elsewhere: their names say so at the end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from tuimon.attach import interpreter, preflight, procfs
from tuimon.attach.inject import borrowing, foothold, lock, ptrace, room
from tuimon.attach.inject.foothold import Foothold
from tuimon.attach.inject.injector import Injection, guarded
from tuimon.attach.inject.ladder import Climb
from tuimon.attach.inject.waiting import Wait
from tuimon.attach.machine import code, layout
from tuimon.attach.procfs import Memory
from tuimon.attach.refusal import Refused

from .conftest import HIT, Program, Start, needs_tracing, until

pytestmark = needs_tracing
WHO = b"""
import __main__, threading
__main__.counters[4] = threading.get_native_id()
__main__.counters[2] += 1
"""


def inside(pid: int) -> set[int]:
    """The threads of a process as it numbers them itself."""
    return {procfs.pid_inside(procfs.status(pid, tid), tid) for tid in procfs.thread_ids(pid)}


@pytest.mark.parametrize("mode", ["busy", "idle_threads", "sleeping"])
def test_python_runs_on_a_thread_of_our_own_only(start: Start, mode: str) -> None:
    program = start(mode)
    theirs = inside(program.pid)
    for _ in range(5):
        program.inject(WHO)
        assert program.counters[4] not in theirs
    until(lambda: inside(program.pid) == theirs)


class Code:
    """The executable memory of a process, but for the one place that is lent."""

    def __init__(self, pid: int, cave: room.Cave | None = None) -> None:
        mapped = procfs.mappings(pid)
        with Memory(pid) as memory:
            cave = self.cave = cave or room.cave(memory, mapped)
            self.bytes = {}
            for entry in mapped:
                if entry.executable and entry.path.startswith("/"):
                    text = bytearray(memory.read(entry.start, entry.end - entry.start))
                    if entry.start <= cave.address < entry.end:
                        at = cave.address - entry.start
                        text[at : at + cave.room] = bytes(cave.room)
                    self.bytes[entry.start] = bytes(text)


def test_no_instruction_that_can_run_is_changed(start: Start) -> None:
    program = start("idle_threads")
    program.inject()
    seen = Code(program.pid)
    before = seen.bytes
    done = threading.Event()

    def inject() -> None:
        try:
            for _ in range(10):
                program.inject(b"import time; time.sleep(0.03)")
        finally:
            done.set()

    at_work = threading.Thread(target=inject)
    at_work.start()
    looks = 0
    while not done.is_set():
        during = Code(program.pid, seen.cave).bytes
        assert {at: during.get(at) for at in before} == before
        looks += 1
    at_work.join()
    assert looks
    with Memory(program.pid) as memory:  # and what was lent has been given back
        assert memory.read(seen.cave.address, seen.cave.room) == bytes(seen.cave.room)


def test_no_signal_is_raised(start: Start, cycles: int) -> None:
    program = start("signals", program="blocking_program.py", arguments=["0"])
    for _ in range(cycles):
        program.inject()
    program.gets_on()
    assert program.hits == cycles
    assert program.counters[3] == 0


def test_lost_wake_up_is_followed_by_another(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    program = start("busy")
    ask, asked = Injection._pending_form, []

    def lose_the_first(self: Injection, *, prefer_elsewhere: bool = False) -> float | None:
        asked.append(prefer_elsewhere)
        return time.monotonic() if len(asked) == 1 else ask(self, prefer_elsewhere=prefer_elsewhere)

    monkeypatch.setattr(Injection, "_pending_form", lose_the_first)
    outcome = program.inject()
    assert outcome.kicks >= 1
    assert asked[:2] == [False, True]
    assert program.hits == 1


def test_pages_are_gone_after_each_attach(start: Start) -> None:
    program = start("busy")
    program.inject()
    before = {(entry.start, entry.end) for entry in procfs.mappings(program.pid) if entry.executable}
    for _ in range(5):
        assert program.inject().left == []
        assert {(entry.start, entry.end) for entry in procfs.mappings(program.pid) if entry.executable} == before


# ------------------------------------------------------------------------------------------------------ interpreters

WHERE = b"""
import __main__
try:
    import _interpreters as inner
except ImportError:
    import _xxsubinterpreters as inner
current = inner.get_current()
__main__.counters[4] = 1 + int(current[0] if isinstance(current, tuple) else current)
__main__.counters[2] += 1
"""


@pytest.mark.parametrize("seconds", ["0.02", "0.5"])
def test_hook_lands_in_the_main_interpreter(start: Start, seconds: str) -> None:
    program = start("interpreters", program="blocking_program.py", arguments=[seconds])
    for done in range(1, 6):
        program.inject(WHERE, seconds=60)
        assert program.hits == done
        assert program.counters[4] == 1  # its number, which is 0, and one
    program.gets_on()


# ------------------------------------------------------------------------------------- a kernel that does not let us write


def refuse_code(self: Memory, address: int, data: bytes) -> None:
    """As PROC_MEM_NO_FORCE: not where the target itself may not write."""
    for entry in procfs.mappings(self.pid):
        if entry.start <= address < entry.end and not entry.writable:
            raise OSError(5, "Input/output error")
    WRITE(self, address, data)


def refuse_all(self: Memory, address: int, data: bytes) -> None:
    """As a file that was opened for reading only."""
    raise OSError(9, "Bad file descriptor")


WRITE = Memory._write_through_file


@pytest.mark.parametrize("refuse", [refuse_code, refuse_all])
@pytest.mark.parametrize("mode", ["busy", "sleeping"])
def test_hardened_proc_mem_is_written_to_otherwise(
    start: Start, monkeypatch: pytest.MonkeyPatch, mode: str, refuse: object
) -> None:
    program = start(mode)
    before = Code(program.pid).bytes
    monkeypatch.setattr(Memory, "_write_through_file", refuse)
    for done in range(1, 6):
        assert program.inject().left == []
        assert program.hits == done
    after = Code(program.pid).bytes
    assert {at: after.get(at) for at in before} == before
    assert not [entry for entry in procfs.mappings(program.pid) if entry.executable and not entry.path]


def test_memory_that_may_not_be_written_at_all_is_named(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    program = start("busy")

    def never(*_: object) -> None:
        raise OSError(1, "Operation not permitted")

    monkeypatch.setattr(Memory, "_write_through_file", never)
    monkeypatch.setattr(procfs.writing, "write", never)
    with pytest.raises(Refused) as refused:
        program.inject()
    assert refused.value.code == "may-not-write"
    assert refused.value.sentence == (
        f"the kernel allows to trace process {program.pid} but not to write into its memory (Operation not permitted; see "
        "proc_mem.force_override and the PROC_MEM_* settings); use `tuimon run`"
    )
    program.gets_on()


# --------------------------------------------------------------------------------------------- builds that are refused

PRETEND = """
#include <unistd.h>
const unsigned long Py_Version = VERSION;
struct { char cookie[8]; unsigned long version, free_threaded; char rest[4096]; } _PyRuntime =
    { {'x', 'd', 'e', 'b', 'u', 'g', 'p', 'y'}, VERSION, FREE };
int Py_AddPendingCall(int (*f)(void *), void *a) { return 0; }
int main(void) { for (;;) pause(); }
"""


@pytest.fixture
def pretend(tmp_path: Path):  # type: ignore[no-untyped-def]
    """pretend(version, free) gives the pid of a program that says of itself that it is such a Python."""
    running: list[subprocess.Popen[bytes]] = []

    def begin(version: str, free: int) -> int:
        source, program = tmp_path / "pretend.c", tmp_path / f"python-{version}-{free}"
        source.write_text(PRETEND)
        words = [f"-DVERSION={version}", f"-DFREE={free}", "-rdynamic", "-o", str(program), str(source)]
        try:
            subprocess.run(["cc", *words], check=True)
        except (OSError, subprocess.SubprocessError):
            pytest.skip("no C compiler here")
        running.append(subprocess.Popen([program]))
        pid = running[-1].pid
        until(lambda: (procfs.thread_call(pid, pid) or procfs.ThreadCall(0, None, (), 0, 0)).number is not None)
        until(lambda: os.readlink(f"/proc/{pid}/exe") == str(program))
        return pid

    yield begin
    for process in running:
        process.kill()
        process.wait()


@pytest.mark.parametrize("version", ["0x030d00f0", "0x030e0af0"])
def test_free_threaded_build_is_refused_by_what_it_says_of_itself(pretend, version: str) -> None:  # type: ignore[no-untyped-def]
    pid = pretend(version, 1)
    with pytest.raises(Refused) as refused:
        preflight.look(pid)
    assert refused.value.code == "free-threaded"
    assert refused.value.sentence == (
        f"process {pid} is a free-threaded Python, which tuimon cannot attach to yet; use `tuimon run`"
    )


def test_newer_python_is_refused_by_name(pretend) -> None:  # type: ignore[no-untyped-def]
    pid = pretend("0x030f02f0", 0)
    with pytest.raises(Refused) as refused:
        preflight.look(pid)
    assert refused.value.code == "new-python"
    assert refused.value.sentence == (
        f"process {pid} runs Python 3.15; this tuimon attaches to 3.10 to 3.14 only: start the job with `tuimon run`"
    )


def test_places_where_the_queues_lock_may_be_held_are_known(start: Start) -> None:
    # they are found by what the interpreter's own functions call, so a Python must have some beside the named ones
    program = start("sleeping")
    target = preflight.look(program.pid)
    try:
        assert len(target.lock_ranges) > len(interpreter._LOCKERS)
        assert all(end > begin for begin, end in target.lock_ranges)
    finally:
        target.close()


# ------------------------------------------------------------------------------------------- one at a time, where it is safe


@pytest.fixture
def injection():  # type: ignore[no-untyped-def]
    """injection(program, cancelled=..) gives an Injection of HIT that has not begun."""
    targets: list[preflight.Target] = []

    def prepare(program: Program, cancelled: object = lambda: False) -> Injection:
        targets.append(preflight.look(program.pid))
        return Injection(targets[-1], HIT, Wait(program.pid, 20, cancelled))  # type: ignore[arg-type]

    with guarded(os.getpid()):
        yield prepare
    for target in targets:
        target.close()


def strange(pid: int) -> list[procfs.Mapping]:
    """Executable memory that is no file's."""
    return [entry for entry in procfs.mappings(pid) if entry.executable and not entry.path]


def test_lock_is_seen_through_every_mount_of_procfs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lock, "LOCK_S", 0.0)
    first, second = (lock.Lock(os.getpid(), -1) for _ in range(2))  # with nothing of /proc in common
    first.take()
    if first._handle < 0:
        pytest.skip("this kernel has no file of its own for each process")
    with pytest.raises(Refused) as refused:
        second.take()
    assert refused.value.code == "busy"
    lock.Lock(os.getppid(), -1).take()  # another process is another lock
    first.release()
    second.take()
    second.release()


def test_cave_that_another_has_written_to_meanwhile_is_left_alone(
    start: Start, injection, monkeypatch: pytest.MonkeyPatch
) -> None:  # type: ignore[no-untyped-def]
    program = start("busy")
    free, patience, seen = Foothold._free_cave, Foothold._no_patience, []

    def then_another_comes(self: Foothold) -> None:
        free(self)
        if not seen:
            self.memory.write(self.cave.address, b"other's")

    def and_goes(self: Foothold, attempt: int) -> bool:
        if not seen:
            seen.append(self.memory.read(self.cave.address, 7))
            self.memory.write(self.cave.address, self.cave_bytes)
        return patience(self, attempt)

    monkeypatch.setattr(Foothold, "_free_cave", then_another_comes)
    monkeypatch.setattr(Foothold, "_no_patience", and_goes)
    before = Code(program.pid)
    work = injection(program)
    work.run(lambda _: None)
    work.clean_up(10)
    assert seen == [b"other's"]
    assert program.hits == 1
    assert Code(program.pid, before.cave).bytes == before.bytes


def test_cave_is_chosen_once_nobody_else_is_at_work(start: Start, injection, monkeypatch: pytest.MonkeyPatch) -> None:  # type: ignore[no-untyped-def]
    program = start("busy")
    work = injection(program)
    memory = work.target.memory
    best = room.cave(memory, work.target.mappings)
    before = memory.read(best.address, best.room)
    memory.write(best.address, code.SYSCALLS)  # another tuimon had the lock till then, and was killed
    choose = room.cave

    def the_same(memory: Memory, _mapped: list[procfs.Mapping]) -> room.Cave:
        return best._replace(marked=memory.read(best.address, 16) == code.SYSCALLS[:16])

    assert choose(memory, work.target.mappings).address != best.address
    monkeypatch.setattr(room, "cave", the_same)
    work.run(lambda _: None)
    work.clean_up(10)
    assert work.outcome.left == []
    assert memory.read(best.address, best.room) == before == bytes(best.room)


def test_cave_lies_in_what_is_never_unmapped(start: Start) -> None:
    mapped = procfs.mappings(start("busy").pid)
    with Memory(os.getpid()) as memory:
        cave = room.cave(memory, procfs.mappings(os.getpid()))
    (path,) = [entry.path for entry in procfs.mappings(os.getpid()) if entry.start <= cave.address < entry.end]
    assert mapped and room._stays(path, os.readlink("/proc/self/exe"))
    assert room._stays("/lib/libc.so.6", "") and room._stays("/lib64/ld-linux-x86-64.so.2", "")
    assert room._stays("/lib/ld-musl-x86_64.so.1", "") and room._stays("/opt/lib/libpython3.11.so.1.0", "")
    assert not room._stays("/lib/libcuda.so.1", "") and not room._stays("/lib/libcublas.so.12", "")


@pytest.mark.parametrize("paved", [1, 2])
def test_program_that_is_suspended_on_the_way_is_refused_and_left_as_it_was(
    start: Start, injection, monkeypatch: pytest.MonkeyPatch, paved: int
) -> None:  # type: ignore[no-untyped-def]
    program = start("busy")
    call, pave, ways = ptrace._call, Foothold._pave, []

    def count(self: Foothold, way: layout.Way) -> layout.Registers:
        ways.append(way)
        return pave(self, way)

    def suspend(request: int, tid: int, address: int = 0, data: int = 0) -> int:
        if request == ptrace.PTRACE_DETACH and len(ways) == paved:
            ways.append(ways[-1])
            os.kill(program.pid, signal.SIGSTOP)
        return call(request, tid, address, data)

    monkeypatch.setattr(foothold, "CALLED_S", 0.05)
    monkeypatch.setattr(borrowing, "LEAVE_S", 0.1)
    monkeypatch.setattr(Foothold, "_pave", count)
    monkeypatch.setattr(ptrace, "_call", suspend)
    work = injection(program)
    with pytest.raises(Refused) as refused:
        work.run(lambda _: None)
    assert refused.value.code in ("busy", "stopped"), refused.value.sentence
    assert work.clean_up(0)
    assert [line.split(" (")[0] for line in work.outcome.left] == [
        f"a trampoline of {work.site.cave.room} bytes",
        f"a region of {work.site.region.size // 1024} kB",
    ]
    os.kill(program.pid, signal.SIGCONT)
    monkeypatch.undo()
    assert not work.clean_up(20)
    assert work.outcome.left == strange(program.pid) == []
    program.gets_on()
    assert program.hits == 0


@pytest.mark.parametrize("when", ["first", "begun"])
def test_thread_that_cannot_be_stopped_is_let_go_at_once(start: Start, monkeypatch: pytest.MonkeyPatch, when: str) -> None:
    program = start("busy")
    told: list[dict[str, object]] = []
    stops: list[int] = []

    def stuck(_pid: int, tid: int, *_: object) -> None:
        stops.append(tid)
        raise Refused("stuck", "sits in the kernel")

    def answer(message: dict[str, object]) -> None:
        told.append(message)
        if "begun" in message:
            monkeypatch.setattr(ptrace, "borrow", stuck)

    if when == "first":
        monkeypatch.setattr(ptrace, "borrow", stuck)
    wait = Wait(program.pid, 20)
    Climb(program.pid, procfs.start_ticks(program.pid), HIT, None, wait, answer, lambda: False).run()  # type: ignore[arg-type]
    assert len(stops) == 1  # this process has to end before anything else
    if when == "first":
        assert told == [{"refused": ["stuck", "sits in the kernel"]}, {"settled": told[-1]["settled"]}]
    else:
        assert [next(iter(message)) for message in told] == ["begun", "done"]
        assert any(line.startswith("a region of") for line in told[-1]["done"]["left"])  # type: ignore[index]


def test_nothing_is_started_for_a_tuimon_that_is_gone(start: Start, injection) -> None:  # type: ignore[no-untyped-def]
    program = start("sleeping")
    work = injection(program, lambda: work.site.written)
    with pytest.raises(Refused) as refused:
        work.run(lambda _: None)
    assert refused.value.code == "cancelled"
    assert work.site.state() == work.site.word(layout.RESULT) == work.site.word(layout.QUEUED) == 0
    assert work.site.word(layout.CANCEL) == 1
    assert not work.clean_up(10)
    assert program.hits == 0


# ------------------------------------------------------------------------------------------------ another program by then

EXECUTES = """
import os, signal, sys
def execute(*_): os.execv(sys.executable, [sys.executable, "-c", "import time; time.sleep(600)"])
signal.signal(signal.SIGUSR1, execute)
print("up", flush=True)
while True: pass
"""


@pytest.fixture
def executes():  # type: ignore[no-untyped-def]
    """A program, and what makes it execute another one."""
    with subprocess.Popen([sys.executable, "-c", EXECUTES], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()

        def execute() -> None:
            old = Memory(process.pid)
            os.kill(process.pid, signal.SIGUSR1)
            until(old.is_gone)
            old.close()

        yield process.pid, execute
        process.kill()


def test_memory_of_a_program_that_is_gone_is_not_written_into_the_next(executes, monkeypatch: pytest.MonkeyPatch) -> None:  # type: ignore[no-untyped-def]
    pid, execute = executes
    monkeypatch.setattr(procfs.writing, "write", lambda *_: pytest.fail("by the pid, into the new program"))
    with Memory(pid, writable=True) as memory:
        address = next(entry.start for entry in procfs.mappings(pid) if entry.writable)
        memory.write(address, memory.read(address, 8))
        assert not memory.is_gone()
        execute()
        assert memory.is_gone()
        with pytest.raises(ProcessLookupError):
            memory.write(address, b"INJECTED")
        monkeypatch.setattr(Memory, "_write_through_file", refuse_all)
        with pytest.raises(ProcessLookupError):
            memory.write(address, b"INJECTED")
        with pytest.raises(ProcessLookupError):
            memory.read(address, 8)


def test_program_that_executes_another_meanwhile_is_named(executes, monkeypatch: pytest.MonkeyPatch) -> None:  # type: ignore[no-untyped-def]
    pid, execute = executes
    written, done = Foothold._write, []

    def then_execute(self: Foothold, script: bytes) -> None:
        written(self, script)
        execute()
        done.append(True)

    monkeypatch.setattr(Foothold, "_write", then_execute)
    target = preflight.look(pid)
    try:
        work = Injection(target, b"pass", Wait(pid, 20))
        with guarded(pid), pytest.raises(Refused) as refused:
            work.run(lambda _: None)
        assert done
        assert refused.value.sentence == f"process {pid} has just executed another program; try again"
        stops = len(work.outcome.stops)
        assert not work.clean_up(10)
        assert work.outcome.left == []
        assert len(work.outcome.stops) == stops  # the new one is left alone
    finally:
        target.close()
