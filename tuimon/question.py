"""Asking a terminal something, before a screen library has it."""

from __future__ import annotations

import contextlib
import os
import re
import select
import time

FENCE = b"\x1b[c"
"""What every terminal answers, and in turn: behind it no other answer comes."""

_FENCED = re.compile(rb"\x1b\[\?[0-9;]*c")


def ask(text: bytes, *, source: int, out: int, seconds: float) -> bytes | None:
    """What the terminal answers to this, without an echo, and to the fence behind it; None where it does not answer in time.

    `source` and `out` are the descriptors that it is read from and written to. What is typed meanwhile is in the answer, too.
    """
    import termios
    import tty

    try:
        before = termios.tcgetattr(source)
    except termios.error:
        return None
    answer = b""
    try:
        tty.setcbreak(source, termios.TCSANOW)
        os.write(out, text + FENCE)
        deadline = time.monotonic() + seconds
        while not _FENCED.search(answer):
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([source], [], [], left)[0]:
                break
            answer += os.read(source, 256)
    except OSError:
        return None
    finally:
        with contextlib.suppress(termios.error):
            termios.tcsetattr(source, termios.TCSANOW, before)
    return answer or None
