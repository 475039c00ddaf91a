"""Files that cannot be written are said before anything is started, in a sentence, whatever keeps them from it."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from tuimon import cli
from tuimon.commands import places
from tuimon.commands.places import why_no_file, why_no_folder

LOG = 'V1130 12:00:00.000001 1 torch/_dynamo/x.py:1] {"str": ["/srv/a.py", 1]}\n'


def test_what_keeps_a_file_from_being_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mine = tmp_path / "mine"
    mine.write_text("x")
    assert why_no_file(tmp_path / "new") is None and why_no_file(mine) is None and why_no_file(Path(os.devnull)) is None
    assert why_no_file(tmp_path) == f"{tmp_path} is a directory; name a file for the report"
    assert why_no_file(tmp_path / "none" / "new") == f"there is no directory {tmp_path / 'none'}"
    assert why_no_file(mine / "new") == f"{mine} is no directory"
    assert "File name too long" in str(why_no_file(tmp_path / ("x" * 300)))
    monkeypatch.setattr(os, "access", lambda *_: False)
    assert why_no_file(tmp_path / "new") == f"the directory {tmp_path} cannot be written into by this user"
    assert why_no_file(mine, "the table") == f"{mine} cannot be written by this user; name another file for the table"


def test_a_folder_that_may_not_be_looked_into(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stat(path: Path) -> os.stat_result:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(places.os, "stat", stat)
    assert why_no_folder(tmp_path) == f"the directory {tmp_path} cannot be looked into: Permission denied"
    assert why_no_file(tmp_path / "new") == why_no_folder(tmp_path)


@pytest.mark.parametrize(
    ("words", "status"),
    [
        (("report", "{log}", "-o", "{bad}"), 2),
        (("calibrate", "--show", "-o", "{bad}"), 2),
        (("export", "{log}", "--to", "csv", "-o", "{bad}"), 2),
        (("run", "--headless", "-o", "{bad}", "--", "echo", "started"), 2),
        (("run", "--headless", "--prometheus", "{bad}/x.prom", "--", "echo", "started"), 2),
        (("record", "-o", "{bad}/x", "--", "echo", "started"), 1),
        (("-o", "{bad}"), 2),
        (("list", "-o", "{bad}"), 2),
        (("doctor", "-o", "{bad}"), 2),
    ],
)
def test_commands_say_it(words: tuple[str, ...], status: int, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    log = tmp_path / "a.log"
    log.write_text(LOG)
    assert cli.main([word.format(log=log, bad=tmp_path / ("x" * 300)) for word in words]) == status
    said = capfd.readouterr()
    assert "File name too long" in said.err and "started" not in said.out + said.err


def test_what_is_no_file_is_written_into_and_not_replaced(tmp_path: Path) -> None:
    log, pipe = tmp_path / "a.log", tmp_path / "pipe"
    log.write_text(LOG)
    os.mkfifo(pipe)
    read: list[str] = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_text()), daemon=True)
    reader.start()
    assert cli.main(["export", str(log), "--to", "csv", "-o", str(pipe)]) == 0
    reader.join(30)
    assert pipe.is_fifo() and len(read) == 1 and "," in read[0].splitlines()[0]
