"""What the first picture waits for: no more is loaded than it shows."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.terminal import Terminal

LATER = (
    "tuimon.app.details.opening", "tuimon.app.lab", "tuimon.app.panels.roofline_chart", "tuimon.app.picker.app",
    "tuimon.app.screens.help", "tuimon.app.screens.lab", "tuimon.app.screens.page", "tuimon.app.screens.palette",
    "tuimon.app.screens.themes", "tuimon.app.screens.tour", "tuimon.app.still", "tuimon.attach", "tuimon.commands",
    "tuimon.draw.roofline", "tuimon.draw.svg", "tuimon.hook", "tuimon.lab", "tuimon.playback", "tuimon.recorder",
    "tuimon.relay", "tuimon.report", "tuimon.roofline.ceilings", "tuimon.roofline.inforce", "tuimon.roofline.kernels",
    "tuimon.roofline.live", "tuimon.sources", "torch", "pynvml", "numpy",
)  # fmt: skip
"""What is needed when a key is pressed, or by another command: with all that is below it."""

PROGRAM = textwrap.dedent("""
    import json, sys
    from tests.support import monitor_program
    from tuimon.app.tty.painted import PaintedApp

    out = [sys.argv.pop()]
    send = PaintedApp.send

    def told(app, text):
        send(app, text)
        if out:
            with open(out.pop(), "w") as file:
                json.dump(sorted(sys.modules), file)

    PaintedApp.send = told
    sys.exit(monitor_program.main())
""")


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    not_ours = ("NO_COLOR", "SSH_CONNECTION", "SSH_TTY", "COLUMNS", "LINES", "COLORTERM", "TMUX", "STY")
    env = {name: value for name, value in os.environ.items() if name not in not_ours}
    return {**env, "TERM": "xterm-256color", "PYTHONUTF8": "1", "XDG_CONFIG_HOME": str(tmp_path)}


def test_the_first_picture_waits_for_nothing_that_it_does_not_show(tmp_path: Path, environment: dict[str, str]) -> None:
    out = tmp_path / "modules.json"
    screen = Terminal([sys.executable, "-c", PROGRAM, "still", str(out)], 120, 40, environment)
    try:
        assert screen.wait_for(out.exists), "\n".join(screen.screen.display)
        screen.write("?")  # what is loaded later is there for a key
        assert screen.wait_for(lambda: screen.sees("help: ")), "\n".join(screen.screen.display)
        screen.write("\x1b")
        assert screen.wait_for(lambda: not screen.sees("help: ")), "\n".join(screen.screen.display)
        screen.write("q")
        assert screen.ended() == 0
    finally:
        screen.close()
    loaded = json.loads(out.read_text())
    wrong = [name for name in loaded if any(name == one or name.startswith(f"{one}.") for one in LATER)]
    assert wrong == []
    assert "tuimon.app.screens.main" in loaded  # it is the monitor's, and it was looked at in time


OPENED = (
    ("1", lambda screen: not screen.sees("3 recompiles")),
    ("\r", lambda screen: screen.sees("esc back")),
    ("?", lambda screen: screen.sees("help: ")),
    ("L", lambda screen: screen.sees("roofline lab")),
    (":", lambda screen: screen.sees(" do: ")),
    ("w", lambda screen: not screen.sees("3 recompiles")),
)
"""Keys, and how it is seen that what they open is there."""


@pytest.mark.parametrize(("key", "opened"), OPENED, ids=[repr(key) for key, _ in OPENED])
def test_nothing_blank_shows_where_another_screen_opens(
    key: str, opened: Callable[[Terminal], bool], environment: dict[str, str]
) -> None:
    screen = Terminal([sys.executable, "-m", "tests.support.monitor_program", "ended"], 120, 40, environment)
    least, take = 40, screen.take

    def taken(data: bytes) -> None:
        nonlocal least
        take(data)
        least = min(least, sum(bool(line.strip()) for line in screen.screen.display))

    try:
        assert screen.wait_for(lambda: screen.sees("quit") and screen.sees("3 recompiles")), "\n".join(screen.screen.display)
        screen.take = taken  # type: ignore[method-assign]
        screen.write(key)
        assert screen.wait_for(lambda: opened(screen)), "\n".join(screen.screen.display)
        assert least > 4, f"of the lines {least} had something in them"
    finally:
        screen.close()


def test_the_list_of_jobs_waits_for_neither_the_model_nor_what_attaches() -> None:
    program = "import json, sys, tuimon.commands.pick; json.dump([*sys.modules], sys.stdout)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    later = ("tuimon.model", "tuimon.events", "tuimon.attach", "tuimon.feed", "tuimon.app.app", *LATER[-6:])
    assert [name for name in json.loads(done.stdout) if any(name == one or name.startswith(f"{one}.") for one in later)] == []
