"""Starting the monitor: from what a person asked for and what the terminal can do to a running app."""

from __future__ import annotations

import gc
import os
import sys
from pathlib import Path

from tuimon.app import terminal
from tuimon.app.feed import Feed, Group
from tuimon.app.themes import user_folder
from tuimon.roofline.ceilings import Ceiling, CeilingError, load_ceilings

LOCAL_HZ, SSH_HZ = 4.0, 2.0
HUNG_UP = 129
"""The status when the terminal went away: 128 and the number of SIGHUP."""

MANY = 16
"""Above so many processes the monitor's own memory is collected less often."""

SLOWEST_INTERVAL_S, FASTEST_INTERVAL_S = 10.0, 0.1


def run(
    feed: Feed | Group,
    *,
    theme: str | None,
    ascii: bool,  # noqa: A002
    no_color: bool,
    interval: float | None,
    mouse: bool | None,
) -> int:
    """Show the monitor until someone leaves it. Gives the status to exit with: 0, or 128 and the signal that ended it, or 3
    where tuimon was refused by all that it should attach to.

    `interval` is seconds between drawings (None: 4 times a second, 2 over SSH). `mouse` None: on, but off over SSH, where a
    line that drops would leave the terminal reporting every motion into the shell. Where there is no terminal to draw on,
    the reason goes to stderr, the job is let go, and the status is 1.
    """
    why_not = terminal.why_no_screen()
    if why_not is not None:
        print(f"tuimon: {why_not}", file=sys.stderr)  # noqa: T201
        feed.detach()
        return 1
    terminal.prepare_environment()
    colour_off = no_color or terminal.no_colour_wanted()
    os.environ.pop("NO_COLOR", None)  # our theme without colours does it; Textual's own way gives shades of grey

    from tuimon.app.app import MonitorApp, Settings
    from tuimon.app.themed import choose_theme

    ssh = terminal.over_ssh()
    themes, chosen, problems = choose_theme(theme, colour_off)
    ceilings = _ceilings(problems)
    if interval is None:
        hertz = SSH_HZ if ssh else LOCAL_HZ
    else:
        hertz = 1 / min(max(interval, FASTEST_INTERVAL_S), SLOWEST_INTERVAL_S)
    settings = Settings(
        glyphs=terminal.choose_glyphs(ascii),
        themes=themes,
        theme=chosen,
        hertz=hertz,
        colour_off=colour_off,
        ceilings=ceilings,
        problems=tuple(problems),
    )
    app = MonitorApp(feed, settings)
    if len(app.pump.watched) > MANY:
        collect_seldom()
    try:
        app.run(mouse=mouse if mouse is not None else not ssh)
    except OSError:
        if not terminal.terminal_gone():
            raise
        return HUNG_UP
    finally:
        app.let_go()
    return app.return_code or 0


def collect_seldom() -> None:
    """Have Python look for cycles a hundredth as often: it goes through all that is kept of hundreds of jobs each time."""
    gc.set_threshold(50_000, 20, 50)


def _ceilings(problems: list[str]) -> tuple[Ceiling, ...]:
    """The packaged ceilings and a user's own; a file that cannot be used is a message."""
    own = Path(user_folder()).parent / "ceilings.toml"
    try:
        return load_ceilings(own if own.exists() else None)
    except CeilingError as error:
        problems.append(str(error))
    try:
        return load_ceilings()
    except CeilingError:
        return ()
