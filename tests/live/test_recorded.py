"""Jobs that really run, watched and recorded at once: the recording folds to the very model that was watched."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.model.dump import dump
from tests.roofline.jobs import HOST
from tests.sources.recorded_streams import fold, replayed
from tests.support.command import environment
from tuimon import events as ev
from tuimon.attach.launch import launch
from tuimon.feed import LiveFeed
from tuimon.model import Model
from tuimon.recorder import Recorder
from tuimon.report import build, render
from tuimon.sources.recording import Recording
from tuimon.sources.redact import redacted

pytestmark = pytest.mark.live

TRAINING = """
import gc, torch
torch.manual_seed(1)
model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

@torch.compile(backend="eager", dynamic=False)
def loss_of(x):
    y = model(x).square()
    if y.mean() > 1e9:
        y = y * 2
    return y.mean()

class Rows(torch.utils.data.Dataset):
    def __len__(self):
        return 600
    def __getitem__(self, at):
        return torch.randn(8)

for step, x in enumerate(torch.utils.data.DataLoader(Rows(), batch_size=6)):
    x = x[: 4 + step // 40]
    optimizer.zero_grad()
    loss_of(x).backward()
    optimizer.step()
    if step % 25 == 0:
        gc.collect()
        print("loss", step)
"""
SKIPPED = """
import torch

@torch.compile(backend="eager")
def area(boxes):
    total = 0
    for box in boxes:
        try:
            total += int(box[0].item())
            torch._dynamo.graph_break()
        except ZeroDivisionError:
            pass
    return torch.zeros(2) + total

for step in range(60):
    area(torch.arange(step % 4 + 1).reshape(-1, 1))
raise SystemExit(3)
"""


class Both:
    """A tap that keeps what it is shown, beside the recorder."""

    def __init__(self, recorder: Recorder) -> None:
        self.told: list[list[ev.Event]] = []
        self._recorder = recorder

    def __call__(self, events: Sequence[ev.Event]) -> None:
        self.told.append(list(events))
        self._recorder.put(events)


def watched(script: Path, file: Path, *, source: bool) -> tuple[Model, list[list[ev.Event]]]:
    """The model of a program that was run to its end and recorded, and what the model was given."""
    process, session = launch(
        [sys.executable, str(script)], {}, env=environment(), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )  # fmt: skip
    feed = LiveFeed(session, script.name, process)
    recorder = Recorder(file, tell=lambda _: None, source=source, steps=lambda: feed.model.steps.n)
    feed.model.tap = tap = Both(recorder)
    try:
        feed.start()
        deadline = time.monotonic() + 300
        while feed.model.target.ended is None or process.poll() is None:
            assert time.monotonic() < deadline
            feed.pump()
            time.sleep(0.02)
    finally:
        feed.detach()
        process.kill()
        process.wait()
    feed.pump()
    feed.model.tap = None
    assert "recorded" in recorder.close() and recorder.dropped == 0
    return feed.model, tap.told


@pytest.mark.parametrize(("text", "source"), [(TRAINING, True), (SKIPPED, False)], ids=["training", "skipped, no source"])
def test_what_is_replayed_is_what_was_watched(text: str, source: bool, tmp_path: Path) -> None:
    script, file = tmp_path / "job.py", tmp_path / "run.tuimon"
    script.write_text(text)
    model, told = watched(script, file, source=source)
    if not source:
        model = fold([[kept for event in batch if (kept := redacted(event)) is not None] for batch in told])
        assert "box[0]" not in str(replayed(file))
    again = fold(replayed(file))
    assert json.dumps(dump(again)) == json.dumps(dump(model))
    assert render(build(again, known=HOST), "json") == render(build(model, known=HOST), "json")
    assert Recording(file).whole and model.compilations and model.target.ended == "exited"
    if text is TRAINING:
        assert model.steps.n > 90 and model.boundaries and model.recompiles
