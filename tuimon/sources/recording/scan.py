"""Goes from head to head of one file of a recording: what blocks it has, what is damaged, and where it is cut off."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import NamedTuple

from tuimon.sources.recording.format import HEAD, SYNC, BlockHead, block_head

MOST_DAMAGED = 256 * 2**20
"""Bytes of one damaged stretch. Behind a longer one nothing is looked for."""

_STRIDE = 2**20


class Found(NamedTuple):
    """A block, or with head None a stretch in which none is."""

    at: int
    """Its place in the file, bytes."""
    head: BlockHead | None
    bytes: int
    """Its length, head and body."""
    cut: bool = False
    """The file ends in it."""


def scan(number: int, size: int) -> Iterator[Found]:
    """All of an open file of that size, from behind its head on, in order. Reads the heads only. Raises OSError."""
    at = HEAD
    while at < size:
        raw = os.pread(number, HEAD, at)
        head = block_head(raw)
        if head is not None:
            length = HEAD + head.packed
            if length > size - at:
                yield Found(at, None, size - at, cut=True)
                return
            yield Found(at, head, length)
        else:
            upto = _next(number, at + 1, min(size, at + MOST_DAMAGED))
            length = (size if upto is None else upto) - at
            yield Found(at, None, length, cut=upto is None)
        at += length


def _next(number: int, at: int, size: int) -> int | None:
    """Where the next head that fits is, from a place on."""
    while at < size:
        raw = os.pread(number, _STRIDE + HEAD, at)
        if not raw:
            return None
        place = raw.find(SYNC)
        while place >= 0:
            head = block_head(raw[place : place + HEAD])
            if head is not None:
                return at + place
            place = raw.find(SYNC, place + 1)
        at += max(1, len(raw) - HEAD + 1)  # a head that lies across the end is looked at again
    return None
