"""A recording that keeps to a size: its files, what is dropped of them, and what is told again."""

from __future__ import annotations

import os
import random
import shutil
from pathlib import Path

import pytest

from tests.sources.recorded_streams import Batches, fold, record, replayed, training
from tuimon import events as ev
from tuimon.sources.files import open_any
from tuimon.sources.recording import LEAST, Prelude, Recording, Writer
from tuimon.sources.recording.segments import KEPT, later, name_of

ROWS = 400


EACH = 4


def job(batches: int) -> Batches:
    """Rows that pack badly, and in each fourth batch an instrument that is new."""
    rng = random.Random(3)
    at, told = 10**14, [[ev.TargetSeen(10**14, 1, "train.py", "3.11.7", "2.13.0", "run", 1.7e9, ("cpu",))]]
    for number in range(1, batches + 1):
        at += 10**9
        added = ev.InstrumentAdded(at, number, "forward", f"{number}/0", "n", f"f{number}", "/w/model.py", number)
        new: list[ev.Event] = [added] if number % EACH == 0 else []
        rows = tuple(
            (number // EACH * EACH, rng.getrandbits(60), 0, low, low + rng.getrandbits(28))
            for low in sorted(at + rng.getrandbits(29) for _ in range(ROWS))
        )
        told.append([*new, ev.Samples(at, rows), ev.Line(at, f"batch {number}")])
    return told


NAMED = list(range(EACH, 401, EACH))


def names(events: list[ev.Event]) -> list[int]:
    return [event.instrument for event in events if isinstance(event, ev.InstrumentAdded)]


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Batches]:
    """A recording of which parts were dropped, and what was recorded."""
    file = tmp_path_factory.mktemp("many") / "run.tuimon"
    told = job(400)
    writer = record(file, told, each=1, most=LEAST)
    assert writer.bytes == sum(path.stat().st_size for path in file.parent.iterdir())
    return file, told


def test_it_keeps_to_its_size_and_to_its_begin(many: tuple[Path, Batches]) -> None:
    file, _ = many
    files = [file, *(path for _, path in later(file))]
    assert len(files) == KEPT and file.exists() and not name_of(file, 2).exists()
    assert sum(path.stat().st_size for path in files) <= LEAST
    assert {path.stat().st_mode & 0o777 for path in files} == {0o600}


def test_behind_the_hole_everything_has_its_name_again(many: tuple[Path, Batches]) -> None:
    file, _ = many
    events = [event for batch in replayed(file) for event in batch]
    (gap,) = [event for event in events if isinstance(event, ev.RecordingGap)]
    assert "its oldest part but the first was dropped" in gap.why and gap.from_ns < gap.until_ns
    assert names(events) == NAMED  # each once, in order
    lines = [event.text for event in events if isinstance(event, ev.Line)]
    before = lines.index(next(line for number, line in enumerate(lines, 1) if line != f"batch {number}"))
    missing = 400 - len(lines)
    assert lines == [f"batch {n}" for n in (*range(1, before + 1), *range(before + missing + 1, 401))]
    assert gap.rows == missing * ROWS
    model = fold(replayed(file))
    assert len(model.regions) == len(NAMED) and model.recorded.gaps == [gap]


def test_any_suffix_folds(many: tuple[Path, Batches], tmp_path: Path) -> None:
    """The last files alone, whatever became of the others."""
    file, _ = many
    for number, _ in later(file)[-3:]:
        shutil.copy(name_of(file, number), tmp_path)
    parts = later(tmp_path / file.name)
    for _, path in parts:  # given by any of them
        recording = Recording(path)
        events = [event for batch in recording.read() for event in batch.events]
        assert names(events) == NAMED
        assert isinstance(events[0], ev.RecordingGap) and isinstance(events[1], ev.TargetSeen)
        assert recording.whole


def test_a_folder_holds_it_once(many: tuple[Path, Batches]) -> None:
    file, _ = many
    found, left_out = open_any(file.parent)
    assert [one.path for one in found] == [file] and left_out == []
    (opened,), _ = open_any(later(file)[2][1])  # by the name of a part of it
    assert opened.path == file


def test_without_a_hole_nothing_is_told_twice(tmp_path: Path) -> None:
    file = tmp_path / "run.tuimon"
    told = job(90)
    record(file, told, each=1, most=2 * LEAST)
    assert len(later(file)) >= 2
    assert replayed(file) == told
    recording = Recording(file)
    assert recording.rows == 90 * ROWS and recording.whole and recording.note == ""
    # a part in the middle that is gone is a hole
    gone = later(file)[0][1]
    gone.rename(tmp_path / "gone")
    events = [event for batch in replayed(file) for event in batch]
    assert names(events) == list(range(EACH, 91, EACH))
    assert [event.rows for event in events if isinstance(event, ev.RecordingGap)] == [Recording(tmp_path / "gone").rows]
    # the last one that is gone is an end that is not here
    later(file)[-1][1].unlink()
    assert "goes on in a part" in Recording(file).note


def test_parts_of_another_recording_are_not_taken_for_its_own(tmp_path: Path) -> None:
    file = tmp_path / "run.tuimon"
    other = tmp_path / "other.tuimon"
    record(file, job(20), each=1, most=LEAST)
    record(other, job(60), each=1, most=LEAST)
    shutil.copy(name_of(other, 3), name_of(file, len(later(file)) + 2))
    assert replayed(file) == job(20)
    (tmp_path / "run.tuimon.9").write_text("something else")
    (tmp_path / "run.tuimon.old").write_text("something else")
    os.mkfifo(tmp_path / "run.tuimon.11")
    assert replayed(file) == job(20)


def test_files_that_lie_where_a_part_would_go(tmp_path: Path) -> None:
    file = tmp_path / "run.tuimon"
    mine = tmp_path / "run.tuimon.2"
    mine.write_text("a note of mine")
    with pytest.raises(FileExistsError):
        Writer(file)
    with pytest.raises(FileExistsError):
        Writer(file, force=True)
    assert mine.read_text() == "a note of mine" and not file.exists()
    mine.unlink()
    record(file, job(60), each=1, most=LEAST)
    record_again = Writer(file, force=True)
    record_again.put(0, [ev.Line(1, "anew")])
    record_again.close()
    assert later(file) == [] and replayed(file) == [[ev.Line(1, "anew")]]


def test_a_prelude_holds_what_names_and_decides() -> None:
    prelude = Prelude()
    told = [event for batch in training(50) for event in batch]
    prelude.put(told)
    prelude.put([ev.NotAvailable(1, "gpu", "none"), ev.SyncLooked(2, 3, 4, 5), ev.HookStatus(3, 1, 1, 0.1)])
    prelude.put([ev.NotAvailable(4, "gpu", "gone"), ev.SyncLooked(5, 3, 6, 7), ev.HookStatus(6, 2, 1, 0.1)])
    kept = [event for event in told if not isinstance(event, ev.Samples)]
    latest = [ev.NotAvailable(4, "gpu", "gone"), ev.SyncLooked(5, 3, 6, 7), ev.HookStatus(6, 2, 1, 0.1)]
    assert prelude.events() == [*kept, *latest]


def test_a_prelude_is_bounded_and_keeps_names() -> None:
    prelude = Prelude(most=1000)
    seen = ev.TargetSeen(1, 1, "train.py", "3.11.7", "2.13.0", "run", 1.7e9, ("cpu",))
    added = ev.InstrumentAdded(1, 1, "forward", "0/0", "n", "f", "/w/model.py", 1)
    prelude.put([seen, added])
    for number in range(5000):
        prelude.put([ev.PhaseBegan(number, "0/0", "x", "t"), ev.CacheLooked(number, "0/0", "fx_graph", "hit")])
    events = prelude.events()
    assert events[:2] == [seen, added] and 100 < len(events) <= 1000
    assert events[-1] == ev.CacheLooked(4999, "0/0", "fx_graph", "hit") and prelude.left_out == 10_002 - len(events)
    for number in range(5000):  # nothing but names
        prelude.put([ev.InstrumentAdded(number, number, "forward", "0/0", "n", "f", "/w/model.py", 1)])
    assert prelude.events()[0] == seen and len(prelude.events()) <= 1000
