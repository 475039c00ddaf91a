"""Attaching to a process that was started without tuimon.

`attach` is here, `launch` is in `launch`, the `Session` that both give is in `connection`; all three can be had from here.
"""

from __future__ import annotations

import select
import socket
import time
from collections.abc import Callable

from tuimon.attach import channel, preflight
from tuimon.attach.channel import Channel
from tuimon.attach.connection import Report, Session
from tuimon.attach.launch import launch
from tuimon.attach.preflight import Target
from tuimon.attach.refusal import Refused
from tuimon.attach.tracer import Tracer
from tuimon.hook import wire
from tuimon.hook.bundle import bundle, digest

__all__ = ["Refused", "Report", "Session", "attach", "launch"]

Progress = Callable[[str], None]
CONNECT_S = 3.0
"""Once the script has run, the hook's thread needs only to connect."""
HELPER_S = 15.0
"""What the helper may need beyond the time that the script may take: to start, to stop threads, to see them come back."""


def attach(
    pid: int,
    options: dict[str, object],
    timeout: float = 5.0,
    progress: Progress | None = None,
    sources: dict[str, str] | None = None,
) -> Session:
    """Attach to a running process; gives the session once the hook is in place.

    `timeout` in seconds is the time that the target has to begin: its main thread has to come back to Python in it, or some
    thread has to let go of the GIL. `sources` replaces the hook itself (module name -> source). Raises Refused; the target
    then is as it was.
    """
    say = progress or _silent
    target = preflight.look(pid)
    try:
        with Channel(pid) as way:
            say(f"attaching to process {pid}, Python {target.python[0]}.{target.python[1]}")
            tracer = Tracer(target, way, timeout)
            try:
                connection = _wait(tracer, way, target, timeout)
            except BaseException:
                tracer.stop()
                raise
            tracer.finish_in_background()
            return _greet(connection, tracer, way, target, timeout, say, sources or bundle(), options)
    finally:
        target.close()


def _silent(_sentence: str) -> None:
    pass


def _wait(tracer: Tracer, way: Channel, target: Target, seconds: float) -> socket.socket:
    """The target's connection. Raises Refused with the helper's reason, or with ours."""
    deadline = time.monotonic() + seconds + HELPER_S
    while True:
        watched: list[int] = [way.socket.fileno()] if way.bound is not None else []
        if not tracer.ended:
            watched.append(tracer.fd)
        ready, _, _ = select.select(watched, [], [], max(0.0, deadline - time.monotonic()))
        if way.bound is not None and way.socket.fileno() in ready:
            connection = way.accept()
            if connection is not None:
                return connection
        if tracer.fd in ready:
            tracer.hear()
            if tracer.ended:
                if tracer.refused is not None:
                    raise tracer.refused
                if not tracer.report.mechanism:
                    raise Refused(
                        "helper", f"the process that attaches to {target.pid} has died; the target is unharmed: try again"
                    )
                deadline = min(deadline, time.monotonic() + CONNECT_S)
        if not ready or time.monotonic() > deadline:
            if tracer.refused is not None:
                raise tracer.refused
            raise Refused("no-hello", f"the hook was started in process {target.pid} but has not connected; try again")


def _greet(
    connection: socket.socket,
    tracer: Tracer,
    way: Channel,
    target: Target,
    seconds: float,
    say: Progress,
    sources: dict[str, str],
    options: dict[str, object],
) -> Session:
    """Hello, bundle, first answer; the connection is closed where that fails."""
    try:
        hello = channel.receive_hello(connection, way.token, CONNECT_S)
        if hello.get("pid") != target.pid_inside:
            raise Refused("peer", f"the hook says that it is process {hello.get('pid')}, not {target.pid_inside}")
        say("the process has answered; putting the hook in")
        channel.send_bundle(connection, sources, digest(sources), options)
        decoder = wire.Decoder()
        early = channel.first_answer(connection, decoder, max(seconds, CONNECT_S))
    except BaseException:
        connection.close()
        tracer.settled.wait(HELPER_S)
        raise
    return Session(
        connection, decoder, early, pid=target.pid, hello=hello, how="injected", report=tracer.report, settled=tracer.settled
    )
