"""Where a job puts the file of a profiler window: a new directory in the job's own file system, which is its user's alone.

In a shared one, who knows the file's name beforehand could put a link in its place.
"""

from __future__ import annotations

import contextlib
import os
import secrets

from tuimon.attach import channel, procfs


class TraceFolder:
    """One directory for one process. `close` takes it away, with what is still in it."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._name = f".tuimon-{secrets.token_hex(8)}"
        self._place: int | None = None
        self._path = ""

    def path(self) -> str | None:
        """The directory as the process sees it, made now if it is not there; None where none can be made."""
        if self._place is not None:
            with contextlib.suppress(OSError):
                os.stat(self._name, dir_fd=self._place, follow_symlinks=False)
                return self._path
            self.close()
        try:
            places = channel.places(self._pid, self._name)
        except OSError:
            return None
        for place, path in places:
            if self._place is None and self._make(place):
                self._place, self._path = place, f"{path.rstrip('/')}/{self._name}"
            else:
                os.close(place)
        return self._path if self._place is not None else None

    def _make(self, place: int) -> bool:
        try:
            os.mkdir(self._name, 0o700, dir_fd=place)
            if os.geteuid() == 0:
                status = procfs.status(self._pid)
                uid, gid = int(status["Uid"].split()[1]), int(status["Gid"].split()[1])
                os.chown(self._name, uid, gid, dir_fd=place, follow_symlinks=False)
        except (OSError, KeyError, ValueError):
            with contextlib.suppress(OSError):
                os.rmdir(self._name, dir_fd=place)
            return False
        return True

    def close(self) -> None:
        """Take it away. May be called twice."""
        place, self._place = self._place, None
        if place is None:
            return
        with contextlib.suppress(OSError):
            inside = os.open(self._name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=place)
            try:
                for name in os.listdir(inside):
                    with contextlib.suppress(OSError):
                        os.unlink(name, dir_fd=inside)
            finally:
                os.close(inside)
            os.rmdir(self._name, dir_fd=place)
        os.close(place)
