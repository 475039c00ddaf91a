"""The CPythons of this machine: which there are, and what each of them has."""

from __future__ import annotations

import contextlib
import glob
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

ASK = """
import importlib.util, json, sys, sysconfig
def has(name):
    return importlib.util.find_spec(name) is not None
print(json.dumps({
    "implementation": sys.implementation.name, "version": list(sys.version_info[:3]), "executable": sys.executable,
    "prefix": sys.prefix, "base": sys.base_prefix, "torch": has("torch"), "numpy": has("numpy"),
    "free_threaded": bool(sysconfig.get_config_var("Py_GIL_DISABLED")),
    "static": "/libpython" not in open("/proc/self/maps").read(),
}))
"""
OLDEST = (3, 10)
CHROOT = "chroot:"


@dataclass(frozen=True)
class Interpreter:
    """A CPython that programs can be started with."""

    executable: str
    """Its path, as seen from inside `root`."""
    root: str
    """"/", or the directory that it is to be chrooted into."""
    version: tuple[int, int, int]
    has_torch: bool
    has_numpy: bool
    free_threaded: bool
    note: str
    """What is special about it: "static", "venv", "chroot"."""

    @property
    def label(self) -> str:
        """Short, for tables."""
        number = ".".join(str(part) for part in self.version) + ("t" if self.free_threaded else "")
        return " ".join(part for part in (number, self.note, "torch" if self.has_torch else "") if part)

    def enter(self) -> Callable[[], None] | None:
        """What a child has to do before it becomes this Python."""
        if self.root == "/":
            return None

        def go() -> None:
            os.chroot(self.root)
            os.chdir("/")

        return go

    @contextlib.contextmanager
    def folder(self) -> Iterator[tuple[Path, str]]:
        """A directory for the target's files: (as seen from here, as seen by it)."""
        with tempfile.TemporaryDirectory(prefix="attach-matrix-", dir=os.path.join(self.root, "tmp")) as name:
            os.chmod(name, 0o755)
            inside = name if self.root == "/" else "/" + os.path.relpath(name, self.root)
            yield Path(name), inside


def describe(executable: str, root: str = "/") -> Interpreter | None:
    """Ask a Python what it is; None where it does not run, is not CPython, or is older than 3.10."""
    enter = Interpreter(executable, root, (0, 0, 0), False, False, False, "").enter()
    try:
        told = subprocess.run(
            [executable, "-c", ASK], capture_output=True, text=True, timeout=60, check=True, preexec_fn=enter, cwd="/"
        ).stdout
        facts = json.loads(told)
    except (OSError, subprocess.SubprocessError, ValueError):
        return None
    version = tuple(facts["version"])
    if facts["implementation"] != "cpython" or version[:2] < OLDEST:
        return None
    notes = [
        "chroot" if root != "/" else "",
        "venv" if facts["prefix"] != facts["base"] else "",
        "static" if facts["static"] else "",
    ]
    return Interpreter(
        facts["executable"] or executable,
        root,
        version,
        facts["torch"],
        facts["numpy"],
        facts["free_threaded"],
        " ".join(note for note in notes if note),
    )


def _candidates() -> Iterator[str]:
    yield sys.executable
    yield from split_specifications(os.environ.get("TUIMON_PYTHONS", ""))
    names = ["python3", *(f"python3.{minor}" for minor in range(10, 20)), *(f"python3.{minor}t" for minor in range(13, 20))]
    for name in names:
        for directory in [*os.get_exec_path(), "/usr/bin", "/usr/local/bin"]:
            found = shutil.which(name, path=directory)
            if found:
                yield found
    pyenv = os.environ.get("PYENV_ROOT", os.path.expanduser("~/.pyenv"))
    yield from sorted(glob.glob(os.path.join(pyenv, "versions/3.[1-9][0-9]*/bin/python")))
    for pattern in ("~/miniconda3", "~/miniforge3", "~/anaconda3", "/opt/conda", "~/.local/share/uv/python/*", "/opt/python/*"):
        yield from sorted(glob.glob(os.path.expanduser(pattern) + "/bin/python3"))


def split_specifications(text: str) -> list[str]:
    """`TUIMON_PYTHONS`: parts between colons; `chroot:ROOT:PATH` holds two colons of its own."""
    parts, found = text.split(os.pathsep), []
    while parts:
        part = parts.pop(0)
        if part == "chroot" and len(parts) >= 2:
            found.append(CHROOT + parts.pop(0) + ":" + parts.pop(0))
        elif part:
            found.append(part)
    return found


def specified(text: str) -> Interpreter | None:
    """What `PATH` or `chroot:ROOT:PATH` names; None where there is no usable Python."""
    if text.startswith(CHROOT):
        _, root, path = text.split(":", 2)
        return describe(path, root)
    return describe(text)


def discover(named: Iterable[str] = ()) -> list[Interpreter]:
    """The Pythons that are named; where none are, those of this machine (`TUIMON_PYTHONS` among them), each once."""
    found: dict[tuple[str, str], Interpreter] = {}
    seen: set[str] = set()
    for text in list(named) or list(_candidates()):
        place = (
            text if text.startswith(CHROOT) else os.path.join(os.path.realpath(os.path.dirname(text)), os.path.basename(text))
        )
        if place in seen:
            continue
        seen.add(place)
        python = specified(text)
        if python is not None:
            # a venv's python is a link to another one's, and still a case of its own
            where = os.path.dirname(python.executable)
            found.setdefault((python.root, where if python.root != "/" else os.path.realpath(where)), python)
    return sorted(found.values(), key=lambda python: (python.version, python.has_torch, python.executable))
