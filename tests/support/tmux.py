"""A program in a tmux server of a test's own: keys by `send-keys`, the screen by `capture-pane`."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable

TMUX = shutil.which("tmux")


class Tmux:
    """One pane, of which the server is ours: whoever works here has one too, and must not be touched."""

    def __init__(self, command: str, width: int = 80, height: int = 24) -> None:
        self._place = tempfile.mkdtemp(prefix="tuimon-tmux-")
        self.keys = 0
        """So many were pressed."""
        self._do("-f", "/dev/null", "new-session", "-d", "-x", str(width), "-y", str(height), "sh")
        self._do("set-option", "-g", "remain-on-exit", "on")  # its last words are read afterwards
        self._do("set-option", "-g", "status", "off")
        self._do("respawn-pane", "-k", command)

    def press(self, *keys: str) -> None:
        """Keys as tmux names them: "q", "Enter", "Escape"."""
        self.keys += len(keys)
        self._do("send-keys", *keys)

    def resize(self, width: int, height: int) -> None:
        """Another size."""
        self._do("resize-window", "-x", str(width), "-y", str(height))

    @property
    def text(self) -> str:
        """What is on the screen."""
        return self._do("capture-pane", "-p")

    @property
    def run_on(self) -> str:
        """The same without any spaces: a path that is broken over two lines is one word again."""
        return "".join(self.text.split())

    @property
    def ended(self) -> bool:
        """Whether the program has."""
        return self._do("display-message", "-p", "#{pane_dead}").strip() == "1"

    def wait(self, holds: Callable[[str], bool], seconds: float = 60.0) -> str:
        """The screen, as soon as this holds of it."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            text = self.text
            if holds(text):
                return text
            time.sleep(0.05)
        raise AssertionError(f"it does not come to that:\n{self.text}")

    def still(self) -> str:
        """The screen, once it is the same at two looks: a picture comes in pieces."""
        looks = [""]

        def same(text: str) -> bool:
            looks.append(text)
            return len(looks) > 4 and looks[-1] == looks[-2] == looks[-3] == looks[-4]

        return self.wait(same)

    def shows(self, *words: str) -> str:
        """The screen, as soon as all of these are on it."""
        return self.wait(lambda text: all(word in text for word in words))

    def close(self) -> None:
        """End the server, and with it the program."""
        self._do("kill-server", check=False)
        shutil.rmtree(self._place, ignore_errors=True)

    def _do(self, *words: str, check: bool = True) -> str:
        assert TMUX is not None
        env = {**os.environ, "LC_ALL": "C.UTF-8"}
        env.pop("TMUX", None)
        done = subprocess.run(
            [TMUX, "-u", "-S", f"{self._place}/socket", *words],
            capture_output=True,
            text=True,
            env=env,
            check=False,
            encoding="utf-8",
        )
        assert done.returncode == 0 or not check, done.stderr
        return done.stdout
