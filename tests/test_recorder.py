"""The recorder: what it takes is in the file, and whatever happens to the file, the monitor goes on."""

from __future__ import annotations

import contextlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.model.dump import dump
from tests.sources.recorded_streams import STREAMS, batches, replayed, stream, training
from tuimon import events as ev
from tuimon import recorder as module
from tuimon.model import Model
from tuimon.recorder import Prelude, Recorder
from tuimon.sources.recording import Recording, Writer

ROOT = Path(__file__).parent.parent
PROGRAM = [sys.executable, "-m", "tests.support.recorder_program"]


def until(holds: Callable[[], bool], seconds: float = 30.0) -> None:
    """Wait for a condition."""
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, "it did not come to that"
        time.sleep(0.01)


def nothing(_event: ev.Event) -> None:
    """For what nobody needs to be told."""


def test_a_model_that_is_watched_and_its_recording(tmp_path: Path) -> None:
    file = tmp_path / "run.tuimon"
    model = Model()
    recorder = Recorder(file, tell=nothing, source=True, steps=lambda: model.steps.n)
    model.tap = recorder.put
    told = batches(stream(next(path for path in STREAMS if path.stem == "limited")))
    for batch in told:
        model.apply(iter(batch))
    model.tap = None
    sentence = recorder.close()
    assert recorder.state == "closed" and recorder.bytes == file.stat().st_size
    assert sentence == f"recorded {model.steps.n:,} steps, {recorder.bytes / 1024:.0f} KiB: {file}"
    assert replayed(file) == told
    again = Model()
    for batch in replayed(file):
        again.apply(batch)
    assert json.dumps(dump(again)) == json.dumps(dump(model))
    assert Recording(file).whole
    recorder.put([ev.Line(1, "late")])  # after the end: nothing
    assert recorder.close() == sentence


def test_blocks_are_written_while_it_goes_on(tmp_path: Path) -> None:
    file = tmp_path / "run.tuimon"
    recorder = Recorder(file, tell=nothing)
    try:
        recorder.put([ev.Line(1, "first")])
        until(lambda: file.stat().st_size > 64)
        until(lambda: recorder.bytes == file.stat().st_size)
        assert replayed(file) == [[ev.Line(1, "first")]]
        assert "shown up to" in Recording(file).note
    finally:
        recorder.close()


def test_one_that_is_begun_late_begins_with_the_names(tmp_path: Path) -> None:
    told = list(training(400))
    prelude, model = Prelude(), Model()
    for batch in told[:10]:
        prelude.put(batch)
        model.apply(batch)
    file = tmp_path / "run.tuimon"
    recorder = Recorder(file, tell=nothing, earlier=prelude.events(), steps=lambda: model.steps.n)
    model.tap = recorder.put
    for batch in told[10:]:
        model.apply(batch)
    sentence = recorder.close()
    first, *rest = replayed(file)
    assert rest == told[10:] and first[:-1] == told[0]
    assert isinstance(first[-1], ev.RecordingGap) and "begun then" in first[-1].why
    again = Model()
    for batch in (first, *rest):
        again.apply(batch)
    assert 0 < again.steps.n < model.steps.n and set(again.regions) == set(model.regions)
    assert int(sentence.split()[1]) in range(again.steps.n - 1, again.steps.n + 3)


def test_it_is_not_begun_where_there_is_a_file(tmp_path: Path) -> None:
    file = tmp_path / "run.tuimon"
    file.write_text("mine")
    before = set(threading.enumerate())
    with pytest.raises(FileExistsError):
        Recorder(file, tell=nothing)
    assert file.read_text() == "mine" and set(threading.enumerate()) <= before


def test_a_disk_that_hangs_holds_up_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_WAITING", 1000)
    answers = threading.Event()
    flush = Writer.flush

    def slow(self: Writer, steps: int) -> None:
        answers.wait()
        flush(self, steps)

    monkeypatch.setattr(Writer, "flush", slow)
    file = tmp_path / "run.tuimon"
    before = set(threading.enumerate())
    recorder = Recorder(file, tell=nothing)
    try:
        told = list(training(2000))
        for batch in told[:50]:
            recorder.put(batch)
        assert recorder.state == "on" and recorder.dropped > 0
        recorder.put([ev.ThreadSeen(told[49][0].t_ns, 5, "named while it hangs")])
        assert "has not answered" in recorder.close(timeout=0.1) and recorder.state == "stopped"
    finally:
        answers.set()
    until(lambda: set(threading.enumerate()) <= before)
    events = [event for batch in replayed(file) for event in batch]
    missing = sum(event.rows or 0 for event in events if isinstance(event, ev.RecordingGap))
    put = sum(len(event.rows) for batch in told[:50] for event in batch if isinstance(event, ev.Samples))
    assert missing == recorder.dropped
    assert missing + sum(len(event.rows) for event in events if isinstance(event, ev.Samples)) == put
    assert any(isinstance(event, ev.ThreadSeen) and "hangs" in event.name for event in events)


def test_an_event_that_cannot_be_written_is_told_once(tmp_path: Path) -> None:
    told: list[ev.Event] = []
    recorder = Recorder(tmp_path / "run.tuimon", tell=told.append)
    for number in range(3):
        recorder.put([ev.HostSampled(number, float("inf"), 1, 1, 5.0, 1, 1)])
    recorder.put([ev.Line(4, "goes on")])
    recorder.close()
    (event,) = told
    assert isinstance(event, ev.NotAvailable) and "HostSampled.cpu_percent" in event.why
    assert replayed(tmp_path / "run.tuimon") == [[ev.Line(4, "goes on")]]


def seen_by(found: dict[str, object], file_size: int | None = None) -> None:
    """What the program that had no room has to say."""
    assert found["state"] == "stopped" and found["went_on"] and found["same"]
    assert found["told"] == ["Line", "NotAvailable"] and found["last"] == "recording"
    assert "stopped at" in str(found["why"]) and "were written and can be replayed" in str(found["why"])
    assert str(found["closing"]).startswith("the recording ends early: stopped at")
    assert found["size"] == found["bytes"] and int(str(found["batches"])) > 3
    assert "shown up to" in str(found["note"])
    assert file_size is None or int(str(found["size"])) <= file_size


def test_a_limit_of_the_files_size(tmp_path: Path) -> None:
    ran = subprocess.run([*PROGRAM, tmp_path / "run.tuimon", "150000"], cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert ran.returncode == 0, ran.stderr
    found = json.loads(ran.stdout)
    seen_by(found, 150_000)
    assert "file too large" in found["why"]


def test_a_disk_that_is_full(tmp_path: Path) -> None:
    """A small disk of its own, in a name space of its own."""
    if shutil.which("unshare") is None:
        pytest.skip("no unshare")
    script = 'mount -t tmpfs -o size=128k tuimon "$1" || exit 77; shift; exec "$@"'
    command = ["unshare", "-m", "sh", "-c", script, "sh", tmp_path, *PROGRAM, tmp_path / "run.tuimon", "0"]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)
    if ran.returncode in (1, 77) and "recorder_program" not in ran.stderr:
        pytest.skip(f"no disk can be mounted here: {ran.stderr.strip()[:100]}")
    assert ran.returncode == 0, ran.stderr
    found = json.loads(ran.stdout)
    seen_by(found, 128 * 1024)
    assert "no space left on device" in found["why"]


@pytest.mark.parametrize("seed", range(3))
def test_a_recorder_that_is_killed(seed: int, tmp_path: Path) -> None:
    file = tmp_path / "run.tuimon"
    child = subprocess.Popen([*PROGRAM, file], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    try:
        until(lambda: file.exists() and file.stat().st_size > 64)
        lines = [child.stdout.readline() for _ in range(random.Random(seed).randrange(20, 300))]
        os.kill(child.pid, signal.SIGKILL)
        last = int([*lines, *child.stdout.read().splitlines()][-1].split()[0])
    finally:
        with contextlib.suppress(ProcessLookupError):
            child.kill()
        child.wait()
        child.stdout.close()
    found = replayed(file)
    assert 0 < len(found) <= last + 2
    for number, batch in enumerate(found):
        line, samples = batch
        assert line == ev.Line(number, f"batch {number}") and isinstance(samples, ev.Samples) and len(samples.rows) == 7
    assert not Recording(file).whole
