"""Attaching to a process that was started without tuimon.

`attach` is here, `launch` is in `launch`, the `Session` that both give is in `connection`; all three can be had from here.
"""

from __future__ import annotations

import contextlib
import math
import os
import select
import socket
import threading
import time
from collections.abc import Callable, Iterator

from tuimon.attach import channel, explain, preflight, procfs
from tuimon.attach.channel import Channel
from tuimon.attach.connection import Report, Session
from tuimon.attach.inject.waiting import Wait, Waiting, is_gone, program_of
from tuimon.attach.launch import launch
from tuimon.attach.preflight import Target
from tuimon.attach.refusal import Refused
from tuimon.attach.tracer import Tracer, a_helper
from tuimon.hook import wire

__all__ = ["Refused", "Report", "Session", "Waiting", "attach", "launch"]

Progress = Callable[[str], None]
CONNECT_S = 3.0
"""Once the script has run, the hook's thread needs only to connect."""
HELPER_S = 15.0
"""What the helper may need beyond the target's time: to start, to stop threads, to see them come back."""
LOOK_S = 0.05
CANCEL_S = 0.8
"""So long the helper is given to say itself that it has cancelled."""


def attach(
    pid: int,
    options: dict[str, object],
    *,
    patience: float | None = 30.0,
    progress: Progress | None = None,
    waiting: Callable[[Waiting], None] | None = None,
    cancelled: threading.Event | None = None,
    sources: dict[str, str] | None = None,
    form: str | None = None,
) -> Session:
    """Attach to a running process; gives the session once the hook is in place.

    `patience` in seconds is the time that the target has to begin (None: for ever): its main thread has to come back to Python
    in it, or some thread has to let go of the GIL. From 1 s on `waiting` is told about twice a second what the main thread does
    instead. Once `cancelled` is set, attach ends with Refused("cancelled") within a second. `sources` replaces the hook itself
    (module name -> source). `form` allows only one way in: "pending", "thread" or "remote_exec". Both callbacks are called on
    the calling thread.

    Raises Refused. What was queued in the target does nothing then, and is taken away in the background: by a process that
    outlives this one, if need be.
    """
    say = progress or _silent
    target = helper = program = None
    try:
        helper = a_helper()  # before the look: it takes longer to start
        program = program_of(pid)
        target = preflight.look(pid)
        with Channel(pid) as way:
            say(f"attaching to process {pid}, Python {target.python[0]}.{target.python[1]}")
            tracer = Tracer(helper, target, way, patience, form)
            helper = None
            if sources is None:
                channel.prepare(target.python)
            given_up = cancelled or threading.Event()
            try:
                connection = _wait(tracer, way, target, program, patience, waiting or _unheard, given_up)
            except BaseException:
                tracer.leave()
                raise
            tracer.connected()
            tracer.finish_in_background()
            with _cut_when(cancelled, connection):
                wait = _for_answers(target, program, patience, given_up, waiting or _unheard)
                return _greet(connection, tracer, way, target, wait, say, sources, options)
    except Refused:
        if cancelled is not None and cancelled.is_set():
            raise explain.cancelled(pid) from None
        if program is not None and is_gone(pid, program):  # whatever else seemed to be the matter
            raise explain.dead(pid) from None
        raise
    except OSError as error:
        if program is not None and is_gone(pid, program):
            raise explain.dead(pid) from None
        raise explain.failed(pid, error) from None
    finally:
        if helper is not None:
            helper.dismiss()
        if target is not None:
            target.close()


def _silent(_sentence: str) -> None:
    pass


def _unheard(_waiting: Waiting) -> None:
    pass


def _wait(
    tracer: Tracer,
    way: Channel,
    target: Target,
    program: bytes | None,
    patience: float | None,
    waiting: Callable[[Waiting], None],
    cancelled: threading.Event,
) -> socket.socket:
    """The target's connection. Raises Refused with the helper's reason, or with ours."""
    deadline = math.inf if patience is None else time.monotonic() + patience + HELPER_S
    asked = math.inf
    started: Wait | None = None
    while True:
        watched: list[int] = [way.socket.fileno()] if way.bound is not None else []
        if not tracer.ended:
            watched.append(tracer.fd)
        ready, _, _ = select.select(watched, [], [], LOOK_S)
        if cancelled.is_set():
            if asked == math.inf:
                asked = time.monotonic()
                tracer.cancel()
            elif time.monotonic() > asked + CANCEL_S:
                raise tracer.refused or explain.cancelled(target.pid)
        elif way.bound is not None and way.socket.fileno() in ready:
            connection = way.accept()
            if connection is not None:
                tracer.hear_how(CONNECT_S)
                return connection
        if tracer.fd in ready:
            tracer.hear()
            if tracer.refused is not None:
                raise tracer.refused
            if tracer.waiting is not None:
                waiting(tracer.waiting)
                tracer.waiting = None
            if tracer.ended:
                if not tracer.report.mechanism:
                    raise tracer.death(target.pid)
                started = started or _for_answers(target, program, patience, cancelled, waiting)
        if started is not None:
            started.for_answer()
        elif time.monotonic() > deadline:
            raise Refused("no-hello", f"the hook was started in process {target.pid} but has not connected; try again")


def _greet(
    connection: socket.socket,
    tracer: Tracer,
    way: Channel,
    target: Target,
    wait: Wait,
    say: Progress,
    sources: dict[str, str] | None,
    options: dict[str, object],
) -> Session:
    """Hello, bundle, first answer; the connection is closed where that fails."""
    try:
        hello = channel.receive_hello(connection, way.token, math.inf, wait.for_answer)
        if hello.get("pid") != target.pid_inside:
            raise Refused("peer", f"the hook says that it is process {hello.get('pid')}, not {target.pid_inside}")
        _like_main(target.pid, hello.get("tid"))
        say("the process has answered; putting the hook in")
        channel.send_bundle(connection, sources, options, way.token, kind=hello.get("kind"))
        decoder = wire.Decoder()
        early = channel.first_answer(connection, decoder, math.inf, wait.for_answer)
    except BaseException:
        connection.close()
        raise
    how = "remote_exec" if tracer.report.mechanism == "remote_exec" else "injected"
    return Session(
        connection, decoder, early, pid=target.pid, hello=hello, how=how, report=tracer.report, settled=tracer.settled
    )


def _like_main(pid: int, inner: object) -> None:
    """Have the hook's thread (as the target numbers it) scheduled as the main one, whichever thread it was started from.

    From here: in the target it would be more system calls that a filter may forbid. Where it is not allowed, it stays as it is.
    """
    with contextlib.suppress(OSError):
        tid = procfs.tid_outside(pid, inner) if isinstance(inner, int) else None
        if tid is not None and procfs.scheduling(tid) != (main := procfs.scheduling(pid)):
            processors, policy, nice = main
            with contextlib.suppress(OSError):
                os.sched_setaffinity(tid, processors)
            with contextlib.suppress(OSError):
                os.sched_setscheduler(tid, policy, os.sched_getparam(pid))
            os.setpriority(os.PRIO_PROCESS, tid, nice)


def _for_answers(
    target: Target,
    program: bytes | None,
    patience: float | None,
    cancelled: threading.Event,
    waiting: Callable[[Waiting], None],
) -> Wait:
    """The patience with what the hook itself has to say. It needs the GIL for it, several times."""
    seconds = None if patience is None else max(patience, CONNECT_S)
    return Wait(target.pid, seconds, cancelled.is_set, waiting, program)


@contextlib.contextmanager
def _cut_when(cancelled: threading.Event | None, connection: socket.socket) -> Iterator[None]:
    """Shut the connection down when `cancelled` is set: whoever reads from it then gets to the end of it."""
    done = threading.Event()

    def watch() -> None:
        while cancelled is not None and not done.wait(LOOK_S):
            if cancelled.is_set():
                with contextlib.suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)
                return

    if cancelled is not None:
        threading.Thread(target=watch, name="tuimon cancel", daemon=True).start()
    try:
        yield
    finally:
        done.set()
