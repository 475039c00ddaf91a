"""The frame from which rt_sigreturn gives an aarch64 thread all that it had: struct rt_sigframe of the kernel.

Layouts: asm/sigcontext.h and asm/ucontext.h for the frame, asm/ptrace.h for the register sets (the kernel's
Documentation/arch/arm64/sve.rst describes both). The frame's records begin where `__reserved` does; those that do not fit into
its 4096 bytes lie behind a record that says so.

A system call throws the upper parts of the SVE registers away, so only a thread that was stopped in user code has any: then an
SVE record follows the one of the 128-bit registers, for the vector length that the thread has. State of the matrix extension
SME and shadow stacks have no record here: such a thread is left alone.
"""

from __future__ import annotations

import struct

NT_PRFPREG, NT_ARM_SVE, NT_ARM_SSVE, NT_ARM_ZA, NT_ARM_GCS = 2, 0x405, 0x40B, 0x40C, 0x410
SETS = {NT_PRFPREG: 528, NT_ARM_SVE: 16 + 32 * 256 + 16 * 32 + 32 + 32, NT_ARM_SSVE: 16, NT_ARM_ZA: 16, NT_ARM_GCS: 24}
_FPSIMD_MAGIC, _SVE_MAGIC, _EXTRA_MAGIC = 0x46508001, 0x53564501, 0x45585401
_LIVE = 1  # SVE_PT_REGS_SVE
_WIDEST = 256  # bytes of a vector register of 2048 bits

_STACK, _MASK, _MACHINE, _RECORDS, _RESERVED = 128 + 16, 128 + 40, 304, 592, 4096
_FPSIMD, _END, _EXTRA = 528, 16, 32
_NO_STACK = 0x7FFF
"""Flags of an alternate signal stack that the kernel does not take: it leaves the stack as it is."""
SMALL = _RECORDS + _FPSIMD + _END
"""The bytes of a frame without an SVE record."""


class NotKept(Exception):
    """The thread has state that a frame of ours does not hold."""


def _sve_size(vector: int) -> int:
    """The bytes of an SVE record: 32 vectors, 16 predicates and the first-fault register, each an eighth of a vector."""
    return -(-(16 + 32 * vector + 17 * (vector // 8)) // 16) * 16


LARGE = _RECORDS + _FPSIMD + _EXTRA + _END + _sve_size(_WIDEST) + _END
"""The bytes of the largest frame."""


def _sve(live: bytes) -> bytes:
    """The SVE record; nothing where no SVE register is in use."""
    if len(live) < 16:
        return b""
    size, _, vector, _, flags, _ = struct.unpack_from("<IIHHHH", live)
    if not flags & _LIVE:
        return b""
    length = 32 * vector + 17 * (vector // 8)
    if vector > _WIDEST or len(live) < 16 + length or size < 16 + length:
        raise NotKept(f"its vector registers have {8 * vector} bits")
    record = _sve_size(vector)
    return (struct.pack("<IIHHHH", _SVE_MAGIC, record, vector, 0, 0, 0) + live[16 : 16 + length]).ljust(record, b"\0")


def build(general: list[int], mask: bytes, sets: dict[int, bytes], at: int) -> bytes:
    """A frame for the address `at` (a multiple of 16) from x0..x30, sp, pc, pstate, the blocked signals, the register sets.

    Its length does not depend on `at`. Raises NotKept.
    """
    for number in (NT_ARM_SSVE, NT_ARM_ZA):
        header = sets.get(number, b"")
        if len(header) >= 4 and struct.unpack_from("<I", header)[0] > 16:
            raise NotKept("it uses the matrix extension (SME)")
    shadow = sets.get(NT_ARM_GCS, b"")
    if len(shadow) >= 8 and struct.unpack_from("<Q", shadow)[0]:
        raise NotKept("it has a shadow stack (GCS)")
    vectors = sets.get(NT_PRFPREG, b"")
    if len(vectors) != 528:
        raise NotKept("its vector registers cannot be read")
    frame = bytearray(_RECORDS)
    struct.pack_into("<QiiQ", frame, _STACK, 0, _NO_STACK, 0, 0)
    frame[_MASK : _MASK + 8] = mask
    struct.pack_into("<Q34Q", frame, _MACHINE, 0, *general)
    records = struct.pack("<II", _FPSIMD_MAGIC, _FPSIMD) + vectors[512:520] + vectors[:512]
    wide = _sve(sets.get(NT_ARM_SVE, b""))
    if len(records) + len(wide) + _END > _RESERVED:
        behind = at + _RECORDS + len(records) + _EXTRA + _END
        records += struct.pack("<IIQIIII", _EXTRA_MAGIC, _EXTRA, behind, len(wide) + _END, 0, 0, 0) + bytes(_END)
    return bytes(frame + records + wide + bytes(_END))
