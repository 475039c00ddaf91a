"""What is within a block: events and samples packed, and read back without any trust in what is read."""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Iterator
from typing import NamedTuple, cast

from tuimon import events as ev
from tuimon.hook import wire
from tuimon.sources import carried
from tuimon.sources.recording import format as layout

MOST_ITEM = 8 * 2**20
"""Bytes of one event as JSON. A longer one is left out."""

MOST_ROWS = 2**15
"""Rows of one batch."""

_Rows = tuple[tuple[int, int, int, int, int], ...]


class Beat(NamedTuple):
    """What came before, up to the beat before it, was one application to the model."""

    at_ns: int
    """ns since the recording began."""


class Mark(NamedTuple):
    """In a prelude: what follows, up to the next one, was told first in this segment. The last one is the segment's own."""

    segment: int
    rows: int
    """Samples in all segments before it."""
    last_ns: int
    """Time of the last event before it."""


class Unfit(ValueError):
    """An event that cannot be written: it holds a value that its field cannot have."""


class Body:
    """A block that is being filled."""

    def __init__(self, at_ns: int = 0) -> None:
        """`at_ns`: when the recording was at the last beat before it."""
        self.size = 0
        """Bytes, unpacked."""
        self.rows = 0
        self._items: list[bytes] = []
        self._rows: list[bytes] = []
        self._first: int | None = None
        self._last = -(2**63)
        self._at = at_ns

    def __bool__(self) -> bool:
        """Whether there is anything in it."""
        return bool(self._items)

    def event(self, event: ev.Event) -> None:
        """Add one. Raises Unfit."""
        if not isinstance(event, ev.Samples) or not self._samples(event):
            try:
                text = json.dumps(carried.encode(carried.checked(event)), separators=(",", ":")).encode("ascii")
            except (ValueError, TypeError) as error:
                raise Unfit(str(error)) from None
            if len(text) > MOST_ITEM:
                raise Unfit(f"{type(event).__name__} is of {len(text):,} bytes")
            self._item(layout.EVENT, text)
        self._first = event.t_ns if self._first is None else self._first
        self._last = max(self._last, event.t_ns)

    def _samples(self, event: ev.Samples) -> bool:
        """Pack a batch. False where it holds numbers that no job sends (a file may): then it is an event like others."""
        try:
            packed = wire.samples_frame(event.rows)[wire.HEADER.size :]
            item = layout.ROWS_ITEM.pack(event.t_ns, len(event.rows))
        except struct.error:
            return False
        self._item(layout.ROWS, item)
        self._rows.append(packed)
        self.rows += len(event.rows)
        self.size += len(packed)
        return True

    def beat(self, at_ns: int) -> None:
        """What was added since the last one was one application to the model, at this time since the recording began."""
        self._at = at_ns
        self._item(layout.BEAT, layout.BEAT_ITEM.pack(at_ns))

    def mark(self, mark: Mark) -> None:
        """From here on it is a certain segment that is repeated."""
        self._item(layout.MARK, layout.MARK_ITEM.pack(*mark))

    def _item(self, tag: int, raw: bytes) -> None:
        self._items.append(layout.ITEM.pack(tag, len(raw)))
        self._items.append(raw)
        self.size += layout.ITEM.size + len(raw)

    def block(self, kind: int, steps: int) -> bytes:
        """All of it as a block, head and body."""
        body = b"".join(self._items) + layout.shuffled(b"".join(self._rows))
        codec, packed = layout.pack_body(body)
        first = self._first or 0
        last = max(first, self._last) if self._first is not None else 0
        sizes = (len(packed), len(body), len(self._items) // 2, self.rows)
        return layout.BlockHead(kind, codec, *sizes, first, last, self._at, steps, zlib.crc32(packed)).pack() + packed


class Malformed(ValueError):
    """The body does not hold what its head says."""


def parts(event: ev.Event) -> list[ev.Event]:
    """The event, or where it is a batch of very many samples, several that are the same."""
    if not isinstance(event, ev.Samples) or len(event.rows) <= MOST_ROWS:
        return [event]
    return [ev.Samples(event.t_ns, event.rows[at : at + MOST_ROWS]) for at in range(0, len(event.rows), MOST_ROWS)]


def read(head: layout.BlockHead, body: bytes) -> Iterator[ev.Event | Beat | Mark]:
    """What is in a body, in its order. Raises Malformed, whatever the body holds.

    An event of a type that is not known here is passed over, and so is an item with such a tag: a newer tuimon wrote them.
    """
    at, end = 0, len(body) - head.rows * layout.ROW
    rows = cast(_Rows, tuple(wire.read_samples(layout.unshuffled(body[end:]))))
    taken = 0
    try:
        while at < end:
            tag, length = layout.ITEM.unpack_from(body, at)
            at += layout.ITEM.size
            if length > end - at:
                raise Malformed("an item is longer than its block")
            raw = body[at : at + length]
            at += length
            if tag == layout.EVENT:
                yield from carried.decode(_object(raw))
            elif tag == layout.ROWS:
                t_ns, n = layout.ROWS_ITEM.unpack(raw)
                if n > len(rows) - taken:
                    raise Malformed("fewer rows than its items tell")
                yield ev.Samples(t_ns, rows[taken : taken + n])
                taken += n
            elif tag == layout.BEAT:
                yield Beat(*layout.BEAT_ITEM.unpack(raw))
            elif tag == layout.MARK:
                yield Mark(*layout.MARK_ITEM.unpack(raw))
    except (struct.error, ValueError, RecursionError) as error:
        raise Malformed(str(error)) from None


def _object(raw: bytes) -> dict[str, object]:
    found = json.loads(raw)
    if not isinstance(found, dict):
        raise Malformed("an event that is no object")
    return found
