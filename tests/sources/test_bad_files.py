"""Files that are none, or that mean harm, given to `tuimon report` as a person would: a sentence and status 1, no traceback."""

from __future__ import annotations

import functools
import gzip
import json
import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from tests.sources.test_trace_file import OP, trace
from tuimon import cli
from tuimon.commands.options import DONE, FAILED

EVENT = json.dumps(OP).encode()
MEMORY = 2**30
"""Address space of a tuimon that reads what would take far more."""


def report(path: Path, capsys: pytest.CaptureFixture[str], status: int = FAILED) -> str:
    """What `tuimon report` says of it on stderr; where it is done, the report."""
    assert cli.main(["report", str(path)]) == status
    captured = capsys.readouterr()
    if status == DONE:
        return " ".join(captured.out.split())
    assert captured.out == ""
    said = captured.err.strip()
    assert "\n" not in said and "Traceback" not in said and "fault of tuimon" not in said and str(path) in said
    return said


def bounded(path: Path, most: int = MEMORY) -> tuple[int, str, str]:
    """`tuimon report` in a process of its own with that much address space: (status, stdout, stderr)."""
    command = [sys.executable, "-m", "tuimon", "report", str(path)]
    limit = functools.partial(resource.setrlimit, resource.RLIMIT_AS, (most, most))
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, preexec_fn=limit, check=False)
    return done.returncode, " ".join(done.stdout.split()), done.stderr


def members(path: Path, *pieces: tuple[bytes, int]) -> Path:
    """A gzip file of these pieces, each so many times."""
    path.write_bytes(b"".join(gzip.compress(piece) * times for piece, times in pieces))
    return path


def test_a_fifo_that_nobody_writes_to(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    os.mkfifo(tmp_path / "fifo")
    assert "is a fifo" in report(tmp_path / "fifo", capsys)


def test_an_empty_file_and_an_empty_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "empty").touch()
    assert "is empty" in report(tmp_path / "empty", capsys)
    (tmp_path / "folder").mkdir()
    assert "has no files" in report(tmp_path / "folder", capsys)
    (tmp_path / "folder" / "a").touch()
    assert "empty" in report(tmp_path / "folder", capsys)


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (b"PK\x03\x04rest", "zip archive"),
        (b"\x89PNG\r\n\x1a\n\0\0\0", "is no text"),
        (b"hello, I am a diary\n", "no kind of file that tuimon reads"),
        ("{}".encode("utf-16"), "UTF-16"),
        (b"\xff\xfe\xfd" * 1000, "UTF-16"),
        (b"\xe9\xe8\xa0" * 1000, "no kind of file that tuimon reads"),
        (gzip.compress(trace(OP), mtime=0)[:30], "ends in the middle"),
        (gzip.compress(trace(OP), mtime=0)[:12] + b"\xff" * 40, "damaged"),
        (b"[" * 1_000_000, "damaged"),
        (b'{"traceEvents": ' + b"[" * 1_000_000, "damaged"),
        (b'{"a":' * 1_000_000, "damaged"),
        (b'{"traceEvents": [{"args": ' + b'{"a":' * 1_000_000, "damaged"),
        (b'{"traceEvents": [' + b"9" * 2_000_000 + b"]}", "damaged"),
        (b'{"schema": "tuimon.report/1"}', "is a report that tuimon wrote"),
        (b'{"schema": "tuimon.compare/1"}', "is a comparison that tuimon wrote"),
    ],
)
def test_what_is_no_trace(data: bytes, sentence: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "file"
    path.write_bytes(data)
    assert sentence in report(path, capsys)


def test_a_trace_with_bytes_that_are_no_text(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "file"
    path.write_bytes(trace(OP).replace(b"aten::mm", b"aten::\xffm"))
    report(path, capsys, DONE)


def test_a_trace_that_was_cut_off(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "file.json.gz"
    whole = gzip.compress(trace(*[{**OP, "ts": n * 100.0} for n in range(5000)]))
    path.write_bytes(whole[: len(whole) // 2])
    assert "read up to there" in report(path, capsys, DONE)


def test_a_bomb_in_one_text(tmp_path: Path) -> None:
    """More than there is room for, zeros in the name of an event, in 1 MB."""
    path = members(tmp_path / "bomb.json.gz", (b'{"traceEvents": [' + EVENT + b', {"name": "', 1), (b"0" * 2**20, 1100))
    status, out, err = bounded(path)
    assert status == DONE and "read up to there" in out, err


def test_a_bomb_of_blanks(tmp_path: Path) -> None:
    path = members(tmp_path / "bomb.json.gz", (b'{"traceEvents": [' + EVENT + b",", 1), (b" " * 2**20, 1100))
    status, out, err = bounded(path)
    assert status == DONE and "unpacks to more than 1,024 MB" in out, err


def test_a_bomb_of_nothing(tmp_path: Path) -> None:
    status, out, err = bounded(members(tmp_path / "bomb.gz", (b"\n" * 2**20, 1100)))
    assert status == FAILED and not out and "Traceback" not in err


def test_no_permission(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "file"
    path.write_bytes(trace(OP))
    report(path, capsys, DONE)  # all is imported: nobody else may read this interpreter's own files
    path.chmod(0)
    if os.geteuid() != 0:
        assert "permission denied" in report(path, capsys)
        return
    said, say = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.setgroups([])
            os.setresgid(65534, 65534, 65534)
            os.setresuid(65534, 65534, 65534)
            os.dup2(say, 2)
            sys.stderr = os.fdopen(2, "w", closefd=False)
            os._exit(cli.main(["report", str(path)]))
        finally:
            os._exit(99)
    os.close(say)
    with os.fdopen(said) as told:
        text = told.read()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == FAILED
    assert "permission denied" in text and "Traceback" not in text
