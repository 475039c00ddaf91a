"""The terminal on which tuimon would draw, and what the environment sets."""

from __future__ import annotations

import contextlib
import os
import re
import select
import shutil
import sys
import time
from collections.abc import Mapping

from tuimon.doctor.checks import Check, note, ok, problem

SMALLEST = (80, 24)
ANSWER_S = 0.3
_MODE = re.compile(rb"\x1b\[\?2026;([0-4])\$y")


def checks(environ: Mapping[str, str] = os.environ, theme: str | None = None, *, ask: bool = True) -> list[Check]:
    """What can be seen from outside, and (`ask`) what a terminal answers at once."""
    found = [_kind(environ), _encoding()]
    if _is_terminal():
        found += [_size(), _colours(environ)]
        if ask:
            found.append(_synchronized())
    between = [name for name, word in (("tmux", "TMUX"), ("screen", "STY"), ("ssh", "SSH_CONNECTION")) if environ.get(word)]
    if between:
        found.append(ok("terminal", "between", f"reached through {' and '.join(between)}"))
    settings = sorted(name for name in environ if name.startswith("TUIMON_"))  # names only: a value may be a secret
    settings += [f"NO_COLOR={environ['NO_COLOR']}"] if environ.get("NO_COLOR") else []
    settings += [f"theme {theme}"] if theme else []
    found.append(ok("terminal", "settings", ", ".join(settings) or "nothing set: the defaults are in force"))
    return found


def _is_terminal() -> bool:
    return all(stream is not None and not stream.closed and stream.isatty() for stream in (sys.stdin, sys.stdout))


def _kind(environ: Mapping[str, str]) -> Check:
    term = environ.get("TERM", "")
    if not _is_terminal():
        return note("terminal", "terminal", "stdin or stdout is none: tuimon writes a report instead of a screen")
    if term in ("", "dumb"):
        what = f"TERM is {term or 'not set'}: no full screen can be drawn"
        return problem("terminal", "terminal", what, "set TERM (xterm-256color), or use --headless")
    return ok("terminal", "terminal", f"TERM={term}")


def _size() -> Check:
    size = shutil.get_terminal_size()
    what = f"{size.columns} x {size.lines}"
    if size.columns < SMALLEST[0] or size.lines < SMALLEST[1]:
        return note("terminal", "size", f"{what}: below 80 x 24 much is left out", "make it larger")
    return ok("terminal", "size", what)


def _colours(environ: Mapping[str, str]) -> Check:
    if environ.get("NO_COLOR"):
        return ok("terminal", "colours", "none, as NO_COLOR asks for")
    if environ.get("COLORTERM") in ("truecolor", "24bit"):
        return ok("terminal", "colours", "16 million (COLORTERM)")
    term = environ.get("TERM", "")
    number = "256" if "256" in term else "16 or fewer"
    return ok("terminal", "colours", f"{number}, as TERM={term} says; set COLORTERM=truecolor if it can do more")


def _encoding() -> Check:
    encoding = (sys.stdout.encoding or "?").lower() if sys.stdout is not None else "?"
    if "utf" in encoding:
        return ok("terminal", "encoding", "UTF-8")
    what = f"{encoding}: charts are drawn in ASCII"
    return note("terminal", "encoding", what, "set LANG=C.UTF-8 if the terminal shows UTF-8")


def _synchronized() -> Check:
    """Ask the terminal whether it draws whole pictures (mode 2026); every terminal answers the second question."""
    answer = _question(b"\x1b[?2026$p\x1b[c")
    found = _MODE.search(answer or b"")
    if found and found[1] in b"123":
        return ok("terminal", "pictures", "are drawn whole (synchronized output)")
    if answer is None:
        return ok("terminal", "pictures", "whether they are drawn whole is not known: the terminal does not answer")
    what = "not known to be drawn whole (no synchronized output): over a slow line halves may show"
    return ok("terminal", "pictures", what)


def _question(text: bytes) -> bytes | None:
    """What the terminal answers, without an echo; None where it does not answer in time."""
    import termios
    import tty

    try:
        fd = sys.stdin.fileno()
        before = termios.tcgetattr(fd)
    except (OSError, ValueError, termios.error):
        return None
    answer = b""
    try:
        tty.setcbreak(fd, termios.TCSANOW)
        os.write(sys.stdout.fileno(), text)
        deadline = time.monotonic() + ANSWER_S
        while not re.search(rb"\x1b\[\?[0-9;]*c", answer):
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([fd], [], [], left)[0]:
                break
            answer += os.read(fd, 256)
    except OSError:
        return None
    finally:
        with contextlib.suppress(termios.error):
            termios.tcsetattr(fd, termios.TCSANOW, before)
    return answer or None
