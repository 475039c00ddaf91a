"""`tuimon` alone on a terminal: choose among the jobs of this machine, then watch what was chosen."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from tuimon.app.picker.app import pick
from tuimon.commands.options import DONE, Options

if TYPE_CHECKING:
    from tuimon.attach.find.process import Target


def run(options: Options) -> int:
    """Show the picker, and the monitor on what was picked. Gives the exit status; leaving without a choice is no failure."""
    chosen = pick(
        _find,
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
    from tuimon.commands.attach import local_way, watch_all

    return watch_all([local_way(target, None) for target in chosen], options)


_getting_ready = threading.Lock()


def _find() -> list[Target]:
    """The processes. What that takes is loaded here, on the picker's thread: its first picture does not wait for it."""
    from tuimon.attach.find.process import find_targets

    found = find_targets()
    if _getting_ready.acquire(blocking=False):  # once
        threading.Thread(target=_get_ready, name="tuimon-get-ready", daemon=True).start()
    return found


def _get_ready() -> None:
    """While somebody chooses."""
    from tuimon.attach.tracer import get_ready

    get_ready()
    import tuimon.app.app
    import tuimon.commands.attach  # noqa: F401
