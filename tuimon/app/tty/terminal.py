"""The terminal: what it can do, whether it is still there, and how to leave it. Only this and `rows_only` know Textual's
insides."""

from __future__ import annotations

import asyncio
import base64
import os
import signal
import sys
from collections.abc import Callable, Iterable, Mapping
from types import FrameType
from typing import TYPE_CHECKING, Any

from tuimon.draw.glyphs import ASCII, GlyphSet, glyphs_for

if TYPE_CHECKING:
    from rich.segment import Segment
    from textual.app import App
    from textual.screen import Screen

NO_CLIPBOARD = ("linux", "vt100", "vt102", "vt220")
"""Values of TERM of which it is known that there is no clipboard behind them."""

SCREEN_TAKES = 512
"""GNU screen passes no longer string on than 768 bytes at once."""

LEAVING_SIGNALS = (signal.SIGTERM, signal.SIGHUP)


def prepare_environment(environ: Any = os.environ) -> None:
    """Settings that Textual reads when it is imported: call this before that."""
    environ.setdefault("TEXTUAL_ANIMATIONS", "none")
    environ.setdefault("TEXTUAL_FPS", "30")


def why_no_screen(environ: Mapping[str, str] = os.environ, stdin: Any = None, stderr: Any = None) -> str | None:
    """A sentence on why the monitor cannot draw here, with what to do instead; None if it can.

    Textual reads keys from stdin and draws on stderr, so these two must be the terminal.
    """
    stdin = stdin if stdin is not None else sys.__stdin__
    stderr = stderr if stderr is not None else sys.__stderr__
    if environ.get("TERM", "").lower() == "dumb":
        return "the terminal says it is dumb (TERM=dumb) and cannot show a full screen; use --headless for a report"
    for name, stream in (("stdin", stdin), ("stderr", stderr)):
        try:
            usable = stream is not None and stream.isatty()
        except ValueError:  # closed
            usable = False
        if not usable:
            return f"the monitor needs a terminal, and {name} is none; use --headless for a report"
    return None


def over_ssh(environ: Mapping[str, str] = os.environ) -> bool:
    """Whether the terminal is at the other end of an SSH line."""
    return bool(environ.get("SSH_CONNECTION") or environ.get("SSH_TTY"))


def choose_glyphs(ascii_wanted: bool, environ: Mapping[str, str] = os.environ, stderr: Any = None) -> GlyphSet:
    """The finest glyphs that the terminal can show: what it is written in decides, and the Linux console has no braille."""
    if ascii_wanted:
        return ASCII
    stderr = stderr if stderr is not None else sys.__stderr__
    glyphs = glyphs_for(getattr(stderr, "encoding", None))
    if environ.get("TERM") == "linux" and glyphs.name == "braille":
        return ASCII
    return glyphs


def terminal_gone(descriptor: int = 0) -> bool:
    """Whether the terminal has hung up. With SIGHUP ignored (nohup, sudo) nothing else tells, and Textual would spin."""
    return not os.isatty(descriptor)


def clipboard_sequence(text: str, environ: Mapping[str, str] = os.environ) -> str:
    """What makes a terminal take a text into its clipboard (OSC 52), for it and for what runs in between.

    It reaches the terminal at this end of an ssh line. Within tmux it is sent in its own form as well, which goes through where
    `allow-passthrough` is on, as the plain one does where `set-clipboard` is; twice the same does no harm. GNU screen has only
    its own form.
    """
    plain = f"\x1b]52;c;{base64.b64encode(text.encode()).decode()}\x07"
    if environ.get("TMUX") or environ.get("TERM", "").startswith("tmux"):
        inner = plain.replace("\x1b", "\x1b\x1b")
        return f"{plain}\x1bPtmux;{inner}\x1b\\"
    if environ.get("STY"):
        parts = [plain[at : at + SCREEN_TAKES] for at in range(0, len(plain), SCREEN_TAKES)]
        return "".join(f"\x1bP{part}\x1b\\" for part in parts)
    return plain


def copy(app: App[Any], text: str, environ: Mapping[str, str] = os.environ) -> str:
    """Offer a text to the terminal's clipboard. Gives what to say of that: no terminal answers whether it took it."""
    if environ.get("TERM", "") in NO_CLIPBOARD:
        return "this terminal has no clipboard"
    driver = getattr(app, "_driver", None)
    if driver is None:
        return "there is no terminal to copy to"
    driver.write(clipboard_sequence(text, environ))
    if environ.get("TMUX") or environ.get("TERM", "").startswith("tmux"):
        return "copied, if tmux lets it (set -g set-clipboard on)"
    return "copied, if the terminal takes it (OSC 52)"


def backlog(app: App[Any]) -> int:
    """Writes to the terminal that wait because it does not keep up; 0 where that cannot be told.

    While this is not 0, a further picture would only make the one that is seen older (11 s old at 20 kB/s, measured).
    """
    queue = getattr(getattr(getattr(app, "_driver", None), "_writer_thread", None), "_queue", None)
    return int(queue.qsize()) if queue is not None else 0


class Signals:
    """Turns SIGTERM and SIGHUP into a clean way out: Textual alone would die with the alternate screen left on."""

    def __init__(self, leave: Callable[[int], None]) -> None:
        self._leave = leave
        self._installed: list[signal.Signals] = []
        self._resume: Callable[[int, FrameType | None], Any] | int | None = None

    def install(self) -> None:
        """From now on the signals call `leave` with their number. A signal that was ignored stays ignored."""
        loop = asyncio.get_running_loop()
        for number in LEAVING_SIGNALS:
            if signal.getsignal(number) == signal.SIG_IGN:
                continue
            try:
                loop.add_signal_handler(number, self._leave, int(number))
            except (RuntimeError, ValueError):  # not on the main thread: an embedding program has its own handling
                continue
            self._installed.append(number)
        self._resume = signal.getsignal(signal.SIGCONT)
        if callable(self._resume):
            signal.signal(signal.SIGCONT, self._continued)

    def _continued(self, number: int, frame: FrameType | None) -> None:
        """A hang-up comes with a SIGCONT, at which Textual would take up a terminal that is gone, and wait for it for ever."""
        if callable(self._resume) and not terminal_gone():
            self._resume(number, frame)

    def remove(self) -> None:
        """Put back what was there."""
        if callable(self._resume):
            signal.signal(signal.SIGCONT, self._resume)
        loop = asyncio.get_running_loop()
        for number in self._installed:
            loop.remove_signal_handler(number)
        self._installed.clear()


# ------------------------------------------------------------------------------------------ what Textual keeps to itself


def picture_size(screen: Screen[Any]) -> tuple[int, int]:
    """Columns and rows of the screen as it is laid out now."""
    width, height = screen._compositor.size
    return width, height


def changed_rows(update: object) -> set[int] | None:
    """The rows of the screen in which something may have changed, of what Textual is about to write; None: any of them."""
    spans = getattr(update, "spans", None)
    return {y for y, _, _ in spans} if spans is not None else None


def tells_rows_only(screen: Screen[Any]) -> None:
    """From now on a screen tells which of its rows have changed and renders nothing for that: `rendered` does, once."""
    from textual._compositor import Compositor

    from tuimon.app.tty.rows_only import RowsOnly

    if type(screen._compositor) is Compositor:
        screen._compositor.__class__ = RowsOnly


def rendered(screen: Screen[Any], rows: Iterable[int]) -> dict[int, list[Segment]]:
    """Rows of the screen, each from its first cell to its last."""
    from textual.geometry import Region

    compositor = screen._compositor
    width, height = compositor.size
    wanted = {y for y in rows if 0 <= y < height}
    if not wanted:
        return {}
    top = min(wanted)
    chops = compositor._render_chops(Region(0, top, width, max(wanted) + 1 - top), wanted.__contains__)
    return {y: [segment for strip in chops[y].values() if strip is not None for segment in strip] for y in wanted}


def can_draw(app: App[Any]) -> bool:
    """Whether there is a terminal that is drawn on now."""
    ready = app._running and not app._closed and not app._batch_count and app._driver is not None
    return bool(ready and not app.is_headless and not app.is_inline)


def shows_whole(app: App[Any]) -> bool:
    """Whether the terminal has said that it shows at once what is bracketed (mode 2026)."""
    return app._sync_available


def send(app: App[Any], text: str) -> None:
    """Write to the terminal; nothing where there is none any more."""
    if app._driver is not None:
        app._driver.write(text)
        app._driver.flush()
