"""Opening and writing files that somebody else has a hand in: what is no ordinary file is never opened, let alone waited for.

A name may stand for a pipe, which holds up whoever opens it, for a device, which acts on being opened, or for a link to what
its maker may not read himself.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import stat
from pathlib import Path

MOST_LINKS = 40
"""Symbolic links on the way to one file; as many as Linux itself follows."""

_LOOK = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC
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
        """What is the matter, as the end of a sentence that begins with the file's name: "is a fifo"."""

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


def open_of_job(path: str, pid: int, uid: int, *, most: int | None = None) -> int:
    """A descriptor for an ordinary file as process `pid`, which runs as user `uid`, would find it by an absolute path.

    Links are followed within the process's own root, never out of it. Where tuimon runs as another user than the job, only
    what the job itself may read by owner, group and others is opened. Raises NotPlain.
    """
    if not path.startswith("/"):
        raise NotPlain("is no absolute path")
    try:
        judge = _Judge(pid, uid) if os.geteuid() != uid else None
        looked = _walk(path, f"/proc/{pid}/root", judge)
    except NotPlain:
        raise
    except (OSError, ValueError) as error:
        raise _refused(error) from None
    try:
        if judge is not None and not judge.may(os.fstat(looked), 4):
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
    beside = path.with_name(f".tuimon-{secrets.token_hex(8)}.tmp")
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
        return NotPlain((error.strerror or str(error)).lower(), error.errno or errno.EINVAL)
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

    def __init__(self, pid: int, uid: int) -> None:
        self._uid = uid
        with open(f"/proc/{pid}/status", encoding="utf-8", errors="replace") as file:
            facts = dict(line.split(":", 1) for line in file if ":" in line)
        self._groups = {int(word) for name in ("Gid", "Groups") for word in facts.get(name, "").split()}

    def may(self, found: os.stat_result, bit: int) -> bool:
        """Whether the mode grants it this (4: read, 1: pass through)."""
        if self._uid == 0:
            return True
        shift = 6 if found.st_uid == self._uid else 3 if found.st_gid in self._groups else 0
        return bool(found.st_mode >> shift & bit)


def _walk(path: str, root: str, judge: _Judge | None) -> int:
    """The file of this path under `root`, looked at part by part, so that no link leads out. Raises OSError, NotPlain."""
    folders = [os.open(root, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)]
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
