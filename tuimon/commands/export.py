"""`tuimon export PATH --to perfetto|csv -o OUT`: what a file holds in another form, for other tools."""

from __future__ import annotations

import contextlib
import gzip
import io
import os
import sys
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import IO, NamedTuple

from tuimon import events as ev
from tuimon.commands.options import DONE, FAILED, USAGE, say
from tuimon.commands.places import why_no_file
from tuimon.commands.progress import Reading
from tuimon.draw.text import clean
from tuimon.model import Model
from tuimon.report import perfetto, series
from tuimon.report.seen import begin_of
from tuimon.sources.files import Opened, Progress, open_any
from tuimon.sources.trace_file import Unreadable

STDOUT = Path("-")


class Begun(NamedTuple):
    """A rank of which the first batches have been read."""

    opened: Opened
    batches: Iterator[list[ev.Event]]
    """All of them, from the first."""
    first_ns: int | None
    """When the first thing that it tells happened, on its own clock."""
    first_s: float | None
    """The same as Unix time."""


def run(path: Path, to: str, output: Path) -> int:
    """Write it. Gives an exit status: 1, with a sentence, where the file cannot be read or the other not be written."""
    if output != STDOUT and (why_not := why_no_file(output, "what is exported")) is not None:
        say(why_not)
        return USAGE
    with contextlib.suppress(OSError):
        if output != STDOUT and os.path.samefile(path, output):
            say(f"{output} is what is to be read; name another file")
            return USAGE
    try:
        members, left = open_any(path)
        reading = Reading(path.name, [one.path for one in members])
        reading.live = reading.live and not (output == STDOUT and sys.stdout.isatty())
        with reading:
            ranks = [_begun(one, reading.part(number)) for number, one in enumerate(members)]
    except Unreadable as error:
        say(f"{clean(str(path))} {clean(str(error))}")
        return FAILED
    for sentence in left:
        say(clean(sentence))
    if all(one.kind == "ncu" for one in members):
        say(f"{clean(str(path))} is a table of Nsight Compute: nothing in it has a time, so there is nothing to export")
        return FAILED
    try:
        with reading, _written(output) as out:
            (_perfetto if to == "perfetto" else _csv)(out, ranks)
    except Unreadable as error:
        say(f"{clean(str(path))} {clean(str(error))}")
        return FAILED
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # whoever read has had enough
        return DONE
    except OSError as error:
        say(f"{output} could not be written: {error.strerror or error}")
        return FAILED
    if output != STDOUT:
        say(f"written to {output}")
    return DONE


def _begun(opened: Opened, progress: Progress) -> Begun:
    batches = opened.events(progress)
    head, first_ns, first_s = begin_of(batches)
    return Begun(opened, chain(head, batches), first_ns, first_s)


def _zeros(ranks: list[Begun]) -> list[tuple[int, float | None]]:
    """For each, the time on its clock that is 0, and that as Unix time: the same moment for all whose clocks are known."""
    known = [one.first_s for one in ranks if one.first_s is not None]
    zero_s = min(known, default=None)
    found: list[tuple[int, float | None]] = []
    for one in ranks:
        if one.first_ns is None:
            found.append((0, zero_s))
        elif one.first_s is None or zero_s is None:
            found.append((one.first_ns, None))
        else:
            found.append((one.first_ns - round((one.first_s - zero_s) * 1e9), zero_s))
    return found


def _perfetto(out: IO[str], ranks: list[Begun]) -> None:
    trace = perfetto.Perfetto(out)
    for number, (one, (zero_ns, _)) in enumerate(zip(ranks, _zeros(ranks), strict=True)):
        model = Model()
        _follow(one, model, trace.member(number, one.opened.label, model, zero_ns))
    trace.close()


def _csv(out: IO[str], ranks: list[Begun]) -> None:
    table = series.Series(out)
    for one, (zero_ns, wall_s) in zip(ranks, _zeros(ranks), strict=True):
        model = Model()
        _follow(one, model, table.member(one.opened.label, model, zero_ns, wall_s))


def _follow(one: Begun, model: Model, member: perfetto.Member | series.Member) -> None:
    while True:
        try:
            batch = next(one.batches, None)
        except OSError as error:
            raise Unreadable(f"could not be read to its end: {(error.strerror or str(error)).lower()}") from None
        if batch is None:
            break
        member.take(batch)
        model.apply(batch)
        member.fed()
    member.close()


@contextlib.contextmanager
def _written(output: Path) -> Iterator[IO[str]]:
    """What to write into, packed where its name ends in .gz. A file is there whole or not at all; a device or a pipe that is
    there is written into, never replaced."""
    if output == STDOUT:
        if isinstance(sys.stdout, io.TextIOWrapper):
            sys.stdout.reconfigure(encoding="utf-8")  # for other tools, whatever the locale
        yield sys.stdout
        sys.stdout.flush()
        return
    if os.path.exists(output) and not os.path.isfile(output):
        with output.open("w", encoding="utf-8", newline="") as out:
            yield out
        return
    beside = output.with_name(f".tuimon-{os.urandom(8).hex()}.tmp")
    try:
        with contextlib.ExitStack() as files:
            raw = files.enter_context(beside.open("xb"))
            packed = gzip.GzipFile("", "wb", 6, raw, 0) if output.suffix == ".gz" else None
            yield files.enter_context(io.TextIOWrapper(packed or raw, encoding="utf-8", newline=""))
        os.replace(beside, output)
    except BaseException:
        with contextlib.suppress(OSError):
            beside.unlink()
        raise
