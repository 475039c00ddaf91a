"""Whether a recording was made of a job on this very machine: then what is known of the machine holds for it as well."""

from __future__ import annotations

import hashlib
import os
from functools import lru_cache
from pathlib import Path

_FILES = (Path("/etc/machine-id"), Path("/sys/devices/virtual/dmi/id/product_name"))


@lru_cache(maxsize=1)
def here() -> int:
    """A number that another machine has not, by all that can be told without any right: its name, its id, its processor. It
    tells none of these. Never 0."""
    parts = [os.uname().nodename, os.uname().machine, str(os.cpu_count()), _processor(), *map(_text, _FILES)]
    return int.from_bytes(hashlib.blake2b("\0".join(parts).encode("utf-8", "replace"), digest_size=8).digest(), "little") or 1


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""


def _processor() -> str:
    return next(
        (line.partition(":")[2].strip() for line in _text(Path("/proc/cpuinfo")).splitlines() if "model name" in line), ""
    )
