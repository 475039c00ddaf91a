"""Where our code can lie in a target without being in anybody's way.

Two places. The cave: the unused end of the last page of some executable file mapping. It is mapped, it is executable, nothing
ever runs there; a write gives the target its own private copy of that one page. It holds the first trampoline, which maps
the second place, the region: code, header and script, room for the vector state, a stack.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

from tuimon.attach import code_x86_64 as code
from tuimon.attach import elf
from tuimon.attach.procfs import Mapping, Memory
from tuimon.attach.refusal import Refused

PAGE = 4096
CALL_AT = 0x400
"""Where in the region's first page the calling trampoline lies, behind the stubs."""
VECTOR_AREA = 32 * 1024
STACK = 64 * 1024
HIGHEST = 0x7FFF_FFFF_F000  # user addresses end there with four levels of page tables


class Region(NamedTuple):
    """The private mapping: code page (read, execute), then data (read, write)."""

    base: int
    data_size: int

    @property
    def header(self) -> int:
        """Address of the header, which the script follows."""
        return self.base + PAGE

    @property
    def call(self) -> int:
        """Address of the calling trampoline."""
        return self.base + CALL_AT

    @property
    def vector_area(self) -> int:
        """64-byte aligned room for xsave."""
        return self.base + PAGE + self.data_size

    @property
    def size(self) -> int:
        """In bytes, a whole number of pages."""
        return PAGE + self.data_size + VECTOR_AREA + STACK

    @property
    def stack_top(self) -> int:
        """Where the private stack begins, 16-byte aligned."""
        return self.base + self.size - 64

    @property
    def span(self) -> tuple[int, int]:
        """First address and the one behind the last."""
        return self.base, self.base + self.size


def region(mapped: list[Mapping], script: bytes) -> Region:
    """A region for a script, in the middle of the widest gap in the address space."""
    data = -(-(code.SCRIPT + len(script) + 1) // PAGE) * PAGE
    wanted = Region(0, data)
    widest, start, before = 0, 0, 1 << 20
    for mapping in mapped:
        if mapping.start > HIGHEST:
            break
        if mapping.start - before > widest:
            widest, start = mapping.start - before, before
        before = max(before, mapping.end)
    if widest < 4 * wanted.size:
        raise Refused("no-room", "the target's address space has no room for the hook; use `tuimon run`")
    return Region((start + widest // 2) // PAGE * PAGE, data)


def is_there(mapped: list[Mapping], wanted: Region) -> bool:
    """Whether the region is mapped and its first page is executable."""
    return any(entry.start == wanted.base and entry.end == wanted.base + PAGE and entry.executable for entry in mapped)


class Cave(NamedTuple):
    """Room for one trampoline."""

    address: int
    marked: bool
    """It holds a trampoline of ours: of a tuimon that was killed before it could put the bytes back."""

    @property
    def span(self) -> tuple[int, int]:
        """First address and the one behind the last."""
        return self.address, self.address + code.SYSCALLS_SIZE


def cave(memory: Memory, mapped: list[Mapping]) -> Cave:
    """The best cave: one without our mark, with the most room. Raises Refused when there is none."""
    found: list[tuple[bool, int, int]] = []
    headers = {(entry.path, entry.inode): entry.start for entry in reversed(mapped) if entry.inode and entry.offset == 0}
    for entry in mapped:
        base = headers.get((entry.path, entry.inode))
        if base is None or not entry.inode or not entry.executable or not entry.private:
            continue
        try:
            segments = elf.Elf(memory, base).segments
        except (elf.NotElf, OSError, struct.error):
            continue
        for segment in segments:
            if segment.executable and entry.start <= segment.start < entry.end:
                address = (segment.start + segment.file_size + 31) // 16 * 16
                room = entry.end - address
                if room >= code.SYSCALLS_SIZE:
                    marked = memory.read(address, 16) == code.SYSCALLS[:16]
                    found.append((marked, -room, address))
    if not found:
        raise Refused("no-cave", "no file mapped by the target has room for 344 bytes of code; use `tuimon run`")
    marked, _, address = min(found)
    return Cave(address, marked)
