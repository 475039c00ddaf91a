"""Builds the scripted NVML with the C compiler of this machine."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

SOURCES = sorted(Path(__file__).parent.glob("*.c"))


def compiler() -> str | None:
    """The C compiler's path, or None where there is none."""
    return shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")


def build(folder: Path) -> Path:
    """Compile into `folder` as libnvidia-ml.so.1, the name that the binding opens. Raises CalledProcessError."""
    target = folder / "libnvidia-ml.so.1"
    cc = compiler()
    if cc is None:
        raise FileNotFoundError("no C compiler")
    command = [cc, "-std=c11", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror", "-O1", "-fvisibility=hidden", "-shared", "-fPIC"]
    subprocess.run([*command, "-o", str(target), *map(str, SOURCES), "-lpthread"], check=True, capture_output=True, text=True)
    return target
