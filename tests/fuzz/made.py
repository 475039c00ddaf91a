"""Inputs without a fuzzer that is guided: sound ones, changed at random; and a found one, made as short as it can be."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence

LONGEST = 4000
PIECES = (
    b"\0", b"\xff", b"\n", b'"', b"{}", b"[]", b"null", b"-1", b"1e999", b"NaN", b"9" * 40, b"\xed\xa0\x80", b"\x1b[2J",
    b"\\u0000", b",", b":", b"=", b"true", b"0x" + b"f" * 5000, b"\xc2\xb2", b"[" * 50, b"{" * 50, b"@@ ",
)  # fmt: skip


def inputs(seeds: Sequence[bytes], seed: int | str) -> Iterator[bytes]:
    """Without end; the seeds themselves first."""
    yield from seeds
    rnd = random.Random(seed)
    while True:
        data = bytearray(rnd.choice(seeds) if seeds and rnd.random() < 0.8 else rnd.randbytes(rnd.choice((8, 32, 100, 400))))
        if seeds:
            for _ in range(rnd.choice((1, 1, 2, 4, 16))):
                _change(rnd, data)
        yield bytes(data[: 4 * LONGEST])


def _change(rnd: random.Random, data: bytearray) -> None:
    at = rnd.randrange(len(data) + 1)
    how = rnd.randrange(6)
    if how == 0:
        data[at:at] = rnd.choice(PIECES)
    elif how == 1:
        del data[at : at + rnd.choice((1, 2, 8, 64))]
    elif how == 2 and data:
        data[at - 1] = rnd.randrange(256)
    elif how == 3:
        other = rnd.randrange(len(data) + 1)
        data[at:at] = data[other : other + rnd.choice((1, 8, 64))]
    elif how == 4:
        data[at : at + rnd.choice((1, 4, 16))] = rnd.choice(PIECES)
    else:
        del data[at:]


def shortest(data: bytes, fails: Callable[[bytes], bool], tries: int = 400) -> bytes:
    """As much of an input as is needed for it to fail, found by leaving out pieces."""
    size = max(1, len(data) // 2)
    while size and tries:
        at = 0
        while at < len(data) and tries:
            tries -= 1
            less = data[:at] + data[at + size :]
            if fails(less):
                data = less
            else:
                at += size
        size //= 2
    return data
