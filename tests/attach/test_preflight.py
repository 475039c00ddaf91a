"""Everything that is refused before a process is touched: by its code, with a next step, and the process is as it was."""

from __future__ import annotations

import mmap
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from tuimon.attach import calls, explain, preflight, procfs
from tuimon.attach.refusal import Refused
from tuimon.attach.session import attach

from .conftest import anybodys_python, as_nobody, become_nobody, needs_tracing, refused_by, until

pytestmark = needs_tracing
SLEEP = "import time; time.sleep(600)"


@pytest.fixture
def spawn() -> Iterator[Callable[..., subprocess.Popen[bytes]]]:
    """spawn(argv..) gives a running process; it is killed at the end."""
    running: list[subprocess.Popen[bytes]] = []

    def begin(*argv: str, **options: object) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(argv, **options)  # type: ignore[call-overload]
        running.append(process)
        return process

    yield begin
    for process in reversed(running):  # a tracer first: what it traces is collected only then
        process.kill()
        process.wait()


def untouched(pid: int) -> object:
    """What would change if a sleeping, stopped or ended process were stopped or run: None where there is none."""
    try:
        facts = procfs.status(pid)
    except OSError:
        return None
    kept = ("State", "TracerPid", "voluntary_ctxt_switches", "nonvoluntary_ctxt_switches", "SigPnd", "ShdPnd")
    return [facts.get(name) for name in kept]


def refusal(pid: int, sentence: str | None = None) -> Refused:
    """How attaching to a process is refused; that leaves the process and this one as they were."""
    files, before = len(os.listdir("/proc/self/fd")), untouched(pid)
    with pytest.raises(Refused) as caught:
        attach(pid, {})
    if pid != os.getpid():
        assert untouched(pid) == before
    assert len(os.listdir("/proc/self/fd")) <= files, "a refusal must not leak files"
    if sentence is not None:
        assert caught.value.sentence == sentence
    assert caught.value.sentence == str(caught.value)
    assert not re.search(r"\berrno\b|Traceback", caught.value.sentence, re.I)
    return caught.value


def state(pid: int) -> str:
    """One letter."""
    return procfs.status(pid)["State"][0]


def asleep(pid: int) -> Callable[[], bool]:
    """For `until`: the interpreter is up and has come to its sleep."""
    return lambda: (procfs.thread_call(pid, pid) or procfs.ThreadCall(0, None, (), 0, 0)).number in (23, 35, 230, 270)


@pytest.mark.parametrize("pid", [2**22 - 3, 0, -1])
def test_no_such_process(pid: int) -> None:
    no_number = f"{pid} is not a process id"
    none_there = f"there is no process {pid}; `tuimon list` shows those that can be attached to"
    assert refusal(pid, none_there if pid > 0 else no_number).code == "dead"


def test_ourselves() -> None:
    assert refusal(os.getpid(), f"{os.getpid()} is tuimon itself").code == "self"


def test_zombie(spawn) -> None:
    process = spawn("true")
    until(lambda: state(process.pid) == "Z")
    said = f"process {process.pid} has already ended; its parent has not collected it yet (a zombie)"
    assert refusal(process.pid, said).code == "zombie"


def test_kernel_thread() -> None:
    try:
        kernel = "VmSize" not in procfs.status(2) and procfs.stat_fields(2)[1] == "0"
    except OSError:
        kernel = False
    if not kernel:
        pytest.skip("no kernel threads to be seen here")
    assert refusal(2, "2 is a thread of the kernel, not a program").code == "kernel-thread"


def test_thread_id(spawn) -> None:
    process = spawn(
        sys.executable, "-c", f"import threading, time; threading.Thread(target=time.sleep, args=(600,)).start(); {SLEEP}"
    )
    until(lambda: len(procfs.thread_ids(process.pid)) == 2)
    tid = procfs.thread_ids(process.pid)[1]
    until(lambda: asleep(process.pid)() and asleep(tid)())  # what is compared below is still now
    assert refusal(tid, f"{tid} is a thread of process {process.pid}; attach to {process.pid}").code == "tid"


def test_stopped(spawn) -> None:
    process = spawn(sys.executable, "-c", SLEEP)
    os.kill(process.pid, signal.SIGSTOP)
    until(lambda: state(process.pid) == "T")
    said = f"process {process.pid} is stopped (SIGSTOP or Ctrl-Z); continue it first: kill -CONT {process.pid}"
    assert refusal(process.pid, said).code == "stopped"
    assert state(process.pid) == "T"


def test_traced_by_somebody_else(spawn) -> None:
    target = spawn(sys.executable, "-c", SLEEP)
    until(asleep(target.pid))
    tracer = spawn(
        sys.executable,
        "-c",
        "import ctypes, sys, time\n"
        "l = ctypes.CDLL(None)\n"
        f"sys.exit('no') if l.ptrace(0x4206, {target.pid}, None, None) else time.sleep(600)",
    )
    until(lambda: procfs.status(target.pid)["TracerPid"] != "0" or tracer.poll() is not None)
    if tracer.poll() is not None:
        pytest.skip("one child may not trace another one here")
    name = procfs.status(tracer.pid)["Name"]
    said = (
        f"process {target.pid} is being traced by process {tracer.pid} ({name}); end that one first "
        "(a debugger, strace or another monitor)"
    )
    assert refusal(target.pid, said).code == "traced"


def test_not_python(spawn) -> None:
    process = spawn("sleep", "600")
    until(asleep(process.pid))
    said = f"process {process.pid} is no Python program (nothing in it is CPython); `tuimon list` shows those that are"
    assert refusal(process.pid, said).code == "not-python"


def test_program_of_another_machine(spawn, monkeypatch: pytest.MonkeyPatch) -> None:
    process = spawn(sys.executable, "-c", SLEEP)
    until(asleep(process.pid))
    monkeypatch.setattr(preflight, "code", SimpleNamespace(ELF_MACHINE=0x1234, NAME="64-bit nonsense"))
    said = f"process {process.pid} is not a 64-bit nonsense program; run tuimon on a machine of its own kind"
    assert refusal(process.pid, said).code == "arch"


def test_old_python(spawn) -> None:
    import glob

    old = sorted(glob.glob(os.path.expanduser("~/.pyenv/versions/3.[6-9].*/bin/python")))
    if not old:
        pytest.skip("no Python before 3.10 here")
    process = spawn(old[0], "-c", SLEEP)
    until(asleep(process.pid))
    version = re.search(r"/(3\.\d)\.", old[0])
    assert version is not None
    said = f"process {process.pid} runs Python {version[1]}; tuimon attaches to 3.10 and newer"
    refused = refusal(process.pid)
    assert refused.code == "old-python"
    assert refused.sentence in (said, said.replace(version[1], "older than 3.10"))


def test_without_torch_is_no_refusal(spawn) -> None:
    process = spawn(sys.executable, "-c", SLEEP)
    until(asleep(process.pid))
    seen = preflight.look(process.pid)
    seen.close()
    assert seen.has_torch is False
    assert seen.python == sys.version_info[:2]


needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="changing the user needs root")


@needs_root
def test_other_users_process(spawn) -> None:
    process = spawn(sys.executable, "-c", SLEEP)
    until(asleep(process.pid))
    before = untouched(process.pid)
    root, nobody = preflight._user(0), preflight._user(65534)
    assert as_nobody(lambda: refused_by(process.pid)) == (
        f"uid: process {process.pid} belongs to user {root}, you are {nobody}: run tuimon as that user, or with sudo"
    )
    assert untouched(process.pid) == before


@needs_root
def test_own_process_that_may_not_be_dumped(spawn) -> None:
    python = anybodys_python()
    plain = spawn(python, "-c", SLEEP, preexec_fn=become_nobody)
    until(asleep(plain.pid))
    if as_nobody(lambda: refused_by(plain.pid)) != "allowed":
        pytest.skip("an ordinary user may not trace its own processes here")
    hidden = spawn(python, "-c", f"import ctypes; ctypes.CDLL(None).prctl(4, 0, 0, 0, 0); {SLEEP}", preexec_fn=become_nobody)
    until(asleep(hidden.pid))
    before = untouched(hidden.pid)
    assert as_nobody(lambda: refused_by(hidden.pid)) == (
        f"denied: the kernel does not allow access to process {hidden.pid} (Permission denied): it has switched off dumping, "
        "or this is a container without --cap-add=SYS_PTRACE, or SELinux or AppArmor says no; use sudo, or start the job with "
        "`tuimon run`"
    )
    assert untouched(hidden.pid) == before


SCOPES = {
    1: "kernel.yama.ptrace_scope is 1: only the program that started a process may attach to it; use sudo, or "
    "`sudo sysctl kernel.yama.ptrace_scope=0`, or start the job with `tuimon run`",
    2: "kernel.yama.ptrace_scope is 2: only root may attach; use sudo, or `tuimon run`",
    3: "kernel.yama.ptrace_scope is 3: this machine allows no attaching until it is rebooted; start the job with `tuimon run`",
}


@pytest.mark.parametrize("scope", [1, 2, 3])
def test_ptrace_scope_is_named(monkeypatch: pytest.MonkeyPatch, scope: int, spawn) -> None:
    process = spawn(sys.executable, "-c", SLEEP)
    monkeypatch.setattr(preflight, "ptrace_scope", lambda: scope)
    monkeypatch.setattr(preflight, "may_trace_anything", lambda: False)
    refused = preflight._not_permitted(process.pid, procfs.status(process.pid), PermissionError(13, "no"))
    assert refused.code == f"ptrace-scope-{scope}"
    assert refused.sentence == SCOPES[scope]


@pytest.mark.parametrize(
    ("state", "rc", "code", "sentence"),
    [
        (4, 0, "no-new-thread", "process 7 could not create a thread (see `ulimit -u` and the limit on pids of its cgroup)"),
        (3, 1, "bootstrap", "the bootstrap failed in process 7 before it could report (rc 1)"),
        (3, 2, "cancelled", "attaching to process 7 was cancelled; the process is as it was"),
        (5, 0, "cancelled", "attaching to process 7 was cancelled; the process is as it was"),
    ],
)
def test_how_a_script_ended_is_named(state: int, rc: int, code: str, sentence: str) -> None:
    refused = explain.ended(7, state, rc)
    assert (refused.code, refused.sentence) == (code, sentence)


@pytest.mark.parametrize(
    ("seen", "letter", "where"),
    [
        (None, "S", "has ended"),
        ("running", "R", "runs native code"),
        ("-1", "S", "waits for memory"),
        ("clock_nanosleep", "S", "is in a sleep (clock_nanosleep)"),
        ("wait4", "S", "waits for a child process (wait4)"),
        ("futex", "S", "waits for a lock or for another thread (futex)"),
        ("read", "S", "waits in read"),
        ("read", "D", "is in uninterruptible sleep in read: a disk, a network file system or a driver"),
        ("12345", "S", "waits in system call 12345"),
    ],
)
def test_what_the_main_thread_does_is_named(monkeypatch: pytest.MonkeyPatch, seen: str | None, letter: str, where: str) -> None:
    numbers = {calls.name(number): number for number in range(500)} | {"-1": -1, "12345": 12345, "running": None}
    call = None if seen is None else procfs.ThreadCall(7, numbers[seen], (), 0, 0)
    monkeypatch.setattr(procfs, "thread_call", lambda pid, tid: call)
    monkeypatch.setattr(procfs, "stat_fields", lambda pid: [letter])
    assert explain.where_is_main(7) == where
    for state, code, sentence in (
        (
            0,
            "main-busy",
            f"the main thread of process 7 has not come back to Python (it {where}) and no other thread can be used; "
            "cancelled: try again when it gets on",
        ),
        (
            1,
            "gil-held",
            f"a thread of process 7 holds the GIL in a long native call (the main thread {where}); cancelled: try again "
            "when it gets on",
        ),
        (2, "no-hello", "the hook was started in process 7 but does not answer; cancelled: try again"),
    ):
        refused = explain.timed_out(7, state)
        assert (refused.code, refused.sentence) == (code, sentence)
    refused = explain.no_thread(7)
    assert refused.code == ("uninterruptible" if letter == "D" else "no-thread")
    assert where in refused.sentence
    assert explain.waiting(7, 0) == f"the main thread of process 7 {where}"


def test_calls_have_the_same_names_on_both_machines() -> None:
    assert calls.name(202, "x86_64") == calls.name(98, "aarch64") == "futex"
    assert calls.name(61, "x86_64") == calls.name(260, "aarch64") == "wait4"
    assert calls.name(3, "riscv64") == "system call 3"
    assert set(calls._AARCH64.values()) - set(calls._X86_64.values()) == set()


def test_other_machine_and_other_system(monkeypatch: pytest.MonkeyPatch) -> None:
    names = list(os.uname())
    for place, value, code in ((4, "riscv64", "platform"), (0, "Darwin", "platform"), (2, "4.4.0-1-generic", "old-kernel")):
        given = list(names)
        given[place] = value
        monkeypatch.setattr(os, "uname", lambda given=given: os.uname_result(given))
        with pytest.raises(Refused) as refused:
            preflight.look(os.getpid())
        assert refused.value.code == code
        assert "tuimon run" in refused.value.sentence


def test_mappings_are_told_with_whatever_name_their_file_has(tmp_path: Path) -> None:
    file = tmp_path / os.fsdecode(b"two  words\xff ")
    file.write_bytes(bytes(2 * mmap.PAGESIZE))
    with file.open("rb") as opened, mmap.mmap(opened.fileno(), 0, prot=mmap.PROT_READ, offset=mmap.PAGESIZE) as held:
        (found,) = [entry for entry in procfs.mappings(os.getpid()) if entry.path == str(file)]
        assert found.end - found.start == len(held) == found.offset == mmap.PAGESIZE
    assert (found.permissions, found.inode, found.executable, found.writable) == ("r--s", file.stat().st_ino, False, False)
    with open("/proc/self/maps", encoding="utf-8", errors="surrogateescape") as maps:
        assert abs(len(list(maps)) - len(procfs.mappings(os.getpid()))) <= 2
