"""The layout of a recording on the disk: a head, then blocks, each of which can be read without any other.

    file  = head of 64 bytes, block*, one of kind "end" where it was closed
    block = head of 64 bytes, body
    body  = packed (items, then the samples' rows): an item is a tag, its length and its bytes

Every head has a check sum of itself and one of its body. A file that was cut anywhere is read up to its last whole block; one
that is damaged in the middle goes on at the next head that fits. The heads are the index, too: a reader goes from head to head
and knows the time, the steps and the samples of each block without unpacking it.

Rows of samples are 32 bytes each (`hook.wire.SAMPLE`). All those of a block are packed together, first the first byte of
each, then the second, ..: what changes little lies side by side, and they take 5 bytes instead of 8.
"""

from __future__ import annotations

import struct
import zlib
from typing import NamedTuple

MAGIC = b"\x89TUIMON\n"
"""What a recording begins with. The first byte is no text in any encoding, and the last is damaged by who takes it for one."""

VERSION = 1
SYNC = b"\xf5TMB"
"""What each block begins with: where reading goes on behind a damaged stretch."""

DATA, PRELUDE, END, GOES_ON = 1, 2, 3, 4
"""Kinds of blocks. A prelude stands at the begin of a later segment and repeats what names things in the ones before. The last
two have no body: here the recording was closed; it goes on in the next segment."""

PLAIN, ZLIB = 0, 1
"""How a body is packed."""

SOURCE_KEPT = 1
"""Flag of a file: lines of the model's source are in it."""

LATEST_S = 2e11
"""Unix time, in the year 8307: a head that tells a later one is damaged."""

MOST_PACKED = 16 * 2**20
MOST_UNPACKED = 64 * 2**20
"""Bytes of one body. A head that tells more is none."""

ROW = 32
"""Bytes of one sample."""

EVENT, ROWS, BEAT, MARK = 1, 2, 3, 4
"""Tags of items: an event as JSON; a batch of samples whose rows stand behind the items; that what came before was one
application to the model; from where on a prelude repeats a certain segment."""

ITEM = struct.Struct("<BI")
ROWS_ITEM = struct.Struct("<qI")
"""The event's time, and how many rows it has."""
BEAT_ITEM = struct.Struct("<Q")
"""ns since the recording began."""
MARK_ITEM = struct.Struct("<IQq")
"""A segment's number, the rows of all segments before it, and the time of the last event before it."""

_FILE = struct.Struct("<8sHHI16sHdQQ2x")
_BLOCK = struct.Struct("<4sBBHIIIIqqQII4x")
_CRC = struct.Struct("<I")
HEAD = 64
"""Bytes of either head; the last four are its check sum."""


class FileHead(NamedTuple):
    """What is said once of a file. Times are of the machine that tuimon ran on."""

    session: bytes
    """Sixteen bytes that all segments of one recording share."""
    segment: int
    """From 1 on."""
    wall_s: float
    """Unix time at which the recording began, the same in all segments."""
    mono_ns: int
    """CLOCK_MONOTONIC at the same moment."""
    schema: int
    """`events.SCHEMA`."""
    source: bool
    """Whether lines of the model's source are in it."""
    host: int = 0
    """Of the machine that the job ran on (`place.here`); 0: not known."""
    version: int = VERSION

    def pack(self) -> bytes:
        """As bytes."""
        flags = SOURCE_KEPT if self.source else 0
        told = (MAGIC, self.version, flags, self.segment, self.session, self.schema, self.wall_s, self.mono_ns, self.host)
        return _summed(_FILE.pack(*told))


class BlockHead(NamedTuple):
    """What is said of a block."""

    kind: int
    codec: int
    packed: int
    """Bytes of the body as it lies there."""
    unpacked: int
    items: int
    rows: int
    """Of samples."""
    first_ns: int
    """Time of its first event, on the job's clock."""
    last_ns: int
    """The latest time of all its events."""
    at_ns: int
    """ns from the begin of the recording to its last beat."""
    steps: int
    """Steps that were over then."""
    crc: int
    """Of the body as it lies there."""

    def pack(self) -> bytes:
        """As bytes."""
        kind, codec, *rest = self
        return _summed(_BLOCK.pack(SYNC, kind, codec, 0, *rest))


def file_head(raw: bytes) -> FileHead | None:
    """The head of a file; None where these bytes are damaged. That they begin with MAGIC was looked at."""
    if not _whole(raw):
        return None
    _, version, flags, segment, session, schema, wall_s, mono_ns, host = _FILE.unpack(raw[:-4])
    if not 0 <= wall_s <= LATEST_S:
        return None
    return FileHead(session, segment, wall_s, mono_ns, schema, bool(flags & SOURCE_KEPT), host, version)


def block_head(raw: bytes) -> BlockHead | None:
    """The head of a block; None where these bytes are none."""
    if not raw.startswith(SYNC) or not _whole(raw):
        return None
    _, kind, codec, _, *rest = _BLOCK.unpack(raw[:-4])
    head = BlockHead(kind, codec, *rest)
    fits = head.packed <= MOST_PACKED and head.unpacked <= MOST_UNPACKED and head.rows * ROW <= head.unpacked
    return head if fits else None


def pack_body(body: bytes) -> tuple[int, bytes]:
    """(how it is packed, bytes): as it is where packing gains nothing."""
    packed = zlib.compress(body, 1)
    return (ZLIB, packed) if len(packed) < len(body) else (PLAIN, body)


def unpack_body(head: BlockHead, raw: bytes) -> bytes | None:
    """The body behind a head, unpacked; None where it is damaged, or is not as long as the head tells."""
    if len(raw) != head.packed or zlib.crc32(raw) != head.crc:
        return None
    if head.codec == ZLIB:
        try:
            unpack = zlib.decompressobj()
            raw = unpack.decompress(raw, head.unpacked + 1)
        except zlib.error:
            return None
    return raw if len(raw) == head.unpacked else None


def shuffled(rows: bytes) -> bytes:
    """Rows of 32 bytes, first the first byte of each, then the second, .."""
    return b"".join(rows[at::ROW] for at in range(ROW))


def unshuffled(raw: bytes) -> bytes:
    """The same, undone."""
    n = len(raw) // ROW
    rows = bytearray(len(raw))
    for at in range(ROW):
        rows[at::ROW] = raw[at * n : (at + 1) * n]
    return bytes(rows)


def _summed(head: bytes) -> bytes:
    return head + _CRC.pack(zlib.crc32(head))


def _whole(raw: bytes) -> bool:
    return len(raw) == HEAD and _CRC.unpack(raw[-4:])[0] == zlib.crc32(raw[:-4])
