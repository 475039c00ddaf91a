"""How far something has got: a line that changes, where stderr is a terminal; nothing elsewhere."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from tuimon import cli
from tuimon.commands import progress
from tuimon.commands.progress import Reading, bar

SOURCE = Path(__file__).resolve().parents[2]
AT_ONCE = "from tuimon.commands import progress; progress.EVERY_S = 0; from tuimon.cli import main; import sys; "


def on_a_terminal(program: str, *words: str, term: str = "xterm", stdout: int = subprocess.DEVNULL) -> tuple[int, str]:
    """Run a Python program whose stderr is a terminal; gives its status and what that got."""
    leader, follower = pty.openpty()
    command = [sys.executable, "-c", program, *words]
    with subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=stdout, stderr=follower, cwd=SOURCE, env={**os.environ, "TERM": term}
    ) as running:
        os.close(follower)
        said = b""
        while True:
            try:
                piece = os.read(leader, 65536)
            except OSError:  # the other end is closed
                break
            if not piece:
                break
            said += piece
    os.close(leader)
    return running.returncode, said.decode()


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A TORCH_TRACE log of 5 MB."""
    path = tmp_path_factory.mktemp("logs") / "large.log"
    line = 'V1130 12:00:{:02d}.{:06d} 1 torch/_dynamo/x.py:1] {{"str": ["/srv/{}.py", {}]}}\n'
    with path.open("w") as file:
        for number in range(2_500):
            file.write(line.format(number % 60, number, "x" * 2_000, number))
    return path


COMMANDS: list[tuple[str, ...]] = [
    ("report", "{log}", "--format", "json"),
    ("compare", "{log}", "{log}", "--format", "json"),
    ("export", "{log}", "--to", "csv", "-o", "{out}"),
]


@pytest.mark.parametrize("words", COMMANDS, ids=lambda words: words[0])
def test_a_file_that_is_read(words: Sequence[str], log: Path, tmp_path: Path) -> None:
    told = [word.format(log=log, out=tmp_path / "out.csv") for word in words]
    _, said = on_a_terminal(AT_ONCE + "sys.exit(main(sys.argv[1:]))", *told)
    shown = [line for line in said.split("\r\x1b[K") if line.startswith("reading large.log [")]
    assert shown
    shares = [int(line.partition("%")[0].rpartition(" ")[2]) for line in shown]
    assert max(shares) <= 100 and all(" MiB" in line for line in shown)
    assert "\r\x1b[K" in said[said.rindex("reading large.log") :]  # gone at the end


def test_nothing_where_stderr_is_no_terminal(
    log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(progress, "EVERY_S", 0)
    for words in COMMANDS:
        cli.main([word.format(log=log, out=tmp_path / "out.csv") for word in words])
        said = capsys.readouterr().err
        assert "reading" not in said and "\x1b" not in said


def test_a_terminal_that_cannot_take_a_line_back(log: Path) -> None:
    _, said = on_a_terminal(AT_ONCE + "sys.exit(main(sys.argv[1:]))", "report", str(log), term="dumb")
    assert "reading" not in said and "\x1b" not in said


def test_what_is_over_at_once_shows_nothing(tmp_path: Path, log: Path) -> None:
    small = tmp_path / "small.log"
    small.write_text("".join(log.read_text()[:20_000].splitlines(keepends=True)[:-1]))
    program = "import time; time.monotonic = lambda: 5.0; from tuimon.cli import main; import sys; sys.exit(main(sys.argv[1:]))"
    _, said = on_a_terminal(program, "report", str(small))
    assert "\x1b" not in said


CALIBRATION = """
from tuimon.commands.calibrate import Progress
with Progress(13.0) as progress:
    progress("begin", {"torch": "2.13.0", "import_s": 1.5})
    progress("set", {"threads": 1})
    progress("probe", {"probe": 0, "dtype": "f32", "way": "square"})
    progress("repeat", {"probe": 0, "rate": 9e10})
    progress("repeat", {"probe": 0, "rate": 8e10})
print("over", file=__import__("sys").stderr)
"""


def test_calibrating() -> None:
    status, said = on_a_terminal(CALIBRATION)
    assert status == 0
    pieces = said.split("\r\x1b[K")
    assert any(piece.startswith("[") and piece.endswith("s left  starting Python with torch") for piece in pieces)
    assert any(piece.endswith("f32 square 80 GFLOP/s (best 90 GFLOP/s)") for piece in pieces)
    assert pieces[-1] == "over\r\n"
    plain = subprocess.run([sys.executable, "-c", CALIBRATION], capture_output=True, text=True, cwd=SOURCE, check=True)
    assert plain.stderr == "tuimon: torch 2.13.0 is there after 1.5 s\ntuimon: with 1 thread\nover\n"


def test_the_line(tmp_path: Path) -> None:
    one, two = tmp_path / "a", tmp_path / "b"
    one.write_bytes(b"x" * 3072)
    two.write_bytes(b"x" * 1024)
    now = [0.0]
    reading = Reading("folder", [one, two, tmp_path / "none"], lambda: now[0])
    assert reading.line(0) == f"reading folder {bar(0)}   0% of 4.00 KiB"
    reading.part(0)(1536, 3072)
    assert reading.line(0.5).endswith(" 38% of 4.00 KiB")
    assert reading.line(3.0).endswith(" 38% of 4.00 KiB, 5.0 s left")
    reading.part(1)(5, 4)
    reading.part(2)(1, 0)
    assert " 62% of" in reading.line(3.0)
    assert Reading("x", []).line(9).endswith("  0% of 0 B")
    assert bar(-1) == "[" + "." * 20 + "]" and bar(0.5, 4) == "[##..]" and bar(7, 2) == "[##]"
