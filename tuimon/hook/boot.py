# ruff: noqa: BLE001, SIM105, UP031 - here nothing may escape, and nothing be imported that need not be
"""The bootstrap: connect to tuimon, take the hook's source from it, run the hook, leave nothing.

This text is executed in the job as it is, on a thread of its own, in a namespace of its own (by `site/sitecustomize.py` in a
job that tuimon started: on the main thread, before the first line). It imports as little as it can: a fork copies the import
locks that are held at that moment. It never raises and never prints.
"""


def boot(path, token):
    """Attach, serve until it is over, clean up. For a thread of its own."""
    try:
        connection = connect(path)
        if connection is not None:
            session = None
            try:
                session = greet(connection, token)
                if session is not None:
                    install(session, connection)
            except BaseException as error:
                report(connection, error)
            serve(session, connection)
    except BaseException:  # nobody is left to tell
        pass


def boot_here(path, token):
    """Attach and install on this thread, then serve on a new one. For a job that tuimon started.

    What the user does in the meantime (Ctrl-C) stays an exception of the program's.
    """
    import _thread

    connection = connect(path)
    if connection is None:
        return
    session = None
    try:
        session = greet(connection, token)
        if session is not None:
            install(session, connection)
    except BaseException as error:
        report(connection, error)
        if not isinstance(error, Exception):
            raise
    finally:
        _thread.start_new_thread(serve, (session, connection))


def install(session, connection):
    """Put the hook in. Where that fails, `serve` finds the connection ended: it takes out what was put in, and leaves."""
    try:
        session.install()
    except BaseException as error:
        report(connection, error)
        connection.shutdown(0)
        if not isinstance(error, Exception):
            raise


def serve(session, connection):
    """Serve until it is over, then leave nothing: the way out of every attempt."""
    try:
        if session is not None:
            session.serve()
    except BaseException as error:
        report(connection, error)
    finally:
        unload()
        close(connection)


def connect(path):
    """The socket, or None when tuimon does not listen there any more."""
    import os
    import socket

    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        connection.settimeout(10)
        connection.connect(path)
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


HIGH = 512
who = None


def out_of_the_way(connection):
    """The same connection under a high number: the low ones are what a job that closes everything opens its files under."""
    import fcntl
    import socket

    try:
        number = fcntl.fcntl(connection.fileno(), fcntl.F_DUPFD_CLOEXEC, HIGH)
    except OSError:
        return connection  # the job may not have so many
    higher = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM, 0, number)
    higher.settimeout(connection.gettimeout())
    connection.close()
    return higher


def identity(connection):
    """What the descriptor leads to; None when it is closed."""
    import os

    try:
        about = os.fstat(connection.fileno())
    except OSError:
        return None
    return about.st_dev, about.st_ino


def greet(connection, token):
    """Say hello, take the bundle, make the session; None where another tuimon is attached already."""
    import _thread
    import os
    import sys

    torch = sys.modules.get("torch")
    send(
        connection,
        {
            "hello": token,
            "proto": 1,
            "pid": os.getpid(),
            "tid": _thread.get_native_id(),
            "py": list(sys.version_info[:3]),
            "torch": text_or_none(getattr(torch, "__version__", None)),
            "argv": [str(one) for one in getattr(sys, "orig_argv", None) or getattr(sys, "argv", [])],
            "cwd": working_directory(),
        },
    )
    order = receive(connection)
    import hashlib
    import json

    bundle = order["bundle"]
    if hashlib.sha256(json.dumps(bundle, sort_keys=True).encode()).hexdigest() != order["sha256"]:
        raise ValueError("the bundle did not arrive whole")
    if not load(bundle):
        send(connection, {"error": "already-attached"})
        return None
    connection.settimeout(None)
    return sys.modules["_tuimon_hook.session"].Session(connection, {"token": token, "pid": os.getpid()}, order["options"])


def load(bundle):
    """Execute the bundle's modules as the package `_tuimon_hook`; False where there is one already."""
    import os
    import sys
    import types

    global mine
    package = types.ModuleType("_tuimon_hook")
    package.__path__ = []
    package.__package__ = "_tuimon_hook"
    package.pid = os.getpid()
    there = sys.modules.get("_tuimon_hook")
    if there is not None and getattr(there, "pid", None) != package.pid:
        # this process was forked from one that was being watched: its copy of the hook is dead
        mine = there
        unload()
    if sys.modules.setdefault("_tuimon_hook", package) is not package:
        return False
    mine = package
    waiting = dict.fromkeys(name for name in bundle if name != "__init__")

    def execute(name):
        if name not in waiting:
            return
        del waiting[name]
        # a module that this one imports has to be there first: `from . import x` takes it from the package
        for other in wanted(bundle[name]):
            execute(other)
        module = types.ModuleType("_tuimon_hook." + name)
        module.__package__ = "_tuimon_hook"
        module.__file__ = "<tuimon hook>/" + name + ".py"
        sys.modules["_tuimon_hook." + name] = module
        setattr(package, name, module)
        exec(compile(bundle[name], module.__file__, "exec", dont_inherit=True), module.__dict__)

    for name in list(waiting):
        execute(name)
    return True


def wanted(source):
    """The names behind `from . import a, b` and `from .a import c` at the left margin."""
    import re

    found = []
    for module, names in re.findall(r"^from \.(\w*) import (\([^)]*\)|[^\n(#]*)", source, re.M):
        found += [module] if module else re.findall(r"(\w+)(?:\s+as\s+\w+)?", names)
    return found


mine = None


def unload():
    """Take the package out of sys.modules, if it is the one that we put there."""
    import sys

    global mine
    if mine is None or sys.modules.get("_tuimon_hook") is not mine:
        return
    for name in [name for name in sys.modules if name == "_tuimon_hook" or name.startswith("_tuimon_hook.")]:
        sys.modules.pop(name, None)
    mine = None


def send(connection, message):
    """One JSON frame: kind 1, length, body (wire.py has the same on the other end)."""
    import json
    import struct

    body = json.dumps(message).encode("utf-8", "backslashreplace")
    connection.sendall(struct.pack("<BI", 1, len(body)) + body)


def receive(connection):
    """One JSON frame."""
    import json
    import struct

    kind, length = struct.unpack("<BI", read(connection, 5))
    if kind != 1 or length > 64 * 1024 * 1024:
        raise ValueError("not a frame of ours")
    return json.loads(read(connection, length))


def read(connection, length):
    """Exactly so many bytes."""
    parts = []
    while length:
        part = connection.recv(min(length, 1 << 20))
        if not part:
            raise EOFError("tuimon has closed the connection")
        parts.append(part)
        length -= len(part)
    return b"".join(parts)


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


def text_or_none(value):
    """A version object as text."""
    return None if value is None else str(value)


def working_directory():
    """The working directory, or None when it has been deleted."""
    import os

    try:
        return os.getcwd()
    except OSError:
        return None
