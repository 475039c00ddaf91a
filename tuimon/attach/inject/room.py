"""Where our code can lie in a target without being in anybody's way.

Two places. The cave: the unused end of the last page of some executable file mapping. It is mapped, it is executable, nothing
ever runs there; a write gives the target its own private copy of that one page. It holds the first trampoline, which maps
the second place, the region: code, header and script, room for the vector state, a stack.
"""

from __future__ import annotations

import os
import re
import struct
from collections.abc import Iterator
from typing import NamedTuple

from tuimon.attach import elf
from tuimon.attach.machine import code, layout
from tuimon.attach.procfs import Mapping, Memory
from tuimon.attach.refusal import Refused

PAGE = os.sysconf("SC_PAGE_SIZE")  # of this kernel, on which the target runs as well
CALL_AT = 0x400
"""Where in the region's first page the calling trampoline lies, behind the stubs."""
STACK = 64 * 1024


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
        """Room for the vector state, page aligned."""
        return self.base + PAGE + self.data_size

    @property
    def size(self) -> int:
        """In bytes, a whole number of pages."""
        return PAGE + self.data_size + code.VECTOR_AREA + STACK

    @property
    def stack_top(self) -> int:
        """Where the private stack begins, 16-byte aligned."""
        return self.base + self.size - 64

    @property
    def span(self) -> tuple[int, int]:
        """First address and the one behind the last."""
        return self.base, self.base + self.size


def region(mapped: list[Mapping], script: bytes) -> Region:
    """A region for a script, somewhere in the middle half of the widest gap in the address space."""
    data = -(-(layout.SCRIPT + len(script) + 1) // PAGE) * PAGE
    wanted = Region(0, data)
    widest, start, before = 0, 0, 1 << 20
    for mapping in mapped:
        if mapping.start > code.HIGHEST:
            break
        if mapping.start - before > widest:
            widest, start = mapping.start - before, before
        before = max(before, mapping.end)
    if widest < 4 * wanted.size:
        raise Refused("no-room", "the target's address space has no room for the hook; use `tuimon run`")
    # not where the last attach had it: a pointer that is left over from that one on a stack looks like a thread that comes back
    return Region((start + widest // 4 + int.from_bytes(os.urandom(8), "little") % (widest // 2)) // PAGE * PAGE, data)


def is_there(mapped: list[Mapping], wanted: Region) -> bool:
    """Whether the region is mapped and its first page is executable."""
    return any(entry.start == wanted.base and entry.end == wanted.base + PAGE and entry.executable for entry in mapped)


def is_ours(mapped: list[Mapping], wanted: Region) -> bool:
    """Whether what is mapped there is the region, whole or as it is before its first page is made executable."""
    ends = (wanted.base + PAGE, wanted.base + wanted.size)
    return any(entry.start == wanted.base and entry.end in ends and not entry.inode for entry in mapped)


class Cave(NamedTuple):
    """Room for one trampoline."""

    address: int
    room: int
    """So many bytes are ours to use."""
    marked: bool
    """It holds a trampoline of ours: of a tuimon that was killed before it could put the bytes back."""

    @property
    def span(self) -> tuple[int, int]:
        """First address and the one behind the last."""
        return self.address, self.address + self.room


def cave(memory: Memory, mapped: list[Mapping]) -> Cave:
    """The best cave: in what stays mapped, without our mark, with the most room. Raises Refused when there is none."""
    found: list[tuple[bool, bool, int, int]] = []
    program = _program(memory.pid)
    headers = {(entry.path, entry.inode): entry.start for entry in reversed(mapped) if entry.inode and entry.offset == 0}
    executable = [entry for entry in mapped if entry.executable and entry.inode and entry.private]
    staying = [entry for entry in executable if _stays(entry.path, program)]
    for entries in (staying, [entry for entry in executable if entry not in staying]):
        for entry in entries:
            base = headers.get((entry.path, entry.inode))
            if base is not None:
                found += _ends(memory, base, entry, stays=entries is staying)
        if any(not marked for _, marked, _, _ in found):
            break  # the others are no better
    if not found:
        raise Refused("no-cave", f"no file mapped by the target has room for {code.LEAST_ROOM} bytes of code; use `tuimon run`")
    _, marked, room, address = min(found)
    return Cave(address, min(-room, code.MOST_ROOM), marked)


def _ends(memory: Memory, base: int, entry: Mapping, *, stays: bool) -> Iterator[tuple[bool, bool, int, int]]:
    """The unused ends of the segments that one mapping shows of the object at `base`, as `cave` compares them."""
    try:
        segments = elf.Elf(memory, base).segments
    except (elf.NotElf, OSError, struct.error):
        return
    for segment in segments:
        if segment.executable and entry.start <= segment.start < entry.end:
            address = (segment.start + segment.file_size + 31) // 16 * 16
            room = entry.end - address
            if room >= code.LEAST_ROOM:
                yield not stays, memory.read(address, 16) == code.SYSCALLS[:16], -room, address


_STAYING = re.compile(r"(ld|ld64|ld-linux|ld-musl|libc|libm|libpython3[.0-9]*[a-z]*)[-.].*")


def _stays(path: str, program: str) -> bool:
    """Whether a mapped file is one that nobody unmaps as long as the process runs: a plug-in's hole may become data's."""
    return path == program or _STAYING.fullmatch(os.path.basename(path)) is not None


def _program(pid: int) -> str:
    try:
        return os.readlink(f"/proc/{pid}/exe")
    except OSError:
        return ""
