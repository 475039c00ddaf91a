"""The tracing side of an attach, as seen from tuimon's process: starts the helper and hears what it says."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
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

ROOT = Path(os.path.abspath(__file__)).parents[2]  # not resolved: it may be an archive without a name, see `relay/sent.py`
"""The directory from which `tuimon` can be imported."""


LOOK_S = 0.1


class Tracer:
    """An injection at work. `fd` becomes readable when there is something to `hear`."""

    def __init__(self, target: Target, way: Channel, patience: float | None, form: str | None = None) -> None:
        """`patience` in seconds and `form` are those of `session.attach`."""
        self.report = Report()
        self.settled = threading.Event()
        self.refused: Refused | None = None
        self.ended = False
        self._way = way
        self._held = b""
        self._process: subprocess.Popen[bytes] | None = None
        self.waiting: Waiting | None = None
        self._control = -1
        request = _request(target, way, patience, form)
        if _must_trace_itself(target.pid):
            self.fd = self._trace_here(request)
        else:
            self.fd = self._start_helper(request)

    def _start_helper(self, request: dict[str, Any]) -> int:
        # isolated: neither the environment nor a sitecustomize of the user has a say in a process that traces others; and it
        # writes no .pyc, which under sudo would be root's in the user's environment
        program = (
            f"import sys; sys.path.insert(0, {str(ROOT)!r}); from tuimon.attach.inject.helper import main; sys.exit(main())"
        )
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-B", "-c", program],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            pass_fds=[self._way.socket.fileno(), *(number for number, _ in self._way.places)],
            start_new_session=True,  # a Ctrl-C is for tuimon, which then detaches
            close_fds=True,
        )
        assert self._process.stdin is not None and self._process.stdout is not None
        self._control = os.dup(self._process.stdin.fileno())
        with contextlib.suppress(OSError):
            self._process.stdin.write((json.dumps(request) + "\n").encode())
            self._process.stdin.close()
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
        os.close(self._control)
        hearing, self._control = os.pipe2(os.O_CLOEXEC)

        def answer(message: dict[str, Any]) -> None:
            with contextlib.suppress(OSError):
                os.write(writing, (json.dumps(message) + "\n").encode())

        def work() -> None:
            signal.pthread_sigmask(signal.SIG_BLOCK, set(signal.Signals) - {signal.SIGKILL, signal.SIGSTOP})
            try:
                if self.refused is None:
                    helper.get_in(request, self._way.bound or 0, answer, helper.Control(hearing))
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
    return {
        "pid": target.pid,
        "started": target.started,
        "patience": patience,
        "form": form,
        "boot": delivery.boot_source(),
        "token": way.token,
        "socket": way.socket.fileno(),
        "places": way.places,
        "name": way.name,
        "uid": int(target.facts["Uid"].split()[1]),
        "gid": int(target.facts["Gid"].split()[1]),
        "inject": True,
    }


def _must_trace_itself(pid: int) -> bool:
    """Whether only this very process may trace the target: under ptrace_scope 1 it has to be an ancestor."""
    return preflight.ptrace_scope() == 1 and not preflight.may_trace_anything() and os.getpid() in procfs.ancestors(pid)
