"""`tuimon compare A B`: two recordings, or two other files of a kind, beside each other."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tuimon.commands.options import DONE, FAILED, Options, deliver, say
from tuimon.commands.progress import Reading
from tuimon.model import Model
from tuimon.sources.files import Opened, open_any
from tuimon.sources.trace_file import Unreadable


@dataclass(frozen=True)
class Read:
    """One of the two files, folded."""

    opened: Opened
    model: Model
    ranks: int
    """How many the file or folder holds; this is the first, or the one that was asked for."""


def run(first: Path, second: Path, options: Options, *, phase: str | None = None, seed: int | None = None) -> int:
    """Compare two files and deliver it. Gives 1, with a sentence, where one cannot be read, and 1 where they are no pair: the
    checks are delivered then all the same."""
    from tuimon.report.compare.build import SEED, compare
    from tuimon.report.compare.render import render

    sides = []
    for path in (first, second):
        try:
            sides.append(read(path, options.judge))
        except Unreadable as error:
            say(f"{path} {error}")
            return FAILED
    a, b = sides
    made: dict[str, Any] = compare(
        a.model,
        b.model,
        names=(str(first), str(second)),
        kinds=(a.opened.kind, b.opened.kind),
        ranks=(a.ranks, b.ranks),
        phase=phase,
        seed=SEED if seed is None else seed,
    )
    status = deliver(render(made, options.format), options.output)
    if not made["comparable"]:
        say(made["verdict"])
    return status if status != DONE or made["comparable"] else FAILED


def read(path: Path, judge: Callable[[Model], None] | None = None) -> Read:
    """A file, or the lowest rank of a folder, folded to its end. Raises Unreadable."""
    members, _ = open_any(path)
    opened = min(members, key=lambda one: (one.rank is None, one.rank or 0))
    model = Model()
    if judge is not None:
        judge(model)
    try:
        with Reading(path.name, [opened.path]) as reading:
            for batch in opened.events(reading.part(0)):
                model.apply(batch)
    except OSError as error:
        raise Unreadable(f"could not be read to its end: {(error.strerror or str(error)).lower()}") from None
    return Read(opened, model, len(members))
