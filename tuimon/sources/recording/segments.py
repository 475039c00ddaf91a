"""The files of one recording: FILE, then FILE.2, FILE.3, .. Made with care, appended to, the oldest but the first dropped."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import stat
from pathlib import Path

from tuimon.plain import NotPlain, open_plain
from tuimon.sources.recording.format import HEAD, MAGIC, FileHead, file_head

KEPT = 8
"""Segments that are kept at most. The first is always one of them: warming up is part of every experiment."""

MOST_SEGMENTS = 1_000_000


def name_of(path: Path, number: int) -> Path:
    """The file of a segment; numbers are from 1 on."""
    return path if number == 1 else path.with_name(f"{path.name}.{number}")


def later(path: Path) -> list[tuple[int, Path]]:
    """(number, file) of what lies beside a recording under the name of a later segment, in their order. Reads the folder."""
    pattern = re.compile(re.escape(path.name) + r"\.(\d{1,6})")
    found = []
    with contextlib.suppress(OSError), os.scandir(path.parent) as folder:
        for entry in folder:
            match = pattern.fullmatch(entry.name)
            if match is not None and 2 <= int(match[1]) <= MOST_SEGMENTS and str(int(match[1])) == match[1]:
                found.append((int(match[1]), path.parent / entry.name))
    return sorted(found)


def make_place(path: Path, force: bool) -> None:
    """See to it that a recording can be made under this name, all its segments.

    Raises FileExistsError for a file that is there, unless `force`: then it is removed, which whoever reads it survives. What
    is no ordinary file is never removed.
    """
    for place in [path, *(one for _, one in later(path))]:
        try:
            mode = os.lstat(place).st_mode
        except FileNotFoundError:
            continue
        if not stat.S_ISREG(mode):
            what = "a folder" if stat.S_ISDIR(mode) else "a link" if stat.S_ISLNK(mode) else "no ordinary file"
            raise FileExistsError(errno.EEXIST, f"there is {what} of that name", str(place))
        if not force or (place != path and not _is_recording(place)):
            raise FileExistsError(errno.EEXIST, "there is a file of that name", str(place))
        os.unlink(place)


def head_of(path: Path) -> FileHead | None:
    """The head of a file where it is a recording's and whole. Waits for nothing."""
    try:
        number = open_plain(path)
    except NotPlain:
        return None
    try:
        raw = os.pread(number, HEAD, 0)
        return file_head(raw) if raw.startswith(MAGIC) else None
    except OSError:
        return None
    finally:
        os.close(number)


def _is_recording(path: Path) -> bool:
    return head_of(path) is not None


def _sync_folder(path: Path) -> None:
    """Have the disk hold that there is a new file, where its file system can."""
    with contextlib.suppress(OSError):
        number = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(number)
        finally:
            os.close(number)


class Files:
    """The segments that are being written."""

    def __init__(self, path: Path, force: bool) -> None:
        """Raises OSError."""
        make_place(path, force)
        self._path = path
        self._number = -1
        self._kept: list[tuple[Path, int]] = []
        """Those that are closed and still there, with their sizes."""
        self.size = 0
        """Bytes of the segment that is open."""
        self.segment = 0

    @property
    def total(self) -> int:
        """Of all segments that are there."""
        return self.size + sum(size for _, size in self._kept)

    def begin(self, head: bytes) -> None:
        """Close the segment that is open and begin the next one; the oldest but the first may have to go. Raises OSError."""
        if self._number >= 0:
            self.sync()
            os.close(self._number)
            self._number = -1
            self._kept.append((name_of(self._path, self.segment), self.size))
        if len(self._kept) >= KEPT:
            oldest, _ = self._kept.pop(1)
            with contextlib.suppress(FileNotFoundError):
                os.unlink(oldest)
        self.segment += 1
        self.size = 0
        place = name_of(self._path, self.segment)
        self._number = os.open(place, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        self.append(head)
        _sync_folder(place.parent)

    def append(self, data: bytes) -> None:
        """Write all of it; or, where that fails, nothing of it, and raise OSError."""
        view = memoryview(data)
        try:
            while view:
                view = view[os.write(self._number, view) :]
        except OSError:
            with contextlib.suppress(OSError):
                os.ftruncate(self._number, self.size)
            raise
        self.size += len(data)

    def sync(self) -> None:
        """Have the disk hold what was written. Raises OSError."""
        os.fdatasync(self._number)

    def close(self) -> None:
        """Of no more use. Raises nothing."""
        if self._number >= 0:
            with contextlib.suppress(OSError):
                os.close(self._number)
            self._number = -1
