"""Further programs to attach to: targets.py MODE FILE, with the counters of tests/attach/target_program.py."""

import ctypes
import mmap
import os
import sys
import time

PR_SVE_SET_VL, PR_SET_PTRACER = 50, 0x59616D61
libc = ctypes.CDLL(None)
mode, path = sys.argv[1], sys.argv[-1]
with open(path, "r+b") as file:
    counters = memoryview(mmap.mmap(file.fileno(), 4096)).cast("Q")


def vectors(bits: int) -> None:
    """Keeps SVE registers of so many bits live; one that is lost is a fault."""
    with open(os.path.join(os.path.dirname(__file__), "vectors.bin"), "rb") as file:
        code = file.read()
    if libc.prctl(PR_SVE_SET_VL, bits // 8, 0, 0, 0) & 0xFFFF != bits // 8:
        sys.exit(f"this processor has no vectors of {bits} bits")
    page = mmap.mmap(-1, len(code), prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    page.write(code)
    kept, now = ctypes.create_string_buffer(16384), ctypes.create_string_buffer(16384)
    function = ctypes.CFUNCTYPE(ctypes.c_uint64, ctypes.c_uint64, ctypes.c_void_p, ctypes.c_void_p)
    entry = function(ctypes.addressof(ctypes.c_char.from_buffer(page)))
    while True:
        counters[1] += entry(1000, kept, now)
        counters[0] += 1


def permitting() -> None:
    """Has told Yama that anybody may trace it."""
    libc.prctl(PR_SET_PTRACER, ctypes.c_ulong(-1), 0, 0, 0)
    while True:
        counters[0] += 1


def naps() -> None:
    """Sleeps in C for two seconds from now, and not until a moment; a sleep that is begun anew is a fault."""
    while True:
        begun = time.monotonic()
        libc.usleep(2_000_000)
        if time.monotonic() - begun > 3.5:
            counters[1] += 1
        counters[0] += 1
        while time.monotonic() - begun < 2.3:
            pass


if mode.isdigit():
    vectors(int(mode))
globals()[mode]()
