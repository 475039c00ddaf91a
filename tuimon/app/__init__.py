"""The monitor on the screen. Importing this package loads no screen library; starting the monitor does."""

from __future__ import annotations

from tuimon.app.feed import Feed
from tuimon.app.terminal import why_no_screen

__all__ = ["Feed", "run_monitor", "why_no_screen"]


def run_monitor(
    feed: Feed,
    *,
    theme: str | None = None,
    ascii: bool = False,  # noqa: A002 - the name of the option
    no_color: bool = False,
    interval: float | None = None,
    mouse: bool | None = None,
) -> int:
    """Show the monitor until someone leaves it; see `tuimon.app.run.run`."""
    from tuimon.app.run import run

    return run(feed, theme=theme, ascii=ascii, no_color=no_color, interval=interval, mouse=mouse)
