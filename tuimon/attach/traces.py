"""Where a job puts the file of a profiler window: a new directory in the job's own file system, which is its user's alone.

In a shared one, who knows the file's name beforehand could put a link in its place. The directory stays open from its making
on: by whatever name the job may move it about, what is read and taken away lies in this one.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
import threading

from tuimon.attach import places, procfs


class TraceFolder:
    """One directory for one process. `close` takes it away, with what is still in it. For any thread."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._name = f".tuimon-{secrets.token_hex(8)}"
        self._lock = threading.Lock()
        self._place: int | None = None
        self._inside: int | None = None
        self._path = ""

    def path(self) -> str | None:
        """The directory as the process sees it, made now if it is not there; None where none can be made."""
        with self._lock:
            if self._place is not None:
                with contextlib.suppress(OSError):
                    os.stat(self._name, dir_fd=self._place, follow_symlinks=False)
                    return self._path
                self._close()
            try:
                found = places.places(self._pid, self._name)
            except OSError:
                return None
            for place, path, _ in found:
                if self._place is None and self._make(place):
                    self._place, self._path = place, f"{path.rstrip('/')}/{self._name}"
                else:
                    os.close(place)
            return self._path if self._place is not None else None

    def opened(self) -> int | None:
        """The directory, for the caller to close; None where there is none."""
        with self._lock:
            return None if self._inside is None else os.dup(self._inside)

    def _make(self, place: int) -> bool:
        try:
            os.mkdir(self._name, 0o700, dir_fd=place)
        except OSError:
            return False
        try:
            self._inside = places.open_folder(place, self._name)
            if os.geteuid() == 0:
                self._give_away(self._inside, place)
        except (OSError, KeyError, ValueError):
            if self._inside is not None:
                os.close(self._inside)
                self._inside = None
            with contextlib.suppress(OSError):
                os.rmdir(self._name, dir_fd=place)
            return False
        return True

    def _give_away(self, inside: int, place: int) -> None:
        """Make it the target's user's. Raises OSError, KeyError, ValueError.

        In a directory of its own the target can have put another one of root's under this name by now: only one that is as ours
        was made, and empty, is given away, which is nothing that it could not have made itself.
        """
        status = procfs.status(self._pid)
        uid, gid = int(status["Uid"].split()[1]), int(status["Gid"].split()[1])
        facts = os.fstat(inside)
        as_made = facts.st_uid == 0 and stat.S_IMODE(facts.st_mode) & 0o777 == 0o700
        if not as_made or facts.st_dev != os.fstat(place).st_dev or os.listdir(inside):
            raise OSError("another directory has taken its place")
        os.fchown(inside, uid, gid)

    def close(self) -> None:
        """Take it away. May be called twice."""
        with self._lock:
            self._close()

    def _close(self) -> None:
        place, self._place = self._place, None
        inside, self._inside = self._inside, None
        if place is None or inside is None:
            return
        with contextlib.suppress(OSError):
            for name in os.listdir(inside):
                with contextlib.suppress(OSError):
                    os.unlink(name, dir_fd=inside)
        with contextlib.suppress(OSError):
            os.rmdir(self._name, dir_fd=place)
        os.close(inside)
        os.close(place)
