"""The way by which the hook reaches us: a socket in the target's own file system, for one connection.

The target may live in another mount namespace, so the socket is made through /proc/PID/root, and the target gets the path as
it sees it. On the way there no symbolic link is followed: a link would be resolved against our root, not the target's. The
name is random and new, the socket belongs to the target's user with mode 0600, it is removed as soon as the right peer has
connected. The right peer is the one whose pid the kernel vouches for, and who knows the token.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import socket
import struct
from pathlib import PurePosixPath

from tuimon.attach import procfs
from tuimon.attach.refusal import Refused
from tuimon.hook import wire

LONGEST_PATH = 107  # sun_path, less its end
CREDENTIALS = struct.Struct("3i")  # struct ucred: pid, uid, gid


class Channel:
    """A socket that waits for the hook of one process. Use as a context manager: it takes everything away again."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.token = secrets.token_hex(16)
        self.name = f".tuimon-{secrets.token_hex(8)}"
        self.bound: int | None = None  # index into places, once the helper has said so
        self.places: list[tuple[int, str]] = []
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
        try:
            self.places = _places(pid, self.name)
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Channel:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Remove the socket from the file system and close everything. May be called twice."""
        places, self.places = self.places, []
        for index, (directory, _) in enumerate(places):
            # without word from the helper any of them may hold it: the name is ours alone
            if self.bound in (None, index):
                with contextlib.suppress(OSError):
                    os.unlink(self.name, dir_fd=directory)
            os.close(directory)
        self.socket.close()

    def accept(self) -> socket.socket | None:
        """Take one waiting connection; None where the peer is not the target."""
        connection, _ = self.socket.accept()
        if peer(connection) == self.pid:
            return connection
        connection.close()
        return None


def peer(connection: socket.socket) -> int:
    """The pid at the other end of a unix socket, as the kernel knows it."""
    raw = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, CREDENTIALS.size)
    return int(CREDENTIALS.unpack(raw)[0])


def _places(pid: int, name: str) -> list[tuple[int, str]]:
    """The directories in which the socket may be made: (open file, path as the target sees it)."""
    wanted = [procfs.environment(pid).get("TMPDIR", ""), "/tmp", "/dev/shm", "/var/tmp"]
    found: list[tuple[int, str]] = []
    for path in dict.fromkeys(wanted):
        if path.startswith("/") and len(os.fsencode(f"{path}/{name}")) <= LONGEST_PATH and ".." not in path.split("/"):
            with contextlib.suppress(OSError):
                found.append((_open_inside(pid, path), path))
    return found


def _open_inside(pid: int, path: str) -> int:
    """Open a directory of the target without following a link. Raises OSError."""
    at = os.open(f"/proc/{pid}/root", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    for part in PurePosixPath(path).parts[1:]:
        try:
            inner = os.open(part, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=at)
        finally:
            os.close(at)
        at = inner
    return at


# ---------------------------------------------------------------------------------------------------------- greeting


def receive_hello(connection: socket.socket, token: str, seconds: float) -> dict[str, object]:
    """The first frame of a connection, checked. Raises Refused("no-hello" or "peer")."""
    connection.settimeout(seconds)
    decoder = wire.Decoder()
    try:
        while True:
            data = connection.recv(65536)
            if not data:
                raise Refused("no-hello", "the hook has closed the connection before it said hello")
            for _, body in decoder.feed(data):
                hello = wire.read_json(body)
                if "error" in hello:
                    raise Refused("bootstrap", f"the bootstrap failed in the target: {hello['error']}")
                if not secrets.compare_digest(str(hello.get("hello")), token):
                    raise Refused("peer", "the process that connected does not know the secret it was given")
                return hello
    except TimeoutError:
        raise Refused("no-hello", "the hook has connected but does not say hello") from None
    except (OSError, wire.WireError) as error:
        raise Refused("no-hello", f"the connection broke before the hook said hello ({error})") from None


def send_bundle(connection: socket.socket, sources: dict[str, str], digest: str, options: dict[str, object]) -> None:
    """Answer the hello with the hook. Raises Refused where the connection is gone."""
    try:
        connection.sendall(wire.json_frame({"bundle": sources, "sha256": digest, "options": options}))
    except OSError as error:
        raise Refused("no-hello", f"the connection broke while the hook was sent ({error})") from None


def first_answer(connection: socket.socket, decoder: wire.Decoder, seconds: float) -> list[tuple[int, bytes]]:
    """The first frames after the bundle; raises Refused where they report an error."""
    connection.settimeout(seconds)
    try:
        while True:
            data = connection.recv(65536)
            if not data:
                raise Refused("hook", "the hook has closed the connection before it was in place")
            frames = decoder.feed(data)
            if frames:
                for kind, body in frames:
                    if kind == wire.JSON_FRAME:
                        _raise_if_error(wire.read_json(body))
                return frames
    except TimeoutError:
        raise Refused("hook", f"the hook was sent but is not in place after {seconds:g} s") from None
    except (OSError, wire.WireError) as error:
        raise Refused("hook", f"the connection broke while the hook was put in place ({error})") from None


def _raise_if_error(message: dict[str, object]) -> None:
    error = message.get("error")
    if error == "already-attached":
        raise Refused("already-attached", "another tuimon is attached to this process; detach that one first (q)")
    if error:
        raise Refused("hook", f"the hook could not be put in place: {error}")
