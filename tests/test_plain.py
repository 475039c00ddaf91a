"""Files that others have a hand in: what is no ordinary one is not opened, and what is written is there whole or not at all."""

from __future__ import annotations

import errno
import os
import resource
import signal
import socket
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tests.attach.conftest import until
from tuimon import plain
from tuimon.plain import JobFiles, NotPlain, open_inside, open_plain, put, replace

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root: another user")
NOBODY = 65534


def why(call: object, *args: object, **more: object) -> str:
    """The sentence of the refusal."""
    with pytest.raises(NotPlain) as refused:
        os.close(call(*args, **more))  # type: ignore[operator]
    assert str(refused.value) == refused.value.sentence
    return refused.value.sentence


def of_job(path: str, pid: int, *, most: int | None = None) -> int:
    """A file as that process finds it."""
    return JobFiles(pid).open(path, most=most)


def content(handle: int) -> bytes:
    with os.fdopen(handle, "rb") as file:
        return file.read()


def test_an_ordinary_file_is_opened_by_a_link_too(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"text")
    (tmp_path / "link").symlink_to("file")
    assert content(open_plain(tmp_path / "file")) == content(open_plain(tmp_path / "link", most=4)) == b"text"
    assert why(open_plain, tmp_path / "file", most=3) == "is larger than 3 bytes"


def test_what_is_none_is_refused_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo(tmp_path / "fifo")
    monkeypatch.chdir(tmp_path)
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind("socket")
    before = os.listdir("/proc/self/fd")
    assert why(open_plain, tmp_path / "fifo") == "is a fifo"
    assert why(open_plain, tmp_path) == "is a directory"
    assert why(open_plain, "/dev/null") == "is a device"
    assert why(open_plain, tmp_path / "socket") == "is a socket"
    assert why(open_plain, tmp_path / "none") == "cannot be opened: no such file or directory"
    assert why(open_plain, "a\0b") == "has a name that none has"
    assert len(os.listdir("/proc/self/fd")) <= len(before)


def test_a_device_is_not_even_opened(tmp_path: Path) -> None:
    """A FIFO that is opened for reading lets its writer in: nobody may get in here."""
    os.mkfifo(tmp_path / "fifo")
    came = threading.Event()

    def write() -> None:
        os.close(os.open(tmp_path / "fifo", os.O_WRONLY))
        came.set()

    writer = threading.Thread(target=write, daemon=True)
    writer.start()
    for _ in range(200):
        why(open_plain, tmp_path / "fifo")
    assert not came.is_set()
    os.close(os.open(tmp_path / "fifo", os.O_RDONLY | os.O_NONBLOCK))
    until(came.is_set)


def test_a_name_that_is_swapped_all_the_time_gives_the_file_or_a_refusal(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"text")
    os.mkfifo(tmp_path / "fifo")
    over = threading.Event()

    def swap() -> None:
        for n in range(10_000_000):
            if over.is_set():
                return
            (tmp_path / "next").unlink(missing_ok=True)
            (tmp_path / "next").symlink_to("fifo" if n % 2 else "file")
            os.replace(tmp_path / "next", tmp_path / "x")

    (tmp_path / "x").symlink_to("file")
    thread = threading.Thread(target=swap)
    thread.start()
    seen = set()
    try:
        for _ in range(2000):
            try:
                seen.add(content(open_plain(tmp_path / "x")).decode())
            except NotPlain as refused:
                seen.add(refused.sentence)
    finally:
        over.set()
        thread.join()
    assert seen <= {"text", "is a fifo"} and "text" in seen


def test_inside_a_folder_neither_links_nor_second_names(tmp_path: Path) -> None:
    (tmp_path / "aim").write_bytes(b"text")
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "link").symlink_to(tmp_path / "aim")
    (folder / "second").hardlink_to(tmp_path / "aim")
    (folder / "own").write_bytes(b"own")
    handle = os.open(folder, os.O_RDONLY)
    try:
        assert content(open_inside("own", handle)) == b"own"
        assert why(open_inside, "link", handle) == "is a symbolic link"
        assert why(open_inside, "second", handle) == "has a second name elsewhere"
        for name in ("", ".", "..", "../aim", str(tmp_path / "aim")):
            assert why(open_inside, name, handle) == "has a name that none has"
    finally:
        os.close(handle)


def test_a_file_of_a_job_is_found_as_the_job_finds_it(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_bytes(b"text")
    (tmp_path / "there").symlink_to(tmp_path)
    (tmp_path / "up").symlink_to("../../../../../../../../../.." + str(tmp_path))
    (tmp_path / "round").symlink_to("round")
    os.mkfifo(tmp_path / "fifo.py")
    pid = os.getpid()
    for way in ("a.py", "there/there/a.py", "up/a.py", f"../{tmp_path.name}/./a.py"):
        assert content(of_job(f"{tmp_path}/{way}", pid, most=100)) == b"text", way
    assert why(of_job, f"{tmp_path}/round/a.py", pid) == "has too many links on its way"
    assert why(of_job, f"{tmp_path}/fifo.py", pid) == "is a fifo"
    assert why(of_job, "a.py", pid) == "is no absolute path"
    assert why(of_job, f"{tmp_path}/a.py/b", pid) == "cannot be opened: not a directory"
    assert "was gone before" in why(of_job, f"{tmp_path}/a.py", 2**22 + 7)


@needs_root
def test_another_root_is_not_left(tmp_path: Path) -> None:
    """A job in a root of its own names a link that leads out of it, as a link is followed here."""
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc" / "name").write_bytes(b"inside")
    (tmp_path / "link").symlink_to("/etc/name")
    (tmp_path / "up").symlink_to("../../../../../../etc/name")
    (tmp_path / "out").symlink_to("/etc/hostname")
    with subprocess.Popen(
        [sys.executable, "-c", f"import os; os.chroot({str(tmp_path)!r}); os.write(1, b'x'); os.read(0, 1)"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None and process.stdout.read(1) == b"x"
        for way in ("/etc/name", "/link", "/up", "/../etc/name"):
            assert content(of_job(way, process.pid)) == b"inside"
        assert why(of_job, "/out", process.pid) == "cannot be opened: no such file or directory"
        files = JobFiles(process.pid)
        process.communicate(b"x")
    assert "has ended, and saw other files" in why(files.open, "/etc/hostname")  # that would be ours


@needs_root
def test_only_what_the_job_itself_may_read(tmp_path: Path) -> None:
    for folder in (tmp_path, *tmp_path.parents):
        if folder.stat().st_mode & 1 == 0:
            folder.chmod(folder.stat().st_mode | 0o001)  # pytest's own are private
    for name, mode in (("open.py", 0o644), ("shut.py", 0o640), ("grouped.py", 0o640), ("own.py", 0o400), ("odd.py", 0o044)):
        (tmp_path / name).write_bytes(b"text")
        (tmp_path / name).chmod(mode)
    os.chown(tmp_path / "grouped.py", 0, NOBODY)
    os.chown(tmp_path / "own.py", NOBODY, 0)
    os.chown(tmp_path / "odd.py", NOBODY, 0)
    (tmp_path / "shut").mkdir(mode=0o700)
    (tmp_path / "shut" / "open.py").write_bytes(b"text")
    (tmp_path / "way.py").symlink_to("shut/open.py")
    with subprocess.Popen(["/bin/cat"], stdin=subprocess.PIPE, user=NOBODY, group=NOBODY, extra_groups=[]) as process:
        until(lambda: Path(f"/proc/{process.pid}/comm").read_text() == "cat\n")
        for name in ("open.py", "grouped.py", "own.py"):
            assert content(of_job(f"{tmp_path}/{name}", process.pid)) == b"text", name
        for name in ("shut.py", "odd.py"):
            assert why(of_job, f"{tmp_path}/{name}", process.pid) == "may not be read by the job", name
        for name in ("shut/open.py", "way.py"):
            assert why(of_job, f"{tmp_path}/{name}", process.pid) == "lies where the job may not look", name
        files = JobFiles(process.pid)
        assert process.stdin is not None
        process.stdin.close()
        process.wait()
        assert content(files.open(f"{tmp_path}/open.py")) == b"text"  # it has ended: what it could read is known
        assert why(files.open, f"{tmp_path}/shut.py") == "may not be read by the job"


@needs_root
def test_a_group_that_the_job_has_laid_down_opens_nothing(tmp_path: Path) -> None:
    for folder in (tmp_path, *tmp_path.parents):
        folder.chmod(folder.stat().st_mode | 0o001)  # pytest's own are private
    (tmp_path / "grouped.py").write_bytes(b"text")
    (tmp_path / "grouped.py").chmod(0o640)
    os.chown(tmp_path / "grouped.py", 0, NOBODY)
    laid_down = "os.setgroups([]); os.setresgid(65534, 65533, 65533); os.setresuid(65534, 65534, 65534)"
    command = [sys.executable, "-c", f"import os; {laid_down}; print(flush=True); input()"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stdin is not None
        process.stdout.readline()
        assert why(of_job, f"{tmp_path}/grouped.py", process.pid) == "may not be read by the job"
        process.stdin.close()


# ------------------------------------------------------------------------------------------------------------ writing


@pytest.mark.parametrize("write", [put, replace])
def test_a_file_is_written_whole_with_its_permissions(tmp_path: Path, write: object) -> None:
    path = tmp_path / "x"
    write(path, b"one", mode=0o640)  # type: ignore[operator]
    assert path.read_bytes() == b"one" and stat.S_IMODE(path.stat().st_mode) == 0o640
    write(path, b"two", mode=0o600)  # type: ignore[operator]
    assert path.read_bytes() == b"two" and stat.S_IMODE(path.stat().st_mode) == 0o600
    assert os.listdir(tmp_path) == ["x"]


def test_permissions_that_are_not_given_are_those_it_has_or_gets(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        put(tmp_path / "new", b"1")
    finally:
        os.umask(before)
    (tmp_path / "old").touch(mode=0o604)
    (tmp_path / "old").chmod(0o604)
    put(tmp_path / "old", b"1")
    assert [stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("new", "old")] == [0o640, 0o604]


def test_a_link_is_replaced_and_not_followed(tmp_path: Path) -> None:
    (tmp_path / "aim").write_bytes(b"mine")
    (tmp_path / "x").symlink_to("aim")
    put(tmp_path / "x", b"new")
    assert (tmp_path / "aim").read_bytes() == b"mine" and (tmp_path / "x").read_bytes() == b"new"
    assert not (tmp_path / "x").is_symlink()


def test_a_pipe_and_what_lies_in_dev_are_written_to_as_they_are(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    reading = os.open(tmp_path / "fifo", os.O_RDONLY | os.O_NONBLOCK)
    put(tmp_path / "fifo", b"text")
    assert os.read(reading, 10) == b"text" and stat.S_ISFIFO((tmp_path / "fifo").stat().st_mode)
    os.close(reading)
    put(Path("/dev/null"), b"text")
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)
    with open(tmp_path / "out", "w+b") as out:
        program = f"import sys; sys.path.insert(0, {str(Path(__file__).parents[1])!r}); from tuimon.plain import *; "
        subprocess.run([sys.executable, "-c", program + "put(Path('/dev/stdout'), b'text')"], stdout=out, check=True)
    assert (tmp_path / "out").read_bytes() == b"text"


def test_where_there_is_no_room_the_old_one_stays(tmp_path: Path) -> None:
    path = tmp_path / "x"
    put(path, b"old")
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, limits[1]))
    try:
        with pytest.raises(OSError, match="too large"):
            put(path, bytes(200_000))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, ignored)
    assert path.read_bytes() == b"old" and os.listdir(tmp_path) == ["x"]


def test_a_file_in_a_folder_that_may_not_be_written_to_is_written_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "report.json"
    path.write_text("old")

    def refused(*_args: object, **_more: object) -> None:
        raise OSError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(plain, "replace", refused)
    plain.put(path, b"new")
    assert path.read_text() == "new"
    with pytest.raises(OSError, match="Permission denied"):
        plain.put(tmp_path / "other.json", b"new")
