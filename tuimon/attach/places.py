"""Where something of ours may lie in a target's file system, who could meddle with it there, and what is left of it.

A folder of our own holds it: with a random name, new, mode 0700 and the target's user's. Nobody else can see what is in it, nor
connect to it; who may rename it can put a folder of his own in its place, which is why such places are the last choice, and why
nothing that lies in them is executed.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import re
import socket
import stat
import time
from pathlib import PurePosixPath
from typing import NamedTuple

from tuimon.attach import procfs

LONGEST_PATH = 107  # sun_path, less its end
SOCKET, SCRIPT = "s", "s.py"
"""What may be in a folder of ours, beside the files of profiler windows."""
STALE_S = 60.0  # a socket that is younger may be bound and not listened at yet
STALE_SCRIPT_S = 86400.0  # one without an owner may be asked for still: its lack would show on that job's stderr
_OURS = re.compile(r"\.tuimon-[0-9a-f]{16}(\.py)?")


class Place(NamedTuple):
    """A directory of the target's, opened."""

    directory: int
    path: str
    """As the target sees it."""
    exposed: bool
    """Whether a user other than root and the target's could put something else in the place of what lies in it."""


def places(pid: int, name: str) -> list[Place]:
    """The directories in which a folder of this name may be made, the safest first.

    Raises OSError where the process is gone, or is not ours to look at.
    """
    wanted = [procfs.environment(pid).get("TMPDIR", ""), "/tmp", "/dev/shm", "/var/tmp"]
    found: list[Place] = []
    owner = owner_of(pid)
    for path in dict.fromkeys(wanted):
        longest = f"{path}/{name}/{SOCKET}"
        if path.startswith("/") and len(os.fsencode(longest)) <= LONGEST_PATH and ".." not in path.split("/"):
            with contextlib.suppress(OSError):
                place = open_inside(pid, path)
                try:
                    found.append(Place(place, path, is_exposed(pid, path, owner)))
                except OSError:
                    os.close(place)
    return sorted(found, key=lambda place: place.exposed)


def owner_of(pid: int) -> int:
    """The user that a process runs as; our own where that cannot be told."""
    try:
        return int(procfs.status(pid)["Uid"].split()[1])
    except (OSError, KeyError, ValueError):
        return os.geteuid()


def open_inside(pid: int, path: str) -> int:
    """Open a directory of the target without following a link. Raises OSError."""
    at = os.open(f"/proc/{pid}/root", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    for part in PurePosixPath(path).parts[1:]:
        try:
            inner = os.open(part, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=at)
        finally:
            os.close(at)
        at = inner
    return at


def is_exposed(pid: int, path: str, owner: int) -> bool:
    """Whether another user could put something else in the place of the directory's entries, or of one on the way to it.

    Whose the root of the target's file system is, is trusted as root is: the target's own programs are his. Raises OSError.
    """
    parts = PurePosixPath(path).parts
    trusted = {0, owner, os.stat(f"/proc/{pid}/root").st_uid}
    for end in range(1, len(parts) + 1):
        directory = open_inside(pid, str(PurePosixPath(*parts[:end])))
        try:
            if others_may_rename(directory, trusted):
                return True
        finally:
            os.close(directory)
    return False


def others_may_rename(directory: int, trusted: set[int]) -> bool:
    """Whether a user who is none of those could put an entry of his own in the place of ours."""
    facts = os.fstat(directory)
    if facts.st_uid not in trusted:
        return True
    return bool(facts.st_mode & (stat.S_IWGRP | stat.S_IWOTH)) and not facts.st_mode & stat.S_ISVTX


def make_folder(directory: int, name: str) -> int:
    """A new folder of ours there, mode 0700; gives it opened. To be made as the target's user. Raises OSError."""
    before = os.umask(0o077)
    try:
        os.mkdir(name, 0o700, dir_fd=directory)
        return open_folder(directory, name)
    finally:
        os.umask(before)


def open_folder(directory: int, name: str) -> int:
    """A folder of ours, no link in its place. Raises OSError."""
    return os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=directory)


def take_away(directory: int, name: str, owner: int) -> None:
    """Remove the socket in a folder of ours and, once it is empty, the folder. What is not `owner`'s is left alone."""
    with contextlib.suppress(OSError):
        folder = open_folder(directory, name)
        try:
            if os.fstat(folder).st_uid != owner:
                return
            os.unlink(SOCKET, dir_fd=folder)
        finally:
            os.close(folder)
    with contextlib.suppress(OSError):
        os.rmdir(name, dir_fd=directory)


def tidy(directory: int) -> None:
    """Remove what tuimons have left that were killed: sockets at which nobody listens, scripts, empty folders."""
    for name in filter(_OURS.fullmatch, os.listdir(directory)):
        with contextlib.suppress(OSError):  # another user's, or gone meanwhile
            facts = os.stat(name, dir_fd=directory, follow_symlinks=False)
            if not stat.S_ISDIR(facts.st_mode):  # of tuimons that had no folder
                _tidy_one(directory, name, facts)
            elif time.time() - facts.st_mtime > STALE_S:
                _tidy_folder(directory, name)


def _tidy_folder(directory: int, name: str) -> None:
    """Raises OSError."""
    folder = open_folder(directory, name)
    try:
        for entry in (SOCKET, SCRIPT):
            with contextlib.suppress(OSError):
                _tidy_one(folder, entry, os.stat(entry, dir_fd=folder, follow_symlinks=False))
    finally:
        os.close(folder)
    os.rmdir(name, dir_fd=directory)  # one for profiler windows that is still wanted is made again


def _tidy_one(directory: int, name: str, facts: os.stat_result) -> None:
    """Raises OSError."""
    age = time.time() - facts.st_mtime
    if name.endswith(".py") and stat.S_ISREG(facts.st_mode) and age > STALE_SCRIPT_S:
        _tidy_script(directory, name)
    if stat.S_ISSOCK(facts.st_mode) and age > STALE_S:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK) as probe:
            if probe.connect_ex(f"/proc/self/fd/{directory}/{name}") == errno.ECONNREFUSED:
                os.unlink(name, dir_fd=directory)


def _tidy_script(directory: int, name: str) -> None:
    """Remove a script unless its owner lives, who keeps it locked. Raises OSError."""
    file = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=directory)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.unlink(name, dir_fd=directory)
    finally:
        os.close(file)
