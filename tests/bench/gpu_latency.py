"""How long the screen stands still while an NVML call does not come back for five seconds.

    python -m tests.bench.gpu_latency [SCENE [SECONDS]]

SCENE is "quiet" or "busy" (default; 200 regions, 40 steps a second). The monitor runs in a pseudo-terminal of 120x40 on the
real source over the scripted library, with eight GPUs, of which one hangs in its third reading and again later on; a beat of
10 ms on the thread of the screen notes the largest time between two beats: no frame can be drawn within it. Wanted: at most
100 ms.
Exit status 1 where it was more.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from pathlib import Path

from tests.support.fake_nvml import build
from tests.support.terminal import Terminal

ROOT = Path(__file__).resolve().parents[2]
WANTED_S = 0.1
HANG_MS = 5000


def script(gpus: int = 8) -> str:
    """Eight healthy GPUs, and one of them that does not answer for five seconds."""
    lines = [f"* count {gpus}", "* name NVIDIA_H100_80GB_HBM3", "* memory.total 85899345920", "* memory.used 21474836480"]
    lines += ["* power.limit.mw 700000", f"3 power.mw 300000 300000 ~{HANG_MS},310000 311000 ~{HANG_MS},300000"]
    lines += [f"{at} power.mw {300000 + 1000 * at}" for at in range(gpus) if at != 3]
    return "\n".join([*lines, *(f"{at} utilization {90 + at}" for at in range(gpus))]) + "\n"


def measure(scene: str, seconds: float) -> dict[str, float]:
    """Run it and give its report."""
    with tempfile.TemporaryDirectory() as folder:
        build.build(Path(folder))
        (Path(folder) / "nvml.script").write_text(script())
        report = Path(folder) / "report.json"
        env = {
            name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "COLUMNS", "LINES", "SSH_CONNECTION")
        }
        env |= {
            "TERM": "xterm-256color",
            "PYTHONPATH": str(ROOT),
            "PYTHONUTF8": "1",
            "XDG_CONFIG_HOME": folder,
            "LD_LIBRARY_PATH": folder,
            "FAKE_NVML_SCRIPT": str(Path(folder) / "nvml.script"),
            "GPU_HANG_REPORT": str(report),
        }
        on = Terminal([sys.executable, "-m", "tests.support.gpu_hang_program", scene], 120, 40, env)
        try:
            on.read(1.0)
            until = 0.0
            while until < seconds:
                on.read(0.5)
                until += 0.5
                if until in (3.0, 9.0):
                    on.write("5")  # the panel has the screen to itself while the call hangs, and gives it back
            on.write("q")
            on.ended(20)
            return dict(json.loads(report.read_text()))
        finally:
            on.close()


def main() -> int:
    """Measure and print."""
    scene = sys.argv[1] if len(sys.argv) > 1 else "busy"
    seconds = float(sys.argv[2]) if len(sys.argv) > 2 else 15.0
    found = measure(scene, seconds)
    print(f"{scene}: {found['beats']:.0f} beats, {found['beats_silent']:.0f} of them while NVML did not answer")  # noqa: T201
    print(f"largest gap {found['largest_s'] * 1e3:.0f} ms; while NVML did not answer {found['largest_silent_s'] * 1e3:.0f} ms")  # noqa: T201
    waited, own = found["waited_silent_s"] * 1e3, found["largest_own_s"] * 1e3
    print(f"of that gap {waited:.0f} ms it waited for a core; without such waits the largest is {own:.0f} ms")  # noqa: T201
    print(f"wanted: at most {WANTED_S * 1e3:.0f} ms")  # noqa: T201
    return 0 if found["beats_silent"] and found["largest_silent_s"] <= WANTED_S else 1


if __name__ == "__main__":
    sys.exit(main())
