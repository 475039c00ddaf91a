"""A recording gives back what was recorded, and a model folded from it is the one that was watched."""

from __future__ import annotations

import json
import os
import stat
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings

from tests.bench.recording import megabytes_an_hour
from tests.model.dump import dump
from tests.sources.recorded_streams import STREAMS, batches, fold, record, replayed, stream, training
from tests.sources.test_carried import events as any_event
from tuimon import events as ev
from tuimon.sources import carried
from tuimon.sources.files import no_progress, open_any
from tuimon.sources.recording import MAGIC, Recording, Writer, merged, place, reader
from tuimon.sources.recording import format as layout
from tuimon.sources.recording.items import MOST_ROWS
from tuimon.sources.trace_file import Unreadable


@pytest.mark.parametrize("path", STREAMS, ids=lambda path: path.stem)
def test_what_is_replayed_is_what_was_watched(path: Path, tmp_path: Path) -> None:
    told = batches(stream(path))
    file = tmp_path / "run.tuimon"
    record(file, told)
    assert replayed(file) == told
    live = json.dumps(dump(fold(told)))
    assert json.dumps(dump(fold(replayed(file)))) == live
    (opened,), left_out = open_any(file)
    assert (opened.kind, opened.path, left_out) == ("recording", file, [])
    assert json.dumps(dump(fold(list(opened.events(no_progress))))) == live
    assert opened.again is not None
    pieces = list(opened.again(0, no_progress))
    assert json.dumps(dump(fold([piece.events for piece in pieces]))) == live
    assert [piece.events for piece in opened.again(2, no_progress)] == [piece.events for piece in pieces if piece.block >= 2]


def test_there_are_ten_and_more() -> None:
    assert len(STREAMS) >= 10


@pytest.mark.parametrize("name", sorted(carried.CLASSES))
def test_every_event_comes_back(name: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("events")
    number = iter(range(10**6))

    @settings(max_examples=8, deadline=None)
    @given(any_event(carried.CLASSES[name]))
    def holds(event: ev.Event) -> None:
        file = folder / f"{next(number)}.tuimon"
        record(file, [[event], [event, ev.Line(1, "next")]])
        assert replayed(file) == [[event], [event, ev.Line(1, "next")]]

    holds()


def test_what_no_event_can_hold_is_left_out_and_counted(tmp_path: Path) -> None:
    file = tmp_path / "run.tuimon"
    nan = ev.HostSampled(1, float("nan"), 1, 1, 5.0, 1, 1)
    odd = ev.Samples(5, ((1, 2, 3, -4, 5),))  # what no job sends, and a file may tell
    writer = record(file, [[ev.Line(1, "a"), nan, ev.Samples(2**70, ())], [odd, ev.Line(2, "b")]])
    assert replayed(file) == [[ev.Line(1, "a")], [odd, ev.Line(2, "b")]]
    assert writer.unfit == 2 and writer.unfit_why.startswith("Samples.t_ns: ")


def test_very_many_samples_at_once_are_the_same_samples(tmp_path: Path) -> None:
    file = tmp_path / "run.tuimon"
    rows = tuple((1, 2, 0, n, n + 1) for n in range(MOST_ROWS + 5))
    record(file, [[ev.Samples(7, rows)]])
    found = [event for batch in replayed(file) for event in batch]
    assert merged(found) == [ev.Samples(7, rows)]
    assert len(found) == 2


def test_the_heads_are_an_index(tmp_path: Path) -> None:
    file = tmp_path / "run.tuimon"
    told = list(training(3000))
    record(file, told, each=5)
    recording = Recording(file)
    assert recording.whole and recording.note == ""
    assert recording.rows == 27_000 and len(recording.blocks) > 20
    assert [head.at_ns for head in recording.blocks] == sorted(head.at_ns for head in recording.blocks)
    assert [head.steps for head in recording.blocks] == sorted(head.steps for head in recording.blocks)
    for number in (0, 7, len(recording.blocks) - 1):
        head = recording.blocks[number]
        events = [event for batch in recording.block(number) for event in batch.events]
        assert (head.first_ns, head.last_ns) == (events[0].t_ns, max(event.t_ns for event in events))
        assert head.rows == sum(len(event.rows) for event in events if isinstance(event, ev.Samples))
    middle = len(recording.blocks) // 2
    parts = [*recording.read(0, middle), *recording.read(middle)]
    assert parts == list(recording.read())
    assert recording.place(len(recording.blocks) - 1) <= recording.bytes == file.stat().st_size


def test_an_hour_of_a_busy_job_is_of_tens_of_megabytes(tmp_path: Path) -> None:
    """A minute of it: 1,008 samples a second, and the readings of eight GPUs, the host, threads and processes."""
    size, rows, _ = megabytes_an_hour(1, 9, 8, tmp_path / "run.tuimon")
    sys.stdout.write(f"{size:.1f} MB an hour\n")
    assert rows == 60 * 1008 and 20 < size < 40


def test_progress_is_told_and_whoever_reads_may_stop(tmp_path: Path) -> None:
    file = tmp_path / "run.tuimon"
    record(file, list(training(500)))
    (opened,), _ = open_any(file)
    told: list[tuple[int, int]] = []
    list(opened.events(lambda read, of: told.append((read, of))))
    assert told == sorted(told) and len({of for _, of in told}) == 1 and 0.9 < told[-1][0] / told[-1][1] <= 1

    def enough(_read: int, _of: int) -> None:
        raise InterruptedError

    with pytest.raises(InterruptedError):
        list(opened.events(enough))


def test_a_rank_is_told(tmp_path: Path) -> None:
    file = tmp_path / "some-name.tuimon"
    told = list(training(10))
    record(file, told)
    (opened,), _ = open_any(file)
    assert (opened.label, opened.rank, opened.rows) == ("some-name.tuimon", None, 90)
    other = tmp_path / "other.tuimon"
    seen = ev.TargetSeen(10**14, 1, "train.py", "3.11.7", "2.13.0", "run", 1.7e9, ("cpu",), rank=3, world_size=4)
    record(other, [[ev.Attaching(5, "waiting")], [seen], *told[1:]])
    found, left_out = open_any(tmp_path)
    assert [(one.label, one.rank) for one in found] == [("rank 3", 3), ("some-name.tuimon", None)] and left_out == []


def test_it_is_known_again_on_the_machine_where_the_job_ran(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, local in (("here", True), ("elsewhere", False)):
        writer = Writer(tmp_path / name, local=local)
        writer.put(0, [ev.Line(1, "a")])
        writer.close()
    assert [open_any(tmp_path / name)[0][0].local for name in ("here", "elsewhere")] == [True, False]
    here = place.here()
    assert here and here == place.here.__wrapped__()
    monkeypatch.setattr(reader, "here", lambda: here + 1)
    assert [open_any(tmp_path / name)[0][0].local for name in ("here", "elsewhere")] == [False, False]


def test_the_file_is_the_owners_alone_and_is_not_overwritten(tmp_path: Path) -> None:
    file = tmp_path / "run.tuimon"
    before = os.umask(0)
    try:
        record(file, [[ev.Line(1, "first")]])
    finally:
        os.umask(before)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    with pytest.raises(FileExistsError, match="there is a file of that name"):
        Writer(file)
    reader = Recording(file)
    writer = Writer(file, force=True)
    writer.put(0, [ev.Line(1, "second")])
    writer.close()
    assert replayed(file) == [[ev.Line(1, "second")]]
    assert [batch.events for batch in reader.read()] == [[ev.Line(1, "first")]]  # who had it open still has it


@pytest.mark.parametrize("what", ["folder", "fifo", "link", "device"])
def test_what_is_no_ordinary_file_is_never_removed(what: str, tmp_path: Path) -> None:
    file = tmp_path / "run.tuimon"
    if what == "folder":
        file.mkdir()
    elif what == "fifo":
        os.mkfifo(file)
    elif what == "link":
        file.symlink_to(tmp_path / "elsewhere")
    else:
        file = Path("/dev/null")
    with pytest.raises(FileExistsError, match="there is"):
        Writer(file, force=True)
    assert file.is_symlink() or file.exists()


def test_a_place_that_cannot_be_written_to(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="No such file"):
        Writer(tmp_path / "no" / "run.tuimon")
    with pytest.raises(ValueError, match="1 MB at least"):
        Writer(tmp_path / "run.tuimon", most=1000)


def test_a_file_of_another_kind_or_of_a_newer_tuimon(tmp_path: Path) -> None:
    file = tmp_path / "run.tuimon"
    file.write_bytes(b"something else")
    with pytest.raises(Unreadable, match="is no recording"):
        Recording(file)
    file.write_bytes(MAGIC)
    with pytest.raises(Unreadable, match="nothing in it"):
        open_any(file)
    file.unlink()
    writer = Writer(file)
    writer.close()
    with pytest.raises(Unreadable, match="nothing in it"):
        open_any(file)
    raw = file.read_bytes()
    head = layout.file_head(raw[: layout.HEAD])
    assert head is not None
    file.write_bytes(head._replace(version=layout.VERSION + 1).pack() + raw[layout.HEAD :])
    with pytest.raises(Unreadable, match="a newer tuimon"):
        open_any(file)
