"""Why nothing came of an injection, in sentences."""

from __future__ import annotations

from tuimon.attach import procfs
from tuimon.attach.refusal import Refused


def where_is_main(pid: int) -> str:
    """What the main thread does, as far as the kernel tells."""
    call = procfs.thread_call(pid, pid)
    if call is None:
        return "it has ended"
    if call.running:
        return "it is running native code"
    return "it waits for memory" if call.number == -1 else f"it is in system call {call.number}"


def timed_out(pid: int, state: int) -> Refused:
    """The script did not get to its end in time; `state` is the header's word. It has been cancelled."""
    if state == 0:
        return Refused(
            "main-busy",
            f"the main thread of process {pid} has not come back to Python ({where_is_main(pid)}) and no other thread can be "
            "used; cancelled: try again when it gets on",
        )
    if state == 1:
        return Refused(
            "gil-held",
            f"a thread of process {pid} holds the GIL in a long native call; cancelled: try again when it gets on",
        )
    return Refused("no-hello", f"the hook was started in process {pid} but does not answer; cancelled")


def ended(pid: int, state: int, rc: int) -> Refused:
    """The stub came to an end that is none of success."""
    if state == 4:
        return Refused(
            "no-new-thread",
            f"process {pid} could not create a thread (see `ulimit -u` and the limit on pids of its cgroup)",
        )
    if state == 5 or rc == 2:
        return Refused("no-hello", f"attaching to process {pid} was cancelled")
    return Refused("bootstrap", f"the bootstrap failed in process {pid} before it could report (rc {rc})")


def no_thread(pid: int) -> str:
    """No thread could be borrowed."""
    return (
        f"no thread of process {pid} can be stopped without disturbing it ({where_is_main(pid)}); "
        "try again, or start the job with `tuimon run`"
    )
