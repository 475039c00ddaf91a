"""Starting the monitor: from what a person asked for and what the terminal can do to a running app."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tuimon.app.later import Figures
from tuimon.app.tty import terminal
from tuimon.app.tty.background import depth, fitting_theme

if TYPE_CHECKING:
    from tuimon.app.app import MonitorApp
    from tuimon.app.feed import Feed, Group
    from tuimon.app.settings import Settings
    from tuimon.app.tour import Tour
    from tuimon.model import Model
    from tuimon.roofline.points import Roofline

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
    ceilings: Path | None = None,
    front: str | None = None,
    background: str = "auto",
    clipboard: bool = True,
    problems: Sequence[str] = (),
    tour: Tour | None = None,
) -> int:
    """Show the monitor until someone leaves it. Gives the status to exit with: 0, or 128 and the signal that ended it, or 3
    where tuimon was refused by all that it should attach to.

    `interval` is seconds between drawings (None: 4 times a second, 2 over SSH). `mouse` None: on, but off over SSH, where a
    line that drops would leave the terminal reporting every motion into the shell. `ceilings` is a file of the user's own ones,
    beside that of his folder. `front` names the panel that has the screen to itself at the start. Where there is no terminal to
    draw on, the reason goes to stderr, the job is let go, and the status is 1. `background` of the terminal: "dark", "light" or
    "auto"; `no_color` is all there is to it, NO_COLOR included; `clipboard`: whether a copied row may go to the terminal's.
    `problems`: what is to be said at the start of settings. `tour` leads a newcomer through the screens.
    """
    why_not = terminal.why_no_screen()
    if why_not is not None:
        print(f"tuimon: {why_not}", file=sys.stderr)  # noqa: T201
        feed.detach()
        return 1
    terminal.prepare_environment()
    colour_off = no_color
    os.environ.pop("NO_COLOR", None)  # our theme without colours does it; Textual's own way gives shades of grey

    from tuimon.app.app import MonitorApp
    from tuimon.app.look.themed import choose_theme
    from tuimon.app.settings import Settings

    ssh = terminal.over_ssh()
    mouse = not ssh if mouse is None else mouse
    colours = "none" if colour_off else depth()
    themes, chosen, found = choose_theme(fitting_theme(theme, background, colours), colour_off)
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
        clipboard=clipboard,
        figures=lambda: _figures(ceilings),
        problems=(*problems, *found),
    )
    app = MonitorApp(feed, settings) if tour is None else _led(tour, feed, settings)
    if front is not None:
        app.main.focus_id = app.main.zoomed = front
    if len(app.pump.watched) > MANY:
        collect_seldom()
    try:
        app.run(mouse=mouse)
    except OSError:
        if not terminal.terminal_gone():
            raise
        return HUNG_UP
    finally:
        app.let_go()
        if app.recorded:
            print(f"tuimon: {app.recorded}", file=sys.stderr)  # noqa: T201
    return app.return_code or 0


def _led(tour: Tour, feed: Feed | Group, settings: Settings) -> MonitorApp:
    from tuimon.app.screens.tour import TourApp

    return TourApp(tour, feed, settings)


def collect_seldom() -> None:
    """Have Python look for cycles a hundredth as often: it goes through all that is kept of hundreds of jobs each time."""
    gc.set_threshold(50_000, 20, 50)


def _figures(extra: Path | None) -> Figures:
    """What is known of machines; a file that cannot be used is a message."""
    gc.freeze()  # all that is loaded stays: nobody needs to look through it again
    from tuimon.roofline.ceilings import CeilingError
    from tuimon.roofline.inforce import Known, known
    from tuimon.roofline.live import roofline

    figures, problems = Known(), list[str]()
    for path in (extra, None):
        try:
            figures = known(path)
        except CeilingError as error:
            problems.append(str(error))
            continue
        problems += figures.problems
        break

    def compute(model: Model, boundary: str | None, ceiling: str | None, here: bool) -> Roofline:
        """The processor's figures are of this host, and hold for the jobs that run on it."""
        return roofline(model, figures, boundary=boundary, ceiling=ceiling, here=here)

    return Figures(figures.ceilings, compute, tuple(problems))
