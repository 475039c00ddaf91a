"""`tuimon doctor`: of the machine, and of real processes."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.attach.conftest import needs_tracing
from tuimon.commands import doctor
from tuimon.commands.options import CANNOT_ATTACH, DONE, FAILED, Options
from tuimon.doctor import Check, attached, gpu, machine, process, terminal
from tuimon.doctor.checks import TooSlow, within
from tuimon.draw.text import cells


@pytest.fixture
def program() -> Iterator[subprocess.Popen[bytes]]:
    """A Python program that waits."""
    script = "import time; print(flush=True); time.sleep(600)"
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE) as running:
        assert running.stdout is not None
        running.stdout.readline()
        yield running
        running.kill()


def named(checks: list[Check], name: str) -> Check:
    return next(check for check in checks if check.name == name)


@needs_tracing
def test_process_that_can_be_attached_to(program: subprocess.Popen[bytes], capsys: pytest.CaptureFixture[str]) -> None:
    assert doctor.run(program.pid, Options(format="json")) == DONE
    found = json.loads(capsys.readouterr().out)
    assert (found["schema"], found["pid"], found["status"]) == ("tuimon.doctor/1", program.pid, 0)
    checks = {check["name"]: check for check in found["checks"]}
    assert set(checks["attach"]) == {"part", "name", "state", "what", "next_step"}
    assert checks["attach"]["next_step"] == f"tuimon attach {program.pid}"
    assert checks["Python"]["what"].startswith("{}.{}".format(*sys.version_info))
    assert "not loaded" in checks["torch"]["what"]
    assert "sleep" in checks["main thread"]["what"]
    assert not [check for check in found["checks"] if check["state"] == "problem"]


@needs_tracing
def test_stopped_process(program: subprocess.Popen[bytes], capsys: pytest.CaptureFixture[str]) -> None:
    os.kill(program.pid, signal.SIGSTOP)
    os.waitid(os.P_PID, program.pid, os.WSTOPPED | os.WNOWAIT)
    assert doctor.run(program.pid, Options()) == CANNOT_ATTACH
    text = capsys.readouterr().out
    assert f"kill -CONT {program.pid}" in text and "[stopped]" in text
    assert text.splitlines()[-1] == "1 problem: attach"  # one cause, once
    assert "waits for memory" not in text
    found = process.checks(program.pid)[0]
    assert named(found, "main thread").what.startswith("is stopped") and named(found, "state").state == "note"


@pytest.mark.parametrize(("pid", "code"), [(2**22 + 7, "[dead]"), (os.getpid(), "[self]")], ids=["dead", "self"])
def test_process_that_is_none(pid: int, code: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert doctor.run(pid, Options()) == CANNOT_ATTACH
    assert code in capsys.readouterr().out


def test_program_that_is_no_python(capsys: pytest.CaptureFixture[str]) -> None:
    with subprocess.Popen(["sleep", "600"]) as running:
        try:
            assert doctor.run(running.pid, Options()) == CANNOT_ATTACH
        finally:
            running.kill()
    assert "[not-python]" in capsys.readouterr().out


@needs_tracing
def test_another_tuimon_is_seen(program: subprocess.Popen[bytes]) -> None:
    source = str(Path(__file__).resolve().parents[2])
    command = [sys.executable, "-m", "tuimon", "attach", str(program.pid), "--headless", "--duration", "600"]
    with subprocess.Popen(command, cwd=source, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True) as monitor:
        try:
            assert monitor.stderr is not None
            said = [next(line for line in monitor.stderr if "attached to" in line)]
            assert said
            assert attached.tuimon_of(program.pid) == monitor.pid
            found, works = process.checks(program.pid)
            assert not works and str(monitor.pid) in named(found, "monitors").what
            assert "[already-attached]" in named(found, "attach").what
        finally:
            monitor.send_signal(signal.SIGINT)
            monitor.communicate(timeout=60)
    assert attached.tuimon_of(program.pid) is None


@needs_tracing
def test_machine(capsys: pytest.CaptureFixture[str]) -> None:
    status = doctor.run(None, Options(format="json", headless=True))
    found = json.loads(capsys.readouterr().out)
    checks = {check["name"]: check for check in found["checks"]}
    assert {"system", "tuimon", "/proc", "textual", "psutil", "nvidia-ml-py", "rights", "Yama", "socket", "settings"} <= set(
        checks
    )
    assert status == found["status"]
    if "self-test" in checks and checks["self-test"]["state"] == "ok":
        assert status == DONE
    assert all(check["state"] in ("ok", "note", "problem") and check["what"] for check in found["checks"])


def test_machine_on_which_nothing_works(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(machine, "self_test", lambda: Check("attaching", "self-test", "problem", "it fails", "try"))
    monkeypatch.setattr(machine.preflight, "ptrace_scope", lambda: None)
    assert doctor.run(None, Options(headless=True)) == FAILED
    assert capsys.readouterr().out.splitlines()[-1] == "1 problem: self-test"


@pytest.mark.parametrize(
    ("scope", "capable", "state", "words"),
    [
        (None, False, "ok", "has none"),
        (0, False, "ok", "all of their own"),
        (1, False, "problem", "sudo sysctl kernel.yama.ptrace_scope=0"),
        (1, True, "ok", "does not concern"),
        (2, False, "problem", "only root"),
        (3, True, "problem", "tuimon run"),
    ],
)
def test_yama(scope: int | None, capable: bool, state: str, words: str) -> None:
    check = machine._yama(scope, capable)
    assert check.state == state and words in f"{check.what} {check.next_step}"


def test_driver_that_does_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    forever = threading.Event()
    monkeypatch.setattr(gpu, "_ask", lambda _nvml: forever.wait(60))
    (check,) = gpu.checks(limit_s=0.05)
    forever.set()
    assert check.state == "problem" and "has not answered" in check.what


def test_binding_of_another_package(monkeypatch: pytest.MonkeyPatch) -> None:
    def shadowed() -> None:
        raise gpu.NoBinding("the Python module pynvml at /x is not nvidia-ml-py's: pip uninstall pynvml")

    monkeypatch.setattr(gpu, "binding", shadowed)
    (check,) = gpu.checks()
    assert check.state == "note" and "pip uninstall pynvml" in check.what


def test_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu, "_ask", lambda _nvml: gpu.Seen("570.1", [("NVIDIA H100", None), ("", "GPU lost")]))
    assert [check.state for check in gpu.checks()] == ["ok", "ok", "problem"]


def test_within() -> None:
    assert within(10, lambda: 3) == 3
    with pytest.raises(KeyError):
        within(10, lambda: {}["x"])
    never = threading.Event()
    with pytest.raises(TooSlow):
        within(0.01, lambda: never.wait(60))
    never.set()


def test_secrets_of_the_environment_are_not_shown() -> None:
    check = named(terminal.checks({"TUIMON_CONNECT": "secret", "NO_COLOR": "1"}, ask=False), "settings")
    assert check.what == "TUIMON_CONNECT, NO_COLOR=1"


@pytest.mark.parametrize("answer", [b"\x1b[?2026;2$y\x1b[?62c", b"\x1b[?62c", b""])
def test_terminal_is_asked(answer: bytes) -> None:
    """On a pseudo-terminal whose other end answers so; what was typed is not lost to an echo."""
    script = "from tuimon.doctor import terminal; print(terminal._synchronized().what)"
    leader, follower = pty.openpty()
    source = str(Path(__file__).resolve().parents[2])
    with subprocess.Popen([sys.executable, "-c", script], stdin=follower, stdout=follower, cwd=source) as asking:
        os.close(follower)
        said = b""
        while b"\x1b[c" not in said:
            said += os.read(leader, 1024)
        os.write(leader, answer)
        while b"\n" not in said:
            said += os.read(leader, 1024)
        asking.wait()
    os.close(leader)
    expected = "drawn whole (synchronized" if b"2026" in answer else "no synchronized output" if answer else "does not answer"
    assert expected.encode() in said


CHECKS = [
    Check("machine", "system", "ok", "word " * 60),
    Check("attaching", "rights", "note", "x\x1b[31m" + "漢" * 90, "a step " * 30),
    Check("attaching", "Yama", "problem", "no", "sudo"),
]


@pytest.mark.parametrize("width", [60, 80, 120])
def test_lines_fit(width: int) -> None:
    lines = doctor.lines(CHECKS, width)
    assert all(cells(line) <= width for line in lines) and "\x1b" not in "".join(lines)
    assert lines[-1] == "1 problem: Yama"


def test_markdown() -> None:
    lines = doctor.markdown(CHECKS)
    assert lines[0] == "# tuimon doctor" and "## attaching" in lines
    assert "- **PROBLEM** Yama: no; next: `sudo`" in lines
