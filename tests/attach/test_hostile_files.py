"""A process chooses what its files are called, and what they are; whoever lists processes, root too, looks at all of them."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.attach.conftest import until
from tuimon.attach.find import belongings

NOBODY = 65534
PROGRAM = """
import mmap, sys
file = open(sys.argv[1], "rb")
held = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
print(flush=True)
sys.stdin.read()
"""


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """The folder of what looks like a torch."""
    found = tmp_path / "torch"
    (found / "lib").mkdir(parents=True)
    (found / "lib" / "libtorch_cpu.so").write_bytes(bytes(4096))
    for folder in (found / "lib", *list((found / "lib").parents)[:-2]):
        if folder.stat().st_uid == os.geteuid():
            folder.chmod(folder.stat().st_mode | 0o005)
    return found


@pytest.fixture
def user() -> dict[str, object]:
    """Of the process: nobody's where that can be."""
    return {"user": NOBODY, "group": NOBODY, "extra_groups": []} if os.geteuid() == 0 else {}


@pytest.fixture
def process(package: Path, user: dict[str, object]) -> Iterator[subprocess.Popen[bytes]]:
    """One that has it mapped."""
    words = [getattr(sys, "_base_executable", sys.executable) if not user else "/usr/bin/python3", "-I", "-S", "-c", PROGRAM]
    if not Path(words[0]).exists():
        pytest.skip("needs a Python that every user may run")
    more: dict[str, object] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "cwd": "/", **user}
    with subprocess.Popen([*words, str(package / "lib" / "libtorch_cpu.so")], **more) as running:  # type: ignore[call-overload]
        assert running.stdout.readline() == b"\n"
        yield running
        running.kill()


def version(process: subprocess.Popen[bytes]) -> str | None:
    """The version of its torch, looked up as when processes are listed; on a thread, which may not get stuck."""
    library = belongings.torch_library(Path(f"/proc/{process.pid}/maps").read_text())
    assert library is not None
    told: list[str | None] = []
    threading.Thread(target=lambda: told.append(belongings.torch_version(process.pid, library)), daemon=True).start()
    until(lambda: told)
    return told[0]


def test_a_pipe_in_the_place_of_a_file_holds_up_no_listing(package: Path, process: subprocess.Popen[bytes]) -> None:
    os.mkfifo(package / "version.py", 0o666)
    assert version(process) is None
    (package / "version.py").unlink()
    (package / "version.py").write_text("__version__ = '2.13.0'\n")
    assert version(process) == "2.13.0"


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: another user")
def test_no_file_is_told_of_that_it_could_not_read(package: Path, process: subprocess.Popen[bytes]) -> None:
    (package.parent / "secret").write_text("__version__ = 'a secret'\n")
    (package.parent / "secret").chmod(0o600)
    (package / "version.py").symlink_to(package.parent / "secret")
    assert version(process) is None
