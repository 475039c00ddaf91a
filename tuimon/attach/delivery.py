"""The text that is executed in the target: the bootstrap, and the line that starts it."""

from __future__ import annotations

import os

BOOT = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "hook", "boot.py")


def boot_source() -> str:
    """The bootstrap's source."""
    with open(BOOT, encoding="utf-8") as file:
        return file.read()


def script(boot: str, path: str, token: str) -> bytes:
    """The bootstrap for the injected thread: define it in a fresh namespace, then run it on a thread that Python made.

    The thread that the stub runs on has a thread state made elsewhere; a thread of Python's own is complete.
    """
    start = f"\n__import__('_thread').start_new_thread(boot, ({path!r}, {token!r}))\n"
    text = (boot + start).encode("utf-8")
    if b"\0" in text:
        raise ValueError("a NUL would end the script")
    return text
