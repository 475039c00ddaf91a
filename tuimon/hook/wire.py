"""The framing that both ends of the socket speak, and the layout of a sample.

A frame is a header (kind, length of the body in bytes) and the body. There are two kinds: one JSON object, or a block of
samples of fixed size. JSON carries what happens seldom (compile events, new regions, status); samples carry what happens in
every step, so they are packed in binary and unpacked in tuimon's process.

This module is used on both ends: it is part of the bundle that travels into the job (Python 3.10 syntax, standard library
only), and tuimon's own process imports it to decode.
"""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Iterator, Sequence
from itertools import starmap
from typing import Any

from .remains import Mortal

PROTOCOL = 2
"""Of the handshake and the frames. Both ends name theirs in their first frame, and a difference is refused by name."""

JSON_FRAME = 1
SAMPLES_FRAME = 2

HEADER = struct.Struct("<BI")
MAX_BODY = 64 * 1024 * 1024  # a longer length is corruption, not data: nothing we send comes near
MAX_PARTS = 500_000  # commas in a JSON body: each stands for an object that takes some 100 bytes once it is read

# instrument u32, thread's ident u64, flags u32, begin u64, end u64; times in ns of CLOCK_MONOTONIC
SAMPLE = struct.Struct("<IQIQQ")
RAISED = 1  # flag: the timed call ended with an exception


class WireError(ValueError, metaclass=Mortal):
    """The bytes are not what this protocol allows; the connection cannot be used any further."""


def json_frame(message: dict[str, Any]) -> bytes:
    """One JSON-able dict as the bytes of a frame."""
    body = json.dumps(message, separators=(",", ":"), default=str).encode("utf-8", "backslashreplace")
    return HEADER.pack(JSON_FRAME, len(body)) + body


def samples_frame(samples: Sequence[tuple[int, int, int, int, int]]) -> bytes:
    """Samples (instrument, thread, flags, begin_ns, end_ns) as the bytes of one frame."""
    body = b"".join(starmap(SAMPLE.pack, samples))  # in C: the hook's thread holds the GIL all the while
    return HEADER.pack(SAMPLES_FRAME, len(body)) + body


def proof(token: str, what: bytes) -> str:
    """That the token is known, without telling it; for these bytes. The bootstrap has the same on its side."""
    key = token.encode()
    return hashlib.sha256(key + hashlib.sha256(key + what).digest()).hexdigest()


class Decoder(metaclass=Mortal):
    """Cuts a stream of bytes into frames, however the bytes are split on the way.

    It never holds more than one frame of `limit` bytes and what was fed last.
    """

    def __init__(self, limit: int = MAX_BODY) -> None:
        self._held = bytearray()
        self._limit = limit

    def feed(self, data: bytes) -> list[tuple[int, bytes]]:
        """Take bytes; give the frames completed by them as a list of (kind, bytes).

        Raises WireError for an unknown kind or an impossible length.
        """
        self._held += data
        frames: list[tuple[int, bytes]] = []
        at = 0
        while len(self._held) - at >= HEADER.size:
            kind, length = HEADER.unpack_from(self._held, at)
            if kind not in (JSON_FRAME, SAMPLES_FRAME):
                raise WireError(f"unknown frame kind {kind}")
            if length > self._limit or (kind == SAMPLES_FRAME and length % SAMPLE.size):
                raise WireError(f"impossible frame length {length} for kind {kind}")
            end = at + HEADER.size + length
            if len(self._held) < end:
                break
            frames.append((kind, bytes(self._held[at + HEADER.size : end])))
            at = end
        if at:
            del self._held[:at]
        return frames

    @property
    def pending(self) -> int:
        """Bytes held back because their frame is not complete yet."""
        return len(self._held)


def read_json(body: bytes) -> dict[str, Any]:
    """The dict in a JSON frame's body. Raises WireError if it is not one, or would take far more memory than its bytes do."""
    if body.count(b",") > MAX_PARTS:
        raise WireError("a JSON message of too many parts")
    try:
        message = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise WireError(f"not JSON: {error}") from None
    if not isinstance(message, dict):
        raise WireError("not a JSON object")
    return message


def read_samples(body: bytes) -> Iterator[tuple[int, ...]]:
    """An iterator of (instrument, thread, flags, begin_ns, end_ns) over a samples frame's body."""
    return SAMPLE.iter_unpack(body)
