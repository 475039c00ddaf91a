"""The way from a command to the monitor's screen and back."""

from __future__ import annotations

from tuimon.app import run_monitor
from tuimon.app.feed import Feed, Group
from tuimon.app.tour import Tour
from tuimon.commands.options import Options, say
from tuimon.commands.watch import report
from tuimon.draw.text import clean
from tuimon.feed import LiveFeed
from tuimon.fleet import Fleet


def show(feed: LiveFeed | Fleet, options: Options, tour: Tour | None = None) -> int:
    """The monitor on `feed`, until the user quits; the hook is out of each job then. Gives an exit status.

    It ends by itself, with status 3, where tuimon could attach to none (`feed.refused`, which the command has to tell).
    """
    try:
        status = on_screen(feed, options, tour=tour)
    finally:
        feed.detach()
    if feed.left:
        say(f"the hook could not take out everything it had put in: {clean(', '.join(feed.left))}")
    if options.output is not None and feed.refused is None:
        status = report(feed, options) or status
    return status


def on_screen(feed: Feed | Group, options: Options, front: str | None = None, tour: Tour | None = None) -> int:
    """The monitor as the options have it, until it is left; `front`: the panel that it begins with. Gives an exit status."""
    return run_monitor(
        feed,
        theme=options.theme,
        ascii=options.ascii,
        no_color=options.no_color,
        interval=options.interval,
        mouse=options.mouse,
        background=options.background,
        clipboard=options.clipboard,
        problems=options.problems,
        ceilings=options.ceilings,
        front=front,
        tour=tour,
    )
