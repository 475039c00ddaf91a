"""`tuimon record`: what is watched without a screen goes to a file as it comes, for replay, report, compare and export."""

from __future__ import annotations

from collections.abc import Sequence

from tuimon.commands.options import FAILED, Far, Options, say
from tuimon.commands.recordings import CannotRecord, check


def run(
    words: Sequence[str],
    command: Sequence[str] | None,
    options: Options,
    far: Far,
    *,
    everybody: bool = False,
    patience: float | None = None,
) -> int:
    """Record the processes that `words` name, or the program `command`. Gives the exit status: of a program its own."""
    assert options.record is not None
    try:
        if command is not None:
            check(options.record)
            from tuimon.commands import run as running

            return running.run(command, options)
        from tuimon.commands import attach

        if not everybody and len(words) < 2:
            check(options.record)
        return attach.run(words, options, far, everybody=everybody, patience=patience)
    except CannotRecord as error:
        say(str(error))
        return FAILED
