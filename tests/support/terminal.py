"""A program in a real pseudo-terminal: what it writes, how much, and how it ends."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import struct
import termios
import time
from collections.abc import Callable, Mapping, Sequence

import pyte


class Terminal:
    """Starts a program on a pseudo-terminal of its own, reads what it draws, and answers what it asks.

    `ground` is the answer to what colour the ground has ("rgb:ffff/ffff/ffff"; "": none); with `answers` False it answers
    nothing.
    """

    def __init__(
        self,
        argv: Sequence[str],
        width: int,
        height: int,
        env: Mapping[str, str] | None = None,
        *,
        answers: bool = True,
        ground: str = "",
    ) -> None:
        self.screen = pyte.Screen(width, height)
        self._stream = pyte.ByteStream(self.screen)
        self.answers, self.ground = answers, ground
        self.screen.write_process_input = self._answer  # type: ignore[method-assign]
        self.data = bytearray()
        self.status: int | None = None
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            signal.signal(signal.SIGHUP, signal.SIG_DFL)  # tests that are run by nohup ignore it, and so would the program
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", height, width, 0, 0))
            os.execvpe(argv[0], list(argv), dict(env if env is not None else os.environ))
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", height, width, 0, 0))

    def take(self, data: bytes) -> None:
        """What the program wrote reaches the terminal."""
        self.data += data
        if self.ground and b"\x1b]11;?" in data:
            self._answer(f"\x1b]11;{self.ground}\x1b\\")
        # the emulator does not know this mode, and would show what it makes of it
        self._stream.feed(re.sub(rb"\x1b\[\?2026[hl]", b"", data))

    def _answer(self, data: str) -> None:
        if self.answers and self.fd >= 0:
            os.write(self.fd, data.encode())

    def read(self, seconds: float) -> bytes:
        """What comes within this time; less time if the program ends."""
        out = bytearray()
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0:
            ready, _, _ = select.select([self.fd], [], [], left)
            if not ready:
                break
            try:
                chunk = os.read(self.fd, 65536)
            except OSError:  # the program has closed its end
                break
            if not chunk:
                break
            out += chunk
            self.take(chunk)
        return bytes(out)

    def read_slowly(self, most: int, pause: float) -> None:
        """Take a few bytes and wait, as a slow line does."""
        chunk = os.read(self.fd, most) if select.select([self.fd], [], [], pause)[0] else b""
        self.take(chunk)
        time.sleep(pause)

    def wait_for(self, condition: Callable[[], bool], seconds: float = 60.0) -> bool:
        """Read until the condition holds. Gives whether it did."""
        deadline = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > deadline:
                return False
            self.read(0.05)
        return True

    def sees(self, text: str) -> bool:
        """Whether the text is on the screen."""
        return any(text in line for line in self.screen.display)

    def write(self, keys: str) -> None:
        """Press keys."""
        os.write(self.fd, keys.encode())

    def resize(self, width: int, height: int) -> None:
        """Another size of the terminal."""
        self.screen.resize(height, width)
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", height, width, 0, 0))
        os.kill(self.pid, signal.SIGWINCH)

    def ended(self, seconds: float = 60.0) -> int | None:
        """The exit status (negative: the signal) when the program ends within this time; None if it does not."""
        deadline = time.monotonic() + seconds
        while self.status is None and time.monotonic() < deadline:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.status = os.waitstatus_to_exitcode(status)
            elif self.fd >= 0:
                self.read(0.05)
            else:
                time.sleep(0.02)
        return self.status

    def hang_up(self) -> None:
        """Close the terminal, as when a line drops."""
        os.close(self.fd)
        self.fd = -1

    def close(self) -> None:
        """End everything."""
        if self.status is None:
            try:
                os.kill(self.pid, signal.SIGKILL)
                os.waitpid(self.pid, 0)
            except (ProcessLookupError, ChildProcessError):
                pass
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1
