"""A program behind a line that carries few bytes a second, as a serial one does or an ssh connection over one."""

from __future__ import annotations

import os
import select
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Literal

from tests.support.terminal import Terminal

Mode = Literal["tty", "ssh"]

WITHIN_S = 0.05
"""The line may carry at once what it carries in so long."""


class SlowLine(Terminal):
    """A terminal behind a line of `rate` bytes a second.

    "tty": what the line does not take waits in the kernel, and the program can tell. "ssh": all is taken from the program at
    once, as sshd and TCP do with hundreds of kB, and waits behind its back.
    """

    def __init__(
        self,
        argv: Sequence[str],
        width: int,
        height: int,
        env: Mapping[str, str] | None = None,
        *,
        rate: float = 960.0,
        mode: Mode = "ssh",
        answers: bool = True,
    ) -> None:
        super().__init__(argv, width, height, env, answers=answers)
        self.rate, self.mode = rate, mode
        self.under_way = bytearray()
        """What waits to be carried."""
        self.most_under_way = 0
        self.carried = 0
        self._credit = 0.0
        self._last = time.monotonic()

    def go_on(self, seconds: float) -> None:
        """The line carries what it can in so long."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            self._step()
            time.sleep(0.005)

    def until(self, condition: Callable[[], bool], seconds: float) -> float | None:
        """The seconds until it holds; None where it does not hold in time."""
        began = time.monotonic()
        while not condition():
            if time.monotonic() - began > seconds:
                return None
            self.go_on(0.01)
        return time.monotonic() - began

    def _step(self) -> None:
        now = time.monotonic()
        self._credit = min(self.rate * WITHIN_S, self._credit + (now - self._last) * self.rate)
        self._last = now
        if self.mode == "ssh":
            while data := self._from_program(65536):
                self.under_way += data
        elif int(self._credit) > len(self.under_way):
            self.under_way += self._from_program(int(self._credit) - len(self.under_way))
        self.most_under_way = max(self.most_under_way, len(self.under_way))
        now_there = min(int(self._credit), len(self.under_way))
        if now_there:
            data = bytes(self.under_way[:now_there])
            del self.under_way[:now_there]
            self._credit -= now_there
            self.carried += now_there
            self.take(data)

    def _from_program(self, most: int) -> bytes:
        if not select.select([self.fd], [], [], 0)[0]:
            return b""
        try:
            return os.read(self.fd, most)
        except OSError:  # the program has closed its end
            return b""
