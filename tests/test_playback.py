"""A recording that is played: at a pace, by steps, to places; and always the state that the live run had there."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.model.dump import dump
from tests.sources.recorded_streams import STREAMS, batches, fold, record, stream, training
from tuimon.commands import replay
from tuimon.commands.options import DONE, USAGE, Options
from tuimon.model import Model
from tuimon.playback import FileGroup, Playback, WholeFile, of_path
from tuimon.playback import loading as loading_module
from tuimon.playback.position import Place, place
from tuimon.sources.files import open_any

STEPS = 600
PATIENCE_S = 60.0


class Clock:
    """A clock that moves when the test says so."""

    def __init__(self) -> None:
        self.ns = 5_000_000_000

    def __call__(self) -> int:
        return self.ns


def plain(model: Model) -> str:
    return json.dumps(dump(model), default=str)


def until(true: Callable[[], bool]) -> None:
    """Wait for something that threads do."""
    end = time.monotonic() + PATIENCE_S
    while not true():
        assert time.monotonic() < end, "it has not come to that"
        time.sleep(0.005)


class Watched:
    """A playback whose owner drains it."""

    def __init__(self, path: Path, **more: object) -> None:
        self.clock = Clock()
        self.feed = Playback(open_any(path)[0][0], clock=self.clock, **more)  # type: ignore[arg-type]
        self.feed.start()
        self.feed.wait()
        self.there()

    def beat(self, seconds: float = 0.0) -> int:
        """Time goes by, and the owner drains once; gives how many events came."""
        self.clock.ns += int(seconds * 1e9)
        events = self.feed.drain()
        self.feed.model.apply(events)
        return len(events)

    def there(self) -> None:
        """Until it is where it was sent, with enough read ahead."""

        def looked() -> bool:
            self.beat()
            return self.feed._wanted is None and self.feed._behind is None and not self.feed._has_room

        until(looked)

    @property
    def step(self) -> int | None:
        return self.feed.position().step


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A made-up job of 600 steps, 20 a batch, a batch each 100 ms."""
    path = tmp_path_factory.mktemp("recorded") / "job.tuimon"
    record(path, list(training(STEPS)))
    return path


@pytest.fixture
def job(path: Path) -> Iterator[Watched]:
    watched = Watched(path)
    yield watched
    watched.feed.detach()


@cache
def at_step(step: int) -> str:
    """What the model was live when this step had just ended: fed row by row until then."""
    from tuimon.playback.fold import Fold

    fold_ = Fold.new()
    for batch in training(STEPS):
        if fold_.until(batch, (0, step + 1)) is not None:
            break
    return plain(fold_.model)


@cache
def at_the_end() -> str:
    """What the model was live at the end."""
    return plain(fold(list(training(STEPS))))


def test_it_is_played_at_its_own_pace(job: Watched) -> None:
    assert job.beat(0.35) and job.step == 59  # three batches of twenty steps
    assert job.feed.clock() == 350_000_000
    assert job.beat(0.04) == 0
    assert job.beat(0.02) == 1 and job.step == 79
    job.feed.play(False)
    assert job.beat(0.9) == 0 and job.feed.clock() == 410_000_000
    job.feed.play(True)
    assert job.feed.speed(1) == 2.0
    job.beat(0.1)
    assert job.step == 119 and job.feed.position().at_s == pytest.approx(0.61)


def test_as_fast_as_it_goes_to_the_end_and_from_the_begin_again(path: Path) -> None:
    job = Watched(path, speed=None)
    until(lambda: job.beat() == 0 and job.feed.position().over)
    assert plain(job.feed.model) == at_the_end()
    job.feed.play(True)
    assert job.feed.speed(-1) == 64.0
    job.there()
    assert job.step is None and not job.feed.position().over
    job.feed.detach()


@pytest.mark.parametrize("file", STREAMS, ids=lambda file: file.stem)
def test_a_recorded_run_ends_as_the_live_one_did(file: Path, tmp_path: Path) -> None:
    told = batches(stream(file))
    record(tmp_path / "r.tuimon", told)
    job = Watched(tmp_path / "r.tuimon", speed=None)
    until(lambda: job.beat() == 0 and job.feed.position().over)
    live = plain(fold(told))
    assert plain(job.feed.model) == live
    job.feed.seek(Place("the middle", at_ns=len(told) * 50_000_000))
    job.there()
    until(lambda: job.beat() == 0 and job.feed.position().over)
    assert plain(job.feed.model) == live
    job.feed.detach()


def test_steps_on_and_back(job: Watched) -> None:
    assert job.feed.step(1) is None
    job.there()
    assert job.step == 0 and job.feed.position().paused
    job.feed.step(10)
    job.there()
    assert job.step == 10 and plain(job.feed.model) == at_step(10)
    job.feed.step(-1)
    job.there()
    assert job.step == 9 and plain(job.feed.model) == at_step(9)
    job.feed.step(-10)
    job.there()
    assert job.step is None and job.feed.clock() == 0
    assert job.feed.step(-1) == "there is no step before this"


@pytest.mark.parametrize("every", [300, 50_000])
def test_any_step_can_be_gone_to(path: Path, every: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loading_module, "EVERY", every)
    job = Watched(path)
    for step in (417, 3, 599, 0):
        assert job.feed.go(str(step)) is None
        job.there()
        assert job.step == step and plain(job.feed.model) == at_step(step)
    assert job.feed.go("600") == "there is no step 600: the last one is 599"
    job.feed.play(True)
    job.feed._speed = None
    until(lambda: job.beat() == 0 and job.feed.position().over)
    assert plain(job.feed.model) == at_the_end()
    job.feed.detach()


def test_times_and_shares(job: Watched) -> None:
    job.feed.play(False)
    for text, at in (("1s", 1.0), ("+0.5s", 1.5), ("-1s", 0.5), ("50%", 1.5), ("100%", 3.0), ("0s", 0.0)):
        assert job.feed.go(text) is None
        job.there()
        assert job.feed.position().at_s == pytest.approx(at, abs=0.001), text
    assert "where is that" in (job.feed.go("over there") or "")


def test_where_to_begin_can_be_said_before_anything_is_read(path: Path) -> None:
    feed = Playback(open_any(path)[0][0], paused=True)
    assert feed.go("50%") is None and not feed.wait(0)
    until(lambda: feed.drain() == [] and not feed.position().going)
    assert feed.position().at_s == pytest.approx(1.5) and feed.model.steps.n == 300
    feed.detach()


def test_kept_states_are_bounded(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loading_module, "EVERY", 200)
    monkeypatch.setattr(loading_module, "MOST_BYTES", 100_000)
    job = Watched(path)
    loading = job.feed._loading
    assert sum(len(one.state) for one in loading.states) <= 100_000 and len(loading.states) > 1
    assert loading._every > 200 and loading.states[0].block == 0
    job.feed.detach()


def test_a_time_of_day_is_found_by_when_the_recording_began() -> None:
    began = 1_790_000_000.0  # 14:13:20 UTC
    found = place("14:14", at_s=0, of_s=600, began_s=began)
    assert isinstance(found, Place) and found.at_ns == 40_000_000_000
    assert place("14:13", at_s=0, of_s=600, began_s=began) == (
        "14:13 is not in this recording: it begins at 14:13:20 and is 10m00s long"
    )
    after = place("00:10", at_s=0, of_s=86_000, began_s=began)  # the day after
    assert isinstance(after, Place) and after.at_ns == (10 * 60 + 86_400 - 51_200) * 1_000_000_000
    assert isinstance(place("13:00", at_s=0, of_s=None, began_s=began), Place)  # how long it is, is not known yet
    assert "time of day" in str(place("14:14", at_s=0, of_s=600, began_s=None))


def test_a_folder_is_all_its_files_played_together(tmp_path: Path) -> None:
    for rank in range(2):
        record(tmp_path / f"{rank}.tuimon", list(training(60, seed=rank)))
    clock = Clock()
    group = of_path(tmp_path, clock=clock)
    assert isinstance(group, FileGroup) and [type(one) for one in group.members] == [Playback, Playback]
    group.start()
    group.wait()
    until(lambda: all(not one.drain() and one._wanted is None and not one._has_room for one in group.members))  # type: ignore[union-attr]
    clock.ns += 250_000_000
    for one in group.members:
        one.model.apply(one.drain())
    group.compare()
    assert [one.model.steps.n for one in group.members] == [40, 40]
    first, second = group.members
    assert isinstance(first, Playback) and isinstance(second, Playback)
    first.play(False)
    second.play(False)
    second.follow(100_000_000)
    until(lambda: second.drain() == [] and second.clock() == 100_000_000)
    assert second.model.steps.n == 20
    group.detach()


def test_a_file_that_is_no_recording_is_shown_whole(tmp_path: Path) -> None:
    (tmp_path / "t.json").write_text('{"traceEvents": [{"ph": "X", "cat": "cpu_op", "name": "aten::mm", "ts": 1, "dur": 2}]}')
    feed = of_path(tmp_path / "t.json")
    assert isinstance(feed, WholeFile)
    assert [type(event).__name__ for event in feed.drain()] == ["Attaching"]
    feed.start()
    assert feed.wait(PATIENCE_S)
    assert feed.drain() == [] and feed.restarted == 1 and feed.model.target.how == "file"


def test_the_end_that_is_cut_off_is_told(path: Path, tmp_path: Path) -> None:
    cut = tmp_path / "cut.tuimon"
    cut.write_bytes(path.read_bytes()[:-2_000])
    os.utime(cut, (1, 1))
    job = Watched(cut, speed=None)
    until(lambda: job.beat() == 0 and job.feed.position().over)
    assert "ends in the middle" in job.feed.model.coverage.not_available["the end of the recording"]
    assert job.feed.model.target.ended is None and 400 < (job.step or 0) < 599
    job.feed.detach()


def test_the_report_of_a_folder_has_all_its_ranks(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for rank in range(2):
        record(tmp_path / f"{rank}.tuimon", list(training(60 + rank, seed=rank)))
    (tmp_path / "empty.log").touch()
    assert replay.run(tmp_path, Options(format="json"), screen=False) == DONE
    report = json.loads(capsys.readouterr().out)
    assert report["target"]["file"] == {"name": tmp_path.name, "kind": "recording", "ranks": 2}
    assert [(one["label"], one["step"]["n"]) for one in report["ranks"]] == [("0.tuimon", 60), ("1.tuimon", 61)]
    left = {one["what"]: one["why"] for one in report["coverage"]["not_available"]}
    assert left["the whole folder"] == "1 file is empty and was left out"


def test_a_place_to_begin_at_that_is_none_is_wrong_usage(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert replay.run(path, Options(), screen=True, at="nowhere") == USAGE
    assert "--at nowhere: where is that?" in capsys.readouterr().err
