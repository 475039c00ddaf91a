"""Two gloo ranks on "two nodes": a real sshd on the loopback interface, a relay on each that folds, one tuimon on top."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.attach.conftest import needs_tracing, until
from tests.live.test_ssh import SSHD, Sshd
from tests.relay.conftest import Traces
from tests.support.command import tuimon
from tuimon import events as ev
from tuimon.model import Model
from tuimon.relay import near, place
from tuimon.sources.live import LiveDecoder

pytestmark = [
    pytest.mark.live,
    needs_tracing,
    pytest.mark.skipif(SSHD is None, reason="no sshd here (apt install openssh-server)"),
]

TRAIN = """
import os, sys, time
import torch
import torch.distributed as dist

dist.init_process_group("gloo")
torch.manual_seed(0)
torch.set_num_threads(1)
net = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.GELU(), torch.nn.Linear(32, 1))
optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3)
compiled = torch.compile(lambda x: net(x).pow(2).mean(), backend="eager")
steps = 0
while True:
    optimizer.zero_grad()
    compiled(torch.randn(8, 16)).backward()
    if dist.get_rank() == 1:
        time.sleep(0.03)
    for parameter in net.parameters():
        dist.all_reduce(parameter.grad)
    optimizer.step()
    steps += 1
    if steps == 5:
        print("ready", flush=True)
"""


@pytest.fixture(scope="module")
def sshd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sshd]:
    """An sshd of our own."""
    running = Sshd(tmp_path_factory.mktemp("sshd"))
    yield running
    running.process.terminate()
    running.process.wait()


@pytest.fixture(scope="module")
def ranks() -> Iterator[list[subprocess.Popen[str]]]:
    """Two ranks that train; the second comes 30 ms late to each step's first collective."""
    with socket.socket() as finding:
        finding.bind(("127.0.0.1", 0))
        port = finding.getsockname()[1]
    env = {**os.environ, "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "OMP_NUM_THREADS": "1"}
    running = [
        subprocess.Popen(
            [sys.executable, "-c", TRAIN],
            stdout=subprocess.PIPE,
            text=True,
            env={**env, "RANK": str(rank), "LOCAL_RANK": str(rank)},
        )
        for rank in range(2)
    ]
    try:
        for process in running:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
        yield running
    finally:
        for process in running:
            process.send_signal(signal.SIGKILL)
            process.communicate()


def test_the_late_rank_is_named_from_what_the_nodes_fold(
    sshd: Sshd, ranks: list[subprocess.Popen[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(place.SSH_VARIABLE, sshd.command("with"))
    traces = [Traces(process.pid) for process in ranks]
    words = [f"ssh://{host}:{sshd.port}/{process.pid}" for host, process in zip(("127.0.0.1", "localhost"), ranks, strict=True)]
    output = tmp_path / "report.json"
    done = tuimon("attach", *words, "--fold", "--headless", "--steps", "60", "--duration", "40", "--format", "json",
                  "--output", str(output))  # fmt: skip
    assert done.status == 0, done.err
    report = json.loads(output.read_text())
    first, second = sorted(report["ranks"], key=lambda one: one["rank"])
    assert {first["host"], second["host"]} == {"127.0.0.1", "localhost"}
    assert first["step"]["n"] >= 50 and first["breaks"] == 0
    assert second["lateness"]["median"] > 0.02 > first["lateness"]["median"]
    assert first["waits_for"] is not None
    assert any("rank 1 is late" in sentence for sentence in report["ranks_verdict"]), report["ranks_verdict"]
    for one in traces:
        one.gone()


def test_a_folded_rank_sends_its_calls_while_it_is_looked_at(
    sshd: Sshd, ranks: list[subprocess.Popen[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(place.SSH_VARIABLE, sshd.command("with"))
    where, pid = place.parse(sshd.address(ranks[0].pid))
    assert pid is not None
    with near.connect(where) as link:
        session = link.open_session(pid, {}, fold=True)
        decoder, model, seen = LiveDecoder(pid, "", session.how), Model(), []

        def take(kind: int, body: bytes) -> None:
            events = decoder.frame(kind, body)
            seen.extend(type(event) for event in events)
            model.apply(events)

        session.start(take, lambda reason: None)
        until(lambda: model.steps.n >= 10)
        assert ev.Samples not in seen and model.folded.begun and model.steps.source == "optimizer"
        account = model.steps.accounts[-1]
        assert sum(account.parts) == pytest.approx(account.took_ns, rel=0.01)
        assert len(model.regions) == 1 and _calls(model) == 0
        session.pass_on(whole=True)
        until(lambda: _calls(model) >= 3)
        steps = model.steps.n
        session.pass_on(whole=False)
        until(lambda: model.steps.n > steps + 5)
        indices = [one.index for one in model.steps.accounts]
        assert indices == list(range(indices[0], indices[0] + len(indices)))
        assert session.detach() is not None


def _calls(model: Any) -> int:
    return sum(region.calls for region in model.regions.values())
