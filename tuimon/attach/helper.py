"""The short-lived process that does all the tracing: `python -m tuimon.attach.helper`, JSON in, lines of JSON out.

A process of its own because ptrace belongs to one thread, because its end detaches from everything whatever happens, and
because it can block every signal. It also makes the socket in the target's file system as the target's own user, which a
process with threads could not do. Nothing of tuimon's own state is in it; it reads one request from standard input:

    pid, started      the target and its start time
    seconds           how long the script may take to begin
    boot, token       the bootstrap's source and the secret it is to say hello with
    socket            the number of the inherited socket, not bound yet
    places            [[number of an inherited directory, the directory's path as the target sees it], ..]
    name              the name for the socket in one of them
    uid, gid          the target's user and group
    inject            false: only make the socket

and answers {"bound": index into places, "path": ..}, {"begun": mechanism}, then {"done": {..}} or
{"refused": [code, sentence]}.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import signal
import socket
import sys
from collections.abc import Callable
from typing import Any

from tuimon.attach import delivery, injector
from tuimon.attach.refusal import Refused

Request = dict[str, Any]


def main() -> int:
    """Serve the one request on standard input."""
    signal.pthread_sigmask(signal.SIG_BLOCK, set(signal.Signals) - {signal.SIGKILL, signal.SIGSTOP})
    gc.disable()  # no collection while a thread is stopped
    request = json.loads(sys.stdin.buffer.read())

    def answer(message: dict[str, Any]) -> None:
        with contextlib.suppress(OSError):  # tuimon may be gone: finish and clean up all the same
            os.write(1, (json.dumps(message) + "\n").encode())

    try:
        serve(request, answer)
    except Refused as refusal:
        answer({"refused": [refusal.code, refusal.sentence]})
        return 3
    return 0


def serve(request: Request, answer: Callable[[dict[str, Any]], None]) -> None:
    """Do what the request says. Raises Refused."""
    path = bind(request, answer)
    if request["inject"]:
        _be_prompt()
        inject(request, path, answer)


def _be_prompt() -> None:
    """Not to lose the processor while a thread stands still for us, where that is permitted (root): p99 of the pause is
    0.2 ms instead of 5 ms on a machine with nothing to spare. This process works for some 10 ms and sleeps in between."""
    with contextlib.suppress(OSError):
        os.sched_setscheduler(0, os.SCHED_FIFO | os.SCHED_RESET_ON_FORK, os.sched_param(1))


def bind(request: Request, answer: Callable[[dict[str, Any]], None]) -> str:
    """Bind the inherited socket in the first directory that takes it; gives the path as the target sees it."""
    here = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    os.umask(0o177)  # the socket is born with mode 0600
    own = os.geteuid(), os.getegid()
    as_target = own[0] == 0 and (request["uid"], request["gid"]) != own
    if as_target:
        os.setgroups([])
        os.setegid(request["gid"])
        os.seteuid(request["uid"])
    try:
        index = _bind_somewhere(request)
    finally:
        if as_target:
            os.seteuid(own[0])
            os.setegid(own[1])
        os.fchdir(here)
        os.close(here)
    path = f"{request['places'][index][1].rstrip('/')}/{request['name']}"
    answer({"bound": index, "path": path})
    return path


def _bind_somewhere(request: Request) -> int:
    listening = socket.socket(fileno=request["socket"])
    try:
        for index, (number, _) in enumerate(request["places"]):
            try:
                os.fchdir(number)
                # relative to the directory that was opened: nothing on the way can be swapped, and the name must be new
                listening.bind(request["name"])
            except OSError:
                continue
            listening.listen(4)
            return index
    finally:
        listening.detach()
    tried = ", ".join(path for _, path in request["places"]) or "none"
    raise Refused(
        "no-socket-dir",
        f"no directory of process {request['pid']} can hold the socket (tried: {tried}); start the job with TMPDIR set to one "
        "that can be written, or with `tuimon run`",
    )


def inject(request: Request, path: str, answer: Callable[[dict[str, Any]], None]) -> None:
    """Run the bootstrap in the target. Raises Refused."""
    script = delivery.script(request["boot"], path, request["token"])
    outcome = injector.inject(
        request["pid"], request["started"], script, request["seconds"], lambda mechanism: answer({"begun": mechanism})
    )
    answer(
        {
            "done": {
                "mechanism": outcome.mechanism,
                "kicks": outcome.kicks,
                "stops": outcome.stops,
                "left": outcome.left,
            }
        }
    )


if __name__ == "__main__":
    sys.exit(main())
