"""Everything that is refused before a process is touched: by its code, with a next step, and the process is as it was."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator

import pytest

from tuimon.attach import preflight, procfs
from tuimon.attach.refusal import Refused
from tuimon.attach.session import attach

from .conftest import anybodys_python, become_nobody, needs_tracing, until

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


def refusal(pid: int) -> Refused:
    """How attaching to a process is refused."""
    files = len(os.listdir("/proc/self/fd"))
    with pytest.raises(Refused) as caught:
        attach(pid, {})
    assert len(os.listdir("/proc/self/fd")) == files, "a refusal must not leak files"
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
    refused = refusal(pid)
    assert refused.code == "dead"


def test_ourselves() -> None:
    assert refusal(os.getpid()).code == "self"


def test_zombie(spawn) -> None:
    process = spawn("true")
    until(lambda: state(process.pid) == "Z")
    assert refusal(process.pid).code == "zombie"


def test_kernel_thread() -> None:
    try:
        kernel = "VmSize" not in procfs.status(2) and procfs.stat_fields(2)[1] == "0"
    except OSError:
        kernel = False
    if not kernel:
        pytest.skip("no kernel threads to be seen here")
    assert refusal(2).code == "kernel-thread"


def test_thread_id(spawn) -> None:
    process = spawn(
        sys.executable, "-c", f"import threading, time; threading.Thread(target=time.sleep, args=(600,)).start(); {SLEEP}"
    )
    until(lambda: len(procfs.thread_ids(process.pid)) == 2)
    refused = refusal(procfs.thread_ids(process.pid)[1])
    assert refused.code == "tid"
    assert str(process.pid) in refused.sentence


def test_stopped(spawn) -> None:
    process = spawn(sys.executable, "-c", SLEEP)
    os.kill(process.pid, signal.SIGSTOP)
    until(lambda: state(process.pid) == "T")
    refused = refusal(process.pid)
    assert refused.code == "stopped"
    assert f"kill -CONT {process.pid}" in refused.sentence
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
    refused = refusal(target.pid)
    assert refused.code == "traced"
    assert str(tracer.pid) in refused.sentence


def test_not_python(spawn) -> None:
    process = spawn("sleep", "600")
    until(asleep(process.pid))
    assert refusal(process.pid).code == "not-python"


def test_old_python(spawn) -> None:
    import glob

    old = sorted(glob.glob(os.path.expanduser("~/.pyenv/versions/3.[6-9].*/bin/python")))
    if not old:
        pytest.skip("no Python before 3.10 here")
    process = spawn(old[0], "-c", SLEEP)
    until(asleep(process.pid))
    refused = refusal(process.pid)
    assert refused.code == "old-python"
    assert "3.10" in refused.sentence


def test_without_torch_is_no_refusal(spawn) -> None:
    process = spawn(sys.executable, "-c", SLEEP)
    until(asleep(process.pid))
    seen = preflight.look(process.pid)
    seen.close()
    assert seen.has_torch is False
    assert seen.python == sys.version_info[:2]


def as_other_user(work: Callable[[], str]) -> str:
    """What `work` gives in a child that has another uid and no capabilities."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            become_nobody()
            os.write(writing, work().encode())
        except BaseException as error:  # noqa: BLE001 - the child must not go on as a second test run
            os.write(writing, repr(error).encode())
        os._exit(0)
    os.close(writing)
    os.waitpid(child, 0)
    with os.fdopen(reading) as file:
        return file.read()


def look_code(pid: int) -> str:
    """The code by which a look is refused."""
    try:
        preflight.look(pid).close()
    except Refused as refused:
        return refused.code
    return "allowed"


needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="changing the user needs root")


@needs_root
def test_other_users_process(spawn) -> None:
    process = spawn(sys.executable, "-c", SLEEP)
    until(asleep(process.pid))
    assert as_other_user(lambda: look_code(process.pid)) == "uid"


@needs_root
def test_own_process_that_may_not_be_dumped(spawn) -> None:
    python = anybodys_python()
    plain = spawn(python, "-c", SLEEP, preexec_fn=become_nobody)
    until(asleep(plain.pid))
    if as_other_user(lambda: look_code(plain.pid)) != "allowed":
        pytest.skip("an ordinary user may not trace its own processes here")
    hidden = spawn(python, "-c", f"import ctypes; ctypes.CDLL(None).prctl(4, 0, 0, 0, 0); {SLEEP}", preexec_fn=become_nobody)
    until(asleep(hidden.pid))
    assert as_other_user(lambda: look_code(hidden.pid)) == "denied"


@pytest.mark.parametrize("scope", [1, 2, 3])
def test_ptrace_scope_is_named(monkeypatch: pytest.MonkeyPatch, scope: int, spawn) -> None:
    process = spawn(sys.executable, "-c", SLEEP)
    monkeypatch.setattr(preflight, "ptrace_scope", lambda: scope)
    monkeypatch.setattr(preflight, "may_trace_anything", lambda: False)
    refused = preflight._not_permitted(process.pid, procfs.status(process.pid), PermissionError(13, "no"))
    assert refused.code == f"ptrace-scope-{scope}"
    assert "tuimon run" in refused.sentence


def test_other_machine_and_other_system(monkeypatch: pytest.MonkeyPatch) -> None:
    names = list(os.uname())
    for place, value, code in ((4, "aarch64", "platform"), (0, "Darwin", "platform"), (2, "4.4.0-1-generic", "old-kernel")):
        given = list(names)
        given[place] = value
        monkeypatch.setattr(os, "uname", lambda given=given: os.uname_result(given))
        with pytest.raises(Refused) as refused:
            preflight.look(os.getpid())
        assert refused.value.code == code
        assert "tuimon run" in refused.value.sentence
