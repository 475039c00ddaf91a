"""The hook's source, as it travels into the job."""

from __future__ import annotations

import hashlib
import json
import os
import pkgutil

NOT_SENT = {"__init__", "boot", "boot_line", "bundle"}
"""The package's own docstring, the bootstrap (already there by then) and this file."""


def bundle() -> dict[str, str]:
    """Module name -> source of everything in this directory that runs in the job."""
    here = os.path.dirname(__file__)  # which may lie in an archive: see `relay/sent.py`
    names = sorted(module.name for module in pkgutil.iter_modules([here]) if not module.ispkg)
    return {name: (pkgutil.get_data("tuimon.hook", f"{name}.py") or b"").decode() for name in names if name not in NOT_SENT}


def digest(sources: dict[str, str]) -> str:
    """The sum over a bundle that the bootstrap checks."""
    return hashlib.sha256(json.dumps(sources, sort_keys=True).encode()).hexdigest()
