"""Where recordings go: a file or a folder, names that tell them apart, and nothing left of those that came to nothing."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

import pytest

from tuimon import events as ev
from tuimon.attach.refusal import Refused
from tuimon.commands.options import DONE, FAILED, Record
from tuimon.commands.recordings import CannotRecord, Recordings
from tuimon.feed import LiveFeed
from tuimon.sources.files import no_progress, open_any
from tuimon.sources.recording import Writer
from tuimon.ways import Contact, Session, Way


def feed(label: str, *, attached: bool = True) -> LiveFeed:
    def begin(contact: Contact) -> Session:
        raise Refused("no", "never asked")

    made = LiveFeed(Way(label, "python train.py", None, None, begin, 1, None))
    if attached:
        made._session = object()  # type: ignore[assignment]
    return made


def test_each_has_a_file_of_its_own_in_the_folder(tmp_path: Path) -> None:
    folder = tmp_path / "job"
    feeds = [feed(label) for label in ("rank 0", "rank 1@gpu7", "4711", "../../etc/x y")]
    with Recordings(Record(folder)) as recordings:
        recordings.begin(feeds)
        for number, one in enumerate(feeds):
            one.model.apply([ev.TargetSeen(1, number, "python train.py", "3.11", "2.13", "run", 1.0)])
    assert recordings.status(DONE) == DONE
    names = ["etc-x-y.tuimon", "pid-4711.tuimon", "rank-0.tuimon", "rank-1@gpu7.tuimon"]
    assert sorted(os.listdir(folder)) == names
    assert {stat.S_IMODE((folder / name).stat().st_mode) for name in names} == {0o600}
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    members, left = open_any(folder)
    assert left == [] and len(members) == 4
    found = [event for one in members for batch in one.events(no_progress) for event in batch]
    assert {event.pid for event in found if isinstance(event, ev.TargetSeen)} == {0, 1, 2, 3}
    assert all(one.model.tap is None for one in feeds)


def test_what_was_not_attached_to_leaves_no_file(tmp_path: Path) -> None:
    with Recordings(Record(tmp_path / "job")) as recordings:
        recordings.begin([feed("1", attached=False), feed("2", attached=False)])
        assert len(os.listdir(tmp_path / "job")) == 2
    assert os.listdir(tmp_path) == []


def test_one_of_several_that_cannot_be_made_leaves_none(tmp_path: Path) -> None:
    folder = tmp_path / "job"
    folder.mkdir()
    (folder / "pid-2.tuimon").write_text("mine")
    with Recordings(Record(folder)) as recordings, pytest.raises(CannotRecord, match=r"pid-2\.tuimon"):
        recordings.begin([feed("1"), feed("2")])
    assert os.listdir(folder) == ["pid-2.tuimon"] and (folder / "pid-2.tuimon").read_text() == "mine"


def test_a_single_one_of_all_goes_into_a_folder_too(tmp_path: Path) -> None:
    with Recordings(Record(tmp_path / "job")) as recordings:
        recordings.begin([feed("rank 0")], folder=True)
    assert os.listdir(tmp_path / "job") == ["rank-0.tuimon"]


def test_a_recording_that_stopped_is_a_failure_of_the_command_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(Writer, "flush", full)
    one = feed("1")
    with Recordings(Record(tmp_path / "x.tuimon")) as recordings:
        recordings.begin([one])
        one.model.apply([ev.Line(1, "x")])
    assert "no space left on device" in capsys.readouterr().err
    assert any(isinstance(event, ev.NotAvailable) and event.what == "recording" for event in one.drain())
    assert recordings.status(DONE) == FAILED and recordings.status(3) == 3


def test_where_nothing_is_recorded_nothing_happens(tmp_path: Path) -> None:
    one = feed("1")
    with Recordings(None) as recordings:
        recordings.begin([one])
        assert one.model.tap is None
    assert recordings.status(DONE) == DONE
