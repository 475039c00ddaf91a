"""Injecting into programs in many states: it works, exactly once, and the program does not notice."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from tuimon.attach import procfs
from tuimon.attach.inject import injector
from tuimon.attach.refusal import Refused

from .conftest import HIT, Start, needs_tracing, until

pytestmark = needs_tracing

GETS_ON = ["busy", "idle_threads", "busy_threads", "epoll", "raw_epoll", "forking", "memory", "floats", "alarms"]
ASLEEP = ["sleeping", "lock"]
ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("mode", GETS_ON + ASLEEP)
def test_runs_once_each_time_and_the_program_gets_on(start: Start, cycles: int, mode: str) -> None:
    program = start(mode)
    maps = len(procfs.mappings(program.pid))
    for done in range(1, cycles + 1):
        outcome = program.inject()
        until(lambda done=done: program.hits == done)
        assert outcome.left == []
        assert outcome.mechanism == ("thread" if mode in ASLEEP else outcome.mechanism)
    assert program.faults == 0
    if mode in GETS_ON:
        program.gets_on()
    # memory for the C library's own arenas, nothing of ours
    assert not any(entry.executable and not entry.path for entry in procfs.mappings(program.pid))
    assert len(procfs.mappings(program.pid)) <= maps + 16
    until(lambda: len(procfs.thread_ids(program.pid)) == len(set(procfs.thread_ids(program.pid))))


def test_main_thread_that_gets_on_is_asked_through_a_pending_call(start: Start) -> None:
    assert start("busy").inject().mechanism == "pending"


def test_wait_in_c_code_does_not_see_the_stop(start: Start, cycles: int) -> None:
    program = start("raw_epoll")
    for _ in range(cycles):
        program.inject()
    assert program.faults == 0  # an EINTR each


def test_gil_held_in_native_code_is_waited_for(start: Start) -> None:
    program = start("native")
    program.inject(seconds=60)
    assert program.hits == 1


def test_gil_held_too_long_is_said_and_cancelled(start: Start) -> None:
    program = start("native")
    with pytest.raises(Refused) as refused:
        program.inject(seconds=0.01)
    assert refused.value.code in ("main-busy", "gil-held")
    program.gets_on()
    program.gets_on()
    assert program.hits == 0
    program.inject(seconds=60)
    assert program.hits == 1


@pytest.mark.parametrize("mode", ["idle_threads", "busy", "epoll", "forking"])
def test_both_forms_at_once_start_one_script(start: Start, cycles: int, mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(injector, "KICK_S", 0.0)
    monkeypatch.setattr(injector, "KICKS", 8)
    monkeypatch.setattr(injector, "FALL_BACK_S", 0.0)
    program = start(mode)
    for done in range(1, cycles + 1):
        program.inject()
        assert program.hits == done
    program.gets_on()
    assert program.hits == cycles
    assert program.faults == 0


def test_script_that_raises_leaves_no_trace(start: Start) -> None:
    program = start("busy")
    with pytest.raises(Refused) as refused:
        program.inject(b"raise RuntimeError('ours')\n")
    assert refused.value.code == "bootstrap"
    with pytest.raises(Refused):
        program.inject(b"this is no Python\n")
    program.gets_on()
    assert program.errors() == ""


def test_the_programs_own_namespace_is_left_alone(start: Start) -> None:
    program = start("busy")
    program.inject(b"left = 1\ndef also_left(): pass\n")
    program.inject(b"import __main__\n__main__.counters[4] = len([n for n in vars(__main__) if 'left' in n])+1\n")
    assert program.counters[4] == 1


@pytest.mark.parametrize("options", [["-X", "dev"], ["-X", "faulthandler"]])
def test_development_mode_does_not_mind(start: Start, options: list[str]) -> None:
    # its allocators abort when a thread state is not the one that the thread is known by
    for mode in ("busy", "sleeping"):
        program = start(mode, options=options)
        for done in range(1, 4):
            program.inject()
            assert program.hits == done


@pytest.mark.parametrize("mode", ["busy", "idle_threads", "sleeping", "forking"])
def test_tracer_can_be_killed_at_any_moment(start: Start, cycles: int, mode: str) -> None:
    program = start(mode)
    loop = (
        f"import sys; sys.path.insert(0, {str(ROOT)!r})\n"
        "from tuimon.attach import injector, procfs\n"
        "print('go', flush=True)\n"
        "while True:\n"
        "    try: injector.inject(PID, procfs.start_ticks(PID), b'pass', 5, lambda _: None)\n"
        "    except injector.Refused: pass\n"
    ).replace("PID", str(program.pid))
    chance = random.Random(mode)
    for _ in range(3 * cycles // 2):
        tracer = subprocess.Popen([sys.executable, "-c", loop], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        assert tracer.stdout is not None
        tracer.stdout.readline()
        threading.Event().wait(chance.uniform(0.0, 0.03 if mode != "sleeping" else 0.12))
        tracer.kill()
        tracer.wait()
        tracer.stdout.close()
        assert program.process.poll() is None, program.errors()
    program.inject(seconds=20)  # whatever the killed ones have left does not stand in the way
    assert program.hits == 1
    assert program.faults == 0
    if mode != "sleeping":
        program.gets_on()


@pytest.mark.parametrize(("mode", "code"), [("no_memory", "no-memory"), ("no_thread", "no-new-thread")])
def test_program_at_its_limits_is_refused_and_gets_on(start: Start, mode: str, code: str) -> None:
    program = start(mode)
    maps = len(procfs.mappings(program.pid))
    for _ in range(2):
        with pytest.raises(Refused) as refused:
            program.inject()
        assert refused.value.code == code
    program.gets_on()
    assert program.hits == 0
    assert len(procfs.mappings(program.pid)) <= maps + 2
    assert not any(entry.executable and not entry.path for entry in procfs.mappings(program.pid))


def test_signals_of_the_program_are_not_lost(start: Start, cycles: int) -> None:
    program = start("alarms")
    before = program.counters[3]
    for _ in range(cycles):
        program.inject()
    until(lambda: program.counters[3] > before)
    program.gets_on()


def test_program_that_ends_meanwhile_is_a_refusal(start: Start) -> None:
    for delay in (0.0, 0.002, 0.005, 0.01, 0.02):
        program = start("busy")
        killer = threading.Timer(delay, os.kill, (program.pid, signal.SIGKILL))
        killer.start()
        deadline = time.monotonic() + 30
        try:
            for _ in range(200):
                program.inject(HIT, seconds=60)
        except OSError:
            pass  # the test's own look at /proc came too late: no such file, or no such process any more
        except Refused as refusal:
            assert refusal.code in ("dead", "zombie", "denied", "no-thread", "busy", "main-busy", "not-python"), (
                refusal.sentence
            )
        killer.join()
        assert time.monotonic() < deadline, "it was waited for a program that was no more"


def other_pythons() -> list[str]:
    """Interpreters of other versions that this machine happens to have."""
    import glob

    wanted = os.environ.get("TUIMON_PYTHONS", "")
    found = (
        wanted.split(os.pathsep) if wanted else sorted(glob.glob(os.path.expanduser("~/.pyenv/versions/3.1[0-4].*/bin/python")))
    )
    own = os.path.realpath(sys.executable)
    return [path for path in found if path and os.path.realpath(path) != own]


@pytest.mark.parametrize("python", other_pythons() or [pytest.param("", marks=pytest.mark.skip(reason="no other Python here"))])
@pytest.mark.parametrize("mode", ["busy", "sleeping", "forking"])
def test_other_versions(start: Start, cycles: int, mode: str, python: str) -> None:
    program = start(mode, python=python)
    for done in range(1, cycles + 1):
        assert program.inject().left == []
        assert program.hits == done
    assert program.faults == 0


@pytest.mark.parametrize("python", other_pythons() or [pytest.param("", marks=pytest.mark.skip(reason="no other Python here"))])
def test_development_mode_of_other_versions(start: Start, python: str) -> None:
    for mode in ("busy", "sleeping"):
        program = start(mode, python=python, options=["-X", "dev"])
        for done in range(1, 4):
            program.inject()
            assert program.hits == done


def keep_attaching(pid: int, script: bytes) -> int:
    """Inject until the process is gone; gives how often it worked."""
    worked = 0
    while True:
        try:
            injector.inject(pid, procfs.start_ticks(pid), script, 5, lambda _mechanism: None)
            worked += 1
        except (Refused, OSError):  # OSError: the test's own look at /proc, in the middle of the end
            if procfs.has_ended(pid):
                return worked


@pytest.mark.parametrize("python", [sys.executable, *other_pythons()])
def test_program_that_ends_by_itself_ends_as_it_would_have(cycles: int, python: str) -> None:
    # under a shell, so that the tracer is not the parent who is told of the end
    body = "import os, time\nprint(os.getpid(), flush=True)\nuntil = time.time() + {}\nwhile time.time() < until: pass\n"
    chance, worked = random.Random(python), 0
    for turn in range(cycles):
        with subprocess.Popen(
            ["sh", "-c", '"$@"; echo "status $?" >&2', "sh", python, "-c", body.format(chance.uniform(0, 0.08))],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        ) as shell:
            assert shell.stdout is not None and shell.stderr is not None
            slow = b"import time\ntime.sleep(0.003)\n" if turn % 2 else b"pass\n"  # in the middle of it when the end comes
            worked += keep_attaching(int(shell.stdout.readline()), slow)
            assert shell.stderr.read() == b"status 0\n"
    assert worked


@pytest.mark.parametrize("python", [sys.executable, *other_pythons()])
def test_program_that_is_just_starting(cycles: int, python: str) -> None:
    for turn in range(0, 40, max(2, 80 // cycles)):
        with subprocess.Popen([python, "-c", "import time; time.sleep(600)"], stderr=subprocess.PIPE) as process:
            try:
                threading.Event().wait(turn * 0.002)
                until(lambda process=process: attached(process.pid))
                assert process.poll() is None
            finally:
                process.kill()
            assert process.stderr is not None and process.stderr.read() == b""


def attached(pid: int) -> bool:
    """Whether injecting works; a program that is no Python yet, or not up yet, is refused by name."""
    try:
        injector.inject(pid, procfs.start_ticks(pid), b"pass", 5, lambda _mechanism: None)
    except Refused as refusal:
        assert refusal.code in ("not-python", "starting", "no-symbols", "dead", "no-cave", "denied"), refusal.sentence
        return False
    return True
