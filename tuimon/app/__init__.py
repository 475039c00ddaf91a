"""The monitor on the screen. Importing this package loads no screen library; starting the monitor does."""

from __future__ import annotations

import importlib
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from tuimon.app.tty.terminal import prepare_environment, why_no_screen

if TYPE_CHECKING:
    from tuimon.app.feed import Feed, Group
    from tuimon.app.picker.candidate import Candidate
    from tuimon.app.tour import Tour

__all__ = ["pick", "run_monitor", "warm_up", "why_no_screen"]

Found = TypeVar("Found", bound="Candidate")


def warm_up() -> None:
    """Load the screen library on a thread, while something else is waited for: a third of a second at first paint."""
    prepare_environment()
    threading.Thread(target=importlib.import_module, args=("tuimon.app.app",), name="tuimon-warm-up", daemon=True).start()


def run_monitor(
    feed: Feed | Group,
    *,
    theme: str | None = None,
    ascii: bool = False,  # noqa: A002 - the name of the option
    no_color: bool = False,
    interval: float | None = None,
    mouse: bool | None = None,
    ceilings: Path | None = None,
    front: str | None = None,
    background: str = "auto",
    clipboard: bool = True,
    problems: Sequence[str] = (),
    tour: Tour | None = None,
) -> int:
    """Show the monitor until someone leaves it; see `tuimon.app.run.run`."""
    from tuimon.app.run import run

    return run(
        feed, theme=theme, ascii=ascii, no_color=no_color, interval=interval, mouse=mouse, ceilings=ceilings, front=front,
        background=background, clipboard=clipboard, problems=problems, tour=tour,
    )  # fmt: skip


def pick(
    find: Callable[[], Sequence[Found]],
    *,
    theme: str | None = None,
    ascii: bool = False,  # noqa: A002 - the name of the option
    no_color: bool = False,
    mouse: bool | None = None,
    background: str = "auto",
    clipboard: bool = True,
    problems: Sequence[str] = (),
) -> list[Found] | None:
    """Let a person choose among the processes that `find` finds; see `tuimon.app.picker.app.pick`."""
    from tuimon.app.picker import app as picker

    return picker.pick(
        find, theme=theme, ascii=ascii, no_color=no_color, mouse=mouse, background=background, clipboard=clipboard,
        problems=problems,
    )  # fmt: skip
