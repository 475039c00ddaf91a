"""The connection, and the certainty that its file descriptor is still ours.

A job may close every descriptor it has (daemons do), and the next file or socket that it opens gets our number. To send to
it, or to close it, would be to write into the job's own file. So the number is looked at before each use.
"""

import os


class Lost(OSError):
    """The descriptor is not ours any more."""


class Line:
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


def _identity(sock):
    about = os.fstat(sock.fileno())
    return about.st_dev, about.st_ino
