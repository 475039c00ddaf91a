"""`tuimon` alone on a terminal: choose among the jobs of this machine, then watch what was chosen."""

from __future__ import annotations

from tuimon.app.picker.app import pick
from tuimon.attach.find.process import find_targets
from tuimon.attach.tracer import get_ready
from tuimon.commands.attach import local_way, watch_all
from tuimon.commands.options import DONE, Options


def run(options: Options) -> int:
    """Show the picker, and the monitor on what was picked. Gives the exit status; leaving without a choice is no failure."""
    get_ready()  # while somebody chooses
    chosen = pick(
        find_targets,
        theme=options.theme,
        ascii=options.ascii,
        no_color=options.no_color,
        mouse=options.mouse,
        background=options.background,
        clipboard=options.clipboard,
        problems=options.problems,
    )
    if not chosen:
        return DONE
    return watch_all([local_way(target, None) for target in chosen], options)
