"""Attaching to real torch programs from outside: results stay the same to the bit, Dynamo notices nothing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.attach.conftest import CYCLES, needs_tracing, until
from tuimon.attach import procfs
from tuimon.attach.process import find_targets
from tuimon.attach.session import Session, attach

pytestmark = [pytest.mark.live, needs_tracing]

TRAIN = """
import hashlib, json, os, struct, sys, threading, torch
torch.manual_seed(0)
torch.set_num_threads(1)
net = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.GELU(), torch.nn.Linear(32, 1))
optimizer = torch.optim.AdamW(net.parameters(), lr=1e-2)
compiled = torch.compile(lambda x: net(x).pow(2).mean(), backend="aot_eager")
source = torch.Generator().manual_seed(1)
losses = hashlib.sha256()
stop, steps = sys.argv[1], 0
while True:
    optimizer.zero_grad()
    loss = compiled(torch.randn(8, 16, generator=source))
    loss.backward()
    optimizer.step()
    losses.update(struct.pack("<f", loss.item()))
    steps += 1
    if steps == 5:
        print("ready", flush=True)
    if steps % 50 == 0 and os.path.exists(stop):
        break
import torch._dynamo.utils as utils
print(json.dumps({"steps": steps, "losses": losses.hexdigest(), "threads": threading.active_count(),
                  "frames": dict(utils.counters["frames"]), "stats": dict(utils.counters["stats"]),
                  "breaks": dict(utils.counters["graph_break"]),
                  "ours": [n for n in sys.modules if "tuimon" in n]}), flush=True)
"""

AGAIN = TRAIN.replace("steps % 50 == 0 and os.path.exists(stop)", "steps == int(sys.argv[2])")


@pytest.fixture
def train(tmp_path: Path) -> Iterator[tuple[subprocess.Popen[str], Path]]:
    """A training program that runs until a file appears."""
    stop = tmp_path / "stop"
    process = subprocess.Popen(
        [sys.executable, "-c", TRAIN, str(stop)],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        yield process, stop
    finally:
        process.kill()
        process.communicate()


def finish(process: subprocess.Popen[str], stop: Path) -> dict[str, object]:
    """Have it end; gives what it says of itself."""
    stop.touch()
    assert process.stdout is not None
    facts = json.loads(process.stdout.readline())
    assert process.wait(60) == 0
    assert isinstance(facts, dict)
    return facts


def same_steps_alone(steps: object) -> dict[str, object]:
    """What a program that nobody attached to says after as many steps."""
    output = subprocess.run(
        [sys.executable, "-c", AGAIN, "/nowhere", str(steps)],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    ).stdout
    facts = json.loads(output.splitlines()[-1])
    assert isinstance(facts, dict)
    return facts


def test_results_and_counters_are_those_of_a_run_alone(train) -> None:
    process, stop = train
    threads = len(procfs.thread_ids(process.pid))
    for _ in range(CYCLES):
        session = attach(process.pid, {})
        goodbye = session.detach()
        assert goodbye is not None and goodbye["left"] == []
        assert session.report.left == []
    until(lambda: len(procfs.thread_ids(process.pid)) <= threads)
    facts = finish(process, stop)
    alone = same_steps_alone(facts["steps"])
    assert facts == alone


def test_numbers_come(train) -> None:
    process, stop = train
    session = attach(process.pid, {})
    kinds: list[int] = []
    session.start(lambda kind, body: kinds.append(kind), lambda reason: None)
    until(lambda: 2 in kinds)  # samples
    assert session.detach() is not None
    finish(process, stop)


def test_list_shows_it(train) -> None:
    process, _ = train
    target = next(target for target in find_targets() if target.pid == process.pid)
    assert target.has_torch and target.attachable and target.kind == "job"


def test_killed_monitor_leaves_the_job_as_it_was(train, tmp_path: Path) -> None:
    process, stop = train
    threads = len(procfs.thread_ids(process.pid))
    script = (
        "import sys, time\n"
        f"sys.path.insert(0, {str(Path(__file__).resolve().parents[2])!r})\n"
        "from tuimon.attach.session import attach\n"
        f"session = attach({process.pid}, {{}})\n"
        "session.start(lambda kind, body: None, lambda reason: None)\n"
        "print('attached', flush=True)\n"
        "time.sleep(600)\n"
    )
    for _ in range(5):
        with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True) as monitor:
            assert monitor.stdout is not None
            assert monitor.stdout.readline() == "attached\n"
            monitor.kill()
        until(lambda: len(procfs.thread_ids(process.pid)) <= threads)
    session: Session = attach(process.pid, {})
    assert session.detach() is not None
    facts = finish(process, stop)
    assert facts == same_steps_alone(facts["steps"])
