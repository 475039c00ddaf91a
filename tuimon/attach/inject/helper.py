"""The short-lived process that does all the tracing: `python -m tuimon.attach.inject.helper`, JSON in, lines of JSON out.

A process of its own because ptrace belongs to one thread, because its end detaches from everything whatever happens, and
because it can block every signal. It also makes the socket in the target's file system as the target's own user, which a
process with threads could not do. Nothing of tuimon's own state is in it; the first line of its standard input is the request:

    pid, started      the target and its start time
    patience          how many seconds the target may take to begin; null: for ever
    form              null, or the only form that may be used
    boot, token       the bootstrap's source and the secret it is to say hello with
    code, kind        the bootstrap compiled (base64), and for which Python; null: the source is to be used
    places            the paths, as the target sees them, of the directories that come along
    exposed           of each, whether another user could replace what lies in it
    name              the name for the socket's folder in one of them
    uid, gid          the target's user and group
    inject            false: only make the socket

With it come open files: the socket, not bound yet, and those directories.

Then `cancel` and `connected` (the hook has said hello) may come, a line each; the end of the input means `cancel`, so a tuimon
that is killed is one that has cancelled. The answers are {"bound": index into places, "path": ..}, {"waiting": [sentence,
seconds]}, {"begun": mechanism}, then {"done": {..}}, or {"refused": [code, sentence]} and perhaps later {"settled": [what is
left]}.
"""

from __future__ import annotations

import binascii
import contextlib
import errno
import gc
import json
import os
import select
import signal
import socket
import sys
from collections.abc import Callable, Iterator
from typing import Any

from tuimon.attach import places
from tuimon.attach.inject import delivery
from tuimon.attach.inject.ladder import Climb, take_time
from tuimon.attach.inject.remote_exec import ScriptFile
from tuimon.attach.inject.waiting import Wait, Waiting
from tuimon.attach.refusal import Refused

MOST_FILES = 16
Request = dict[str, Any]
Answer = Callable[[dict[str, Any]], None]


class Control:
    """What tuimon says while we work: never waited for."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._held = b""
        self._ended = False
        self._words: set[bytes] = set()

    def request(self) -> Request | None:
        """The first line, with the files that come along in it; waits for it. None where none comes."""
        files: list[int] = []
        with socket.socket(fileno=os.dup(self._fd)) as line:
            while b"\n" not in self._held:
                data, more, _, _ = socket.recv_fds(line, 65536, MOST_FILES, socket.MSG_CMSG_CLOEXEC)
                if not data:
                    return None
                self._held += data
                files += more
        text, self._held = self._held.split(b"\n", 1)
        request: Request = json.loads(text)
        request["socket"], *directories = files
        request["places"] = list(zip(directories, request["places"], strict=True))
        return request

    def cancelled(self) -> bool:
        """Whether nobody waits for us any more."""
        self._hear()
        return self._ended or b"cancel" in self._words

    def alone(self) -> bool:
        """Whether tuimon is gone."""
        self._hear()
        return self._ended

    def connected(self) -> bool:
        """Whether the hook has said hello."""
        self._hear()
        return b"connected" in self._words

    def _hear(self) -> None:
        while not self._ended and select.select([self._fd], [], [], 0)[0]:
            data = os.read(self._fd, 4096)
            self._ended = not data
            *lines, self._held = (self._held + data).split(b"\n")
            self._words.update(lines)


def main() -> int:
    """Serve the one request on standard input."""
    signal.pthread_sigmask(signal.SIG_BLOCK, set(signal.Signals) - {signal.SIGKILL, signal.SIGSTOP})
    gc.disable()  # no collection while a thread is stopped
    control = Control(0)

    def answer(message: dict[str, Any]) -> None:
        with contextlib.suppress(OSError):  # tuimon may be gone: finish and clean up all the same
            os.write(1, (json.dumps(message) + "\n").encode())

    try:
        request = control.request()
    except OSError as error:
        what = f"the process that attaches cannot take its orders ({error.strerror}): does a seccomp filter forbid it recvmsg?"
        answer({"refused": ["helper", f"{what} No job was touched; start the job with `tuimon run`"]})
        return 1
    if request is None:
        return 0  # tuimon has ended, or did not need us

    try:
        serve(request, answer, control)
    except Refused as refusal:
        answer({"refused": [refusal.code, refusal.sentence]})
        return 3
    except Exception as error:  # noqa: BLE001 - a fault of ours has to be told, for nobody reads our standard error
        import traceback

        at = traceback.extract_tb(error.__traceback__)[-1]
        what = f"{type(error).__name__}: {error} at {os.path.basename(at.filename)}:{at.lineno}"
        answer(
            {"refused": ["helper", f"attaching to process {request['pid']} failed by a fault of tuimon's ({what}); try again"]}
        )
        return 1
    return 0


def serve(request: Request, answer: Answer, control: Control) -> None:
    """Do what the request says. Raises Refused."""
    index = bind(request, answer)
    try:
        if request["inject"]:
            _be_prompt()
            get_in(request, index, answer, control)
    finally:
        if control.alone():  # tuimon takes it away itself, if it lives to
            places.take_away(request["places"][index][0], request["name"], request["uid"])


def _be_prompt() -> None:
    """Not to lose the processor while a thread stands still for us, where that is permitted (root): p99 of the pause is
    0.2 ms instead of 5 ms on a machine with nothing to spare. This process works for some 10 ms and sleeps in between."""
    with contextlib.suppress(OSError):
        os.sched_setscheduler(0, os.SCHED_FIFO | os.SCHED_RESET_ON_FORK, os.sched_param(1))


@contextlib.contextmanager
def _as_the_target(request: Request) -> Iterator[None]:
    """With the target's user and group for everything in the file system; what is made is born with mode 0600."""
    own = os.geteuid(), os.getegid()
    as_target = own[0] == 0 and (request["uid"], request["gid"]) != own
    umask = os.umask(0o177)
    if as_target:
        os.setgroups([])
        os.setegid(request["gid"])
        os.seteuid(request["uid"])
    try:
        yield
    finally:
        if as_target:
            os.seteuid(own[0])
            os.setegid(own[1])
        os.umask(umask)


def bind(request: Request, answer: Answer) -> int:
    """Bind the inherited socket in the first directory that takes it; gives the index of that."""
    here = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        with _as_the_target(request):
            index = _bind_somewhere(request)
    finally:
        os.fchdir(here)
        os.close(here)
    answer({"bound": index, "path": socket_path(request, index)})
    return index


def socket_path(request: Request, index: int) -> str:
    """The socket's path as the target sees it."""
    return f"{folder_path(request, index)}/{places.SOCKET}"


def folder_path(request: Request, index: int) -> str:
    """The path of the folder that is ours, as the target sees it."""
    return f"{request['places'][index][1].rstrip('/')}/{request['name']}"


def _bind_somewhere(request: Request) -> int:
    listening = socket.socket(fileno=request["socket"])
    try:
        for index, (number, _) in enumerate(request["places"]):
            try:
                folder = places.make_folder(number, request["name"])
            except OSError:
                continue
            try:
                os.fchdir(folder)
                # relative to the folder that was made: nothing on the way can be swapped
                listening.bind(places.SOCKET)
            except OSError:
                places.take_away(number, request["name"], request["uid"])
                continue
            finally:
                os.close(folder)
            listening.listen(64)
            return index
    finally:
        listening.close()  # our copy: when tuimon is gone, nobody may listen there any more
    tried = ", ".join(path for _, path in request["places"]) or "none"
    raise Refused(
        "no-socket-dir",
        f"no directory of process {request['pid']} can hold the socket (tried: {tried}); start the job with TMPDIR set to one "
        "that can be written, or with `tuimon run`",
    )


def get_in(request: Request, index: int, answer: Answer, control: Control) -> None:
    """Run the bootstrap in the target; the socket lies in the place with this index. Raises Refused."""
    directory, inside = request["places"][index]
    path, folder = socket_path(request, index), folder_path(request, index)
    opened: list[int] = []

    def script_file() -> ScriptFile:
        if request["exposed"][index]:
            advice = f"another user could replace it in {inside}; start the job with TMPDIR set to a folder of its own"
            raise OSError(errno.EPERM, advice)
        text = delivery.script_file(request["boot"], path, request["token"], f"{folder}/{places.SCRIPT}")
        with _as_the_target(request):
            opened.append(places.open_folder(directory, request["name"]))
            return ScriptFile(opened[-1], folder, places.SCRIPT, text)

    def say(waiting: Waiting) -> None:
        take_time()  # who waits needs no priority, and may wait for ever
        answer({"waiting": list(waiting)})

    code = None if request["code"] is None else binascii.a2b_base64(request["code"])
    try:
        Climb(
            request["pid"],
            request["started"],
            delivery.script(request["boot"], path, request["token"], code, request["kind"]),
            script_file,
            Wait(request["pid"], request["patience"], control.cancelled, say),
            answer,
            control.connected,
            request["form"],
        ).run()
    finally:
        for one in opened:
            os.close(one)
        with contextlib.suppress(OSError):  # the script went last; where the socket is still in it, tuimon does this
            os.rmdir(request["name"], dir_fd=directory)


if __name__ == "__main__":
    sys.exit(main())
