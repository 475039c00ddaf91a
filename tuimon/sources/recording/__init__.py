"""Recordings: the events of a job as the model was given them, in a file that survives a crash at any byte.

`format` is the layout, `writer` and `reader` the two ends, `segments` the files, `prelude` what a later segment repeats.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from tuimon import events as ev
from tuimon.sources.opened import Opened, Piece, Progress
from tuimon.sources.recording.format import MAGIC
from tuimon.sources.recording.prelude import HIGH_RATE, Prelude
from tuimon.sources.recording.reader import Batch, Recording
from tuimon.sources.recording.writer import LEAST, Writer
from tuimon.sources.trace_file import opened

__all__ = ["HIGH_RATE", "LEAST", "MAGIC", "Batch", "Prelude", "Recording", "Writer", "is_recording", "open_recording"]

NO_END = "the end of the recording"


def is_recording(path: Path) -> bool:
    """Whether a file begins as a recording does. Raises Unreadable where it cannot be opened."""
    with opened(path) as file:
        try:
            return file.read(len(MAGIC)) == MAGIC
        except OSError:
            return False


def open_recording(path: Path) -> list[Opened]:
    """A recording, given by any of its files, as what can be folded. Raises Unreadable."""
    recording = Recording(path)
    target = recording.target()
    rank = target.rank if target is not None else None
    first = recording.parts[0].path

    def events(progress: Progress) -> Iterator[list[ev.Event]]:
        for number in range(len(recording.blocks)):
            for batch in recording.block(number):
                yield batch.events
            progress(recording.place(number), recording.bytes)
        yield from ([last] if (last := _last(recording)) else [])

    def again(block: int, progress: Progress) -> Iterator[Piece]:
        for number in range(block, len(recording.blocks)):
            for batch in recording.block(number):
                yield Piece(number, batch.at_ns, merged(batch.events))
            progress(recording.place(number), recording.bytes)
        if last := _last(recording):
            yield Piece(len(recording.blocks) - 1, recording.blocks[-1].at_ns, last)

    label = first.name if rank is None else f"rank {rank}"
    return [Opened("recording", first, label, rank, events, again, recording.head.wall_s, recording.rows, recording.local)]


def merged(events: list[ev.Event]) -> list[ev.Event]:
    """The same events, with batches of samples that follow each other as one."""
    found: list[ev.Event] = []
    for event in events:
        before = found[-1] if found else None
        if isinstance(event, ev.Samples) and isinstance(before, ev.Samples):
            found[-1] = ev.Samples(max(before.t_ns, event.t_ns), before.rows + event.rows)
        else:
            found.append(event)
    return found


def _last(recording: Recording) -> list[ev.Event]:
    """What is said of an end that is missing."""
    if not recording.end:
        return []
    return [ev.NotAvailable(max(head.last_ns for head in recording.blocks[-64:]), NO_END, f"the recording {recording.end}")]
