"""The tracing side of an attach, as seen from tuimon's process: starts the helper and hears what it says."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

from tuimon.attach import delivery, helper, preflight, procfs
from tuimon.attach.channel import Channel
from tuimon.attach.connection import Report
from tuimon.attach.preflight import Target
from tuimon.attach.refusal import Refused

ROOT = Path(__file__).resolve().parents[2]
"""The directory from which `tuimon` can be imported."""


class Tracer:
    """An injection at work. `fd` becomes readable when there is something to `hear`."""

    def __init__(self, target: Target, way: Channel, seconds: float) -> None:
        self.report = Report()
        self.settled = threading.Event()
        self.refused: Refused | None = None
        self.ended = False
        self._way = way
        self._held = b""
        self._process: subprocess.Popen[bytes] | None = None
        request = _request(target, way, seconds)
        if _must_trace_itself(target.pid):
            self.fd = self._trace_here(request)
        else:
            self.fd = self._start_helper(request)

    def _start_helper(self, request: dict[str, Any]) -> int:
        # isolated: neither the environment nor a sitecustomize of the user has a say in a process that traces others
        program = f"import sys; sys.path.insert(0, {str(ROOT)!r}); from tuimon.attach.helper import main; sys.exit(main())"
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", program],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            pass_fds=[self._way.socket.fileno(), *(number for number, _ in self._way.places)],
            start_new_session=True,  # a Ctrl-C is for tuimon, which then detaches
            close_fds=True,
        )
        assert self._process.stdin is not None and self._process.stdout is not None
        with contextlib.suppress(OSError):
            self._process.stdin.write(json.dumps(request).encode())
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
        path = f"{self._way.places[self._way.bound or 0][1].rstrip('/')}/{self._way.name}"

        def answer(message: dict[str, Any]) -> None:
            with contextlib.suppress(OSError):
                os.write(writing, (json.dumps(message) + "\n").encode())

        def work() -> None:
            signal.pthread_sigmask(signal.SIG_BLOCK, set(signal.Signals) - {signal.SIGKILL, signal.SIGSTOP})
            try:
                if self.refused is None:
                    helper.inject(request, path, answer)
            except Refused as refusal:
                answer({"refused": [refusal.code, refusal.sentence]})
            finally:
                os.close(writing)

        threading.Thread(target=work, name="tuimon tracer", daemon=True).start()
        return reading

    def hear(self) -> None:
        """Read what is there; waits when there is nothing. Sets `ended` at the end of it."""
        self._hear_from(self.fd)

    def _hear_from(self, fd: int) -> None:
        data = os.read(fd, 65536)
        self.ended = not data
        *lines, self._held = (self._held + data).split(b"\n")
        for line in lines:
            self._take(json.loads(line))

    def _take(self, message: dict[str, Any]) -> None:
        if "bound" in message:
            self._way.bound = message["bound"]
        elif "begun" in message:
            self.report.mechanism = message["begun"]
        elif "done" in message:
            done = message["done"]
            self.report.mechanism, self.report.kicks = done["mechanism"], done["kicks"]
            self.report.stops, self.report.left = done["stops"], done["left"]
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
        self.settled.set()

    def stop(self) -> None:
        """End it now, whatever it is doing: it can be killed at any moment without harm to the target."""
        if self._process is not None and self._process.poll() is None:
            self._process.kill()
        self._collect()

    def _collect(self) -> None:
        if self._process is None or self._process.stdout is None:
            return
        self._process.wait()
        if self._process.stdout.fileno() != self.fd and not self._process.stdout.closed:
            os.close(self.fd)
        self._process.stdout.close()


def _request(target: Target, way: Channel, seconds: float) -> dict[str, Any]:
    return {
        "pid": target.pid,
        "started": target.started,
        "seconds": seconds,
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
