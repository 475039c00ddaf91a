"""A driver call that does not come back: the real source over the scripted library, the monitor in a real terminal, and keys.

How long the screen stands still at most is measured by `tests.bench.gpu_latency`; here the order of things is held.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.fake_nvml import build
from tests.support.terminal import Terminal

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = """
* count 2
* name NVIDIA_H100_80GB_HBM3
1 utilization 97
0 utilization {changing}
* memory.total 85899345920
* memory.used 21474836480
* power.limit.mw 700000
0 power.mw 300000
1 power.mw 300000 300000 ~{ms},310000 311000
"""
SENTENCE = "NVML not answering for "


@pytest.fixture
def on(tmp_path: Path) -> Iterator[Terminal]:
    if build.compiler() is None:
        pytest.skip("no C compiler to build the scripted NVML with")
    (tmp_path / "lib").mkdir()
    build.build(tmp_path / "lib")
    script = tmp_path / "nvml.script"
    script.write_text(SCRIPT.format(ms=60_000, changing=" ".join(str(10 + at) for at in range(31))))
    not_ours = ("NO_COLOR", "SSH_CONNECTION", "SSH_TTY", "COLUMNS", "LINES")
    env = {name: value for name, value in os.environ.items() if name not in not_ours}
    env |= {
        "TERM": "xterm-256color",
        "PYTHONPATH": str(ROOT),
        "PYTHONUTF8": "1",
        "XDG_CONFIG_HOME": str(tmp_path),
        "LD_LIBRARY_PATH": str(tmp_path / "lib"),
        "FAKE_NVML_SCRIPT": str(script),
        "GPU_HANG_REPORT": str(tmp_path / "report.json"),
    }
    terminal = Terminal([sys.executable, "-m", "tests.support.gpu_hang_program", "quiet"], 100, 30, env)
    yield terminal
    terminal.close()


def test_keys_act_while_a_call_hangs_and_the_other_gpu_goes_on(on: Terminal, tmp_path: Path) -> None:
    def seconds() -> float | None:
        line = next((line for line in on.screen.display if SENTENCE in line), None)
        return float(line.split(SENTENCE)[1].split()[0]) if line is not None else None

    def utilization() -> str:
        line = next((line for line in on.screen.display if line.startswith(" 0 ") and "/700 W" in line), "")
        return next((word for word in line.split() if word.endswith("%")), "")

    assert on.wait_for(lambda: on.sees(SENTENCE))
    assert on.sees("on GPU 1 (nvmlDeviceGetPowerUsage)")
    on.write("5")
    assert on.wait_for(lambda: on.sees("? marks a row from before"))
    first = seconds()
    assert first is not None
    before = utilization()
    assert on.wait_for(lambda: utilization() not in (before, ""))  # the other GPU goes on
    assert on.wait_for(lambda: (seconds() or 0.0) > first)  # the sentence counts on
    on.write("j\r")
    assert on.wait_for(lambda: on.sees("GPU 0: H100 80GB HBM3"))
    on.write("\x1b")
    assert on.wait_for(lambda: on.sees("5 GPU and host") and on.sees(SENTENCE))
    on.write("5")
    assert on.wait_for(lambda: on.sees("2 boundaries") and on.sees(SENTENCE))  # all of that while the call hangs
    on.write("q")
    assert on.ended() == 0
    report = json.loads((tmp_path / "report.json").read_text())
    assert not report["stopped"] and report["beats_silent"] > 0  # it left although the thread is still in the driver
