"""The monitor in tests: nobody's own files, and no longer a look than it takes to see that nothing goes on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from textual import _wait

from tuimon.app.tty import terminal

LOOK_S, IDLE_S = 0.004, 0.0005


@pytest.fixture(autouse=True)
def no_files_of_the_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What somebody has accepted or configured here must not show in a picture."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))


@pytest.fixture(autouse=True)
def short_looks(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Textual's pilot takes an app for idle that takes no time of a core in a look of 20 ms, five times for each key.

    `Driven.settle` asks in its own way whether a screen stays as it is: for that, looks of 4 ms are as good.
    Tests that ask the pilot alone keep its own.
    """
    if request.path.name == "test_picker.py":
        return
    monkeypatch.setattr(_wait, "SLEEP_GRANULARITY", LOOK_S)
    monkeypatch.setattr(_wait, "SLEEP_IDLE", IDLE_S)


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What was offered to the terminal's clipboard."""
    out: list[str] = []

    def copy(app: Any, text: str) -> str:
        out.append(text)
        return "copied"

    monkeypatch.setattr(terminal, "copy", copy)
    return out
