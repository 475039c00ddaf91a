"""The screen in a terminal that is resized all the time."""

from __future__ import annotations

import os
import random
import sys

from tests.support.terminal import Terminal

from .table import ROOT, Tries

WIDTHS, HEIGHTS = (1, 2, 5, 20, 80, 120, 200, 400), (1, 2, 5, 24, 40, 60, 150)
GROWTH_KB = 40_000
"""A picture of 400 by 150 cells takes some 15 MB; a thousand of them, no more."""


def resized(tries: int, chance: random.Random) -> Tries:
    """Between 1 x 1 and 400 x 150 at any moment, on a busy job: it lives, and the last size has its whole picture."""
    env = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES", "NO_COLOR", "SSH_CONNECTION")}
    env |= {"TERM": "xterm-256color", "PYTHONPATH": str(ROOT), "PYTHONUTF8": "1", "XDG_CONFIG_HOME": "/nonexistent"}
    terminal = Terminal([sys.executable, "-m", "tests.support.monitor_program", "busy"], 120, 40, env)
    try:
        if not terminal.wait_for(lambda: terminal.sees("boundaries")):
            yield "no first picture"
            return
        before = _rss_kb(terminal.pid)
        for _ in range(tries):
            terminal.resize(chance.choice(WIDTHS), chance.choice(HEIGHTS))
            terminal.read(0.004)
            if terminal.ended(0) is not None:
                yield f"it has ended with status {terminal.status}"
                return
            yield ""
        terminal.resize(120, 40)
        if not terminal.wait_for(lambda: terminal.sees("boundaries") and terminal.sees("Hz"), 30):
            yield "no picture at the end: " + "\n".join(terminal.screen.display)
        if (grown := _rss_kb(terminal.pid) - before) > GROWTH_KB:
            yield f"it has grown by {grown // 1000} MB"
        terminal.write("q")
        if terminal.ended(30) != 0:
            yield f"q ends it with {terminal.status}"
    finally:
        terminal.close()


def _rss_kb(pid: int) -> int:
    with open(f"/proc/{pid}/status", encoding="utf-8") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmRSS"))
