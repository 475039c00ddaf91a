# ruff: noqa: BLE001, SIM105, UP031, F821 - here nothing may escape, and nothing be imported that need not be
"""The bootstrap's line to tuimon: connecting, frames in and out within their bounds, and leaving only what is ours closed.

One text with `boot.py` when it runs (see there): names of either are those of the other.
"""


def connect(path):
    """The socket, or None when tuimon does not listen there any more."""
    import os
    import socket

    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        connection.settimeout(GREETING_S)
        insist(connection, path)
        if strange(connection):
            raise OSError
    except OSError:
        connection.close()
        return None
    try:
        os.unlink(path)  # tuimon does so too, if it lives to
    except OSError:
        pass
    connection = out_of_the_way(connection)
    global who
    who = identity(connection)
    return connection


def insist(connection, path):
    """Connect, also where somebody else fills the queue of those who want to: the kernel says "again" then, at once."""
    import time

    for _ in range(200):
        try:
            connection.connect(path)
            return
        except BlockingIOError:
            time.sleep(0.02)
    raise OSError


def strange(connection):
    """Whether it is certain that neither this process's user nor root listens there.

    tuimon makes its socket as the job's user. An id that has no name in this user namespace is shown as 65534: that says
    nothing, and the proof decides.
    """
    import os
    import socket
    import struct

    if not hasattr(socket, "SO_PEERCRED"):
        return False
    uid = struct.unpack("iII", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[1]
    return uid not in (os.geteuid(), 0, 65534)


HIGH = 512
who = None


def out_of_the_way(connection):
    """The same connection under a high number: the low ones are what a job that closes everything opens its files under."""
    import socket

    seconds = connection.gettimeout()
    number = higher(connection.fileno())
    if number == connection.fileno():
        return connection
    connection.detach()
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM, 0, number)
    connection.settimeout(seconds)
    return connection


def higher(number):
    """The descriptor moved to a high number; as it was where the job may not have so many."""
    import fcntl
    import os

    try:
        moved = fcntl.fcntl(number, fcntl.F_DUPFD_CLOEXEC, HIGH)
    except OSError:
        return number
    os.close(number)
    return moved


def identity(connection):
    """What the descriptor leads to; None when it is closed."""
    import os

    try:
        about = os.fstat(connection.fileno())
    except OSError:
        return None
    return about.st_dev, about.st_ino


def send(connection, message):
    """One JSON frame: kind 1, length, body (wire.py has the same on the other end)."""
    import json
    import struct

    body = json.dumps(message).encode("utf-8", "backslashreplace")
    connection.sendall(struct.pack("<BI", 1, len(body)) + body)


def receive(connection, limit, deadline):
    """The body of one JSON frame."""
    import struct

    kind, length = struct.unpack("<BI", read(connection, 5, deadline))
    if kind != 1 or length > limit:
        raise ValueError("not a frame of ours")
    return read(connection, length, deadline)


def receive_with_handle(connection, deadline):
    """The body of the first frame. The handle of tuimon's process that came with it, if any, is `life` from then on."""
    import socket
    import struct

    global life, life_is
    connection.settimeout(left_until(deadline))
    # room for exactly one descriptor: what more is sent along, the kernel drops
    head, beside, _, _ = connection.recvmsg(5, socket.CMSG_LEN(4), getattr(socket, "MSG_CMSG_CLOEXEC", 0))
    for level, kind, data in beside:
        if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS and len(data) == 4:
            life = higher(struct.unpack("i", data)[0])
            life_is = described(life)
    if not head:
        raise EOFError("tuimon has closed the connection")
    kind, length = struct.unpack("<BI", head + read(connection, 5 - len(head), deadline))
    if kind != 1 or length > LONGEST_PROOF:
        raise ValueError("not a frame of ours")
    return read(connection, length, deadline)


life = None
life_is = None


def described(number):
    """What a handle leads to: before Linux 6.9 all handles share one inode, with other things that are no files."""
    import os

    try:
        about = os.fstat(number)
        return about.st_dev, about.st_ino, os.readlink("/proc/self/fd/%d" % number)
    except OSError:
        return None


def close_life(connection):
    """Give the handle of tuimon's process back. Where the job has closed our descriptors, this one is not ours either."""
    import os

    global life
    number, life = life, None
    if number is not None and identity(connection) == who and described(number) == life_is:
        os.close(number)


def read(connection, length, deadline):
    """Exactly so many bytes."""
    parts = []
    while length:
        connection.settimeout(left_until(deadline))
        part = connection.recv(min(length, 1 << 20))
        if not part:
            raise EOFError("tuimon has closed the connection")
        parts.append(part)
        length -= len(part)
    return b"".join(parts)


def left_until(deadline):
    """Seconds until then."""
    import time

    seconds = deadline - time.monotonic()
    if seconds <= 0:
        raise TimeoutError("tuimon does not go on")
    return seconds


def report(connection, error):
    """Tell tuimon what went wrong, if it still listens."""
    if identity(connection) != who:
        return
    try:
        where = ""
        trace = error.__traceback__
        while trace is not None:
            where = " at %s:%d" % (trace.tb_frame.f_code.co_filename, trace.tb_lineno)
            trace = trace.tb_next
        connection.settimeout(1)
        send(connection, {"error": "%s: %s%s" % (type(error).__name__, str(error)[:400], where)})
    except BaseException:
        pass


def close(connection):
    """Shut the connection down: a forked child may hold a copy, which closing alone would leave open.

    A descriptor that leads elsewhere by now is the job's: it is left alone.
    """
    if identity(connection) != who:
        connection.detach()
        return
    try:
        connection.shutdown(2)
    except OSError:
        pass
    connection.close()
