"""The text that is executed in the target: the bootstrap, and the line that starts it."""

from __future__ import annotations

import pkgutil


def boot_source() -> str:
    """The bootstrap's source: its two files as one text, for one namespace."""
    # read in a way that works where the package lies in an archive too: see `relay/sent.py`
    return "\n".join((pkgutil.get_data("tuimon.hook", name) or b"").decode() for name in ("boot_line.py", "boot.py"))


def script(boot: str, path: str, token: str) -> bytes:
    """The bootstrap for the injected thread: define it in a fresh namespace, then run it on a thread that Python made.

    The thread that the stub runs on has a thread state made elsewhere; a thread of Python's own is complete.
    """
    start = f"\n__import__('_thread').start_new_thread(boot, ({path!r}, {token!r}))\n"
    return _encoded(boot + start)


def script_file(boot: str, path: str, token: str, own: str) -> bytes:
    """The same for a script that CPython runs on the main thread: nothing of it is executed there but the start of a thread.

    `own` is the script's own path: the thread removes it first, so that it goes even where nobody of ours lives by then. A
    thread that cannot be had is no message on the job's stderr; Ctrl-C stays the job's.
    """
    text = f"import os\ntry: os.unlink({own!r})\nexcept OSError: pass\n{boot}\nboot({path!r}, {token!r})\n"
    start = f"__import__('_thread').start_new_thread(exec, ({text!r}, {{'__name__': '_tuimon_boot'}}))"
    return _encoded(f"try: {start}\nexcept (RuntimeError, MemoryError): pass\n")


def _encoded(text: str) -> bytes:
    encoded = text.encode("utf-8")
    if b"\0" in encoded:
        raise ValueError("a NUL would end the script")
    return encoded
