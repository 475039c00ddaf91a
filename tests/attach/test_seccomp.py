"""Seccomp: the interpreter agrees with the kernel, and a filter never costs the target its life."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

import pytest

from tests.attach.conftest import anybodys_python, become_nobody, needs_tracing, until
from tests.attach.surroundings import ALLOW, ERRNO_EPERM, KILL, SANDBOX, TRAP, Begin, job
from tuimon.attach import procfs
from tuimon.attach.inject import bpf, seccomp
from tuimon.attach.refusal import Refused
from tuimon.attach.session import attach

__all__ = ["job"]
X86_64 = 0xC000003E
pytestmark = [needs_tracing, pytest.mark.skipif(os.uname().machine != "x86_64", reason="the numbers are those of x86_64")]
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="reading another process's filter needs root")


def assemble(*instructions: tuple[int, int, int, int]) -> bytes:
    """The bytes of a filter."""
    return b"".join(bpf.INSTRUCTION.pack(*one) for one in instructions)


FORBIDS_39 = assemble((0x20, 0, 0, 0), (0x15, 0, 1, 39), (0x06, 0, 0, ERRNO_EPERM), (0x06, 0, 0, ALLOW))


def test_a_filter_says_what_it_says() -> None:
    forbidden = bpf.judge([FORBIDS_39], 39, X86_64)
    assert (forbidden.action, forbidden.errno, forbidden.kills, forbidden.allows) == (bpf.ERRNO, 1, False, False)
    assert bpf.judge([FORBIDS_39], 40, X86_64).allows
    assert bpf.judge([], 39, X86_64).allows


@pytest.mark.parametrize(
    ("actions", "strictest"),
    [
        ([ALLOW, ERRNO_EPERM], bpf.ERRNO),
        ([ERRNO_EPERM, TRAP], bpf.TRAP),
        ([TRAP, bpf.KILL_THREAD], bpf.KILL_THREAD),
        ([bpf.KILL_THREAD, KILL], bpf.KILL_PROCESS),
        ([ALLOW, bpf.LOG], bpf.LOG),
        ([bpf.TRACE, bpf.USER_NOTIF], bpf.USER_NOTIF),
    ],
)
def test_the_strictest_of_several_wins(actions: list[int], strictest: int) -> None:
    filters = [assemble((0x06, 0, 0, action)) for action in actions]
    assert bpf.judge(filters, 0, X86_64).action == strictest == bpf.judge(filters[::-1], 0, X86_64).action


def test_every_operation() -> None:
    def value(*instructions: tuple[int, int, int, int]) -> int:
        return int(bpf.judge([assemble(*instructions, (0x16, 0, 0, 0))], 7, X86_64, [5, 1 << 40]))

    number, seven = (0x20, 0, 0, 0), (0x01, 0, 0, 7)
    assert value(number) == 7
    assert value((0x20, 0, 0, 4)) == X86_64
    assert value((0x20, 0, 0, 28)) == 1 << 8  # the upper half of the second argument
    assert value((0x80, 0, 0, 0)) == 64
    for operation, result in ((0x0C, 14), (0x1C, 0), (0x2C, 49), (0x3C, 1), (0x4C, 7), (0x5C, 7), (0x6C, 896), (0x9C, 0)):
        assert value(number, seven, (operation, 0, 0, 0)) == result
    assert value(number, (0x84, 0, 0, 0)) == (1 << 32) - 7
    assert value(number, (0x02, 0, 0, 3), (0x00, 0, 0, 1), (0x60, 0, 0, 3)) == 7
    assert value(seven, (0x87, 0, 0, 0)) == 7
    assert value(number, (0x34, 0, 0, 0), (0x00, 0, 0, ALLOW)) == bpf.KILL_THREAD  # a division by zero ends it
    with pytest.raises(bpf.Unknown):
        value((0x28, 0, 0, 0))


def _asked(number: int, rules: str) -> int:
    """How a child ends that makes a call with no arguments under a filter: 0 it came back, -31 SIGSYS."""
    text = f"{SANDBOX}\nimport ctypes\ncall = ctypes.CDLL(None).syscall\nsandbox({ALLOW}, {rules})\ncall({number}, 0, 2, 0)\n"
    return subprocess.run([sys.executable, "-c", text], check=False, stderr=subprocess.DEVNULL).returncode


@pytest.mark.parametrize("action", [KILL, TRAP, ERRNO_EPERM, ALLOW])
@pytest.mark.parametrize("mask", [2, 4])
def test_the_kernel_is_of_the_same_opinion(action: int, mask: int) -> None:
    filters = [
        assemble(
            (0x20, 0, 0, 0), (0x15, 0, 4, 102), (0x20, 0, 0, 24), (0x45, 0, 1, mask), (0x06, 0, 0, action),
            (0x20, 0, 0, 0), (0x06, 0, 0, ALLOW),
        )
    ]  # fmt: skip
    ours = bpf.judge(filters, 102, X86_64, [0, 2, 0])
    assert (_asked(102, f"{{(102, 1, {mask}): {action}}}") < 0) == ours.kills


# ------------------------------------------------------------------------------------------------------- real targets

MMAP, MPROTECT, CLONE3, CLONE, SOCKET, CONNECT = 9, 10, 435, 56, 41, 42
GETSOCKNAME, EPOLL_CREATE1, RECVMSG, FCNTL, MOUNT = 51, 291, 47, 72, 165


def _sandboxed(job: Begin, rules: str, **more: object):
    return job(f"{SANDBOX}\nsandbox({ALLOW}, {rules})", **more)


@needs_root
@pytest.mark.parametrize(
    ("rules", "named"),
    [
        (f"{{({MPROTECT}, 2, 4): {KILL}}}", "mprotect"),
        (f"{{({MPROTECT}, 2, 4): {TRAP}}}", "mprotect"),
        (f"{{({MPROTECT}, 2, 4): {ERRNO_EPERM}}}", "mprotect"),
        (f"{{{SOCKET}: {KILL}}}", "socket"),
        (f"{{{CONNECT}: {ERRNO_EPERM}}}", "connect"),
        (f"{{{CLONE3}: {KILL}}}", "clone3"),
        (f"{{{CLONE3}: {ERRNO_EPERM}, {CLONE}: {ERRNO_EPERM}}}", "clone"),
        (f"{{{GETSOCKNAME}: {KILL}, {EPOLL_CREATE1}: {KILL}}}", "getsockname"),
        (f"{{({FCNTL}, 1, 0x400): {KILL}}}", "fcntl"),
    ],
)
def test_a_filter_that_forbids_is_named_and_the_target_lives(job: Begin, rules: str, named: str) -> None:
    target = _sandboxed(job, rules)
    with pytest.raises(Refused) as refused:
        attach(target.pid, {})
    assert refused.value.code == "seccomp"
    assert f" {named}, which" in refused.value.sentence
    target.gets_on()


@needs_root
def test_a_filter_that_lets_us_pass_does_not_keep_us_out(job: Begin) -> None:
    # as the containers' default does: an error for what is forbidden, ENOSYS for clone3
    target = _sandboxed(job, f"{{165: {ERRNO_EPERM}, 101: {ERRNO_EPERM}, {CLONE3}: {0x00050026}}}")
    session = attach(target.pid, {})
    goodbye = session.detach()
    assert goodbye is not None and goodbye["left"] == []
    target.gets_on()


@needs_root
def test_a_timed_wait_that_may_not_be_gone_on_with_is_interrupted_not_killed(job: Begin) -> None:
    # the stop itself is a danger here: after it the kernel makes restart_syscall for the thread
    pause = "import select; select.poll().poll(50)"
    target = _sandboxed(job, f"{{219: {KILL}}}", pause=pause)
    for _ in range(5):
        with pytest.raises(Refused) as refused:
            attach(target.pid, {})
        assert "restart_syscall" in refused.value.sentence
        target.gets_on()


@needs_root
def test_strict_mode(job: Begin) -> None:
    text = "import ctypes, os\nlibc = ctypes.CDLL(None)\nos.write(1, b'x')\nlibc.prctl(22, 1, 0, 0, 0)\nwhile True: pass\n"
    with subprocess.Popen([sys.executable, "-c", text], stdout=subprocess.PIPE) as process:
        try:
            until(lambda: seccomp.state(procfs.status(process.pid)).mode == 1 or process.poll() is not None)
            with pytest.raises(Refused) as refused:
                attach(process.pid, {})
            assert refused.value.code == "seccomp-strict"
            assert process.poll() is None
        finally:
            process.kill()


# --------------------------------------------------------------------------------------- where it may not be read


def _unreadable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seccomp, "_may_read", lambda: False)


def test_the_jobs_own_filter_is_not_guessed_at(job: Begin, monkeypatch: pytest.MonkeyPatch) -> None:
    _unreadable(monkeypatch)
    target = _sandboxed(job, f"{{165: {ERRNO_EPERM}}}")
    with pytest.raises(Refused) as refused:
        attach(target.pid, {})
    assert refused.value.code == "seccomp" and "root" in refused.value.sentence
    target.gets_on()


def test_a_filter_from_before_the_start_is_a_containers(job: Begin) -> None:
    # another program puts it on and starts the job
    outer = f"{SANDBOX}\nsandbox({ALLOW}, {{165: {ERRNO_EPERM}}})\nimport os, sys\nos.execv(sys.argv[1], sys.argv[1:])"
    shell = ["/bin/sh", "-c", '"$@"; true', "sh"]
    target = job(through=[sys.executable, "-c", outer, *shell])
    facts = procfs.status(target.pid)
    assert seccomp.state(facts).filters == 1
    assert seccomp.given_at_start(target.pid, facts)
    own = _sandboxed(job, f"{{165: {ERRNO_EPERM}}}")
    assert not seccomp.given_at_start(own.pid, procfs.status(own.pid))


needs_pid_namespaces = pytest.mark.skipif(
    subprocess.run(["unshare", "-p", "-f", "true"], check=False, stderr=subprocess.DEVNULL).returncode != 0
    if shutil.which("unshare")
    else True,
    reason="this machine does not let us make pid namespaces",
)
AS_PID_1 = ["unshare", "-p", "-f", "--mount-proc", "--kill-child"]


@needs_root
@needs_pid_namespaces
def test_what_the_first_process_of_a_container_put_on_itself_is_its_own(job: Begin, monkeypatch: pytest.MonkeyPatch) -> None:
    _unreadable(monkeypatch)
    target = _sandboxed(job, f"{{{SOCKET}: {KILL}}}", through=AS_PID_1)
    facts = procfs.status(target.pid)
    assert procfs.pid_inside(facts, target.pid) == 1 and seccomp.state(facts).filters == 1
    with pytest.raises(Refused) as refused:
        attach(target.pid, {})
    assert refused.value.code == "seccomp" and "root" in refused.value.sentence
    target.gets_on()


@needs_root
@needs_pid_namespaces
def test_what_a_runtime_gave_the_first_process_of_a_container_is_not(job: Begin) -> None:
    # as runc and crun do: a filter without no_new_privs, no CAP_SYS_ADMIN to be had, then the job
    unchained = SANDBOX.replace("libc.prctl(38, 1, 0, 0, 0)", "False")
    outer = f"""{unchained}
import ctypes, os, sys
sandbox({ALLOW}, {{{MOUNT}: {ERRNO_EPERM}}})
if {{drops}}:
    ctypes.CDLL(None).prctl(24, {seccomp.CAP_SYS_ADMIN}, 0, 0, 0)
os.execv(sys.argv[1], sys.argv[1:])
"""
    for drops in (True, False):
        target = job(through=[*AS_PID_1, sys.executable, "-c", outer.replace("{drops}", str(drops))])
        facts = procfs.status(target.pid)
        assert procfs.pid_inside(facts, target.pid) == 1 and seccomp.state(facts).filters == 1
        assert seccomp.given_at_start(target.pid, facts) == drops  # who keeps it may have done it without help


@needs_root
@pytest.mark.parametrize(
    ("rules", "code"),
    [
        (f"{{{MOUNT}: {ERRNO_EPERM}}}", ""),
        (f"{{({MPROTECT}, 2, 4): {KILL}}}", "seccomp"),
        (f"{{{RECVMSG}: {KILL}}}", "seccomp"),
    ],
)
def test_under_the_same_filter_a_process_of_ours_tries_it(rules: str, code: str) -> None:
    """As in one container: nobody may read the filter, and both are under it."""
    text = f"""
import os, subprocess, sys
sys.path.insert(0, {os.getcwd()!r})
{SANDBOX}
sandbox({ALLOW}, {rules})
job = subprocess.Popen([sys.executable, "-c", "import time\\nprint('up', flush=True)\\nwhile True: time.sleep(0.01)"],
                       stdout=subprocess.PIPE)
job.stdout.readline()
from tuimon.attach.session import attach, Refused
try:
    session = attach(job.pid, {{}})
    print("attached", session.detach()["left"])
except Refused as refused:
    print(refused.code, refused.sentence)
print(job.poll())
job.kill()
"""
    ran = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=60, check=False)
    lines = ran.stdout.splitlines()
    assert lines[-1:] == ["None"], (ran.stdout, ran.stderr)
    assert lines[0].startswith("seccomp " if code else "attached []"), lines


@needs_root
def test_nobody_attaches_to_nobodys_process_with_a_filter(job: Begin) -> None:
    python = anybodys_python()
    target = _sandboxed(job, f"{{165: {ERRNO_EPERM}}}", python=python, preexec_fn=become_nobody)
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            become_nobody()
            seccomp.look(target.pid, procfs.status(target.pid))
            os.write(writing, b"allowed")
        except Refused as refused:
            os.write(writing, refused.code.encode())
        finally:
            os._exit(0)
    os.close(writing)
    os.waitpid(child, 0)
    with os.fdopen(reading) as file:
        assert file.read() == "seccomp"
    target.gets_on()
