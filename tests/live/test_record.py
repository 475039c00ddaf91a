"""`tuimon record` on real jobs: what is in the file is what was seen, whatever becomes of the disk."""

from __future__ import annotations

import json
import os
import resource
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.model.dump import dump
from tests.report.test_export_prometheus import parsed, values
from tests.support.command import TUIMON, Ran, environment, start, tuimon, until
from tuimon.commands import record
from tuimon.commands import run as running
from tuimon.commands.options import Far, Options, Record
from tuimon.commands.phases import phases
from tuimon.feed import LiveFeed
from tuimon.model import Model
from tuimon.sources.files import no_progress, open_any

pytestmark = pytest.mark.live
pytest.importorskip("torch")

JOB = """\
import sys, time
import torch

@torch.compile(backend="eager")
def step(x):
    h = x.sin()
    print("in the middle", file=sys.stdout)
    return h.cos()

weight = torch.nn.Parameter(torch.ones(8))
optimizer = torch.optim.SGD([weight], lr=0.1)
for number in range(int(sys.argv[1])):
    step(weight[: 4 + (number > 30)]).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
    if number == 0:
        print("begun", flush=True)
    time.sleep(float(sys.argv[2]))
print("done", flush=True)
"""


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("record") / "job.py"
    path.write_text(JOB)
    return path


@pytest.fixture
def feeds(monkeypatch: pytest.MonkeyPatch) -> list[LiveFeed]:
    """The feeds that a command makes, in this process: to look at the model that it had."""
    made: list[LiveFeed] = []

    class Seen(LiveFeed):
        def __init__(self, *args: Any, **more: Any) -> None:
            super().__init__(*args, **more)
            made.append(self)

    monkeypatch.setattr(running, "LiveFeed", Seen)
    for name, value in environment().items():
        monkeypatch.setenv(name, value)
    return made


def replayed(path: Path) -> Model:
    ((opened,), left) = open_any(path)
    assert left == [] and opened.kind == "recording"
    model = Model()
    for batch in opened.events(no_progress):
        model.apply(batch)
    return model


def as_json(model: Model) -> Any:
    return json.loads(json.dumps(dump(model)))


def test_a_recorded_run_replays_to_the_same_state(job: Path, tmp_path: Path, feeds: list[LiveFeed]) -> None:
    path = tmp_path / "run.tuimon"
    wanted = Options(
        headless=True,
        reported=False,
        record=Record(path, source=True),
        phases=phases("initial=1,steady=30,guard=15"),
        prometheus=tmp_path / "tuimon.prom",
    )
    assert record.run([], [sys.executable, str(job), "60", "0.002"], wanted, Far()) == 0
    (feed,) = feeds
    again = replayed(path)
    assert as_json(again) == as_json(feed.model)
    assert again.steps.n == 60 and again.target.status == 0
    assert len(again.recompiles) == 2
    names = [(one.name, one.planned, one.first_step) for one in again.phases.all]
    assert names[:3] == [("initial", "1 step", 0), ("steady", "30 steps", 1), ("guard", "15 steps", 31)]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    _, series = parsed((tmp_path / "tuimon.prom").read_text())
    assert values(series, "tuimon_steps_total") == [60] and values(series, "tuimon_up") == [0]


@pytest.fixture(scope="module")
def jobs(job: Path) -> Iterator[list[subprocess.Popen[str]]]:
    """Two that run until they are killed, for all the tests here: each leaves them as they were."""
    found = [start([sys.executable, str(job), "1000000", "0.01"]) for _ in range(2)]
    drains = [threading.Thread(target=_read, args=(one,)) for one in found]
    try:
        for one, drain in zip(found, drains, strict=True):
            assert one.stdout is not None
            while one.stdout.readline() != "begun\n":
                assert one.poll() is None
            drain.start()
        yield found
    finally:
        for one, drain in zip(found, drains, strict=True):
            one.kill()
            if drain.ident is not None:
                drain.join()
            one.communicate()


def _read(job: subprocess.Popen[str]) -> None:
    """What it says, to the end: a job whose pipe is full stands still."""
    assert job.stdout is not None
    for _ in job.stdout:
        pass


def test_several_go_into_a_folder_and_run_on(jobs: list[subprocess.Popen[str]], tmp_path: Path) -> None:
    folder = tmp_path / "both"
    pids = [str(one.pid) for one in jobs]
    ran = tuimon("record", *pids, "-o", str(folder), "--steps", "20", "--format", "json")
    assert ran.status == 0, ran.err
    assert sorted(os.listdir(folder)) == sorted(f"pid-{pid}.tuimon" for pid in pids)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    for pid in pids:
        model = replayed(folder / f"pid-{pid}.tuimon")
        assert str(model.target.pid) == pid and model.target.ended == "detached"
        assert not any(line.kind == "job" for line in model.log)
    first = replayed(folder / f"pid-{ran.report['target']['pid']}.tuimon")
    assert first.steps.n == ran.report["steps"]["n"] >= 20
    again = tuimon("report", str(folder), "--format", "json")
    assert again.status == 0 and len(again.report["ranks"]) == 2
    assert all(one.poll() is None for one in jobs)


def test_of_what_was_not_attached_to_nothing_is_kept(tmp_path: Path) -> None:
    sleeper = start(["sleep", "1000"])
    try:
        ran = tuimon("record", str(sleeper.pid), "-o", str(tmp_path / "no.tuimon"))
    finally:
        sleeper.kill()
        sleeper.communicate()
    assert ran.status == 3, ran.err
    assert os.listdir(tmp_path) == []


def with_small_disk(*words: str, most: int = 16 << 10) -> Ran:
    """tuimon, with no file of which more than so many bytes may be."""
    ran = subprocess.run(
        [*TUIMON, *words],
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (most, most)),
        capture_output=True,
        text=True,
        env=environment(),
        timeout=240,
        check=False,
    )
    assert "file too large" in ran.stderr and "can be replayed" in ran.stderr, ran.stderr
    return Ran(ran.returncode, ran.stdout, ran.stderr)


def was_cut(path: Path, report: dict[str, Any], most: int = 16 << 10) -> None:
    """The report tells all, and that the recording does not; what was recorded is a part of it."""
    gaps = {one["what"]: one["why"] for one in report["coverage"]["not_available"]}
    assert "file too large" in gaps["recording"]
    assert 0 < path.stat().st_size <= most
    model = replayed(path)
    assert model.target.pid == report["target"]["pid"] and model.steps.n < report["steps"]["n"]


def test_a_full_disk_ends_the_recording_and_not_the_program(job: Path, tmp_path: Path) -> None:
    path = tmp_path / "run.tuimon"
    ran = with_small_disk("record", "-o", str(path), "--format", "json", "--", sys.executable, str(job), "60", "0.01")
    assert ran.status == 0  # the program's own
    assert ran.report["steps"]["n"] == 60 and ran.report["target"]["ended"]["how"] == "exited"
    assert ran.err.count("in the middle") == 60 and "done" in ran.err
    was_cut(path, ran.report)


def test_a_full_disk_ends_the_recording_and_not_the_watching(jobs: list[subprocess.Popen[str]], tmp_path: Path) -> None:
    path = tmp_path / "run.tuimon"
    ran = with_small_disk("record", str(jobs[0].pid), "-o", str(path), "--format", "json", "--steps", "400")
    assert ran.status == 1
    assert ran.report["steps"]["n"] >= 400
    was_cut(path, ran.report)
    assert jobs[0].poll() is None


def test_an_interrupted_recording_is_whole(jobs: list[subprocess.Popen[str]], tmp_path: Path) -> None:
    path, prom = tmp_path / "run.tuimon", tmp_path / "tuimon.prom"
    process = start([*TUIMON, "record", str(jobs[0].pid), "-o", str(path), "--prometheus", str(prom), "--interval", "0.2"])
    try:
        until(lambda: prom.exists() and values(parsed(prom.read_text())[1], "tuimon_steps_total") > [20], "some steps")
        process.terminate()
        out, err = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 0 and out == "", err
    assert f": {path}" in err and "recorded" in err
    assert replayed(path).target.ended == "detached"
    assert values(parsed(prom.read_text())[1], "tuimon_up") == [0]
    assert jobs[0].poll() is None
