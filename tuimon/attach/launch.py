"""Starting a program with the hook in it from the first line: `tuimon run`.

No tracing is needed. Python imports `sitecustomize` before a program's first line; the directory with ours is put in front of
PYTHONPATH, the way to our socket into TUIMON_CONNECT. Ours takes both out again before anything else runs, so that what the
job starts in its turn (compile workers, loader workers) knows nothing of it.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import select
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tuimon.attach import channel, procfs
from tuimon.attach.connection import Session
from tuimon.attach.places import LONGEST_PATH
from tuimon.attach.refusal import Refused
from tuimon.hook import wire

SITE = Path(__file__).resolve().parent.parent / "hook" / "site"
HELLO_S = 10.0
LOOK_S = 0.1  # how often it is looked whether the program is still there


def launch(
    argv: Sequence[str],
    options: dict[str, object],
    env: Mapping[str, str] | None = None,
    stdin: Any = None,
    stdout: Any = None,
    stderr: Any = None,
    cwd: str | os.PathLike[str] | None = None,
    timeout: float = HELLO_S,
    sources: dict[str, str] | None = None,
) -> tuple[subprocess.Popen[bytes], Session]:
    """Start a program with the hook in it; gives its process and the session once the hook is in place.

    `stdin`, `stdout`, `stderr` and `cwd` are as for subprocess.Popen; `timeout` is how long to wait for the hook, in seconds.
    Raises Refused: "not-found" and "not-executable" when nothing was started, "ended" when the program ended before the hook
    could say hello, "no-hello" when it runs on without the hook; `process` of the last two is the program.
    """
    directory = _private_directory()
    path = os.path.join(directory, "s")
    token = secrets.token_hex(16)
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
    try:
        listening.bind(path)
        listening.listen(16)
        process = _start(argv, _environment(env, path, token), stdin, stdout, stderr, cwd)
        try:
            connection, hello = _wait(listening, process, token, timeout)
            decoder = wire.Decoder()
            try:
                channel.send_bundle(connection, sources, options, token, timeout, hello.get("kind"))
                early = channel.first_answer(connection, decoder, timeout)
            except BaseException:
                connection.close()
                raise
        except Refused as refusal:
            refusal.process = process
            raise
        pid = channel.peer(connection)
        return process, Session(connection, decoder, early, pid=pid, hello=hello, how="run")
    finally:
        listening.close()
        shutil.rmtree(directory, ignore_errors=True)


def _private_directory() -> str:
    """A new directory for the socket, mode 0700, with a path short enough."""
    directory = tempfile.mkdtemp(prefix="tuimon-")
    if len(os.fsencode(directory)) + 2 > LONGEST_PATH:
        os.rmdir(directory)
        directory = tempfile.mkdtemp(prefix="tuimon-", dir="/tmp")
    return directory


def _environment(env: Mapping[str, str] | None, path: str, token: str) -> dict[str, str]:
    given = dict(os.environ if env is None else env)
    before = given.get("PYTHONPATH")
    given["TUIMON_CONNECT"] = json.dumps({"path": path, "token": token, "pythonpath": before})
    given["PYTHONPATH"] = os.pathsep.join([str(SITE)] + ([before] if before else []))
    return given


def _start(
    argv: Sequence[str], env: dict[str, str], stdin: Any, stdout: Any, stderr: Any, cwd: str | os.PathLike[str] | None
) -> subprocess.Popen[bytes]:
    if not argv:
        raise Refused("not-found", "there is no program to run: tuimon run -- python train.py")
    if cwd is not None and not os.path.isdir(cwd):
        raise Refused("not-found", f"there is no directory {os.fspath(cwd)}")
    hint = "; to run a script, put `python` in front of it" if str(argv[0]).endswith(".py") else ""
    try:
        return subprocess.Popen(list(argv), env=env, stdin=stdin, stdout=stdout, stderr=stderr, cwd=cwd)
    except FileNotFoundError:
        raise Refused("not-found", f"there is no program {argv[0]!r}{hint}") from None
    except NotADirectoryError:
        raise Refused("not-found", f"there is no program {argv[0]!r}: a part of its path is not a directory") from None
    except PermissionError:
        raise Refused("not-executable", f"{argv[0]!r} is not executable{hint}") from None
    except OSError as error:
        why = f"{argv[0]!r} cannot be run: {error.strerror}{hint or '; is it for another machine?'}"
        raise Refused("not-executable", why) from None


def _wait(
    listening: socket.socket, process: subprocess.Popen[bytes], token: str, seconds: float
) -> tuple[socket.socket, dict[str, Any]]:
    """The hook's connection and its hello."""
    deadline = time.monotonic() + seconds
    listening.setblocking(False)  # who has gone again before he is let in is not waited for
    while True:
        ready, _, _ = select.select([listening], [], [], LOOK_S)
        if ready:
            try:
                connection, _ = listening.accept()
            except (BlockingIOError, ConnectionAbortedError):
                continue
            if _is_or_descends_from(channel.peer(connection), process.pid):
                try:
                    return connection, channel.receive_hello(connection, token, seconds)
                except Refused:
                    connection.close()
                    raise
            connection.close()
            continue
        status = process.poll()
        if status is not None:
            raise Refused("ended", f"the program has ended before tuimon could attach: {how_it_ended(status)}")
        if time.monotonic() > deadline:
            raise Refused(
                "no-hello",
                f"no Python program has reported within {seconds:g} s (python -I, -E or -S, another interpreter, a container, "
                "or no Python at all); it runs on without tuimon",
            )


def _is_or_descends_from(pid: int, ancestor: int) -> bool:
    return pid == ancestor or ancestor in procfs.ancestors(pid)


def how_it_ended(status: int) -> str:
    """A process's exit status (negative: the signal) in words."""
    if status >= 0:
        return f"exit status {status}"
    with contextlib.suppress(ValueError):
        return f"killed by {signal.Signals(-status).name}"
    return f"killed by signal {-status}"
