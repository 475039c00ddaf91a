"""Screens that are kept in files: a change of a picture shows in the review. TUIMON_UPDATE_GOLDEN=1 writes them anew."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path

from tests.support.fake_feed import WALL

KEPT = Path(__file__).resolve().parents[1] / "app" / "golden"
PROJECT = Path(__file__).parent / "project"
THERE = "/home/user/project/"
"""Where the made-up jobs have their program."""


def agree(pictures: Mapping[str, str]) -> None:
    """Fails unless each of these screens is as it is kept under its name; writes them where that is asked for."""
    different = []
    for name, seen in pictures.items():
        file = KEPT / f"{name}.txt"
        if os.environ.get("TUIMON_UPDATE_GOLDEN"):
            file.write_text(seen, encoding="utf-8")
        if not file.exists() or file.read_text(encoding="utf-8") != seen:
            different.append(name)
    for name in different:
        file = KEPT / f"{name}.txt"
        kept = file.read_text(encoding="utf-8") if file.exists() else ""
        assert pictures[name] == kept, f"{name} differs, of {', '.join(different)}"


def project_at_home(tmp: Path) -> Callable[..., int]:
    """An `os.open` that finds the program of the made-up jobs where they have it, last changed before the attach."""
    files = {}
    for kept in PROJECT.glob("*.txt"):
        file = tmp / kept.stem
        file.write_bytes(kept.read_bytes())
        os.utime(file, (WALL - 3_600, WALL - 3_600))
        files[THERE + kept.stem] = str(file)
    real = os.open

    def opened(path: object, *args: object, **more: object) -> int:
        return real(files.get(str(path), path), *args, **more)  # type: ignore[call-overload, no-any-return]

    return opened
