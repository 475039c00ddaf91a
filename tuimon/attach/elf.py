"""Symbols of a loaded object, read from the target's memory alone.

Nothing is read from files: the file may have been upgraded or deleted since the target was started, or lie in another mount
namespace. The dynamic symbol table is always there in memory, also in stripped, static-pie and non-PIE programs.
Layouts: the System V ABI (gabi, "Dynamic Linking") and, for the GNU hash, the layout that the dynamic linker itself reads.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

from tuimon.attach.procfs import Memory

PT_LOAD, PT_DYNAMIC = 1, 2
PF_X = 1
DT_HASH, DT_STRTAB, DT_SYMTAB, DT_GNU_HASH = 4, 5, 6, 0x6FFFFEF5
SYMBOL = struct.Struct("<IBBHQQ")  # name, info, other, section, value, size


class NotElf(ValueError):
    """There is no ELF header at that address."""


class Segment(NamedTuple):
    """One PT_LOAD segment, at its address in memory."""

    start: int
    file_size: int
    executable: bool


class Elf:
    """An object whose header is mapped at `base`. Raises NotElf or OSError."""

    def __init__(self, memory: Memory, base: int) -> None:
        self._memory = memory
        self.base = base
        header = memory.read(base, 64)
        if header[:4] != b"\x7fELF" or header[4] != 2:
            raise NotElf(f"no 64-bit ELF header at {base:#x}")
        self.machine = int(struct.unpack_from("<H", header, 18)[0])
        table = int(struct.unpack_from("<Q", header, 32)[0])
        size, count = struct.unpack_from("<HH", header, 54)
        raw = memory.read(base + table, size * count)
        headers = [struct.unpack_from("<IIQQQQQQ", raw, at * size) for at in range(count)]
        loads = [entry for entry in headers if entry[0] == PT_LOAD]
        # what has to be added to the addresses in the object; 0 for a program that is not position independent
        self.bias = base - (loads[0][3] - loads[0][2]) if loads else base
        self.segments = [Segment(self.bias + entry[3], entry[5], bool(entry[1] & PF_X)) for entry in loads]
        self._tags: dict[int, int] = {}
        for entry in headers:
            if entry[0] == PT_DYNAMIC:
                self._read_dynamic(self.bias + entry[3], entry[6])

    def _read_dynamic(self, address: int, length: int) -> None:
        raw = self._memory.read(address, length)
        for tag, value in struct.iter_unpack("<QQ", raw[: len(raw) // 16 * 16]):
            if tag == 0:
                break
            self._tags.setdefault(tag, value)

    def _pointer(self, tag: int) -> int:
        # the dynamic linker writes addresses over most of these values; where it did not, they count from the object's start
        value = self._tags[tag]
        return value if value >= self.base else value + self.bias

    def symbol(self, name: str) -> tuple[int, int] | None:
        """(address, size) of a symbol that the object defines for others, or None."""
        wanted = name.encode("ascii")
        if DT_SYMTAB not in self._tags or DT_STRTAB not in self._tags:
            return None
        if DT_GNU_HASH in self._tags:
            return self._by_gnu_hash(wanted)
        if DT_HASH in self._tags:
            return self._by_hash(wanted)
        return None

    def _entry(self, index: int, wanted: bytes) -> tuple[int, int] | None:
        raw = self._memory.read(self._pointer(DT_SYMTAB) + SYMBOL.size * index, SYMBOL.size)
        name, _, _, section, value, size = SYMBOL.unpack(raw)
        if section and self._memory.string(self._pointer(DT_STRTAB) + name, len(wanted) + 1) == wanted:
            return self.bias + value, size
        return None

    def _by_gnu_hash(self, wanted: bytes) -> tuple[int, int] | None:
        memory, table = self._memory, self._pointer(DT_GNU_HASH)
        code = 5381
        for byte in wanted:
            code = (code * 33 + byte) & 0xFFFFFFFF
        buckets, first, bloom_words, _ = struct.unpack("<IIII", memory.read(table, 16))
        if not buckets:
            return None
        bucket_table = table + 16 + bloom_words * 8
        chain_table = bucket_table + buckets * 4
        index = memory.u32(bucket_table + 4 * (code % buckets))
        if index < first:
            return None
        while True:
            hashed = memory.u32(chain_table + 4 * (index - first))
            if hashed | 1 == code | 1:
                found = self._entry(index, wanted)
                if found:
                    return found
            if hashed & 1:  # the last one of its chain
                return None
            index += 1

    def _by_hash(self, wanted: bytes) -> tuple[int, int] | None:
        memory, table = self._memory, self._pointer(DT_HASH)
        code = 0
        for byte in wanted:
            code = (code << 4) + byte
            high = code & 0xF0000000
            code = (code ^ (high >> 24)) & ~high & 0xFFFFFFFF
        buckets, _ = struct.unpack("<II", memory.read(table, 8))
        index = memory.u32(table + 8 + 4 * (code % buckets)) if buckets else 0
        while index:
            found = self._entry(index, wanted)
            if found:
                return found
            index = memory.u32(table + 8 + 4 * buckets + 4 * index)
        return None
