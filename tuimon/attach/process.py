"""The PyTorch processes of this machine, and whether each can be attached to. Reads only: nobody is stopped."""

from __future__ import annotations

import itertools
import os
import time
from dataclasses import dataclass
from typing import Literal

import psutil

from tuimon.attach import preflight, procfs
from tuimon.attach.refusal import Refused

Kind = Literal["job", "worker", "compile worker"]


@dataclass(frozen=True, slots=True)
class Target:
    """One process. What is not known is None."""

    pid: int
    kind: Kind
    """"worker": shares its parent's command line (a loader worker) or was made by multiprocessing's spawn."""
    rank: int | None
    world_size: int | None
    user: str | None
    started: float
    """Unix time, in seconds."""
    age: float
    """Seconds since then."""
    command: list[str]
    python: str | None
    has_torch: bool | None
    """Whether libtorch is mapped; None where the memory map may not be read."""
    attachable: bool
    how: str | None
    """The way that `tuimon attach` would take: "injected"."""
    code: str | None
    """Why not, as a short code.."""
    why: str | None
    """..and as a sentence with the next step."""


def find_targets(*, everything: bool = False) -> list[Target]:
    """The processes here that have torch loaded, or may have: Python programs into which we may not look.

    `everything` adds compile workers and Python programs without torch. Ordered by rank, then by start.
    """
    found = []
    for process in psutil.process_iter():
        try:
            target = _describe(process)
        except (psutil.Error, OSError, ValueError):
            continue  # gone while we looked
        if target is not None and (everything or (target.has_torch is not False and target.kind != "compile worker")):
            found.append(target)
    return sorted(found, key=lambda target: (target.rank is None, target.rank or 0, target.started, target.pid))


def _describe(process: psutil.Process) -> Target | None:
    if process.pid == os.getpid() or not _is_python(process):
        return None
    with process.oneshot():
        command = process.cmdline()
        if _is_tuimon(command):
            return None
        started = process.create_time()
        try:
            user = process.username()
        except (KeyError, psutil.Error):
            user = None
    environment = procfs.environment(process.pid)
    python: str | None = None
    code: str | None = None
    why: str | None = None
    has_torch = _has_torch(process.pid)
    try:
        seen = preflight.look(process.pid)
        seen.close()
        python = "{}.{}".format(*seen.python)
    except Refused as refusal:
        code, why = refusal.code, refusal.sentence
        if code in ("dead", "zombie", "kernel-thread"):
            return None
    return Target(
        pid=process.pid,
        kind=_kind(process, command),
        rank=_number(environment.get("RANK")),
        world_size=_number(environment.get("WORLD_SIZE")),
        user=user,
        started=started,
        age=max(0.0, time.time() - started),
        command=command,
        python=python,
        has_torch=has_torch,
        attachable=code is None,
        how="injected" if code is None else None,
        code=code,
        why=why,
    )


def _is_python(process: psutil.Process) -> bool:
    """Whether it may be a Python program: by its name, or by what it has mapped."""
    command = process.cmdline()
    if not command:
        return False
    names = {process.name(), os.path.basename(command[0])}
    return any(name.startswith(("python", "pypy", "torchrun")) for name in names) or _has_torch(process.pid) is True


def _has_torch(pid: int) -> bool | None:
    try:
        return any("/libtorch" in mapping.path for mapping in procfs.mappings(pid))
    except OSError:
        return None


def _is_tuimon(command: list[str]) -> bool:
    """Whether a command line is one of tuimon's own."""
    words = command[1:6]
    return (
        "tuimon" in [os.path.basename(word) for word in words[:1]]
        or any(word == "-m" and then.split(".")[0] == "tuimon" for word, then in itertools.pairwise(words))
        or any("tuimon.attach.helper" in word for word in words)
    )


def _kind(process: psutil.Process, command: list[str]) -> Kind:
    if any("compile_worker" in word for word in command):
        return "compile worker"
    if any("multiprocessing.spawn" in word or "multiprocessing.forkserver" in word for word in command):
        return "worker"
    try:
        parent = process.parent()
        shared = parent is not None and parent.cmdline() == command and _is_python(parent)
    except psutil.Error:
        shared = False
    return "worker" if shared else "job"


def _number(text: str | None) -> int | None:
    return int(text) if text is not None and text.isascii() and text.isdigit() else None
