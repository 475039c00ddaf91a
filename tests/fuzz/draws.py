"""From the bytes that a fuzzer makes to choices: so what it learns about bytes, it learns about values in their places."""

from __future__ import annotations

import copy
import math
import struct
from collections.abc import Iterator, Sequence
from typing import Any, TypeVar

T = TypeVar("T")

EVIL = "\x1b]0;x\x07\x9b31m‮\x1b[2J"
ODD: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, 2**31, 2**32 - 1, 2**53 + 1, 2**63 - 1, 2**63, 2**64 - 1, -(2**63), 10**19, 10**400,
    0.0, -0.0, 0.5, 1e-320, 1e308, -1e308, math.inf, -math.inf, math.nan,
    "", "x", "0/0", "0/1", "1/0_1", "x" * 5000, "a\nb", "\t", "\ud800", "²", "١٢", "漢" * 50, "e\u0301" * 30, "‍👩‍🚀", "=1+1",
    "[red]x[/]", "<b>&amp;", "`|`", "../../etc/passwd", "/dev/full", "NaN", "1e999", "0x10", "9" * 5000, EVIL,
    [], {}, [[]], [None], [1], ["x"], {"a": 1}, {"": {}}, [[1, 2, 3]], [["f.py", 1, "f"]], [["x", "y"]], [0] * 100,
)  # fmt: skip
"""What stands where something else was meant."""


class Draw:
    """Choices, one after the other. Behind the last byte each is the first one: an end of its own."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    @property
    def over(self) -> bool:
        """Nothing is left to choose by."""
        return self._at >= len(self._data)

    def take(self, length: int) -> bytes:
        """So many bytes, fewer at the end."""
        taken = self._data[self._at : self._at + length]
        self._at += length
        return taken

    def rest(self) -> bytes:
        """All that are left."""
        return self.take(len(self._data))

    def below(self, count: int) -> int:
        """A number from 0 up to, not including, `count`."""
        return int.from_bytes(self.take(1 if count <= 256 else 2 if count <= 65536 else 4), "big") % count

    def pick(self, among: Sequence[T]) -> T:
        """One of them."""
        return among[self.below(len(among))]

    def number(self, pack: str) -> Any:
        """A number as `struct` packs it: "<d", "<q", .."""
        raw = self.take(struct.calcsize(pack))
        return struct.unpack(pack, raw.ljust(struct.calcsize(pack), b"\0"))[0]

    def text(self) -> str:
        """A text of up to 63 bytes."""
        return self.take(self.below(64)).decode("utf-8", "surrogateescape")

    def value(self, instead: Any = None, depth: int = 0) -> Any:
        """Some value of any kind, or one near `instead`."""
        how = self.below(16)
        if how == 0 and isinstance(instead, (int, float)):
            return instead + self.pick((1, -1, 1000, -1000, 10**9, -(10**9), 10**15))
        if how == 1 and isinstance(instead, str):
            return instead + self.text()
        if how == 2 and isinstance(instead, list):
            return instead * self.pick((2, 3, 40)) if self.below(2) else instead[: self.below(3)]
        if how == 3:
            return self.number("<q")
        if how == 4:
            return self.number("<d")
        if how == 5:
            return self.text()
        if how == 6 and depth < 3:
            return [self.value(depth=depth + 1) for _ in range(self.below(4))]
        if how == 7 and depth < 3:
            return {self.text(): self.value(depth=depth + 1) for _ in range(self.below(4))}
        return copy.deepcopy(self.pick(ODD))  # what is made of it is changed again


def paths(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The way to every value in some JSON."""
    if path:
        yield path
    below = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in below:
        yield from paths(inner, (*path, key))


def changed(draw: Draw, message: Any) -> None:
    """Another value in one place of some JSON, which is changed; or none any more; or one more."""
    ways = list(paths(message))
    if not ways:
        return
    *there, last = draw.pick(ways)
    within = message
    for step in there:
        within = within[step]
    how = draw.below(8)
    if how == 0:
        del within[last]
    elif how == 1 and isinstance(within, dict):
        within[draw.text()] = draw.value()
    elif how == 1:
        within.append(draw.value(within[last]))
    else:
        within[last] = draw.value(within[last])
