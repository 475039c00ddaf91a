"""Opening and writing files that somebody else has a hand in: what is no ordinary file is never opened, let alone waited for.

A name may stand for a pipe, which holds up whoever opens it, for a device, which acts on being opened, or for a link to what
its maker may not read himself.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from pathlib import Path

MOST_LINKS = 40
"""Symbolic links on the way to one file; as many as Linux itself follows."""

_LOOK = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC
_FOLDER = os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC
_KINDS = (
    (stat.S_ISDIR, "is a directory"),
    (stat.S_ISFIFO, "is a fifo"),
    (stat.S_ISSOCK, "is a socket"),
    (stat.S_ISCHR, "is a device"),
    (stat.S_ISBLK, "is a device"),
    (stat.S_ISLNK, "is a symbolic link"),
)


class NotPlain(OSError):
    """The file is not read: it is not there, none of the kind, too large, or not the job's to read."""

    def __init__(self, sentence: str, number: int = errno.EINVAL) -> None:
        super().__init__(number, sentence)
        self.sentence = sentence
        """What is the matter, as the end of a sentence that begins with the file's name: "is a fifo". `errno` is EINVAL where
        it is no ordinary file, or no name of one."""

    def __str__(self) -> str:
        return self.sentence


def open_plain(path: str | Path, *, most: int | None = None) -> int:
    """A descriptor for reading an ordinary file, of `most` bytes at most. Links are followed. Raises NotPlain."""
    try:
        looked = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except (OSError, ValueError) as error:
        raise _refused(error) from None
    try:
        return _reopened(looked, most)
    finally:
        os.close(looked)


def open_inside(name: str, folder: int, *, most: int | None = None) -> int:
    """The same for a file in a folder that is open: that very entry, which is no link, and has no other name elsewhere."""
    if not name or name in (".", "..") or "/" in name:
        raise NotPlain("has a name that none has")
    try:
        looked = os.open(name, _LOOK, dir_fd=folder)
    except (OSError, ValueError) as error:
        raise _refused(error) from None
    try:
        if stat.S_ISREG((found := os.fstat(looked)).st_mode) and found.st_nlink > 1:
            raise NotPlain("has a second name elsewhere")
        return _reopened(looked, most)
    finally:
        os.close(looked)


class JobFiles:
    """The files that one process names, as it finds them itself: in its own root, with its own rights.

    Links are followed within that root, never out of it; where tuimon runs as another user than the process, only what the
    process itself may read by owner, group and others is opened. Made while the process lives. After its end the files are
    still found where it saw the same file systems as tuimon does.
    """

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._judge: _Judge | None = None
        self._begun = b""
        self._shared = False
        with contextlib.suppress(OSError, ValueError):
            self._begun = _begun(pid)
            self._judge = _Judge(pid)
            self._shared = _view(pid) == _view(os.getpid())

    def open(self, path: str, *, most: int | None = None) -> int:
        """A descriptor for reading an ordinary file, of `most` bytes at most, by its absolute path. Raises NotPlain."""
        if self._judge is None:
            raise NotPlain("cannot be looked for: the process that names it was gone before it was looked at", errno.ESRCH)
        root = self._root()
        return _opened_under(root, path, self._judge, most)

    def _root(self) -> int:
        """Where its paths begin, opened. Raises NotPlain."""
        with contextlib.suppress(OSError, ValueError):
            root = os.open(f"/proc/{self._pid}/root", _FOLDER)
            try:
                judge = _Judge(self._pid)  # it may have become another user
                if _begun(self._pid) == self._begun:  # asked last, so that all of it was of this process
                    self._judge = judge
                    return os.dup(root)
            finally:
                os.close(root)
        if not self._shared:
            raise NotPlain("cannot be looked for any more: the process has ended, and saw other files than tuimon", errno.ESRCH)
        return os.open("/", _FOLDER)


def _begun(pid: int) -> bytes:
    """When a process was started, which tells it from a later one of its pid. Raises OSError, ValueError."""
    with open(f"/proc/{pid}/stat", "rb") as file:
        fields = file.read().rpartition(b")")[2].split()
    if len(fields) < 20:
        raise ValueError("no stat")
    return fields[19]


def _view(pid: int) -> tuple[str, int, int]:
    """What a process sees of the file systems: the same for two means that their paths mean the same. Raises OSError."""
    root = os.stat(f"/proc/{pid}/root")
    return os.readlink(f"/proc/{pid}/ns/mnt"), root.st_dev, root.st_ino


def _opened_under(root: int, path: str, judge: _Judge, most: int | None) -> int:
    """The file of this absolute path below `root`, which is closed; where another user than our own judges, as it may read.

    Raises NotPlain.
    """
    judging = judge if judge.uid != os.geteuid() else None
    try:
        if not path.startswith("/"):
            raise NotPlain("is no absolute path")
        looked = _walk(path, root, judging)
    except NotPlain:
        raise
    except (OSError, ValueError) as error:
        raise _refused(error) from None
    finally:
        os.close(root)
    try:
        if judging is not None and not judging.may(os.fstat(looked), 4):
            raise NotPlain("may not be read by the job", errno.EACCES)
        return _reopened(looked, most)
    finally:
        os.close(looked)


def put(path: Path, data: bytes, *, mode: int | None = None) -> None:
    """Write a file whole or not at all: whoever reads it finds the old or the new content. Raises OSError.

    `mode`: its permissions; None: those that it has, or that a new file gets. What a person names that is no ordinary file (a
    pipe, a terminal, anything in /dev or /proc) is written to as it is; so is a file in a folder that may not be written to, or
    one that is mounted by itself.
    """
    try:
        there = os.stat(path)
    except OSError:
        there = None
    as_it_is = Path(os.path.abspath(path)).parts[1:2] in (("dev",), ("proc",)) and there is not None
    if there is not None and (as_it_is or not stat.S_ISREG(there.st_mode)):
        with open(path, "wb") as file:
            file.write(data)
        return
    if mode is None and there is not None:
        mode = stat.S_IMODE(there.st_mode)
    try:
        replace(path, data, mode=mode)
    except OSError as error:
        if there is None or error.errno not in (errno.EACCES, errno.EPERM, errno.EBUSY):
            raise
        with open(path, "wb") as file:
            file.write(data)


def replace(path: Path, data: bytes, *, mode: int | None = None) -> None:
    """The same, whatever stands there now: it is not opened and not followed. Raises OSError."""
    beside = path.with_name(f".tuimon-{os.urandom(8).hex()}.tmp")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    handle = os.open(beside, flags, 0o666 if mode is None else 0o600)
    try:
        with os.fdopen(handle, "wb") as file:
            if mode is not None:
                os.fchmod(file.fileno(), mode)
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(beside)
        raise


def _refused(error: Exception) -> NotPlain:
    if isinstance(error, OSError):
        return NotPlain(f"cannot be opened: {(error.strerror or str(error)).lower()}", error.errno or errno.EIO)
    return NotPlain("has a name that none has")  # a NUL, a lone surrogate


def _reopened(looked: int, most: int | None) -> int:
    """What was looked at, opened for reading if it is an ordinary file. Raises NotPlain."""
    found = os.fstat(looked)
    if not stat.S_ISREG(found.st_mode):
        raise NotPlain(next((what for is_kind, what in _KINDS if is_kind(found.st_mode)), "is no ordinary file"))
    if most is not None and found.st_size > most:
        raise NotPlain(f"is larger than {most:,} bytes", errno.EFBIG)
    try:
        return os.open(f"/proc/self/fd/{looked}", os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise _refused(error) from None


class _Judge:
    """What one process may do with files, by its user and groups."""

    def __init__(self, pid: int) -> None:
        """Raises OSError, ValueError."""
        with open(f"/proc/{pid}/status", encoding="utf-8", errors="replace") as file:
            facts = dict(line.split(":", 1) for line in file if ":" in line)
        words = facts.get("Uid", "").split()
        if len(words) != 4:
            raise ValueError("no user")
        self.uid = int(words[3])  # of four, and of four groups: as the kernel itself judges who opens a file
        self._groups = {int(word) for word in (*facts.get("Gid", "").split()[3:], *facts.get("Groups", "").split())}

    def may(self, found: os.stat_result, bit: int) -> bool:
        """Whether the mode grants it this (4: read, 1: pass through)."""
        if self.uid == 0:
            return True
        shift = 6 if found.st_uid == self.uid else 3 if found.st_gid in self._groups else 0
        return bool(found.st_mode >> shift & bit)


def _walk(path: str, root: int, judge: _Judge | None) -> int:
    """The file of this path under `root`, looked at part by part, so that no link leads out. Raises OSError, NotPlain."""
    folders = [os.dup(root)]
    try:
        left = [part for part in reversed(path.split("/")) if part not in ("", ".")]
        links = 0
        while left:
            part = left.pop()
            if part == "..":
                if len(folders) > 1:
                    os.close(folders.pop())
                continue
            if judge is not None and not judge.may(os.fstat(folders[-1]), 1):
                raise NotPlain("lies where the job may not look", errno.EACCES)
            at = os.open(part, _LOOK, dir_fd=folders[-1])
            folders.append(at)
            if stat.S_ISLNK(os.fstat(at).st_mode):
                links += 1
                if links > MOST_LINKS:
                    raise NotPlain("has too many links on its way", errno.ELOOP)
                leads = os.readlink("", dir_fd=at)
                os.close(folders.pop())
                if leads.startswith("/"):
                    while len(folders) > 1:
                        os.close(folders.pop())
                left += [one for one in reversed(leads.split("/")) if one not in ("", ".")]
        return folders.pop()
    finally:
        for one in folders:
            os.close(one)
