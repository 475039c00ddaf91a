"""Which processes are the job's and which GPUs it has open: of real children, and of a /proc of links."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tuimon.sources import gpu_use
from tuimon.sources.gpu_use import KEPT_S, family, opened

Until = Callable[[Callable[[], bool]], None]


class Clock:
    """A clock that stands until it is told."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def process(proc: Path, pid: int, parent: int, *files: str, maps: str = "") -> None:
    """A process with these files open."""
    folder = proc / str(pid)
    (folder / "fd").mkdir(parents=True, exist_ok=True)
    (folder / "stat").write_text(f"{pid} (python) S {parent} " + " ".join(["0"] * 30))
    for number, file in enumerate(files):
        (folder / "fd" / str(number)).symlink_to(file)
    (folder / "maps").write_text(maps)


def test_the_family_is_the_job_and_its_real_children(until: Until) -> None:
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    try:
        until(lambda: {os.getpid(), child.pid} <= family(os.getpid())())  # it may be known from a moment ago, but no longer
        assert family(child.pid)() == {child.pid}
    finally:
        child.communicate(b"\n")


def test_an_answer_is_kept_for_a_while(tmp_path: Path) -> None:
    clock = Clock()
    process(tmp_path, 7, 1)
    pids, minors = family(7, tmp_path, clock), opened(7, tmp_path, clock)
    assert pids() == {7} and minors() == frozenset()
    process(tmp_path, 8, 7, "/dev/nvidia3")
    assert pids() == {7} and minors() == frozenset()
    clock.now += KEPT_S
    assert pids() == {7, 8} and minors() == frozenset({3})


def test_minors_are_those_of_the_devices_and_of_nothing_else(tmp_path: Path) -> None:
    process(tmp_path, 7, 1, "/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia0", "/dev/nvidia12", "/home/nvidia5", "socket:[5]")
    process(tmp_path, 8, 7, "/dev/nvidia2 (deleted)")
    process(tmp_path, 9, 1, "/dev/nvidia9")  # none of the job's
    assert opened(7, tmp_path)() == frozenset({0, 2, 12})


def test_what_is_mapped_counts_where_no_file_is_open(tmp_path: Path) -> None:
    process(tmp_path, 7, 1, maps="7f00-7f01 rw-s 0 00:06 500  /dev/nvidia4\n7f01-7f02 rw-s 0 00:06 501 /dev/nvidiactl\n")
    assert opened(7, tmp_path)() == frozenset({4})


def test_what_may_not_be_seen_is_not_nothing(tmp_path: Path) -> None:
    assert opened(7, tmp_path)() is None
    process(tmp_path, 7, 1)
    (tmp_path / "7" / "maps").unlink()
    assert opened(7, tmp_path)() == frozenset()


def test_a_process_that_has_gone() -> None:
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    assert family(gone.pid)() == {gone.pid} and opened(gone.pid)() is None


def test_many_open_files_are_not_all_looked_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu_use, "MOST_FILES", 2)
    process(tmp_path, 7, 1, *(f"/dev/nvidia{number}" for number in range(5)))
    assert len(opened(7, tmp_path)() or ()) == 2
