"""No command of these tests finds settings of whoever runs them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tuimon.config import SETTINGS


@pytest.fixture(autouse=True)
def no_settings(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Empty folders in the place of the user's own; gives that of settings."""
    folder = tmp_path_factory.mktemp("config")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(folder))
    monkeypatch.setenv("XDG_STATE_HOME", str(folder / "state"))
    monkeypatch.delenv("NO_COLOR", raising=False)
    for setting in SETTINGS:
        monkeypatch.delenv(setting.env, raising=False)
    return folder
