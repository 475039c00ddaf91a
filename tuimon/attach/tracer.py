"""The tracing side of an attach, as seen from tuimon's process: starts the helper and hears what it says."""

from __future__ import annotations

import binascii
import contextlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

from tuimon.attach import preflight, procfs
from tuimon.attach.channel import Channel
from tuimon.attach.connection import Report
from tuimon.attach.inject import delivery, helper
from tuimon.attach.inject.waiting import Waiting
from tuimon.attach.preflight import Target
from tuimon.attach.refusal import Refused
from tuimon.hook import bundle

ROOT = Path(os.path.abspath(__file__)).parents[2]  # not resolved: it may be an archive without a name, see `relay/sent.py`
"""The directory from which `tuimon` can be imported."""

LOOK_S = 0.1


class Helper:
    """A helper that has been started and waits for its request. It ends by itself when this process does."""

    def __init__(self) -> None:
        # isolated: neither the environment nor a sitecustomize of the user has a say in a process that traces others; and it
        # writes no .pyc, which under sudo would be root's in the user's environment
        program = (
            f"import sys; sys.path.insert(0, {str(ROOT)!r}); from tuimon.attach.inject.helper import main; sys.exit(main())"
        )
        self.line, theirs = socket.socketpair()
        try:
            with theirs:
                self.process = subprocess.Popen(
                    [sys.executable, "-I", "-S", "-B", "-c", program],
                    stdin=theirs.fileno(),
                    stdout=subprocess.PIPE,
                    stderr=subprocess.DEVNULL,
                    start_new_session=True,  # a Ctrl-C is for tuimon, which then detaches
                    close_fds=True,
                )
        except BaseException:
            self.line.close()
            raise

    def ask(self, request: dict[str, Any], files: list[int]) -> None:
        """Send it what to do, and the files that the request speaks of by number."""
        data = (json.dumps(request) + "\n").encode()
        with contextlib.suppress(OSError):  # it has died: that shows in that it answers nothing
            sent = socket.send_fds(self.line, [data], files)
            self.line.sendall(data[sent:])

    def dismiss(self) -> None:
        """It is not needed: it has been asked for nothing."""
        self.line.close()
        self.process.kill()
        self.process.wait()
        if self.process.stdout is not None:
            self.process.stdout.close()


_ready: list[Helper] = []


def get_ready() -> None:
    """Start a helper ahead of the next attach, for when somebody is about to ask for one. May be called again.

    It takes some 40 ms to start, which an attach then does not have to wait for.
    """
    if not _ready:
        with contextlib.suppress(OSError):  # the attach will say so
            _ready.append(Helper())


def a_helper() -> Helper:
    """The one that is ready, or a new one. Whoever takes it has it ask or dismisses it."""
    with contextlib.suppress(IndexError):  # several threads may attach at once: `pop` gives it to one of them
        helper = _ready.pop()
        if helper.process.poll() is None:
            return helper
        helper.dismiss()
    return Helper()


class Tracer:
    """An injection at work. `fd` becomes readable when there is something to `hear`."""

    def __init__(self, helper: Helper, target: Target, way: Channel, patience: float | None, form: str | None = None) -> None:
        """`patience` in seconds and `form` are those of `session.attach`. The helper is this object's from then on."""
        self.report = Report()
        self.settled = threading.Event()
        self.refused: Refused | None = None
        self.ended = False
        self._way = way
        self._held = b""
        self._helper = helper
        self._process: subprocess.Popen[bytes] | None = None
        self.waiting: Waiting | None = None
        self._control = -1
        request = _request(target, way, patience, form)
        if _must_trace_itself(target.pid):
            self.fd = self._trace_here(request)
        else:
            self.fd = self._start_helper(request)

    def _start_helper(self, request: dict[str, Any]) -> int:
        self._process = self._helper.process
        assert self._process.stdout is not None
        self._helper.ask(request, [self._way.socket.fileno(), *(place.directory for place in self._way.places)])
        self._control = self._helper.line.detach()
        return self._process.stdout.fileno()

    @property
    def helper_pid(self) -> int | None:
        """The process that traces; None when it is a thread of this one."""
        return None if self._process is None else self._process.pid

    def _trace_here(self, request: dict[str, Any]) -> int:
        """Bind in a helper all the same, trace on a thread of this process."""
        reading, writing = os.pipe2(os.O_CLOEXEC)
        fd = self._start_helper({**request, "inject": False})
        while not self.ended:
            self._hear_from(fd)
        self.ended = False
        if self._process is not None:
            self._process.wait()
        if self._way.bound is None and self.refused is None:
            self.refused = self.death(request["pid"])
        os.close(self._control)
        hearing, self._control = os.pipe2(os.O_CLOEXEC)

        def answer(message: dict[str, Any]) -> None:
            with contextlib.suppress(OSError):
                os.write(writing, (json.dumps(message) + "\n").encode())

        def work() -> None:
            signal.pthread_sigmask(signal.SIG_BLOCK, set(signal.Signals) - {signal.SIGKILL, signal.SIGSTOP})
            try:
                if self.refused is None:
                    own = {**request, "places": [(place.directory, place.path) for place in self._way.places]}
                    helper.get_in(own, self._way.bound or 0, answer, helper.Control(hearing))
            except Refused as refusal:
                answer({"refused": [refusal.code, refusal.sentence]})
            finally:
                os.close(writing)
                os.close(hearing)

        threading.Thread(target=work, name="tuimon tracer", daemon=True).start()
        return reading

    def hear(self) -> None:
        """Read what is there; waits when there is nothing. Sets `ended` at the end of it."""
        self._hear_from(self.fd)

    def hear_how(self, seconds: float) -> None:
        """Hear until it has said by which way the hook came in."""
        deadline = time.monotonic() + seconds
        while not (self.report.mechanism or self.ended or self.refused) and time.monotonic() < deadline:
            if select.select([self.fd], [], [], LOOK_S)[0]:
                self.hear()

    def _hear_from(self, fd: int) -> None:
        data = os.read(fd, 65536)
        self.ended = not data
        *lines, self._held = (self._held + data).split(b"\n")
        for line in lines:
            self._take(json.loads(line))

    def _take(self, message: dict[str, Any]) -> None:
        if "bound" in message:
            self._way.bound = message["bound"]
        elif "waiting" in message:
            self.waiting = Waiting(*message["waiting"])
        elif "settled" in message:
            self.report.left = message["settled"]
            self.settled.set()
        elif "begun" in message:
            self.report.mechanism = message["begun"]
        elif "done" in message:
            done = message["done"]
            self.report.mechanism, self.report.kicks = done["mechanism"], done["kicks"]
            self.report.stops, self.report.left = done["stops"], done["left"]
            self.settled.set()
        elif "refused" in message:
            self.refused = Refused(*message["refused"])

    def finish_in_background(self) -> None:
        """Hear the rest on a thread of its own, until the target is rid of all that the injection needed."""
        threading.Thread(target=self._finish, name="tuimon helper", daemon=True).start()

    def _finish(self) -> None:
        try:
            while not self.ended:
                self.hear()
        except (OSError, ValueError):
            pass
        self._collect()
        if not self.settled.is_set() and self._has_died():
            self.report.left = ["unknown: the process that attached has died"]
        self.settled.set()

    def _has_died(self) -> bool:
        """Whether it ended without its last word: after a refusal that came before anything was touched there is none."""
        if self.refused is None:
            return True
        return self._process is not None and self._process.returncode not in (0, 3)

    def death(self, pid: int) -> Refused:
        """Why there is no last word of it, once it has `ended` without one."""
        if self._process is not None and self._process.wait() == -signal.SIGSYS:
            return Refused(
                "seccomp",
                f"a seccomp filter that tuimon is under has killed the process that attaches to {pid}; the target goes on: run "
                "tuimon outside of that filter, or start the job with `tuimon run`",
            )
        return Refused(
            "helper",
            f"the process that attaches to {pid} has died; the target goes on, and a hook that should still start there finds "
            "nobody and leaves: try again",
        )

    def cancel(self) -> None:
        """Ask it to give up. It answers with a refusal at once, and stays behind until nothing of it can be in the target."""
        self._say(b"cancel\n")

    def connected(self) -> None:
        """Tell it that the hook has said hello."""
        self._say(b"connected\n")

    def leave(self) -> None:
        """Nobody waits for it any more: it cancels, tidies up and ends by itself."""
        self.cancel()
        self.finish_in_background()

    def _say(self, word: bytes) -> None:
        with contextlib.suppress(OSError):
            os.write(self._control, word)

    def _collect(self) -> None:
        control, self._control = self._control, -1
        if control >= 0:
            os.close(control)
        if self._process is None or self._process.stdout is None:
            return
        self._process.wait()
        if self._process.stdout.fileno() != self.fd and not self._process.stdout.closed:
            os.close(self.fd)
        self._process.stdout.close()


def _request(target: Target, way: Channel, patience: float | None, form: str | None) -> dict[str, Any]:
    boot = delivery.boot_source()
    same = target.python == sys.version_info[:2] and boot == bundle.boot_source()
    return {
        "pid": target.pid,
        "started": target.started,
        "patience": patience,
        "form": form,
        "boot": boot,
        "code": binascii.b2a_base64(bundle.compiled_boot(), newline=False).decode() if same else None,
        "kind": bundle.kind(),
        "token": way.token,
        "places": [place.path for place in way.places],
        "exposed": [place.exposed for place in way.places],
        "name": way.name,
        "uid": int(target.facts["Uid"].split()[1]),
        "gid": int(target.facts["Gid"].split()[1]),
        "inject": True,
    }


def _must_trace_itself(pid: int) -> bool:
    """Whether only this very process may trace the target: under ptrace_scope 1 it has to be an ancestor."""
    return preflight.ptrace_scope() == 1 and not preflight.may_trace_anything() and os.getpid() in procfs.ancestors(pid)
