"""Far ends that are processes of this machine, and programs for them to attach to."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.attach.conftest import until
from tuimon.attach import procfs
from tuimon.relay import near, place
from tuimon.relay.place import Place

ROOT = Path(__file__).resolve().parents[2]
PATH = f"{os.path.dirname(sys.executable)}:/usr/bin:/bin"

JOB = """
import threading, time
threading.Thread(target=threading.Event().wait, daemon=True).start()
print("ready", flush=True)
while True:
    sum(range(2000))
    time.sleep(0.005)
"""


def beside(*words: str, **environment: str) -> Place:
    """A far end that is a process of ours, with nothing in its environment but what is said here."""
    given = {"PATH": PATH, "PYTHONPATH": str(ROOT), **environment}
    return place.via(shlex.join(["env", "-i", *(f"{name}={value}" for name, value in given.items()), *words]))


@pytest.fixture
def job() -> Iterator[subprocess.Popen[str]]:
    """A program without torch that runs until it is killed."""
    with subprocess.Popen([sys.executable, "-c", JOB], stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
            yield process
        finally:
            process.kill()


class Talk(near.Contact):
    """Keeps what it is told."""

    def __init__(self) -> None:
        super().__init__()
        self.said: list[str] = []
        self.waited: list[str] = []

    def say(self, sentence: str) -> None:
        """Keep it."""
        self.said.append(sentence)

    def waiting(self, sentence: str, since_s: float) -> None:
        """Keep it."""
        self.waited.append(sentence)


@pytest.fixture
def talk() -> Talk:
    """A contact that keeps what it is told."""
    return Talk()


class Traces:
    """What a hook would leave in a process: threads and open files, compared with before."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.threads = len(procfs.thread_ids(pid))
        self.files = len(os.listdir(f"/proc/{pid}/fd"))

    def gone(self, seconds: float = 60.0) -> float:
        """Wait until they are gone; gives how long that took, in seconds."""
        began = time.monotonic()
        until(
            lambda: len(procfs.thread_ids(self.pid)) <= self.threads and len(os.listdir(f"/proc/{self.pid}/fd")) <= self.files,
            seconds,
        )
        return time.monotonic() - began


def script(directory: Path, name: str, text: str) -> Path:
    """An executable shell script; gives its directory."""
    directory.mkdir(exist_ok=True)
    path = directory / name
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return directory


def plain_python() -> str:
    """A directory with a python3 that has no tuimon; skips the test where there is none."""
    directory = os.path.dirname(os.path.realpath(sys.executable))
    look = [os.path.join(directory, "python3"), "-c", "import tuimon"]
    if os.path.exists(look[0]) and subprocess.run(look, cwd="/", capture_output=True, env={}, check=False).returncode == 1:
        return directory
    pytest.skip("no python3 here without tuimon")


def command_of(pid: int) -> bytes:
    """What a process was started with; nothing where it has ended meanwhile."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def below(pid: int) -> list[int]:
    """The processes that descend from one."""
    found = []
    for entry in os.listdir("/proc"):
        if entry.isdigit() and pid in procfs.ancestors(int(entry)):
            found.append(int(entry))
    return found
