"""A process whose Python has not come up yet: that is seen, it is waited for, and then looked at afresh."""

from __future__ import annotations

import _imp
import ctypes
import os
import signal
import subprocess
import sys
import threading

import pytest

from tuimon.attach import interpreter, preflight, procfs
from tuimon.attach.inject import delivery
from tuimon.attach.inject.injector import Injection
from tuimon.attach.inject.waiting import Wait
from tuimon.attach.refusal import Refused

from .conftest import Start, needs_tracing, until

TRACEME, DETACH = 0, 17  # of ptrace
PYTHONS = [sys.executable, "/usr/bin/python3", *filter(os.path.isfile, os.environ.get("TUIMON_PYTHONS", "").split(":"))]


@needs_tracing
@pytest.mark.parametrize("python", dict.fromkeys(map(os.path.realpath, filter(os.path.exists, PYTHONS))))
def test_an_interpreter_that_is_not_there_yet(python: str) -> None:
    ptrace = ctypes.CDLL(None, use_errno=True).ptrace
    with subprocess.Popen(
        [python, "-S", "-c", "input()"], stdin=subprocess.PIPE, preexec_fn=lambda: ptrace(TRACEME, 0, None, None)
    ) as program:
        try:
            assert os.WSTOPSIG(os.waitpid(program.pid, 0)[1]) == signal.SIGTRAP  # the kernel has just mapped the program
            with procfs.Memory(program.pid) as memory:
                assert not _begun(memory)
                assert ptrace(DETACH, program.pid, None, None) == 0
                until(lambda: _begun(memory))
        finally:
            program.kill()


def _begun(memory: procfs.Memory) -> bool:
    try:
        found = interpreter.find(memory.pid, memory, procfs.mappings(memory.pid))
    except Refused as refusal:
        assert refusal.code == "not-python"  # it is in a library that is not mapped yet
        return False
    return interpreter.has_begun(memory, found.runtime, found.version)


@needs_tracing
def test_what_was_found_too_early_is_found_again(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    program = start("sleeping")
    target = preflight.look(program.pid)
    early, answers = target._replace(lock_ranges=[], mappings=[]), [True, False, False, True]
    monkeypatch.setattr(interpreter, "has_begun", lambda *_: answers.pop(0))
    try:
        work = Injection(early, b"", Wait(program.pid, 60))
        work._let_python_begin()
        assert work.target is early
        work._let_python_begin()
        assert work.target.lock_ranges == target.lock_ranges and work.site.target is work.target and answers == []
        assert work.target._replace(mappings=[]) == target._replace(mappings=[])
    finally:
        target.close()


def test_the_lock_of_imports_is_waited_for() -> None:
    scope: dict[str, object] = {}
    exec(delivery._AND_GO, scope)
    waiting = threading.Thread(target=scope["let_it_start"])  # type: ignore[arg-type]
    _imp.acquire_lock()
    try:
        waiting.start()
        waiting.join(0.05)
        assert waiting.is_alive()
    finally:
        _imp.release_lock()
    waiting.join(60)
    assert not waiting.is_alive()
