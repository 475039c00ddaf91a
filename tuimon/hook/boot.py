# ruff: noqa: BLE001, UP031, F821 - here nothing may escape, and nothing be imported that need not be
"""The bootstrap: connect to tuimon, take the hook's source from it, run the hook, leave nothing.

This text, with that of `boot_line.py` before it, is executed in the job as it is, on a thread of its own, in a namespace of
its own (by `site/sitecustomize.py` in a job that tuimon started: on the main thread, before the first line). It imports as
little as it can: a fork copies the import locks that are held at that moment. It never raises and never prints.

The greeting, in frames of `wire.py` (kind, length, body). Both sides know the token: it came with this text, by a way that
only those who may trace the job can take. It is never sent; each side shows by a hash that it knows it. So whoever else has
got hold of the path can neither pass for the hook nor have anything executed here.

    hook -> tuimon   {"hello": proof of the token, "proto", "pid", "py", "kind", "torch", ..}
    tuimon -> hook   {"proto", "proof": of the token and the body that follows}, with a handle (pidfd) of tuimon's process
    tuimon -> hook   {"bundle": {module: source}, "options", "by": {pid, user, host, since, version}}
                     where both run the same byte code, {"code": of all modules, marshalled, base64, "kind", ..} for "bundle"
    hook -> tuimon   {"k": "ack", "proto", "digest", "offers"}, or {"error": ..}

What the hook reads before it has seen the proof is at most `LONGEST_ORDER` bytes, within `GREETING_S`, and it is not looked
into. The modules are executed in the order in which they come.
"""

PROTOCOL = 2
GREETING_S = 10.0
LONGEST_PROOF = 4096
LONGEST_ORDER = 4 * 1024 * 1024
LEAVING_S = 1.0


def boot(path, token):
    """Attach, serve until it is over, clean up. For a thread of its own."""
    try:
        connection = connect(path)
        if connection is not None:
            know_the_main_thread()
            held = []
            try:
                held.append(greet(connection, token))
                if held[0] is not None:
                    install(held[0], connection)
            except BaseException as error:
                report(connection, error)
            serve(held, connection)
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
    held = []
    try:
        held.append(greet(connection, token))
        if held[0] is not None:
            install(held[0], connection)
    except BaseException as error:
        report(connection, error)
        if not isinstance(error, Exception):
            raise
    finally:
        try:
            _thread.start_new_thread(serve, (held, connection))
        except Exception as error:  # no thread can be had (a limit on processes): nobody would send
            try:
                if held and held[0] is not None:
                    held[0].leave("no thread can be had for the hook: %s" % error)
            finally:
                serve([], connection)


def install(session, connection):
    """Put the hook in. Where that fails, `serve` finds the connection ended: it takes out what was put in, and leaves."""
    try:
        session.install()
    except BaseException as error:
        report(connection, error)
        connection.shutdown(0)
        if not isinstance(error, Exception):
            raise


def serve(held, connection):
    """Serve until it is over, then leave nothing: the way out of every attempt.

    `held` is a list with the session, if there is one: nobody else may know it any more when it is freed.
    """
    try:
        if held and held[0] is not None:
            held[0].serve()
    except BaseException as error:
        report(connection, error)
    finally:
        held += unload()
        close_life(connection)
        close(connection)
        free(held)


def know_the_main_thread():
    """Import `threading`, and see that it does not take this thread for the main one.

    Up to Python 3.12 the module takes whichever thread imports it first for the main thread. In a job that has not done so yet,
    that would be ours: `threading.main_thread()` would be wrong for good, and the job would wait for us when it ends. From
    3.13 on only its native id is.
    """
    import sys

    if "threading" in sys.modules:
        return
    import _thread
    import os

    # the states of threads are listed newest first, those of subinterpreters before the main one's: the main thread is last
    right = list(sys._current_frames())[-1]
    import threading

    main = threading._main_thread
    if main._native_id == os.getpid() or main._native_id != _thread.get_native_id():
        return  # another thread was first
    main._native_id = os.getpid()
    if sys.version_info >= (3, 13):
        return
    lock = _thread.allocate_lock()
    lock.acquire()  # held for as long as the thread runs: its end at exit releases it
    with threading._active_limbo_lock:
        threading._shutdown_locks.discard(main._tstate_lock)
        main._tstate_lock = lock
        threading._active.pop(main._ident, None)
        main._ident = right
        threading._active[right] = main


def greet(connection, token):
    """Say hello, take the bundle, make the session; None where another tuimon is attached already."""
    import hashlib
    import json
    import os
    import sys
    import time

    torch = sys.modules.get("torch")
    send(
        connection,
        {
            "hello": proof(token, b"hello"),
            "proto": PROTOCOL,
            "pid": os.getpid(),
            "py": list(sys.version_info[:3]),
            "kind": kind(),
            "implementation": sys.implementation.name,
            "torch": text_or_none(getattr(torch, "__version__", None)),
            "argv": [str(one)[:4096] for one in (getattr(sys, "orig_argv", None) or getattr(sys, "argv", []))[:256]],
            "cwd": working_directory(),
        },
    )
    deadline = time.monotonic() + GREETING_S
    first = json.loads(receive_with_handle(connection, deadline))
    if first.get("proto") != PROTOCOL:
        send(connection, {"error": "protocol", "proto": PROTOCOL})
        return None
    body = receive(connection, LONGEST_ORDER, deadline)
    if first.get("proof") != proof(token, body):
        raise ValueError("what came is not from the tuimon that started this")
    order = json.loads(body)
    other = load(modules_of(order), order.get("by"))
    if other is not None:
        send(connection, {"error": "already-attached", "by": getattr(other, "by", None)})
        return None
    connection.settimeout(None)
    hello = {"pid": os.getpid(), "digest": hashlib.sha256(body).hexdigest(), "life": life}
    return sys.modules["_tuimon_hook.session"].Session(connection, hello, order["options"])


def proof(token, what):
    """That the token is known, without it; for these bytes."""
    import hashlib

    key = token.encode()
    return hashlib.sha256(key + hashlib.sha256(key + what).digest()).hexdigest()


def kind():
    """Which byte code this Python runs."""
    import _frozen_importlib_external
    import sys

    return "%s %s" % (sys.implementation.cache_tag, _frozen_importlib_external.MAGIC_NUMBER.hex())


def modules_of(order):
    """The modules that tuimon has sent, as (name, source or code)."""
    if "code" not in order:
        return order["bundle"].items()
    import binascii
    import marshal

    if order.get("kind") != kind():
        raise ValueError("what came is code of another Python")
    return marshal.loads(binascii.a2b_base64(order["code"]))


def load(modules, by=None):
    """Execute modules, (name, source or code), as the package `_tuimon_hook`.

    Gives the package of another tuimon that stays, or None.

    One whose monitor has just gone is about to leave: it has `LEAVING_S` for that. `by` says who is attached, for the next.
    """
    import os
    import sys
    import time
    import types

    global mine
    package = types.ModuleType("_tuimon_hook")
    package.__path__ = []
    package.__package__ = "_tuimon_hook"
    package.pid = os.getpid()
    package.by = by
    there = sys.modules.get("_tuimon_hook")
    if there is not None and getattr(there, "pid", None) != package.pid:
        # this process was forked from one that was being watched: its copy of the hook is dead
        mine = there
        unload()
    deadline = time.monotonic() + LEAVING_S
    while True:
        there = sys.modules.setdefault("_tuimon_hook", package)
        if there is package:
            break
        if time.monotonic() > deadline:
            return there
        time.sleep(0.01)
    mine = package
    for name, body in modules:
        module = types.ModuleType("_tuimon_hook." + name)
        module.__package__ = "_tuimon_hook"
        module.__file__ = "<tuimon hook>/" + name + ".py"
        sys.modules["_tuimon_hook." + name] = module
        setattr(package, name, module)
        if isinstance(body, str):
            # without the docstrings (optimize=2): nobody reads them here, and the job's memory need not hold them
            body = compile(body, module.__file__, "exec", dont_inherit=True, optimize=2)
        exec(body, module.__dict__)
    return None


mine = None


def unload():
    """Take the package out of sys.modules, if it is the one that we put there; gives its modules, for `free`."""
    import sys

    global mine
    if mine is None or sys.modules.get("_tuimon_hook") is not mine:
        return []
    mine = None
    names = [name for name in list(sys.modules) if name == "_tuimon_hook" or name.startswith("_tuimon_hook.")]
    return [sys.modules.pop(name) for name in names]


def free(roots):
    """Free the modules and the session in the list `roots`, which nobody else may know any more.

    The job may be in the middle of a region that we time, so it is tried again, for two thirds of a second in all.
    """
    import time
    import types

    let_go = [vars(one)["let_go"] for one in roots if isinstance(one, types.ModuleType) and "let_go" in vars(one)]
    if not let_go:
        return
    let_go = types.FunctionType(let_go[0].__code__, {})  # a copy: the original is one of those that go
    for wait_s in (0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0):
        try:
            if let_go(roots, "_tuimon_hook"):
                return
        except Exception:  # then the job's collector frees it, one day
            return
        time.sleep(wait_s)


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
