"""Reads a recording: all its segments as one, from any block on, whatever was cut off or damaged."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, NamedTuple

from tuimon import events as ev
from tuimon.sources.recording import format as layout
from tuimon.sources.recording.items import Beat, Malformed, Mark, read
from tuimon.sources.recording.place import here
from tuimon.sources.recording.scan import Found, scan
from tuimon.sources.recording.segments import head_of, later
from tuimon.sources.trace_file import Unreadable, opened

DROPPED = "the recording had reached its size: its oldest part but the first was dropped (--max-size)"
DAMAGED = "a damaged stretch of the recording was passed over"
MOST_NOTES = 8
MOST_BLOCKS = 1_000_000
"""Blocks of one recording: at two a second, six days."""
FRESH_S = 5.0
"""A file that is not closed and was written to so shortly ago is still being written."""


class Batch(NamedTuple):
    """What was applied to the model at once."""

    at_ns: int
    """ns since the recording began, on the clock of the machine that recorded."""
    events: list[ev.Event]


@dataclass
class _Part:
    """One file of it."""

    path: Path
    file: IO[bytes]
    size: int
    number: int
    """Its segment's."""
    prelude: list[Found] = field(default_factory=list)
    first: int = 0
    """Which block of the whole recording its first is."""
    ends: bool = False
    """It says that it is all, or that another one follows."""


class Recording:
    """A recording that is open for reading. Any number of threads may read from it at a time."""

    def __init__(self, path: Path) -> None:
        """`path`: any of its files. Raises Unreadable where there is nothing to read."""
        self.parts = [_opened(place, number) for number, place in files_of(path)]
        heads = [_head(part) for part in self.parts]
        self.damaged_head = heads[0] is None
        first = self.parts[0]
        unknown = layout.FileHead(b"", first.number, os.fstat(first.file.fileno()).st_mtime, 0, ev.SCHEMA, False)
        self.head = heads[0] or unknown
        """Of its first file; where that is damaged, with the file's time for when it began."""
        self.blocks: list[layout.BlockHead] = []
        """The blocks that hold events, in order: the index."""
        self.rows = 0
        """Samples in them."""
        self.whole = False
        """It was closed, and its end is there."""
        self._where: list[tuple[_Part, int]] = []
        self._gaps: dict[int, list[_Part | None]] = {}
        """Block -> what is missing before it: segments (the part whose prelude stands for them) or a damaged stretch (None)."""
        self._notes: dict[str, None] = {}
        self._cut = False
        self._lay_out()
        if not self.blocks:
            raise Unreadable("is a recording with nothing in it: it ends before its first block")
        if self.damaged_head:
            self._note("has a damaged head: when it began is not known")

    def _lay_out(self) -> None:
        before = 0
        for part in self.parts:
            part.first = len(self.blocks)
            if part.number != before + 1:
                self._gaps.setdefault(part.first, []).append(part)
            before = part.number
            self.whole, self._cut = False, False
            for found in scan(part.file.fileno(), part.size):
                self._take(part, found)

    def _take(self, part: _Part, found: Found) -> None:
        head = found.head
        if head is None:
            self._cut = found.cut
            last = part is self.parts[-1]
            if not (found.cut and last):
                self._gaps.setdefault(len(self.blocks), []).append(None)
                self._note(f"has a damaged stretch of {found.bytes:,} bytes, which was passed over")
        elif head.kind == layout.PRELUDE:
            part.prelude.append(found)
        elif head.kind in (layout.END, layout.GOES_ON):
            part.ends = True
            self.whole = head.kind == layout.END
        elif head.kind == layout.DATA and head.items and self._room():
            self._where.append((part, found.at + layout.HEAD))
            self.blocks.append(head)
            self.rows += head.rows

    def _room(self) -> bool:
        if len(self.blocks) < MOST_BLOCKS:
            return True
        self._note(f"has more than {MOST_BLOCKS:,} blocks, and the rest was left out")
        return False

    def _note(self, sentence: str) -> None:
        if len(self._notes) < MOST_NOTES:
            self._notes[sentence] = None

    @property
    def bytes(self) -> int:
        """Of all its files."""
        return sum(part.size for part in self.parts)

    @property
    def local(self) -> bool:
        """The job ran on this machine."""
        return self.head.host == here()

    @property
    def end(self) -> str:
        """What is to be said of its end, to go on behind "the recording "; "" where it was closed."""
        if self.whole and not self._cut:
            return ""
        last = self.parts[-1]
        upto = f"shown up to {time.strftime('%H:%M:%S', time.localtime(self.head.wall_s + self.blocks[-1].at_ns / 1e9))}"
        if last.ends and not self._cut:
            return f"goes on in a part {last.number + 1} that is not here: {upto}"
        if time.time() - os.fstat(last.file.fileno()).st_mtime < FRESH_S:
            return f"is still being written, or its recorder was killed just now: {upto}"
        if self._cut:
            return f"ends in the middle of a block (the recorder was killed, or the file was cut off): {upto}"
        return f"was not closed (the recorder was killed, or its disk was full): {upto}"

    @property
    def note(self) -> str:
        """All that was amiss, as far as it was read: "has a damaged stretch of ..; ends in the middle of a block .."; or ""."""
        return "; ".join([*self._notes, *([self.end] if self.end else [])])

    def place(self, block: int) -> int:
        """How many bytes of all files lie before the end of a block."""
        part, at = self._where[block]
        before = 0
        for other in self.parts:
            if other is part:
                break
            before += other.size
        return before + at + self.blocks[block].packed

    def target(self) -> ev.TargetSeen | None:
        """The last of what its first blocks say of the target: which rank it is, for instance."""
        found = None
        for batch in self.read(0, 8):
            for event in batch.events:
                found = event if isinstance(event, ev.TargetSeen) else found
        return found

    def read(self, first: int = 0, last: int | None = None) -> Iterator[Batch]:
        """The events of blocks [first, last), as they were applied. Where something is missing, a `RecordingGap` stands for it,
        and behind dropped segments the events in them that named something."""
        for number in range(first, len(self.blocks) if last is None else min(last, len(self.blocks))):
            yield from self.block(number)

    def block(self, number: int) -> Iterator[Batch]:
        """The events of one block, likewise."""
        head = self.blocks[number]
        for missing in self._gaps.get(number, ()):
            yield Batch(head.at_ns, self._missing(number, missing))
        part, at = self._where[number]
        items = _items(part, head, at)
        if items is None:
            self._note(f"has a damaged block of {head.packed:,} bytes, which was passed over")
            gap = ev.RecordingGap(head.last_ns, head.first_ns, head.last_ns, head.rows, DAMAGED)
            yield Batch(head.at_ns, [gap])
            return
        events: list[ev.Event] = []
        for item in items:
            if isinstance(item, Beat):
                yield Batch(item.at_ns, events)
                events = []
            elif isinstance(item, ev.Event):
                events.append(item)
        if events:
            yield Batch(head.at_ns, events)

    def _missing(self, number: int, part: _Part | None) -> list[ev.Event]:
        """What stands for that which is missing before a block."""
        upto = self.blocks[number].first_ns
        since = self.blocks[number - 1].last_ns if number else upto
        if part is None:
            return [ev.RecordingGap(upto, min(since, upto), upto, None, DAMAGED)]
        place = self.parts.index(part)
        before = self.parts[place - 1].number if place else 0
        told: list[ev.Event] = []
        rows: int | None = None
        mark = Mark(0, 0, 0)
        for found in part.prelude:
            for item in () if found.head is None else _items(part, found.head, found.at + layout.HEAD) or ():
                if isinstance(item, Mark):
                    mark = item
                elif isinstance(item, ev.Event) and mark.segment > before:
                    told.append(item)
        if mark.segment == part.number:  # the last one: its own
            rows, upto = max(0, mark.rows - self._rows_upto(place)), mark.last_ns
        if not number and told:
            since = told[0].t_ns
        return [ev.RecordingGap(upto, min(since, upto), upto, rows, DROPPED), *told]

    def _rows_upto(self, place: int) -> int:
        """Samples that were recorded up to the end of the part before this one."""
        if place == 0:
            return 0
        before = self.parts[place - 1]
        marks = [
            item
            for found in before.prelude[-1:]
            for item in (() if found.head is None else _items(before, found.head, found.at + layout.HEAD) or ())
            if isinstance(item, Mark)
        ]
        own = sum(head.rows for head in self.blocks[before.first : self.parts[place].first])
        return own + (marks[-1].rows if marks else 0)

    def close(self) -> None:
        """Of no more use."""
        for part in self.parts:
            part.file.close()


def files_of(path: Path) -> list[tuple[int, Path]]:
    """(segment, file) of all files of the recording of which `path` is one, in their order."""
    head = head_of(path)
    number = head.segment if head is not None else 1
    base = path
    if number > 1 and path.name.endswith(f".{number}"):
        base = path.with_name(path.name[: -len(f".{number}")])
    near = [(1, base), *later(base)]
    heads = {place: head_of(place) for _, place in near}
    session = head.session if head is not None else next((one.session for one in heads.values() if one is not None), b"")
    same = [
        (n, place)
        for n, place in near
        if (known := heads[place]) is not None and (known.session, known.segment) == (session, n)
    ]
    return sorted({*same, (number, path)})


def _opened(path: Path, number: int) -> _Part:
    file = opened(path)
    return _Part(path, file, os.fstat(file.fileno()).st_size, number)


def _head(part: _Part) -> layout.FileHead | None:
    raw = os.pread(part.file.fileno(), layout.HEAD, 0)
    if not raw.startswith(layout.MAGIC):
        raise Unreadable("is no recording")
    head = layout.file_head(raw)
    if head is not None and (head.version > layout.VERSION or head.schema > ev.SCHEMA):
        raise Unreadable("was recorded by a newer tuimon than this one")
    return head


def _items(part: _Part, head: layout.BlockHead, at: int) -> Sequence[ev.Event | Beat | Mark] | None:
    """What is in a body; None where it is damaged."""
    try:
        body = layout.unpack_body(head, os.pread(part.file.fileno(), head.packed, at))
        return None if body is None else list(read(head, body))
    except (OSError, Malformed):
        return None
