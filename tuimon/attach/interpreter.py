"""The CPython inside a process: its version, the addresses of what our stubs call, and what it says of itself.

Everything is read from the process's memory. Raises Refused, by name, where it is none that tuimon attaches to.
"""

from __future__ import annotations

import os
import re
import struct
from collections.abc import Iterator
from typing import NamedTuple

from tuimon.attach import elf
from tuimon.attach.inject import remote_exec
from tuimon.attach.machine.layout import STUB_SYMBOLS
from tuimon.attach.procfs import Mapping, Memory
from tuimon.attach.refusal import Refused

OLDEST, NEWEST = (3, 10), (3, 14)  # those that the stubs have been run in
_OPTIONAL = {"Py_IsFinalizing", "note_state"}
_FLAGS = 16
"""Bytes: `preinitializing`, `preinitialized`, `core_initialized`, `initialized` (3.11 and 3.12: one more in front of them)."""
_HEAD_AT = 40
"""Of the word in `_PyRuntime` that holds the offset of `interpreters.head` (Include/internal/pycore_debug_offsets.h)."""


class Interpreter(NamedTuple):
    """What was found."""

    version: tuple[int, int]
    symbols: dict[str, int]
    """Addresses of what the stubs call; 0 for an optional one that is not there."""
    lock_ranges: list[tuple[int, int]]
    """Code in which a thread may hold the lock of the queue of pending calls."""
    runtime: int
    """Address of _PyRuntime; 0 where it is not exported."""


def find(pid: int, memory: Memory, mapped: list[Mapping]) -> Interpreter:
    """The CPython in the process. Raises Refused where there is none, or none that tuimon attaches to."""
    found = _object(pid, memory, mapped)
    if found is None:
        raise Refused(
            "not-python", f"process {pid} is no Python program (nothing in it is CPython); `tuimon list` shows those that are"
        )
    python, path = found
    version = _version(python, memory, path)
    if version is None or version < OLDEST:
        named = "older than 3.10" if version is None else "{}.{}".format(*version)
        raise Refused("old-python", f"process {pid} runs Python {named}; tuimon attaches to 3.10 and newer")
    if version > NEWEST:
        raise Refused(
            "new-python",
            "process {} runs Python {}.{}; this tuimon attaches to 3.10 to {}.{} only: start the job with `tuimon run`".format(
                pid, *version, *NEWEST
            ),
        )
    runtime = _address(python, "_PyRuntime")
    if python.symbol("_Py_MergeZeroLocalRefcount") or (runtime and remote_exec.is_free_threaded(memory, runtime)):
        # its thread states belong to the thread that makes them: the pending form would be wrong
        raise Refused(
            "free-threaded", f"process {pid} is a free-threaded Python, which tuimon cannot attach to yet; use `tuimon run`"
        )
    if runtime and remote_exec.is_switched_off(memory, runtime, version):
        raise Refused(
            "remote-debug-off",
            f"the user of process {pid} has switched debugging from outside off (PYTHON_DISABLE_REMOTE_DEBUG, "
            "-X disable-remote-debug, or a Python built without it); tuimon respects that: start the job without the switch, "
            "or with `tuimon run`",
        )
    symbols = {name: _address(python, name) for name in STUB_SYMBOLS}
    symbols["Py_IsFinalizing"] = symbols["Py_IsFinalizing"] or _address(python, "_Py_IsFinalizing")
    if version < (3, 12):
        symbols["note_state"] = _address(python, "_PyThreadState_Init" if version == (3, 10) else "_PyThreadState_SetCurrent")
        needed = set(STUB_SYMBOLS) - {"Py_IsFinalizing"}
    else:
        needed = set(STUB_SYMBOLS) - _OPTIONAL
    missing = sorted(name for name in needed if not symbols[name])
    if missing:
        raise Refused("no-symbols", f"the Python in process {pid} does not export {', '.join(missing)}; use `tuimon run`")
    return Interpreter(version, symbols, _lock_ranges(python, memory, mapped), runtime)


def has_begun(memory: Memory, runtime: int, version: tuple[int, int]) -> bool:
    """Whether an interpreter has been there yet. Until then the dynamic linker may still be at work, and whatever the stubs
    call would use addresses that are not filled in. Raises OSError where the process has gone.

    From 3.13 on `_PyRuntime` says where its list of interpreters begins; before, its first words are the flags of its start.
    """
    if not runtime:
        return True  # not exported: nothing can be told
    if version < (3, 13):
        return any(memory.read(runtime, _FLAGS))
    return memory.u64(runtime + memory.u64(runtime + _HEAD_AT)) != 0


def _object(pid: int, memory: Memory, mapped: list[Mapping]) -> tuple[elf.Elf, str] | None:
    """The object that defines Py_AddPendingCall: libpython, the program itself, or whatever it is embedded in."""
    try:
        program = os.readlink(f"/proc/{pid}/exe")
    except OSError:
        program = ""

    def likely(mapping: Mapping) -> int:
        name = os.path.basename(mapping.path)
        return 0 if name.startswith("libpython") else 1 if mapping.path == program else 2 if "python" in name else 3

    seen: set[str] = set()
    for mapping in sorted(mapped, key=lambda mapping: (likely(mapping), mapping.start)):
        if not mapping.inode or mapping.offset or mapping.path in seen or "r" not in mapping.permissions:
            continue
        seen.add(mapping.path)
        try:
            candidate = elf.Elf(memory, mapping.start)
            if candidate.symbol("Py_AddPendingCall"):
                return candidate, mapping.path
        except (elf.NotElf, OSError, KeyError, struct.error):
            continue
    return None


def _address(python: elf.Elf, name: str) -> int:
    found = python.symbol(name)
    return found[0] if found else 0


def _version(python: elf.Elf, memory: Memory, path: str) -> tuple[int, int] | None:
    """(major, minor): Py_Version says so from 3.11 on; 3.10 is the one without it that has Py_NewRef."""
    where = _address(python, "Py_Version")
    if where:
        number = memory.u32(where)
        return number >> 24, number >> 16 & 0xFF
    if _address(python, "Py_NewRef"):
        return 3, 10
    named = re.search(r"python(\d)\.(\d+)", path)
    return (int(named[1]), int(named[2])) if named and (int(named[1]), int(named[2])) < OLDEST else None


_HANDLERS = ("Py_MakePendingCalls", "_PyEval_MakePendingCalls", "_Py_HandlePending")
_LOCKERS = (
    "Py_AddPendingCall",
    "_PyEval_AddPendingCall",
    "PyThread_acquire_lock",
    "PyThread_acquire_lock_timed",
    "PyThread_release_lock",
    "PyMutex_Lock",
    "PyMutex_Unlock",
    "_PyMutex_LockTimed",
)
_SEMAPHORES = ("sem_post", "sem_wait", "sem_trywait", "sem_clockwait", "sem_timedwait")
_X86_64 = 62  # e_machine
_HEAD = 512
"""So many bytes of a function without a name are taken for it."""


def _lock_ranges(python: elf.Elf, memory: Memory, mapped: list[Mapping]) -> list[tuple[int, int]]:
    """Where the main thread must not be borrowed for Py_AddPendingCall: it may hold that queue's lock there.

    Adding to the queue takes the lock; on a thread that already holds it, it would wait for ever. It is held for a few
    instructions, inside these functions: those that add to the queue, those that empty it, and the locks' own. What empties
    it are functions without a name below the named ones (make_pending_calls and what that calls), so those that are called
    there count as well; a range too many costs another look.
    """
    found = [python.symbol(name) for name in _LOCKERS + _HANDLERS]
    for mapping in mapped:
        if mapping.offset == 0 and mapping.inode and re.search(r"/(libc|libpthread)[.-]", mapping.path):
            try:
                library = elf.Elf(memory, mapping.start)
                found += [library.symbol(name) for name in _SEMAPHORES]
            except (elf.NotElf, OSError, KeyError, struct.error):
                continue
    ranges = [(start, start + size) for start, size in filter(None, found)]
    level = [python.symbol(name) for name in _HANDLERS]
    texts = [(segment.start, segment.start + segment.file_size) for segment in python.segments if segment.executable]
    seen: set[int] = set()
    for _ in range(2):
        called = {target for entry in level if entry for target in _called(memory, *entry, python.machine, texts)} - seen
        seen |= called
        level = [(target, _HEAD) for target in called]
    return ranges + [(target, target + _HEAD) for target in seen]


def _called(memory: Memory, start: int, size: int, machine: int, texts: list[tuple[int, int]]) -> Iterator[int]:
    """Where a function's direct calls and jumps lead, in so far as that is its own object; some that are none as well."""
    try:
        body = memory.read(start, size)
    except OSError:
        return
    if machine == _X86_64:
        jumps = ((at + 5, struct.unpack_from("<i", body, at + 1)[0]) for at in range(len(body) - 4) if body[at] in (0xE8, 0xE9))
    else:  # bl and b: 26 bits, in words
        words = ((at, struct.unpack_from("<I", body, at)[0]) for at in range(0, len(body) - 3, 4))
        jumps = (
            (at, ((word & 0x3FFFFFF ^ 0x2000000) - 0x2000000) * 4) for at, word in words if word & 0x7C000000 == 0x14000000
        )
    for at, distance in jumps:
        target = start + at + distance
        if not start <= target < start + size and any(low <= target < high for low, high in texts):
            yield target
