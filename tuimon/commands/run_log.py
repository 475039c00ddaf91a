"""The log of a program that runs under the screen, in the user's state folder; the latest ones are kept.

It is a file and no pipe: a pipe that nobody empties would stop the program.
"""

from __future__ import annotations

import contextlib
import fcntl
import itertools
import os
import re
import stat
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import IO

KEPT = 20
"""So many logs are kept, the new one among them, beside older ones that are still written to."""

_OURS = re.compile(r"run-\d{8}-\d{6}-\d+-\d+\.log")
_numbers = itertools.count(1)


def new_log(environ: Mapping[str, str] = os.environ) -> Path:
    """A new, empty log; the oldest beyond `KEPT` go. One among the temporary files where the state folder cannot have it.

    Raises OSError.
    """
    with contextlib.suppress(OSError):
        folder = os.open(_folder(environ), os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            if _is_private(folder):
                _take_away(folder, KEPT - 1)
                return _folder(environ) / _made(folder)
        finally:
            os.close(folder)
    handle, name = tempfile.mkstemp(prefix="tuimon-run-", suffix=".log")
    os.close(handle)
    return Path(name)


def opened(log: Path) -> IO[bytes]:
    """The log, for the program to write to: as long as a process of its has it, no run takes it away. Raises OSError."""
    file = log.open("ab")
    with contextlib.suppress(OSError):  # a file system without locks
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    return file


def _folder(environ: Mapping[str, str]) -> Path:
    """Made where it is not there. Raises OSError."""
    home = environ.get("HOME") or os.path.expanduser("~")
    state = environ.get("XDG_STATE_HOME") or os.path.join(home, ".local", "state")
    folder = Path(state) / "tuimon"
    if not folder.is_absolute():
        raise NotADirectoryError(state)
    there = next(above for above in (folder, *folder.parents) if above.is_dir())
    if os.geteuid() == 0 and there.stat().st_uid != 0:  # `sudo` with the user's HOME: nothing of root's is left there
        raise PermissionError(str(there))
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return folder


def _is_private(folder: int) -> bool:
    """Whether nobody else can put something in there."""
    facts = os.fstat(folder)
    return facts.st_uid == os.geteuid() and not facts.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def _made(folder: int) -> str:
    """The name of a new file. Raises OSError."""
    for number in _numbers:
        name = f"run-{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}-{number}.log"
        with contextlib.suppress(FileExistsError):
            os.close(os.open(name, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600, dir_fd=folder))
            return name
    raise AssertionError


def _take_away(folder: int, kept: int) -> None:
    """Remove logs that nobody writes to any more, the oldest ones, until there are so many."""
    found: list[tuple[int, str]] = []
    for name in filter(_OURS.fullmatch, os.listdir(folder)):
        with contextlib.suppress(OSError):  # another run has removed it
            facts = os.stat(name, dir_fd=folder, follow_symlinks=False)
            if stat.S_ISREG(facts.st_mode):
                found.append((facts.st_mtime_ns, name))
    found.sort(reverse=True)
    for _, name in found[kept:]:
        with contextlib.suppress(OSError):
            file = os.open(name, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                os.unlink(name, dir_fd=folder)
            finally:
                os.close(file)
