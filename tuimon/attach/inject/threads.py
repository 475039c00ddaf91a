"""Which thread may be borrowed, and for what.

A trampoline that makes system calls needs nothing: it may be put on any thread, at any point, except where the stop itself
would be noticed (a blocked call that the kernel does not make again). Starting a thread calls malloc and pthread_create, so
it needs a thread that holds none of their locks: one that has slept in one and the same wait for a while. A thread that
waits inside fork() for a lock of malloc is in a futex too, and holds others; it does not stay there for 50 ms.
"""

from __future__ import annotations

import time
from typing import NamedTuple

from tuimon.attach import procfs
from tuimon.attach.machine import code
from tuimon.attach.procfs import ThreadCall

ASLEEP_S = 0.05
"""So long in one and the same call, without waking, means asleep."""


class Sleeper(NamedTuple):
    """A thread in a wait, and how often it had gone to sleep by then."""

    call: ThreadCall
    sleeps: int


def _sleeper(pid: int, tid: int) -> Sleeper | None:
    before = procfs.sleeps(pid, tid)
    call = procfs.thread_call(pid, tid)
    if before is None or call is None or not code.can_be_made_again(call.number, call.arguments):
        return None
    return Sleeper(call, before)


def asleep(pid: int, seconds: float = ASLEEP_S) -> list[ThreadCall]:
    """The threads that were in one and the same wait for so long, best first; takes that long.

    Futexes come first (idle pools), the main thread comes last of its kind.
    """
    first = {tid: _sleeper(pid, tid) for tid in procfs.thread_ids(pid)}
    time.sleep(seconds)
    return _still(pid, first)


def asleep_with_main(pid: int, seconds: float = ASLEEP_S) -> list[ThreadCall]:
    """The same list where the main thread is on it, else nothing: and that as soon as the main thread is seen to get on."""
    first = {tid: _sleeper(pid, tid) for tid in procfs.thread_ids(pid)}
    deadline = time.monotonic() + seconds
    while first.get(pid) is not None and _sleeper(pid, pid) == first[pid]:
        if time.monotonic() > deadline:
            return _still(pid, first)
        time.sleep(0.002)
    return []


def _still(pid: int, first: dict[int, Sleeper | None]) -> list[ThreadCall]:
    still = [seen.call for tid, seen in first.items() if seen is not None and _sleeper(pid, tid) == seen]
    return sorted(still, key=lambda call: (call.number != code.FUTEX, call.tid == pid))


def carriers(pid: int) -> list[int]:
    """Threads on which system calls may be made, best first: one that waits is not kept from any work by it."""
    found = []
    for tid in procfs.thread_ids(pid):
        call = procfs.thread_call(pid, tid)
        if call is not None and (call.running or code.can_be_made_again(call.number, call.arguments)):
            found.append((call.running, call.number != code.FUTEX, tid == pid, tid))
    return [tid for *_, tid in sorted(found)]
