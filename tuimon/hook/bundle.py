"""The hook's source, as it travels into the job."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

NOT_SENT = {"__init__", "boot", "bundle"}
"""The package's own docstring, the bootstrap (already there by then) and this file."""


def bundle() -> dict[str, str]:
    """Module name -> source of everything in this directory that runs in the job."""
    here = Path(__file__).resolve().parent
    return {file.stem: file.read_text(encoding="utf-8") for file in sorted(here.glob("*.py")) if file.stem not in NOT_SENT}


def digest(sources: dict[str, str]) -> str:
    """The sum over a bundle that the bootstrap checks."""
    return hashlib.sha256(json.dumps(sources, sort_keys=True).encode()).hexdigest()
