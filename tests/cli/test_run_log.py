"""The log of a program that runs under the screen: where it is, who may read it, and that there are not ever more of them."""

from __future__ import annotations

import errno
import os
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from tests.support.terminal import Terminal
from tuimon.commands.options import FAILED, Options
from tuimon.commands.run import MOST_OF_END, _end_of, run
from tuimon.commands.run_log import KEPT, new_log, opened

SOURCE = str(Path(__file__).resolve().parents[2])
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root: another user")


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where state goes; not there yet. Temporary files go beside it."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    return tmp_path / "state"


def aged(log: Path, seconds: float) -> None:
    """As if it had been written to so long ago."""
    at = log.stat().st_mtime - seconds
    os.utime(log, (at, at))


def test_it_is_the_users_alone(state: Path) -> None:
    log = new_log()
    assert log.parent == state / "tuimon" and log.read_bytes() == b""
    assert stat.S_IMODE(log.stat().st_mode) == 0o600 and stat.S_IMODE(log.parent.stat().st_mode) == 0o700
    assert new_log() != log


def test_the_latest_are_kept_and_what_is_no_log_of_ours(state: Path) -> None:
    logs = [new_log() for _ in range(KEPT)]
    for at, log in enumerate(logs):
        aged(log, 1000 - at)
    others = [state / "tuimon" / name for name in ("a.tuimon", "run-notes.log", "run-20260101-000000-1-1.log.gz")]
    for other in others:
        other.write_bytes(b"x")
        aged(other, 10_000)
    (state / "tuimon" / "run-20260101-000000-1-1.log").symlink_to(others[0])
    new = [new_log(), new_log()]
    assert [log for log in logs if not log.exists()] == logs[:2]
    assert all(path.exists() for path in (*others, *new))
    assert len([path for path in (state / "tuimon").glob("run-*-*-*-*.log") if not path.is_symlink()]) == KEPT


def test_one_that_a_program_writes_to_stays(state: Path) -> None:
    """Though the tuimon that has started it is gone."""
    log = new_log()
    with opened(log) as file:
        program = subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=file)
    aged(log, 10_000)
    for _ in range(KEPT + 2):
        aged(new_log(), 100)
    assert log.exists()
    assert program.stdin is not None
    program.stdin.write(b"said")
    program.communicate()
    assert log.read_bytes() == b"said"
    aged(log, 10_000)
    new_log()
    assert not log.exists()


def test_where_others_may_write_it_is_not_put(state: Path, tmp_path: Path) -> None:
    (state / "tuimon").mkdir(parents=True)
    (state / "tuimon").chmod(0o777)
    log = new_log()
    assert log.parent == tmp_path / "tmp" and stat.S_IMODE(log.stat().st_mode) == 0o600
    assert list((state / "tuimon").iterdir()) == []


@pytest.mark.parametrize("there", ["a file", "nothing, in a place that is no folder", "no absolute path"])
def test_where_there_can_be_no_folder_it_is_a_temporary_file(there: str, state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if there == "a file":
        state.write_bytes(b"")
    elif there == "no absolute path":
        monkeypatch.setenv("XDG_STATE_HOME", "state")
    else:
        monkeypatch.setenv("XDG_STATE_HOME", "/proc/self/comm/state")
    assert new_log().parent == state.parent / "tmp"


@needs_root
def test_root_leaves_nothing_in_the_home_of_another(state: Path) -> None:
    state.mkdir()
    os.chown(state, 65534, 65534)
    assert new_log().parent == state.parent / "tmp"
    assert list(state.iterdir()) == []


def test_without_any_place_for_it_nothing_is_started(
    state: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def none(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(tempfile, "mkstemp", none)
    monkeypatch.setenv("XDG_STATE_HOME", "/proc/self/comm/state")
    monkeypatch.setattr(Options, "screen", property(lambda _: True))
    assert run(["touch", str(state)], Options()) == FAILED
    assert "No space left on device" in capsys.readouterr().err and not state.exists()


def test_of_what_a_failed_program_printed_the_end_is_read(tmp_path: Path) -> None:
    log = tmp_path / "log"
    assert _end_of(log) == ""  # somebody has removed it
    with log.open("wb") as file:
        file.truncate(1 << 40)  # nothing on the disk, and far more than fits in memory
        file.seek(0, os.SEEK_END)
        file.write(b"\nValueError: \xff\n")
    assert _end_of(log).splitlines()[-1] == "ValueError: \ufffd" and len(_end_of(log)) <= MOST_OF_END


def test_a_run_under_the_screen_says_where_it_is(state: Path, tmp_path: Path) -> None:
    env = {**os.environ, "TERM": "xterm-256color", "PYTHONPATH": SOURCE, "PYTHONUTF8": "1"}
    text = (
        "import os, sys, time\nprint('said', flush=True)\nwhile not os.path.exists(sys.argv[1]): time.sleep(0.01)\nos._exit(3)"
    )
    program = (sys.executable, "-c", text, str(tmp_path / "go"))
    on = Terminal([sys.executable, "-m", "tuimon", "run", "--", *program], 200, 30, env)
    try:
        assert on.wait_for(lambda: on.sees("said"))
        (tmp_path / "go").write_bytes(b"")
        on.write("q")
        assert on.ended() == 3
    finally:
        on.close()
    (log,) = (state / "tuimon").iterdir()
    assert log.read_bytes() == b"said\n"
    # told within the terminal's width, so broken somewhere in the path
    assert f"itsoutput:{log}".encode() in on.data.replace(b"\r\n", b"").replace(b" ", b"")
