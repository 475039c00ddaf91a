"""`tuimon doctor`: of the machine, and of real processes."""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.attach.conftest import needs_tracing
from tuimon import cli
from tuimon.commands import doctor
from tuimon.commands.options import CANNOT_ATTACH, DONE, FAILED, Options
from tuimon.config import BY_NAME, resolve
from tuimon.doctor import Check, attached, gpu, machine, process, settings, terminal
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


def prose(markdown: str) -> str:
    """How it reads: names are code, and blanks are one."""
    return re.sub(" +", " ", markdown.replace("`", ""))


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
    assert {"system", "tuimon", "/proc", "textual", "psutil", "nvidia-ml-py", "rights", "Yama", "socket"} <= set(checks)
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
    environ = {"TUIMON_CONNECT": "secret", "TUIMON_THEME": "light", "NO_COLOR": "1"}
    checks = settings.checks(resolve({}, environ, Path("/nowhere")), environ)
    assert named(checks, "environment").what == "TUIMON_CONNECT is set, too"
    slips = settings.checks(resolve({}, {}, Path("/nowhere")), {"TUIMON_THEM": "x", "TUIMON_SSH": "y", "TUIMON_STACK": "z"})
    assert [one.what for one in slips if one.name == "environment"] == [
        "TUIMON_STACK is no setting; did you mean TUIMON_STACKS?",
        "TUIMON_THEM is no setting; did you mean TUIMON_THEME?",
        "TUIMON_SSH is set, too",
    ]
    assert "secret" not in str(checks)
    assert named(checks, "theme").what == "light  from TUIMON_THEME"
    assert named(checks, "color").what == "none  from NO_COLOR"


@pytest.mark.parametrize(
    ("environ", "words", "says"),
    [
        ({"TERM": "xterm-256color"}, (), "by the terminal: dark  (default)"),
        ({"TERM": "linux"}, (), "by the terminal: ansi16  (default)"),
        ({"TERM": "xterm-256color"}, ("--background", "light"), "by the terminal: light  (default)"),
        ({"TERM": "linux"}, ("--theme", "light"), "light  from --theme"),
        ({"NO_COLOR": "1"}, ("--theme", "light"), "light, shown as mono  from --theme"),
        ({"TUIMON_THEME": "none-such"}, (), "none-such, shown as dark  from TUIMON_THEME"),
    ],
)
def test_the_theme_that_a_screen_would_have(
    environ: dict[str, str],
    words: tuple[str, ...],
    says: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for name in ("NO_COLOR", "COLORTERM", "COLORFGBG"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(machine, "checks", list)
    cli.main(["doctor", "--format", "md", *words])
    assert prose(f"- **ok** theme: {says}\n") in prose(capsys.readouterr().out)


@pytest.mark.parametrize(
    ("environ", "words", "says"),
    [
        ({"TERM": "xterm-kitty"}, (), "256, as TERM=xterm-kitty says"),
        ({"TERM": "linux"}, (), "16 or fewer, as TERM=linux says"),
        ({"TERM": "linux", "COLORTERM": "TrueColor"}, (), "16 million"),
        ({"NO_COLOR": "1"}, (), "none, as NO_COLOR asks for"),
        ({}, ("--no-color",), "none, as --no-color asks for"),
        ({"NO_COLOR": "1", "TUIMON_COLOR": "auto", "TERM": "xterm-256color"}, (), "256, as"),  # says it of tuimon alone
        ({"TERM": "dumb"}, (), "told in lines"),
    ],
)
def test_colours_that_there_are(
    environ: dict[str, str],
    words: tuple[str, ...],
    says: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.delenv("COLORTERM", raising=False)
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(machine, "checks", list)
    monkeypatch.setattr(terminal, "_is_terminal", lambda: True)
    cli.main(["doctor", "--format", "md", *words])
    shown = prose(capsys.readouterr().out)
    assert says in shown and "PROBLEM" not in shown


def test_settings_that_are_in_force_and_where_they_come_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("TUIMON_MOUSE", "off")
    file = tmp_path / "tuimon" / "config.toml"
    file.parent.mkdir()
    file.write_text('theme = "nobodys"\nceilings = "mine.toml"\ninterval = "often"\n')
    cli.main(["doctor", "--no-clipboard", "--format", "md"])
    shown = capsys.readouterr()
    for says in (
        f" file: {file}\n",
        f" theme: nobodys, shown as dark  from {file}:1\n",
        " mouse: off  from TUIMON_MOUSE\n",
        " clipboard: false  from --no-clipboard\n",
        " slow_over: 10  (default)\n",
        " ceilings: none  (default)\n",
        f" not used: {file}:3: interval is 'often'",
        f" not used: {file}:2: ceilings cannot be used",
        " themes: there is no theme 'nobodys'; there are dark,",
    ):
        assert prose(says) in prose(shown.out)
    assert shown.err == ""
    cli.main(["doctor", "--format", "json"])
    told = json.loads(capsys.readouterr().out)["settings"]
    assert set(told) == set(BY_NAME)
    assert told["theme"] == {"value": "nobodys", "where": f"{file}:1"}
    assert told["mouse"] == {"value": "off", "where": "TUIMON_MOUSE"}
    assert told["interval"] == {"value": None, "where": "default"}


@pytest.mark.parametrize("answer", [b"\x1b[?2026;2$y\x1b[5;1R\x1b[?62c", b"\x1b[?62c", b""])
def test_terminal_is_asked(answer: bytes) -> None:
    """On a pseudo-terminal whose other end answers so; what was typed is not lost to an echo."""
    script = "from tuimon.doctor import terminal; print([check.what for check in terminal._asked()])"
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
    whole, told = b"2026" in answer, "no synchronized output" if answer else "nothing: over a slow line"
    expected = "drawn whole (synchronized" if whole else told
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
