"""The terminal on which tuimon would draw, and what the environment sets."""

from __future__ import annotations

import os
import re
import shutil
import sys
import time
from collections.abc import Mapping

from tuimon.doctor.checks import Check, note, ok, problem
from tuimon.question import ask

SMALLEST = (80, 24)
ANSWER_S = 0.3
_PLACE = re.compile(rb"\x1b\[\d+;\d+R")
_MODE = re.compile(rb"\x1b\[\?2026;([0-4])\$y")


def checks(
    environ: Mapping[str, str] = os.environ, *, ask: bool = True, colours: str = "256", without: str = ""
) -> list[Check]:
    """What can be seen from outside, and (`ask`) what a terminal answers at once.

    `colours`: how many it shows by the environment ("none", "16", "256", "true"); `without`: what asks for none.
    """
    found = [_kind(environ), _encoding()]
    if _is_terminal():
        found += [_size(), _colours(environ, colours, without)]
        if ask:
            found += _asked()
    between = [name for name, word in (("tmux", "TMUX"), ("screen", "STY"), ("ssh", "SSH_CONNECTION")) if environ.get(word)]
    if between:
        found.append(ok("terminal", "between", f"reached through {' and '.join(between)}"))
    return found


def _is_terminal() -> bool:
    return all(stream is not None and not stream.closed and stream.isatty() for stream in (sys.stdin, sys.stdout))


def _kind(environ: Mapping[str, str]) -> Check:
    term = environ.get("TERM", "")
    if not _is_terminal():
        return note("terminal", "terminal", "stdin or stdout is none: tuimon writes a report instead of a screen")
    if term.lower() == "dumb":
        what = "TERM is dumb: what goes on is told in lines, and a report comes at the end"
        return note("terminal", "terminal", what, "set TERM (xterm-256color), if the terminal can do more")
    if not term:
        what = "TERM is not set: no full screen can be drawn"
        return problem("terminal", "terminal", what, "set TERM (xterm-256color), or use --headless")
    return ok("terminal", "terminal", f"TERM={term}")


def _size() -> Check:
    size = shutil.get_terminal_size()
    what = f"{size.columns} x {size.lines}"
    if size.columns < SMALLEST[0] or size.lines < SMALLEST[1]:
        return note("terminal", "size", f"{what}: below 80 x 24 much is left out", "make it larger")
    return ok("terminal", "size", what)


def _colours(environ: Mapping[str, str], colours: str, without: str) -> Check:
    if without:
        return ok("terminal", "colours", f"none, as {without} asks for")
    if colours == "true":
        return ok("terminal", "colours", "16 million (COLORTERM)")
    term = environ.get("TERM", "")
    number = {"256": "256", "16": "16 or fewer"}.get(colours, "none known")
    return ok("terminal", "colours", f"{number}, as TERM={term} says; set COLORTERM=truecolor if it can do more")


def _encoding() -> Check:
    encoding = (sys.stdout.encoding or "?").lower() if sys.stdout is not None else "?"
    if "utf" in encoding:
        return ok("terminal", "encoding", "UTF-8")
    what = f"{encoding}: charts are drawn in ASCII"
    return note("terminal", "encoding", what, "set LANG=C.UTF-8 if the terminal shows UTF-8")


def _asked() -> list[Check]:
    """Ask the terminal whether it draws whole pictures (mode 2026), and where its cursor is; all answer the fence."""
    began = time.monotonic()
    answer = _question(b"\x1b[?2026$p\x1b[6n")
    took_ms = (time.monotonic() - began) * 1e3
    if answer is None:
        what = "nothing: over a slow line pictures may be old, and whether they are drawn whole is not known"
        return [note("terminal", "answers", what, "use a terminal that tells where its cursor is")]
    found = _MODE.search(answer)
    whole = found is not None and found[1] in b"123"
    what = "are drawn whole (synchronized output)"
    if not whole:
        what = "not known to be drawn whole (no synchronized output): over a slow line halves may show"
    pictures = ok("terminal", "pictures", what)
    if not _PLACE.search(answer):
        what = "not where its cursor is: over a slow line pictures may be old"
        return [pictures, note("terminal", "answers", what, "use a terminal that tells it (CSI 6n)")]
    what = f"within {max(1, round(took_ms))} ms: on a slow line no more is sent than it takes"
    return [pictures, ok("terminal", "answers", what)]


def _question(text: bytes) -> bytes | None:
    try:
        return ask(text, source=sys.stdin.fileno(), out=sys.stdout.fileno(), seconds=ANSWER_S)
    except (OSError, ValueError):
        return None
