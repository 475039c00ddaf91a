"""The monitor in tests: nobody's own files."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def no_files_of_the_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What somebody has accepted or configured here must not show in a picture."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
