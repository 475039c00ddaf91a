"""What an attach costs: how long one thread stands, and how soon there is a number. Prints a table; asserts nothing.

    python -m tests.bench.attach [--rounds N]

Ten attaches to a compiled training run a round, by the session itself: the stop of each thread, the hook's first answer, the
first samples. And `tuimon attach` in a terminal once a round: the seconds until the first number of a region is on the screen.
"""

from __future__ import annotations

import re
import sys
import tempfile
import time
from pathlib import Path

from tests.attach.cycles import Figures, cycle
from tests.attach.matrix_pythons import specified
from tests.attach.matrix_target import TORCH, start
from tests.bench import command, jobs, noise, table
from tests.support.terminal import Terminal

EACH = 10
STOP_MS, STOP_P99_MS, NUMBER_S = 0.3, 5.0, 1.0
NUMBER = re.compile(r"\b\d+(\.\d+)?\s?(us|µs|ms)\b")
"""A duration, as every row of a region has."""


def first_number_s(pid: int, env: dict[str, str]) -> float:
    """Seconds from the start of `tuimon attach` to the first duration on the screen. Raises TimeoutError."""
    began = time.monotonic()
    screen = Terminal([sys.executable, "-m", "tuimon", "attach", str(pid)], 120, 40, env)
    try:
        if not screen.wait_for(lambda: any(NUMBER.search(line) for line in screen.screen.display[3:])):
            raise TimeoutError("no number within a minute:\n" + "\n".join(screen.screen.display))
        took = time.monotonic() - began
        screen.write("q")
        screen.wait_for(lambda: b"\x1b[?1049l" in screen.data, 20.0)
        return took
    finally:
        screen.close()


def measure(rounds: int) -> table.Section:
    """All of it. Raises `matrix_target.Wrong` where an attach leaves something behind."""
    python = specified(sys.executable)
    assert python is not None
    short = rounds < noise.ROUNDS
    figures, screens = Figures(), []
    same: list[float] = []
    with (
        tempfile.TemporaryDirectory(prefix="tuimon-bench-") as folder,
        start(python, TORCH, "training", "aot_eager" if short else "inductor") as target,
    ):
        env = {**jobs.environment(Path(folder)), "PYTHONUTF8": "1"}
        cycle(target, Figures(), None, 5)
        gate = noise.Gate()  # the job is put aside by its own threads
        for _ in range(rounds):
            before = len(figures.answers)
            for _ in range(2 if short else EACH):
                cycle(target, figures, None, 5)
            mine = figures.answers[before:]
            same.append(noise.middle(mine[::2])[0] / noise.middle(mine[1::2])[0])
            screens.append(first_number_s(target.pid, env))
        verdict = gate.verdict(same, within=0.25)
        stops = sorted(one * 1e3 for one in figures.stops)
    late = [stops[min(len(stops) - 1, len(stops) * 99 // 100)]] if stops else []
    rows = [
        table.row("stop of one thread", stops, "ms", most=STOP_MS),
        table.row(f"stop of one thread, 99th of 100 (of {len(stops)})", late, "ms", most=STOP_P99_MS),
        table.row("to the hook's first answer", figures.answers, "s"),
        table.row("to the first samples", figures.samples, "s"),
        table.row("detach", figures.detaches, "s"),
        table.row("`tuimon attach` to the first number on the screen", screens, "s", most=NUMBER_S),
    ]
    return table.Section("Attach", rows, verdict)


if __name__ == "__main__":
    sys.exit(command.main("attach", __doc__, measure))
