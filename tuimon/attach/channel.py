"""The way by which the hook reaches us: a socket in the target's own file system, for one connection.

The target may live in another mount namespace, so the socket is made through /proc/PID/root, and the target gets the path as
it sees it. On the way there no symbolic link is followed: a link would be resolved against our root, not the target's. It lies
in a folder of its own (see `places`), which belongs to the target's user with mode 0700 and has a random name; both are removed
as soon as the right peer has connected. The right peer is the one whose pid the kernel vouches for, and who knows the token.
The hook in its turn executes only what comes from one that knows the token (see `hook/boot.py`): who takes the socket's place
gains nothing.

All that a peer can have us hold or wait for is bounded: one hello of at most `LONGEST_HELLO` bytes, one deadline for all of it.
"""

from __future__ import annotations

import binascii
import contextlib
import os
import secrets
import socket
import struct
import sys
import time
from collections.abc import Callable
from functools import cache
from typing import Any

from tuimon import __version__
from tuimon.attach import procfs
from tuimon.attach.places import Place, owner_of, places, take_away, tidy
from tuimon.attach.refusal import Refused
from tuimon.hook import bundle, wire

LONGEST_HELLO = 1 << 21  # a command line may be long; the hook cuts it
LOOK_S = 0.1
ROOM = 1 << 20
LATER_S = 1.0  # the end of the hook's own wait for a hook that is just leaving, on top of the time for the rest
CREDENTIALS = struct.Struct("3i")  # struct ucred: pid, uid, gid


class Channel:
    """A socket that waits for the hook of one process. Use as a context manager: it takes everything away again."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.token = secrets.token_hex(16)
        self.name = f".tuimon-{secrets.token_hex(8)}"
        self.bound: int | None = None  # index into places, once the helper has said so
        self.places: list[Place] = []
        self.owner = owner_of(pid)
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
        try:
            self.places = places(pid, self.name)
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Channel:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Remove the socket and its folder from the file system and close everything. May be called twice."""
        found, self.places = self.places, []
        for index, place in enumerate(found):
            # without word from the helper any of them may hold it: the name is ours alone
            if self.bound in (None, index):
                take_away(place.directory, self.name, self.owner)
                if index == self.bound:
                    with contextlib.suppress(OSError):  # a directory that may be written to need not be readable
                        tidy(place.directory)
            os.close(place.directory)
        self.socket.close()

    def accept(self) -> socket.socket | None:
        """Take one waiting connection; None where the peer is not the target (whoever that was, it is let go at once)."""
        try:
            connection, _ = self.socket.accept()
        except (BlockingIOError, ConnectionAbortedError):
            return None  # it has given up in the meantime
        if peer(connection) == self.pid:
            return connection
        connection.close()
        return None


def peer(connection: socket.socket) -> int:
    """The pid at the other end of a unix socket, as the kernel knows it."""
    raw = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, CREDENTIALS.size)
    return int(CREDENTIALS.unpack(raw)[0])


# ---------------------------------------------------------------------------------------------------------- greeting


def receive_hello(
    connection: socket.socket, token: str, seconds: float, meanwhile: Callable[[], None] = lambda: None
) -> dict[str, Any]:
    """The first frame of a connection, checked. Raises Refused("no-hello", "protocol", "bootstrap" or "peer").

    `meanwhile` is called all the time; what it raises ends the wait.
    """
    deadline = time.monotonic() + seconds
    decoder = wire.Decoder(LONGEST_HELLO)
    try:
        while True:
            data = _receive(connection, deadline, meanwhile)
            if not data:
                raise Refused("no-hello", "the hook has closed the connection before it said hello")
            frames = decoder.feed(data)
            if frames:
                kind, body = frames[0]
                if kind != wire.JSON_FRAME or len(frames) > 1 or decoder.pending:
                    raise wire.WireError("what came is not a hello and nothing else")
                return _checked(wire.read_json(body), token, peer(connection))
    except TimeoutError:
        raise Refused("no-hello", f"the hook has connected but does not say hello within {seconds:g} s; try again") from None
    except (OSError, wire.WireError) as error:
        raise Refused("no-hello", f"the connection broke before the hook said hello ({error})") from None


def _checked(hello: dict[str, Any], token: str, pid: int) -> dict[str, Any]:
    if "error" in hello:
        raise Refused("bootstrap", f"the bootstrap failed in the target: {_words(hello['error'])}")
    _same_protocol(hello.get("proto"), pid)
    if not secrets.compare_digest(str(hello.get("hello")).encode(), wire.proof(token, b"hello").encode()):
        raise Refused("peer", "the process that connected does not know the secret it was given; nothing was sent to it")
    return hello


def _same_protocol(theirs: object, pid: int) -> None:
    if theirs != wire.PROTOCOL:
        version = theirs if isinstance(theirs, int) else "unknown"
        raise Refused(
            "protocol",
            f"a hook of protocol version {version} is in process {pid}, this tuimon ({__version__}) speaks {wire.PROTOCOL}: "
            "attach with the tuimon that it came from, or have the same version on both sides",
        )


def send_bundle(
    connection: socket.socket,
    sources: dict[str, str] | None,
    options: dict[str, object],
    token: str,
    seconds: float = 10.0,
    kind: object = None,
) -> None:
    """Answer the hello with the hook, and with a handle of this process. Raises Refused where the connection is gone.

    `sources` replaces the hook itself; `kind` is what the hello says of the byte code that the target's Python runs.
    """
    order = wire.json_frame({**_modules(sources, kind), "options": options, "by": ourselves()})
    announced = wire.json_frame({"proto": wire.PROTOCOL, "proof": wire.proof(token, order[wire.HEADER.size :])})
    handle = _own_handle()
    try:
        # room for all of it at once: each part that is waited for costs the hook its turn with the GIL
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, ROOM)
        connection.settimeout(seconds)
        if handle is None:
            connection.sendall(announced)
        else:
            # the hook leaves when this process ends, also where a child that it forked holds a copy of the connection
            sent = socket.send_fds(connection, [announced], [handle])
            connection.sendall(announced[sent:])
        connection.sendall(order)
    except OSError as error:
        raise Refused("no-hello", f"the connection broke while the hook was sent ({error})") from None
    finally:
        if handle is not None:
            os.close(handle)


def prepare(python: tuple[int, int]) -> None:
    """Read the hook now, while the helper is at work, for a target of that Python; it is kept."""
    if python == sys.version_info[:2]:
        bundle.compiled()
    else:
        bundle.bundle()


def _modules(sources: dict[str, str] | None, kind: object) -> dict[str, object]:
    """What is sent: compiled where the target runs the byte code of this Python, else source."""
    if sources is not None:
        return {"bundle": bundle.in_order(sources)}
    if kind == bundle.kind():
        return {"kind": kind, "code": binascii.b2a_base64(bundle.compiled(), newline=False).decode()}
    return {"bundle": bundle.bundle()}


def _own_handle() -> int | None:
    """A handle (pidfd) of this process; None where the system has none (before Linux 5.3, in some sandboxes)."""
    try:
        return os.pidfd_open(os.getpid())
    except (AttributeError, OSError):
        return None


def ourselves() -> dict[str, object]:
    """Who attaches, for the one that comes next."""
    return {
        "pid": os.getpid(),
        "namespace": _namespace(),
        "user": _user(os.geteuid()),
        "host": socket.gethostname(),
        "since": time.time(),
        "version": __version__,
    }


def _namespace() -> str | None:
    """What tells this pid namespace from others: a pid of one means nothing in another."""
    try:
        return os.readlink("/proc/self/ns/pid")
    except OSError:
        return None


@cache
def _user(uid: int) -> str:
    import pwd

    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def first_answer(
    connection: socket.socket, decoder: wire.Decoder, seconds: float, meanwhile: Callable[[], None] = lambda: None
) -> list[tuple[int, bytes]]:
    """The first frames after the bundle; raises Refused where they report an error. `meanwhile` as for `receive_hello`."""
    deadline = time.monotonic() + seconds + LATER_S
    try:
        while True:
            data = _receive(connection, deadline, meanwhile)
            if not data:
                raise Refused("hook", "the hook has closed the connection before it was in place")
            frames = decoder.feed(data)
            if frames:
                for kind, body in frames:
                    if kind == wire.JSON_FRAME:
                        _raise_if_error(wire.read_json(body), peer(connection))
                return frames
    except TimeoutError:
        raise Refused("hook", f"the hook was sent but is not in place after {seconds:g} s") from None
    except (OSError, wire.WireError) as error:
        raise Refused("hook", f"the connection broke while the hook was put in place ({error})") from None


def _receive(connection: socket.socket, deadline: float, meanwhile: Callable[[], None]) -> bytes:
    """What is there; raises TimeoutError at the deadline, however slowly the bytes come."""
    while True:
        left = deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError
        connection.settimeout(min(left, LOOK_S))
        with contextlib.suppress(TimeoutError):
            return connection.recv(65536)
        meanwhile()


def _raise_if_error(message: dict[str, Any], pid: int) -> None:
    error = message.get("error")
    if error == "already-attached":
        raise Refused("already-attached", already_attached(message.get("by"), pid))
    if error == "protocol":
        _same_protocol(message.get("proto"), pid)
    if error:
        raise Refused("hook", f"the hook could not be put in place: {_words(error)}")
    if message.get("k") == "ack" and "proto" in message:
        _same_protocol(message["proto"], pid)


def already_attached(by: object, pid: int) -> str:
    """The sentence for a second monitor: who is attached, from where and since when, as far as it has said so."""
    who = by if isinstance(by, dict) else {}
    about = f"process {who['pid']}" if isinstance(who.get("pid"), int) else ""
    if who.get("user"):
        about += f" of user {_words(who['user'])}"
    if who.get("host") and who["host"] != socket.gethostname():
        about += f" on {_words(who['host'])}"
    if isinstance(who.get("since"), (int, float)):
        with contextlib.suppress(ValueError, OverflowError, OSError):
            about += time.strftime(", since %H:%M", time.localtime(who["since"]))
    name = f"tuimon ({about.strip(' ,')})" if about else "another tuimon"
    if _has_gone(who):
        return f"{name} has just gone and its hook is still leaving process {pid}: try again in a moment"
    return f"{name} is attached to process {pid}; detach that one first (q there)"


def _has_gone(who: dict[str, Any]) -> bool:
    """Whether it is certain that the other tuimon does not run any more."""
    ours = ourselves()
    if not isinstance(who.get("pid"), int) or ours["namespace"] is None:
        return False
    if any(who.get(key) != ours[key] for key in ("host", "namespace")):
        return False
    if who.get("user") != ours["user"] and os.geteuid():
        return False  # /proc may hide the processes of others
    return procfs.has_ended(who["pid"])


def _words(text: object, limit: int = 500) -> str:
    """What a peer has sent, fit to be shown on a terminal."""
    return "".join(sign if sign.isprintable() else " " for sign in str(text)[:limit])
