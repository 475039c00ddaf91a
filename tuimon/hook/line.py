"""The connection, and the certainty that its file descriptor is still ours.

A job may close every descriptor it has (daemons do), and the next file or socket that it opens gets our number. To send to
it, or to close it, would be to write into the job's own file. So the number is looked at before each use.

`Life` is the same for the handle of tuimon's own process. A connection ends when its last copy is closed, and a process that
tuimon forked may hold one; the handle tells of the end of tuimon itself. It says nothing of a tuimon that is only stopped, and
that one is waited for, for ever: its queue is bounded, and it can be continued.
"""

import os
import select

from .remains import Mortal


class Lost(OSError, metaclass=Mortal):
    """The descriptor is not ours any more."""


class Line(metaclass=Mortal):
    """A socket that is used only while its descriptor leads to it."""

    def __init__(self, sock):
        self._sock = sock
        self._who = _identity(sock)

    def _own(self):
        try:
            same = _identity(self._sock) == self._who
        except OSError:
            same = False
        if not same:
            raise Lost("the job has closed the hook's connection")
        return self._sock

    def send(self, data, flags=0):
        """As socket.send; raises Lost where the descriptor is not ours."""
        return self._own().send(data, flags)

    def recv(self, size):
        """As socket.recv."""
        return self._own().recv(size)

    def settimeout(self, seconds):
        """As socket.settimeout."""
        self._own().settimeout(seconds)

    def shutdown(self, how):
        """As socket.shutdown."""
        self._own().shutdown(how)

    def fileno(self):
        """The descriptor, for poll; what poll says of it counts only with the next call that looks."""
        return self._sock.fileno()


class Life(metaclass=Mortal):
    """The handle (pidfd) of a process, or None where there is none: readable once the process has ended.

    Whose it is, and so who closes it, is the bootstrap.
    """

    def __init__(self, handle):
        self._who = None if handle is None else _described(handle)
        self._handle = None if self._who is None else handle

    def watch(self, poll):
        """Have a `select.poll` wake up when it may be over."""
        if self._handle is not None:
            poll.register(self._handle, select.POLLIN)

    def is_over(self, poll, ready):
        """Whether the process has ended, by what `poll` has just said. A handle that is not ours any more is forgotten."""
        if not any(number == self._handle for number, _ in ready):
            return False
        if _described(self._handle) == self._who:
            return True
        poll.unregister(self._handle)
        self._handle = None
        return False


def _identity(sock):
    about = os.fstat(sock.fileno())
    return about.st_dev, about.st_ino


def _described(handle):
    try:
        about = os.fstat(handle)
        # before Linux 6.9 all handles share one inode, with other things that are no files
        return about.st_dev, about.st_ino, os.readlink(f"/proc/self/fd/{handle}")
    except OSError:
        return None
