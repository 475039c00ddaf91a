"""The programs and their truth, as files."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

DEFAULT_STEPS = 30


@dataclass(frozen=True, slots=True)
class Case:
    """A program and what is known of it."""

    script: Path
    truth: dict[str, Any]
    """The JSON beside the program: "kind", "steps" and "expected"."""

    @property
    def number(self) -> str:
        """What it is named by on the command line."""
        return self.script.name.split("_")[0]

    @property
    def steps(self) -> int:
        """How many steps it makes where STEPS does not say otherwise."""
        return int(self.truth.get("steps", DEFAULT_STEPS))


def folder() -> Path | None:
    """The folder with the cases, None where TUIMON_CASES is not set."""
    named = os.environ.get("TUIMON_CASES")
    return Path(named) if named else None


def load(script: Path) -> Case:
    """A program with the JSON beside it. Raises OSError or ValueError where that cannot be read."""
    return Case(script, json.loads(script.with_suffix(".json").read_text(encoding="utf-8")))


def find(cases: Path, number: str) -> Case:
    """The case of this number. Raises FileNotFoundError if there is none."""
    for script in sorted(cases.glob(f"{number}_*.py")):
        return load(script)
    raise FileNotFoundError(f"no case {number} in {cases}")


def every(cases: Path) -> list[Case]:
    """All the cases of the folder, by name."""
    return [load(path.with_suffix(".py")) for path in sorted(cases.glob("*.json")) if path.with_suffix(".py").exists()]
