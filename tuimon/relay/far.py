"""The far end: `tuimon relay`, started over there by the near end. It reads requests and writes frames, and listens nowhere.

It ends when its input ends, on SIGHUP or SIGTERM, and when nothing has come for 30 s: a cut line does not always give an end of
input. It takes every hook out before it goes; were it killed, the hooks would see their sockets close and leave by themselves.
"""

from __future__ import annotations

import getpass
import json
import os
import platform
import select
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from tuimon import __version__
from tuimon.attach.refusal import Refused
from tuimon.hook import wire
from tuimon.relay.attachment import Attachment
from tuimon.relay.outgoing import Outgoing
from tuimon.relay.protocol import BEAT_S, LOST_S, MARK_VARIABLE, RELAY, number, seconds

LEAVE_S = 0.8
"""At the end, so long the hooks have to say goodbye."""
FLUSH_S = 0.1
LONGEST_LEAVE_S = 60.0
LONGEST_FAULT = 200
"""Characters that are said of a request that makes no sense."""


def main() -> int:
    """Serve the near end on the standard streams; gives an exit status."""
    mark = os.environ.pop(MARK_VARIABLE, "")
    if mark == "probe":
        sys.stdout.write(json.dumps(facts()) + "\n")
        return 0
    if not mark:
        sys.stderr.write("tuimon: `relay` is what `tuimon attach ssh://..` runs over there; it is of no use by hand\n")
        return 2
    reading, writing = _take_streams()
    os.write(writing, f"\n{mark} relay\n".encode())
    return Far(reading, writing).serve()


def facts() -> dict[str, Any]:
    """What this end is."""
    return {"tuimon": __version__, "protocol": RELAY, "python": platform.python_version()}


def _take_streams() -> tuple[int, int]:
    """Descriptors of our own for input and output. Whatever else reads finds nothing, whatever else prints goes to stderr."""
    reading, writing = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    return reading, writing


class Far:
    """The loop over what the near end says."""

    def __init__(self, reading: int, writing: int) -> None:
        self._reading = reading
        self._out = Outgoing(writing)
        self._decoder = wire.Decoder()
        self._attachments: dict[int, Attachment] = {}
        self._wake, self._woken = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)

    def serve(self) -> int:
        """Until it is over. Always takes out what is in."""
        for one in (signal.SIGHUP, signal.SIGTERM):
            signal.signal(one, lambda *_: os.write(self._woken, b"x"))
        self._out.control("hello", **facts(), **_surroundings(), t=time.monotonic_ns(), wall=time.time())
        try:
            self._serve()
        except wire.WireError as error:
            sys.stderr.write(f"tuimon relay: what came is not in the protocol: {error}\n")
            return 1
        finally:
            self._leave()
        return 0

    def _serve(self) -> None:
        poll = select.poll()
        poll.register(self._reading, select.POLLIN)
        poll.register(self._wake, select.POLLIN)
        heard = beaten = time.monotonic()
        while not self._out.over.is_set():
            ready = dict(poll.poll(1000))
            now = time.monotonic()
            if self._wake in ready:
                return
            if self._reading in ready:
                data = os.read(self._reading, 1 << 16)
                if not data:
                    return
                heard = now
                for kind, body in self._decoder.feed(data):
                    if kind == wire.JSON_FRAME:
                        self._hear(wire.read_json(body))
            elif now - heard > LOST_S:
                return
            if now - beaten > BEAT_S:
                beaten = now
                self._out.control("beat", t=time.monotonic_ns())
            self._attachments = {n: one for n, one in self._attachments.items() if not one.done.is_set()}

    def _leave(self) -> None:
        for one in self._attachments.values():
            one.leave(LEAVE_S)
        deadline = time.monotonic() + LEAVE_S
        for one in self._attachments.values():
            one.done.wait(max(0.0, deadline - time.monotonic()))
        self._out.flush(FLUSH_S)

    # ------------------------------------------------------------------------------------------------------ requests

    def _hear(self, message: dict[str, Any]) -> None:
        """Serve one request. Raises WireError for one that makes no sense."""
        try:
            self._request(message)
        except (ValueError, TypeError, LookupError) as error:
            raise wire.WireError(str(error)[:LONGEST_FAULT]) from None

    def _request(self, message: dict[str, Any]) -> None:
        """The same. What is not known is passed over: a newer near end may say more."""
        if "beat" in message:
            self._out.got(number(message.get("got")))
            self._out.control("beat", echo=message["beat"], t=time.monotonic_ns())
        elif "attach" in message:
            session = number(message["attach"])
            self._attachments[session] = Attachment(session, self._out, message)
        elif "list" in message:
            self._answer(number(message["list"]), lambda: _list(bool(message.get("everything"))))
        elif "choose" in message:
            pids = [number(pid) for pid in message.get("pids") or ()]
            self._answer(number(message["choose"]), lambda: _choose(pids, bool(message.get("everybody"))))
        else:
            self._about_a_session(message)

    def _about_a_session(self, message: dict[str, Any]) -> None:
        for word in ("start", "hook", "whole", "cancel", "detach"):
            attachment = self._attachments.get(number(message.get(word, 0)))
            if attachment is None:
                continue
            if word == "start":
                attachment.begin()
            elif word == "hook":
                attachment.tell_hook(dict(message["message"]))
            elif word == "whole":
                attachment.pass_on(whole=bool(message.get("on")))
            else:
                attachment.leave(min(seconds(message.get("seconds") or 1.0), LONGEST_LEAVE_S))

    def _answer(self, n: int, find: Callable[[], list[dict[str, Any]]]) -> None:
        """Answer from a thread: to look at every process takes a while, and the beats must go on."""

        def work() -> None:
            try:
                self._out.control("answer", n=n, targets=find())
            except Refused as refusal:
                self._out.control("answer", n=n, refused=[refusal.code, refusal.sentence])
            except Exception as error:  # noqa: BLE001 - whatever it is, the near end must hear of it
                self._out.control("answer", n=n, refused=["relay", f"tuimon failed there: {error!r}"])

        threading.Thread(target=work, name="tuimon look", daemon=True).start()


def _surroundings() -> dict[str, Any]:
    try:
        user = getpass.getuser()
    except (KeyError, OSError, ImportError):  # a container's user may have no name
        user = str(os.getuid())
    return {"host": socket.gethostname(), "user": user, "os": sys.platform, "machine": platform.machine()}


def _list(everything: bool) -> list[dict[str, Any]]:
    from tuimon.attach.find.process import find_targets

    return [asdict(target) for target in find_targets(everything=everything)]


def _choose(pids: list[int], everybody: bool) -> list[dict[str, Any]]:
    from tuimon.attach.find.choice import choose

    return [asdict(target) for target in choose(pids, everybody)]
