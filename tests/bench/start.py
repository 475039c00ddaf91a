"""From the start of the monitor to its first picture. Prints a table; asserts nothing.

    python -m tests.bench.start [--rounds N]

The monitor is started in a terminal of 120x40 on a made-up job at rest, with the cache of compiled modules warm. CPU
seconds to the first byte, CPU and wall seconds to the first picture with the job in it; beside it what imports alone take.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.bench import command, jobs, noise, table
from tests.support.terminal import Terminal

WIDTH, HEIGHT = 120, 40
WANTED_CPU_S, WANTED_WALL_S = 0.45, 0.5
SCENE = "still"
IMPORTS = ("textual.app", "tuimon.model", "tuimon.app.run")


def import_s(module: str, env: dict[str, str]) -> float:
    """CPU seconds that a fresh interpreter takes to import something, by its own count; 0.01 s of its start are in it."""
    program = f"import {module}, time, sys; sys.stdout.write(str(time.process_time()))"
    return float(subprocess.run([sys.executable, "-c", program], env=env, capture_output=True, text=True, check=True).stdout)


def cpu_s(pid: int) -> float:
    """CPU seconds of a process so far, to the nanosecond where the kernel tells."""
    with open(f"/proc/{pid}/schedstat") as file:  # of its first thread alone: that is the one which draws
        return int(file.read().split()[0]) / 1e9


def started(env: dict[str, str]) -> tuple[float, float, float]:
    """(CPU seconds to the first byte, CPU seconds to the first picture, wall seconds to it). Raises TimeoutError."""
    began = time.monotonic()
    screen = Terminal([sys.executable, "-m", "tests.support.monitor_program", SCENE], WIDTH, HEIGHT, env)
    try:
        if not screen.wait_for(lambda: len(screen.data) > 0):
            raise TimeoutError("no byte within a minute")
        first = cpu_s(screen.pid)
        if not screen.wait_for(lambda: screen.sees("4242") or screen.sees("train")):
            raise TimeoutError("no picture within a minute:\n" + "\n".join(screen.screen.display))
        return first, cpu_s(screen.pid), time.monotonic() - began
    finally:
        screen.close()


def measure(rounds: int) -> table.Section:
    """All of it."""
    with tempfile.TemporaryDirectory(prefix="tuimon-bench-") as folder:
        env = jobs.environment(Path(folder))
        env.update({"PYTHONUTF8": "1", "PYTHONPATH": str(jobs.ROOT)})
        for name in ("NO_COLOR", "COLUMNS", "LINES", "SSH_CONNECTION", "TMUX", "PYTHONDONTWRITEBYTECODE"):
            env.pop(name, None)
        started(env)  # compiles what is not compiled yet
        gate = noise.Gate()
        imports: dict[str, list[float]] = {name: [] for name in IMPORTS}
        found = []
        same = []
        for _ in range(rounds):
            for name in IMPORTS:
                imports[name].append(import_s(name, env))
            same.append(import_s(IMPORTS[0], env) / imports[IMPORTS[0]][-1])
            found.append(started(env))
    rows = [table.row(f"import {name}", values, "CPU s") for name, values in imports.items()]
    rows.append(table.row("first byte", [one[0] for one in found], "CPU s", most=WANTED_CPU_S))
    rows.append(table.row("first picture", [one[1] for one in found], "CPU s"))
    rows.append(table.row("first picture", [one[2] for one in found], "s", most=WANTED_WALL_S))
    return table.Section("Start", rows, gate.verdict(same, within=0.05))


if __name__ == "__main__":
    sys.exit(command.main("start", __doc__, measure))
