"""A program on a pseudo-terminal that nobody looks at: what it draws is counted and thrown away."""

from __future__ import annotations

import fcntl
import os
import signal
import struct
import subprocess
import termios
import threading
from collections.abc import Mapping, Sequence


class Screen:
    """Starts it; a thread reads. `bytes`: how many have come."""

    def __init__(self, argv: Sequence[str], env: Mapping[str, str], width: int, height: int, cwd: str) -> None:
        self._fd, far = os.openpty()
        fcntl.ioctl(far, termios.TIOCSWINSZ, struct.pack("HHHH", height, width, 0, 0))

        self.bytes = 0
        # its own session, with the terminal as the controlling one: a hang-up ends it
        self._process = subprocess.Popen(
            ["setsid", "--ctty", *argv], env=dict(env), cwd=cwd, stdin=far, stdout=far, stderr=far, start_new_session=False
        )
        os.close(far)
        self.pid = self._process.pid
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        while True:
            try:
                data = os.read(self._fd, 65536)
            except OSError:  # the program has closed its end
                return
            if not data:
                return
            self.bytes += len(data)

    def close(self) -> None:
        """End it as a closed terminal does; by force where that does not help."""
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGHUP)
            try:
                self._process.wait(10)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        self._reader.join(5)
        os.close(self._fd)
