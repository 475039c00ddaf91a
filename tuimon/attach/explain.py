"""Why nothing came of an injection, or has not yet, in sentences."""

from __future__ import annotations

import errno

from tuimon.attach import calls, procfs
from tuimon.attach.refusal import Refused


def where_is_main(pid: int) -> str:
    """What the main thread does, as far as the kernel tells: for "the main thread .."."""
    call = procfs.thread_call(pid, pid)
    if call is None:
        return "has ended"
    state = _state(pid)
    if state == "D":
        return f"is in uninterruptible sleep{_inside(call.number)}: a disk, a network file system or a driver"
    if state in calls.HALTED:
        return f"{calls.HALTED[state]}{_inside(call.number)}"
    if call.running:
        return "runs native code"
    if call.number == -1 or call.number is None:
        return "waits for memory"
    named = calls.name(call.number)
    if named in calls.SLEEPS:
        return f"is in a sleep ({named})"
    if named in calls.CHILDREN:
        return f"waits for a child process ({named})"
    if named in calls.LOCKS:
        return f"waits for a lock or for another thread ({named})"
    if named == calls.RESTARTED:
        return f"is in {calls.INTERRUPTED}"
    return f"waits in {named}"


def _inside(number: int | None) -> str:
    return "" if number is None or number < 0 else f" in {calls.name(number)}"


def _state(pid: int) -> str:
    try:
        return procfs.stat_fields(pid)[0]
    except (OSError, IndexError):
        return "?"


def waiting(pid: int, state: int) -> str:
    """What a target does that has not begun; `state` is the header's word (0: not claimed, 1: our thread waits for the GIL).

    2: the hook has begun, and owes an answer.
    """
    where = where_is_main(pid)
    if state == 2:
        return f"the hook has been started in process {pid} but has not answered yet; the main thread {where}"
    if state == 1:
        if where == "runs native code":
            return f"the main thread of process {pid} runs native code that holds the GIL"
        return f"native code in process {pid} holds the GIL; the main thread {where}"
    return f"the main thread of process {pid} {where}"


def timed_out(pid: int, state: int) -> Refused:
    """The script did not get to its end in time; `state` is the header's word. It has been cancelled."""
    if state == 0:
        return Refused(
            "main-busy",
            f"the main thread of process {pid} has not come back to Python (it {where_is_main(pid)}) and no other thread can "
            "be used; cancelled: try again when it gets on",
        )
    if state == 1:
        return Refused(
            "gil-held",
            f"a thread of process {pid} holds the GIL in a long native call (the main thread {where_is_main(pid)}); cancelled: "
            "try again when it gets on",
        )
    return Refused("no-hello", f"the hook was started in process {pid} but does not answer; cancelled: try again")


def cancelled(pid: int) -> Refused:
    """The user did not want to wait any longer. What has been put into the process by then, if anything, is still in it."""
    return Refused(
        "cancelled",
        f"attaching to process {pid} was cancelled; nothing of it will run, and what is queued is taken away as soon as the "
        "process gets on",
    )


def ended(pid: int, state: int, rc: int) -> Refused:
    """The stub came to an end that is none of success."""
    if state == 4:
        return Refused(
            "no-new-thread",
            f"process {pid} could not create a thread (see `ulimit -u` and the limit on pids of its cgroup)",
        )
    if state == 5 or rc == 2:
        return Refused("cancelled", f"attaching to process {pid} was cancelled; the process is as it was")
    return Refused("bootstrap", f"the bootstrap failed in process {pid} before it could report (rc {rc})")


def no_thread(pid: int, unusable: str = "") -> Refused:
    """No thread could be borrowed; nothing has been done. `unusable`: what a thread has that cannot be kept, if that is why."""
    if unusable:
        return Refused(
            "unusable", f"no thread of process {pid} can be borrowed: {unusable}; try again, or start the job with `tuimon run`"
        )
    if _state(pid) == "D":
        return Refused(
            "uninterruptible",
            f"the main thread of process {pid} {where_is_main(pid)}, and no other thread can be used; "
            "try again when that has ended",
        )
    return Refused(
        "no-thread",
        f"no thread of process {pid} can be stopped without disturbing it (the main thread {where_is_main(pid)}); "
        "try again, or start the job with `tuimon run`",
    )


def dead(pid: int) -> Refused:
    """The memory that was worked on is nobody's any more."""
    if procfs.has_ended(pid):
        return Refused("dead", f"process {pid} has just ended")
    return Refused("dead", f"process {pid} has just executed another program; try again")


def starting(pid: int) -> Refused:
    """Its Python has not come up in all the time there was; that it has gone down for good looks the same."""
    return Refused("starting", f"the Python in process {pid} has not started up yet, or has ended; try again in a moment")


def failed(pid: int, error: OSError) -> Refused:
    """A call of ours failed, in tuimon itself or on what /proc says of the target."""
    if procfs.has_ended(pid):
        return Refused("dead", f"process {pid} has just ended")
    if error.errno in (errno.EMFILE, errno.ENFILE):
        return Refused("files", "tuimon may not open more files; raise the limit (`ulimit -n`) and try again")
    return Refused("helper", f"attaching to process {pid} failed ({error}); try again")


def denied(pid: int, error: OSError) -> Refused:
    """The kernel did not let us do what it had seemed to allow."""
    return Refused("denied", f"the kernel refused to trace process {pid}: {error.strerror or error}; use `tuimon run`")


def may_not_write(pid: int, error: OSError) -> Refused:
    """Tracing is allowed, writing into memory is not."""
    return Refused(
        "may-not-write",
        f"the kernel allows to trace process {pid} but not to write into its memory ({error.strerror or error}; see "
        "proc_mem.force_override and the PROC_MEM_* settings); use `tuimon run`",
    )
