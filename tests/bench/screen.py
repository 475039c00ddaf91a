"""What the screen costs the line and the processor, four pictures a second. Prints a table; asserts nothing.

    python -m tests.bench.screen [--rounds N]

For a quiet and a busy job at 80x24 and 120x40: bytes of each second, the processor's share of each second and what of it
folding the events, drawing and painting take; the CPU seconds to the first byte, and memory. A round is two seconds.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from pathlib import Path

from tests.bench import command, noise, table
from tests.support.terminal import Terminal

ROOT = Path(__file__).resolve().parents[2]
START_S = 8.0
SIZES = ((80, 24), (120, 40))
SCENES = {"quiet": "a quiet job", "busy": "200 regions, 40 steps a second"}
BYTES = {"quiet": 2000.0, "busy": 20_000.0}
"""A second, at most."""
SHARE = 0.05
"""Of a core, on the busy job at 120x40."""


def environment(folder: str, **more: str) -> dict[str, str]:
    """What the monitor is started with."""
    not_ours = ("NO_COLOR", "SSH_CONNECTION", "SSH_TTY", "COLUMNS", "LINES", "COLORTERM", "TMUX", "STY")
    env = {name: value for name, value in os.environ.items() if name not in not_ours}
    return {
        **env,
        "TERM": "xterm-256color",
        "PYTHONPATH": str(ROOT),
        "PYTHONUTF8": "1",
        "XDG_CONFIG_HOME": folder,
        "MONITOR_REPORT": f"{folder}/report.json",
        **more,
    }


def program(scene: str) -> list[str]:
    """The monitor on a made-up job."""
    return [sys.executable, "-m", "tests.support.monitor_program", scene]


def memory_mb(pid: int) -> float:
    """What of a process is in memory."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


def _read_for(on: Terminal, seconds: float) -> int:
    end, found = time.monotonic() + seconds, 0
    while (left := end - time.monotonic()) > 0:
        found += len(on.read(left))
    return found


def cost(scene: str, width: int, height: int, seconds: int, start_s: float) -> list[table.Row]:
    """What a scene costs in each of so many seconds, after `start_s` of them."""
    with tempfile.TemporaryDirectory() as folder:
        on = Terminal(program(scene), width, height, environment(folder, MONITOR_PARTS_AFTER=str(start_s)))
        try:
            on.wait_for(lambda: b"\x1b[?1049h" in on.data)
            first = noise.ran_s(on.pid)
            _read_for(on, start_s)
            sent, shares = [], []
            for _ in range(seconds):
                began, ran = time.monotonic(), noise.ran_s(on.pid)
                sent.append(float(_read_for(on, 1.0)))
                shares.append((noise.ran_s(on.pid) - ran) / (time.monotonic() - began))
            memory = memory_mb(on.pid)
            on.write("q")
            on.ended()
            report = json.loads(Path(f"{folder}/report.json").read_text())
        finally:
            on.close()
    counted = max(1.0, report["wall_s"] - start_s)
    split = ", ".join(f"{part} {report['parts'][part] / counted:.1%}" for part in ("fold", "draw", "paint"))
    name = f"{SCENES[scene]}, {width}x{height}"
    most = SHARE if (scene, width) == ("busy", 120) else None
    return [
        table.row(f"{name}: to the terminal", sent, "B/s", most=BYTES[scene]),
        table.row(f"{name}: CPU", shares, "of a core", most=most, note=split),
        table.row(f"{name}: memory", [memory], "MB"),
        table.row(f"{name}: to the first byte", [first], "CPU s"),
    ]


def measure(rounds: int) -> table.Section:
    """All of it; with few rounds one scene at one size."""
    gate, rows = noise.Gate(), []
    short = rounds < noise.ROUNDS
    for scene in list(SCENES)[:1] if short else SCENES:
        for width, height in SIZES[:1] if short else SIZES:
            command.say(f"screen: {scene}, {width}x{height}")
            rows += cost(scene, width, height, 2 * rounds, 2.0 if short else START_S)
    # nothing is there twice: whoever waits for a processor is what spoils these
    return table.Section("The screen", rows, gate.verdict([1.0] * rounds))


if __name__ == "__main__":
    sys.exit(command.main("screen", __doc__, measure))
