"""A job's files on the screen: read with the job's rights, in the job's root, and only where they are files."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.app.test_panels import scene, text
from tests.attach.conftest import needs_tracing, until
from tests.support.fake_feed import busy
from tuimon.app.details.opening import open_source
from tuimon.app.details.paged import Source
from tuimon.app.details.source import read_excerpt, read_here
from tuimon.attach.session import attach
from tuimon.feed import LiveFeed
from tuimon.plain import JobFiles

NOBODY = 65534
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root: another user")


@pytest.fixture
def readable(tmp_path: Path) -> Path:
    """A folder that others may look into; pytest's own are private."""
    for folder in (tmp_path, *tmp_path.parents):
        if folder.stat().st_mode & 1 == 0:
            folder.chmod(folder.stat().st_mode | 0o001)
    return tmp_path


@pytest.fixture
def nobodys() -> Iterator[subprocess.Popen[bytes]]:
    """A job of another user's."""
    with subprocess.Popen(["/bin/cat"], stdin=subprocess.PIPE, user=NOBODY, group=NOBODY, extra_groups=[]) as process:
        until(lambda: Path(f"/proc/{process.pid}/comm").read_text() == "cat\n")
        yield process
        process.kill()


@needs_root
def test_a_page_shows_no_file_that_the_job_could_not_read(readable: Path, nobodys: subprocess.Popen[bytes]) -> None:
    """Root watches a job of nobody's, which names files of root's as its source."""
    (readable / "open.py").write_text("a line\n")
    (readable / "secret.py").write_text("a secret\n")
    (readable / "secret.py").chmod(0o600)
    (readable / "way.py").symlink_to("secret.py")
    what = replace(scene(busy()), job_files=JobFiles(nobodys.pid))
    assert read_here(what, str(readable / "open.py"), 1).lines == ((1, "a line"), (2, ""))
    for name in ("secret.py", "way.py"):
        excerpt = read_here(what, str(readable / name), 1)
        assert excerpt.lines == () and excerpt.why_not == f"{readable / name} may not be read by the job"
        page = " ".join(text(open_source(what, Source(str(readable / name), 1))[1](what, 100).lines).split())
        assert "may not be read by the job" in page and "a secret" not in page
    nobodys.kill()
    nobodys.wait()  # what it was allowed is known still
    assert read_here(what, str(readable / "open.py"), 1).lines and not read_here(what, str(readable / "secret.py"), 1).lines


def test_a_pipe_that_takes_a_files_place_holds_nothing_up(tmp_path: Path) -> None:
    """It is swapped again and again, as fast as can be, for as long as the file is read."""
    path, over = tmp_path / "model.py", threading.Event()
    (tmp_path / "file").write_text("a line\n")
    os.mkfifo(tmp_path / "fifo")

    def swap() -> None:
        while not over.is_set():
            for name in ("file", "fifo"):
                os.link(tmp_path / name, tmp_path / "next")
                os.replace(tmp_path / "next", path)

    swapping = threading.Thread(target=swap)
    swapping.start()
    try:
        until(path.exists)
        for files in (None, JobFiles(os.getpid())):
            found = {read_excerpt(str(path), 1, files=files).why_not for _ in range(200)}
            assert found <= {"", f"{path} is a fifo"}
    finally:
        over.set()
        swapping.join()


def test_a_file_that_is_too_long_is_read_in_part_and_a_page_bounds_its_lines(tmp_path: Path) -> None:
    (tmp_path / "long.py").write_bytes(b"x\n" * (4 << 20))
    assert len(read_excerpt(str(tmp_path / "long.py"), 2_000_000, 5).lines) == 11
    assert "has no line 4000000" in read_excerpt(str(tmp_path / "long.py"), 4_000_000).why_not


@needs_tracing
def test_the_monitor_looks_as_the_job_does() -> None:
    """What the screen gets of a live feed: the files of that very process."""
    program = "import time\nprint(flush=True)\ntime.sleep(600)"
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        try:
            feed = LiveFeed(attach(process.pid, {}), "x")
            assert feed.job_files is None
            feed.start()
            assert feed.job_files is not None and feed.job_files._pid == process.pid
            feed.detach()
        finally:
            process.kill()
