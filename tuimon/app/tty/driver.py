"""What writes to the terminal and reads its keys: Textual's own, but for the mouse and for late answers."""

from __future__ import annotations

import re
from collections.abc import Iterable

from textual._xterm_parser import XTermParser
from textual.drivers import linux_driver
from textual.message import Message

MOUSE_ON, MOUSE_OFF = "\x1b[?1000h\x1b[?1006h", "\x1b[?1006l\x1b[?1000l"
"""Buttons and the wheel (1000), in the form that has no limit at column 223 (1006). Not motion (1003), of which nothing is made
here: each cell that the pointer passes would cost a report, and a picture.
"""

LATE = re.compile(r"\x1b\]1[01];[^\x07\x1b]{0,64}(?:\x07|\x1b\\)|\x1b\[\?[0-9;]*c")
"""Answers to what was asked before there was a screen: what the ground's colour is, and the fence behind it. They are
no keys."""


class Parser(XTermParser):
    """Keys and answers, without those that come late."""

    def feed(self, data: str) -> Iterable[Message]:
        """What the terminal has sent."""
        left = LATE.sub("", data) if "\x1b" in data else data
        return super().feed(left) if left or not data else ()  # nothing at all would be the end of the input


class TerminalDriver(linux_driver.LinuxDriver):
    """The terminal."""

    def run_input_thread(self) -> None:
        """Read keys and answers."""
        linux_driver.XTermParser = Parser  # type: ignore[attr-defined]
        super().run_input_thread()

    def _enable_mouse_support(self) -> None:
        if self._mouse:
            self.write(MOUSE_ON)
            self.flush()

    def _disable_mouse_support(self) -> None:
        if self._mouse:
            self.write(MOUSE_OFF)
            self.flush()

    def _enable_mouse_pixels(self) -> None:
        """Cells are fine enough, and what they are reported in is the same everywhere."""
