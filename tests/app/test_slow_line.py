"""The monitor behind a line of 9,600 bits a second: what is under way, and that keys are answered.

How soon is judged by `python -m tests.bench.keys`, on a machine that has nothing else to do.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.slow_line import Mode, SlowLine

ROOT = Path(__file__).resolve().parents[2]
RATE = 960.0
ANSWER_S = 3.0
WIDTH, HEIGHT = 80, 24


@pytest.fixture(params=["ssh", "tty"])
def line(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[SlowLine]:
    not_ours = ("NO_COLOR", "SSH_TTY", "COLUMNS", "LINES", "COLORTERM", "TMUX")
    env = {name: value for name, value in os.environ.items() if name not in not_ours}
    env |= {
        "TERM": "xterm-256color",
        "SSH_CONNECTION": "192.0.2.1 1 192.0.2.2 22",
        "PYTHONPATH": str(ROOT),
        "PYTHONUTF8": "1",
        "XDG_CONFIG_HOME": str(tmp_path),
    }
    mode: Mode = request.param
    argv = [sys.executable, "-m", "tests.support.monitor_program", "busy"]
    started = SlowLine(argv, WIDTH, HEIGHT, env, rate=RATE, mode=mode)
    yield started
    started.close()


def changed(on: SlowLine, before: list[str]) -> Callable[[], bool]:
    """Whether one of the first two rows is another one, or the last."""
    return lambda: any(on.screen.display[y] != before[y] for y in (0, 1, HEIGHT - 1))


def test_a_slow_line_is_never_full_and_keys_are_answered(line: SlowLine) -> None:
    assert line.until(lambda: line.sees("boundaries and graph breaks"), 60.0) is not None
    # how the screen library begins, and what it takes before there was an answer
    line.until(lambda: line.sees("Hz"), 60.0)
    line.go_on(2.0)
    line.most_under_way = 0
    answered = []
    for key in (" ", "w", "\x1b", "?") if line.mode == "ssh" else (" ", "w"):
        before = list(line.screen.display)
        line.write(key)
        answered.append((key, line.until(changed(line, before), 20.0)))
        line.go_on(0.3)
    assert all(took is not None and took <= ANSWER_S for _, took in answered), answered
    # half a second of the line, and what goes with it: moves of the cursor, and the question
    assert line.most_under_way <= RATE / 2 + 40


@pytest.mark.parametrize("line", ["ssh"], indirect=True)
def test_it_draws_less_often_and_as_often_as_before_when_the_line_is_quick_again(line: SlowLine) -> None:
    line.rate = 1e6
    assert line.until(lambda: line.sees(" 2 Hz"), 60.0) is not None
    line.rate = 300.0
    assert line.until(lambda: line.sees("slow line") and line.sees("0.5 Hz"), 90.0) is not None, line.screen.display[:2]
    line.rate = 1e6
    assert line.until(lambda: line.sees(" 2 Hz") and not line.sees("slow line"), 60.0) is not None, line.screen.display[:2]
