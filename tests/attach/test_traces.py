"""The directory for the files of profiler windows."""

from __future__ import annotations

import os
import socket
import stat
from pathlib import Path

import pytest

from tuimon.attach.connection import Session
from tuimon.attach.traces import TraceFolder
from tuimon.hook import wire


def test_it_is_the_jobs_alone_and_goes_with_all_that_is_in_it() -> None:
    folder = TraceFolder(os.getpid())
    path = folder.path()
    assert path is not None and folder.path() == path
    facts = os.stat(path)
    assert stat.S_IMODE(facts.st_mode) == 0o700 and facts.st_uid == os.geteuid()
    (Path(path) / "tuimon-window-1-1.json").write_text("{}")
    folder.close()
    folder.close()
    assert not Path(path).exists()


def test_one_that_somebody_took_away_is_made_again() -> None:
    folder = TraceFolder(os.getpid())
    path = folder.path()
    assert path is not None
    os.rmdir(path)
    again = folder.path()
    assert again is not None and Path(again).is_dir()
    folder.close()


def test_a_process_that_is_gone_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    assert TraceFolder(2**22 + 7).path() is None


def test_the_session_tells_the_hook_where() -> None:
    ours, its = socket.socketpair()
    session = Session(ours, wire.Decoder(), [], pid=os.getpid(), hello={}, how="run")
    assert session.send({"cmd": "window", "window": 1})
    ((_, body),) = wire.Decoder().feed(its.recv(4096))
    told = wire.read_json(body)
    assert told["cmd"] == "window" and Path(told["dir"]).is_dir()
    session.close()
    its.close()
    assert not Path(told["dir"]).exists()
