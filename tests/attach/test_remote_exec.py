"""PEP 768 spoken by ourselves, and the ladder between it and the injector. Most of it needs a Python 3.14: TUIMON_PYTHONS."""

from __future__ import annotations

import contextlib
import glob
import mmap
import os
import shutil
import signal
import stat
import subprocess
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tuimon.attach import preflight, procfs, tracer
from tuimon.attach.inject import delivery, ladder, remote_exec
from tuimon.attach.inject.injector import Injection
from tuimon.attach.inject.ladder import Climb, steps
from tuimon.attach.inject.remote_exec import ScriptFile
from tuimon.attach.inject.waiting import Wait
from tuimon.attach.refusal import Refused
from tuimon.attach.session import attach

from .conftest import HIT, Start, needs_tracing, until
from .matrix_pythons import Interpreter, specified, split_specifications

pytestmark = needs_tracing
HERE = Path(__file__).resolve().parent
NEW = (3, 14)


@cache
def new_python() -> Interpreter | None:
    """A Python 3.14 to attach to, if there is one."""
    found = [
        *split_specifications(os.environ.get("TUIMON_PYTHONS", "")),
        shutil.which("python3.14"),
        *glob.glob(os.path.expanduser("~/.pyenv/versions/3.14*/bin/python")),
    ]
    pythons = [specified(text) for text in found if text]
    return next((python for python in pythons if python and python.version[:2] == NEW and not python.free_threaded), None)


class NewProgram:
    """A program under Python 3.14."""

    def __init__(self, process: subprocess.Popen[bytes], counters: memoryview, outside: Path, inside: str) -> None:
        self.process, self.pid, self.counters = process, process.pid, counters
        self.outside, self.inside = outside, inside
        """Its directory, which is its TMPDIR too: as seen from here, and by it."""

    @property
    def rounds(self) -> int:
        """How far it has come."""
        return self.counters[0]

    def said(self) -> str:
        """What it wrote to its standard error."""
        return (self.outside / "errors").read_text()

    def files(self) -> list[str]:
        """Names of ours in its directory."""
        return [name for name in os.listdir(self.outside) if name.startswith(".tuimon")]


StartNew = Callable[..., NewProgram]


@pytest.fixture
def start_new() -> Iterator[StartNew]:
    """start_new(mode, program=.., arguments=.., options=.., environment=..) gives a NewProgram."""
    python = new_python()
    if python is None:
        pytest.skip("no Python 3.14 here (TUIMON_PYTHONS can name one)")
    with contextlib.ExitStack() as stack:

        def begin(
            mode: str,
            program: str = "target_program.py",
            arguments: Sequence[str] = (),
            options: Sequence[str] = (),
            environment: dict[str, str] | None = None,
        ) -> NewProgram:
            outside, inside = stack.enter_context(python.folder())
            shutil.copy(HERE / program, outside / "program.py")
            (outside / "counters").write_bytes(bytes(4096))
            with open(outside / "errors", "wb") as errors:
                process = subprocess.Popen(
                    [python.executable, *options, inside + "/program.py", mode, inside + "/counters", *arguments],
                    stderr=errors,
                    env={**os.environ, "TMPDIR": inside, **(environment or {})},
                    preexec_fn=python.enter(),
                )
            stack.callback(process.wait)
            stack.callback(process.kill)
            with open(outside / "counters", "r+b") as handle:
                counters = memoryview(mmap.mmap(handle.fileno(), 4096)).cast("Q")
            until(lambda: counters[0] > 0 or process.poll() is not None)
            assert process.poll() is None, (outside / "errors").read_text()
            return NewProgram(process, counters, outside, inside)

        yield begin


class Told:
    """What a climb answers."""

    def __init__(self) -> None:
        self.messages: list[dict[str, Any]] = []

    def get(self, kind: str) -> Any:
        """The last of that kind, or None."""
        return next((message[kind] for message in reversed(self.messages) if kind in message), None)


def climb(
    program: NewProgram,
    order: tuple[str, ...] = ladder.ORDER,
    seconds: float = 20.0,
    form: str | None = None,
    text: bytes | None = None,
    connected: Callable[[], bool] | None = None,
) -> Told:
    """Run HIT in a program by this very process; "connected" means that it has been run."""
    told = Told()
    before = program.counters[2]
    directory = os.open(program.outside, os.O_RDONLY | os.O_DIRECTORY)

    def script_file() -> ScriptFile:
        started = b"__import__('_thread').start_new_thread(exec, (%r, {}))\n" % HIT.decode()
        return ScriptFile(directory, program.inside, ".tuimon-test.py", started if text is None else text)

    try:
        Climb(
            program.pid,
            procfs.start_ticks(program.pid),
            HIT,
            script_file,
            Wait(program.pid, seconds),
            told.messages.append,
            connected or (lambda: program.counters[2] > before),
            form,
            order,
        ).run()
    finally:
        os.close(directory)
    return told


# ------------------------------------------------------------------------------------------------- without a Python 3.14


def test_the_layout_is_that_of_the_header() -> None:
    # 3.14's Include/internal/pycore_debug_offsets.h: 95 words
    assert remote_exec._LAYOUT.size == 8 * 95
    at, starts = 0, {}
    for name, words in remote_exec._SECTIONS:
        starts[name], at = at, at + words
    assert starts["interpreter_state"] == remote_exec._INTERPRETER
    assert starts["thread_state"] == remote_exec._THREAD
    assert starts["debugger_support"] == remote_exec._SUPPORT
    assert starts["runtime_state"] + 2 == remote_exec._INTERPRETERS_HEAD


def test_which_ways_there_are() -> None:
    assert steps(1, (3, 13), None) == ["own"]
    assert steps(1, NEW, None) == ["own", "remote_exec"]
    assert steps(1, NEW, "remote_exec") == ["remote_exec"]
    assert steps(1, NEW, "pending") == steps(1, (3, 10), "thread") == ["own"]
    with pytest.raises(ValueError, match="no form"):
        steps(1, NEW, "gdb")


def test_older_python_cannot_be_asked(start: Start, dummy: dict[str, str]) -> None:
    program = start("busy")
    with pytest.raises(Refused) as refused:
        attach(program.pid, {}, sources=dummy, form="remote_exec")
    version = "{}.{}".format(*preflight_version(program.pid))
    if version == "3.14":
        pytest.skip("this Python can be asked")
    assert refused.value.code == "no-remote-exec"
    assert refused.value.sentence == (
        f"process {program.pid} runs Python {version}; only 3.14 and newer can be asked to run a script"
    )
    program.gets_on()


def preflight_version(pid: int) -> tuple[int, int]:
    """The Python in a process."""
    target = preflight.look(pid)
    target.close()
    return target.python


def test_script_starts_a_thread_and_does_nothing_else(tmp_path: Path) -> None:
    own = str(tmp_path / "it's mine.py")
    Path(own).touch()
    text = delivery.script_file("ran = []\ndef boot(*a): import __main__; __main__.tuimon_test = a\n", "/s", "t", own)
    code = compile(text, "<string>", "exec")
    assert set(code.co_names) <= {"__import__", "start_new_thread", "exec", "RuntimeError", "MemoryError"}
    import __main__

    try:
        exec(code, {})
        until(lambda: getattr(__main__, "tuimon_test", None) == ("/s", "t"))
        assert not os.path.exists(own)
    finally:
        del __main__.tuimon_test  # type: ignore[attr-defined]


@pytest.mark.parametrize("error", [RuntimeError, MemoryError])
def test_thread_that_cannot_be_had_is_no_message_of_the_jobs(monkeypatch: pytest.MonkeyPatch, error: type) -> None:
    import _thread

    def refuse(*_: object) -> int:
        raise error

    monkeypatch.setattr(_thread, "start_new_thread", refuse)
    exec(delivery.script_file("", "/s", "t", "/o"), {})


def test_script_file_is_new_private_and_follows_no_link(tmp_path: Path) -> None:
    directory = os.open(tmp_path, os.O_RDONLY)
    script = ScriptFile(directory, "/in/side/", "a.py", b"pass\n")
    facts = os.stat(tmp_path / "a.py")
    assert stat.S_IMODE(facts.st_mode) == 0o600 and facts.st_uid == os.geteuid()
    assert script.path == "/in/side/a.py"
    with pytest.raises(FileExistsError):
        ScriptFile(directory, "/", "a.py", b"")
    script.remove()
    script.remove()
    (tmp_path / "b.py").symlink_to(tmp_path / "c.py")
    with pytest.raises(OSError, match="exists"):
        ScriptFile(directory, "/", "b.py", b"")
    assert not (tmp_path / "c.py").exists()
    os.close(directory)


# --------------------------------------------------------------------------------------------------- on a Python 3.14


@pytest.mark.parametrize("mode", ["busy", "idle_threads", "forking", "busy_threads"])
def test_asked_to_run_a_script_it_does(start_new: StartNew, dummy: dict[str, str], cycles: int, mode: str) -> None:
    program = start_new(mode)
    threads = len(procfs.thread_ids(program.pid))
    for _ in range(max(3, cycles // 4)):
        session = attach(program.pid, {}, sources=dummy, form="remote_exec")
        assert session.how == session.mechanism == "remote_exec"
        assert session.report.stops == []  # nobody was stopped
        goodbye = session.detach()
        assert goodbye is not None and goodbye["left"] == []
        assert program.files() == []
    until(lambda: len(procfs.thread_ids(program.pid)) <= threads)
    assert program.counters[1] == 0
    assert "tuimon" not in program.said()


@pytest.mark.parametrize(("mode", "how"), [("busy", "pending"), ("idle_threads", "pending"), ("sleeping", "thread")])
def test_injector_comes_first(start_new: StartNew, dummy: dict[str, str], mode: str, how: str) -> None:
    program = start_new(mode)
    session = attach(program.pid, {}, sources=dummy)
    assert (session.how, session.mechanism) == ("injected", how)
    assert session.detach() is not None
    assert program.said() == ""


def test_injector_that_is_refused_gives_way_to_pep_768(start_new: StartNew, monkeypatch: pytest.MonkeyPatch) -> None:
    program = start_new("busy")

    def no_memory(self: Injection, tell: object) -> None:
        raise Refused("no-memory", "as under SELinux")

    monkeypatch.setattr(Injection, "run", no_memory)
    told = climb(program)
    assert told.get("done")["mechanism"] == "remote_exec"
    assert told.get("refused") is None
    assert program.counters[2] == 1


def test_pep_768_first_gives_way_to_the_injector_where_the_main_thread_sleeps(start_new: StartNew) -> None:
    program = start_new("sleeping")
    told = climb(program, order=("remote_exec", "own"))
    assert told.get("done")["mechanism"] == "thread"
    assert program.counters[2] == 1
    assert program.files() == []
    assert pending(program.pid) is False


def pending(pid: int) -> bool:
    """Whether a request stands in the target."""
    target = preflight.look(pid)
    try:
        support = remote_exec.locate(target.memory, target.runtime, target.python, target.pid_inside)
        assert support is not None
        return target.memory.u32(support.pending) != 0
    finally:
        target.close()


def test_request_that_nobody_waits_for_is_taken_back(start_new: StartNew, dummy: dict[str, str]) -> None:
    program = start_new("sleeping", program="blocking_program.py", arguments=["4"])
    program.counters[6] = 1
    until(lambda: program.counters[5])
    with pytest.raises(Refused) as refused:
        attach(program.pid, {}, sources=dummy, form="remote_exec", patience=0.3)
    assert refused.value.code == "main-busy"
    assert pending(program.pid) is False
    until(lambda: program.files() == [])
    until(lambda: program.rounds > 3)
    assert program.said() == ""


@pytest.mark.parametrize(
    ("options", "environment"),
    [([], {"PYTHON_DISABLE_REMOTE_DEBUG": "1"}), (["-X", "disable-remote-debug"], {})],
)
def test_off_switch_is_respected_by_every_way(
    start_new: StartNew, dummy: dict[str, str], options: list[str], environment: dict[str, str]
) -> None:
    program = start_new("busy", options=options, environment=environment)
    for form in (None, "remote_exec", "pending", "thread"):
        with pytest.raises(Refused) as refused:
            attach(program.pid, {}, sources=dummy, form=form)
        assert refused.value.code == "remote-debug-off"
        assert f"the user of process {program.pid} has switched debugging from outside off" in refused.value.sentence
        assert "tuimon run" in refused.value.sentence
    assert program.files() == []


FORBID = """
import sys
def forbid(event, args):
    if event.startswith("cpython.remote_debugger"):
        raise RuntimeError("forbidden by the job")
sys.addaudithook(forbid)
"""


def test_audit_hook_that_forbids_it_is_named(start_new: StartNew, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote_exec, "HELLO_S", 0.5)
    program = start_new("busy")
    from tuimon.attach.inject import injector

    injector.inject(program.pid, procfs.start_ticks(program.pid), FORBID.encode(), 10, lambda _: None)
    told = climb(program, form="remote_exec")
    assert told.get("refused")[0] == "script"
    assert "audit hook" in told.get("refused")[1]
    assert program.files() == []
    before = program.rounds
    until(lambda: program.rounds > before)


def test_request_of_somebody_else_is_left_alone(start_new: StartNew) -> None:
    program = start_new("sleeping")
    target = preflight.look(program.pid)
    try:
        support = remote_exec.locate(target.memory, target.runtime, target.python, target.pid_inside)
        assert support is not None
        target.memory.write(support.path, b"/somebody/elses\0")
        target.memory.write(support.pending, b"\1\0\0\0")
        told = climb(program, form="remote_exec")
        assert told.get("refused")[0] == "busy"
        assert target.memory.string(support.path, 64) == b"/somebody/elses"
        assert pending(program.pid)
    finally:
        target.close()


def test_tuimon_that_is_killed_takes_its_request_back(start_new: StartNew) -> None:
    program = start_new("sleeping", program="blocking_program.py", arguments=["5"])
    program.counters[6] = 1
    until(lambda: program.counters[5])
    text = (
        f"import sys; sys.path.insert(0, {str(tracer.ROOT)!r})\n"
        "from tuimon.attach.session import attach\n"
        f"attach({program.pid}, {{}}, patience=None, form='remote_exec', waiting=lambda waiting: print('waits', flush=True))\n"
    )
    import sys

    with subprocess.Popen([sys.executable, "-c", text], stdout=subprocess.PIPE) as tuimon:
        assert tuimon.stdout is not None
        assert tuimon.stdout.readline() == b"waits\n"
        tuimon.send_signal(signal.SIGKILL)
    until(lambda: not pending(program.pid))
    until(lambda: [name for name in program.files() if name.endswith(".py")] == [])
    until(lambda: program.rounds > 3)
    assert program.said() == ""
