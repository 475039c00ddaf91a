"""The device's clock on a real device. Skipped where there is none."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.support.hooked import run

pytestmark = [
    pytest.mark.live,
    pytest.mark.gpu,
    pytest.mark.skipif(not Path("/dev/nvidia0").exists(), reason="there is no NVIDIA GPU here (/dev/nvidia0)"),
]

PROGRAM = """
import json, sys, threading, time, torch, torch._dynamo
x = torch.ones(2048, 2048, device="cuda")
def waits(x):
    for _ in range(20): x = x @ x * 1e-4
    print(end="", file=None if x[0, 0].item() > 1e30 else sys.stdout)
    return x.sin()
def does_not(x):
    for _ in range(20): x = x @ x * 1e-4
    print(end="")
    return x.sin()
"""


def test_a_region_takes_as_long_as_torchs_own_events_say(tmp_path: Path) -> None:
    outcome = run(
        PROGRAM
        + """
attach()
f = torch.compile(does_not, backend="eager")
for _ in range(5): f(x)
torch.cuda.synchronize()
took = []
for _ in range(200):
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    begin.record(); f(x); end.record(); torch.cuda.synchronize()
    took.append(begin.elapsed_time(end))
time.sleep(2.5)
detach()
print(json.dumps(sorted(took)[100]))
""",
        tmp_path,
    )
    rows = [row for message in outcome.messages if message.get("k") == "device" for row in message["rows"]]
    assert len(rows) >= 20 and all(row[2] > 0 for row in rows)
    regions = [region for region in outcome.model.regions.values() if region.device.n]
    total_ms = sum(region.device.total_ns / region.device.n for region in regions) / 1e6
    assert total_ms == pytest.approx(outcome.values, rel=0.5)


def test_who_waits_for_the_device_is_seen(tmp_path: Path) -> None:
    outcome = run(
        PROGRAM
        + """
attach()
for function in (waits, does_not):
    f = torch.compile(function, backend="eager")
    for _ in range(200): f(x)
    torch.cuda.synchronize()
time.sleep(2.5)
detach()
""",
        tmp_path,
    )
    looked = {one.function: (one.sync_looked, one.sync_waited) for one in outcome.model.boundaries.values() if one.sync_looked}
    assert looked["waits"][1] >= 0.8 * looked["waits"][0] > 0
    assert looked["does_not"][1] <= 0.2 * looked["does_not"][0]


def test_a_capture_on_the_jobs_thread_is_left_alone(tmp_path: Path) -> None:
    """Events are asked for, on the hook's thread, while the job captures in the mode that forbids it to all threads."""
    outcome = run(
        PROGRAM
        + """
attach()
f = torch.compile(does_not, backend="eager")
for _ in range(40): f(x)
graph, y = torch.cuda.CUDAGraph(), torch.ones(64, 64, device="cuda")
torch.cuda.synchronize()
with torch.cuda.graph(graph, capture_error_mode="global"):
    for _ in range(6):
        y = y * 2
        time.sleep(0.5)
graph.replay()
torch.cuda.synchronize()
for _ in range(40): f(x)
time.sleep(2.5)
detach()
print(json.dumps(True))
""",
        tmp_path,
        python=sys.executable,
    )
    assert outcome.values is True
    assert all(message["instruments"]["device clock"] == "on" for message in outcome.messages if message.get("k") == "status")
