"""The directory for the files of profiler windows."""

from __future__ import annotations

import os
import socket
import stat
from pathlib import Path

import pytest

from tuimon.attach import places, traces
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


def test_what_is_opened_is_the_one_that_was_made_whatever_bears_its_name_now(tmp_path: Path) -> None:
    folder = TraceFolder(os.getpid())
    assert folder.opened() is None
    path = Path(folder.path() or "")
    path.rename(tmp_path / "moved")
    path.symlink_to(tmp_path)
    handle = folder.opened()
    assert handle is not None and os.path.samestat(os.fstat(handle), os.stat(tmp_path / "moved"))
    os.close(handle)
    (tmp_path / "mine").touch()
    folder.close()
    assert (tmp_path / "mine").exists()
    path.unlink()


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: another user")
@pytest.mark.parametrize("swapped", ["", "full", "open to all", "link"])
def test_root_gives_away_none_but_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, swapped: str) -> None:
    """The target, whose directory it is, puts another one of root's in its place between the making and the giving."""
    other = tmp_path / "other"
    other.mkdir(mode=0o755 if swapped == "open to all" else 0o700)
    if swapped == "full":
        (other / "secret").touch()
    take = places.open_folder

    def late(place: int, name: str) -> int:
        if swapped:
            os.rename(tmp_path / name, tmp_path / "made")
            (tmp_path / name).symlink_to(other) if swapped == "link" else os.rename(other, tmp_path / name)
        return take(place, name)

    monkeypatch.setattr(places, "open_folder", late)
    status = {"Uid": "65534 65534 65534 65534", "Gid": "65534 65534 65534 65534"}
    monkeypatch.setattr(traces.procfs, "status", lambda pid: status)
    handle = os.open(tmp_path, os.O_RDONLY)
    monkeypatch.setattr(places, "places", lambda pid, name: [places.Place(handle, str(tmp_path), False)])
    folder = TraceFolder(os.getpid())
    path = folder.path()
    owners = {found.name: found.stat(follow_symlinks=False).st_uid for found in tmp_path.iterdir() if found.name != "made"}
    if swapped:
        assert path is None and 65534 not in owners.values()
    else:
        assert path is not None and owners[Path(path).name] == 65534
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
