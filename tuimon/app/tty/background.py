"""The theme to begin with, where nobody chose one: it follows the colours that the terminal has, and its ground."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Mapping
from typing import Literal

from tuimon.question import ask

Background = Literal["dark", "light", "unknown"]
Depth = Literal["none", "16", "256", "true"]

ANSWER_S = 0.2
FAR_ANSWER_S = 0.6
"""So long over SSH: an answer that comes later is thrown away by what reads the keys."""

_GROUND = re.compile(rb"\x1b\]11;rgba?:([0-9a-fA-F]{1,4})/([0-9a-fA-F]{1,4})/([0-9a-fA-F]{1,4})")
LIGHT_FROM = 0.5


def depth(environ: Mapping[str, str] = os.environ) -> Depth:
    """How many colours the terminal shows, as the environment says."""
    if environ.get("COLORTERM", "").strip().lower() in ("truecolor", "24bit"):
        return "true"
    term = environ.get("TERM", "").strip().lower()
    if term in ("", "dumb", "unknown"):
        return "none"
    return "256" if term.endswith(("256color", "-kitty")) else "16"


def ground(environ: Mapping[str, str] = os.environ, question: Callable[[float], bytes | None] | None = None) -> Background:
    """What the terminal's ground is: it is asked (OSC 11); where it does not tell, COLORFGBG may.

    `question` gives what the terminal answers within so many seconds.
    """
    if environ.get("TERM", "") != "linux":  # which knows no such question, and is dark
        far = environ.get("SSH_CONNECTION") or environ.get("SSH_TTY")
        found = _GROUND.search((question or _asked)(FAR_ANSWER_S if far else ANSWER_S) or b"")
        if found:
            red, green, blue = (int(part, 16) / (16 ** len(part) - 1) for part in found.groups())
            return "light" if 0.2126 * red + 0.7152 * green + 0.0722 * blue > LIGHT_FROM else "dark"
    last = environ.get("COLORFGBG", "").rpartition(";")[2]
    if last.isdigit():
        return "light" if int(last) in (7, *range(9, 16)) else "dark"
    return "unknown"


def fitting_theme(
    wanted: str | None, background: str, depth_here: Depth, ask_for: Callable[[], Background] = ground
) -> str | None:
    """The name of the theme to begin with: the one that is wanted, or one that fits. None: the usual one does.

    `background` is "dark", "light" or "auto" (the terminal is asked).
    """
    if wanted is not None or depth_here == "none":
        return wanted
    if depth_here == "16":  # colours of a richer theme would become others, which look alike
        return "ansi16"
    return "light" if (ask_for() if background == "auto" else background) == "light" else None


def _asked(seconds: float) -> bytes | None:
    try:
        source, out = sys.__stdin__, sys.__stderr__  # the two that the screen library takes
        if source is None or out is None or not (source.isatty() and out.isatty()):
            return None
        return ask(b"\x1b]11;?\x1b\\", source=source.fileno(), out=out.fileno(), seconds=seconds)
    except (OSError, ValueError):
        return None
