"""An attachment as tuimon's side sees it: frames come in, commands go out, detach ends it cleanly."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tuimon.attach.traces import TraceFolder
from tuimon.hook import wire

Sink = Callable[[int, bytes], None]
OnEnd = Callable[[str], None]

GOODBYE_S = 5.0
"""So long the hook may take to answer that it is out. Whoever waits for a `detach` waits longer than this."""


@dataclass(slots=True)
class Report:
    """What the injection has cost the target; empty for a job that tuimon started."""

    mechanism: str = ""
    kicks: int = 0
    stops: list[float] = field(default_factory=list)
    """The pause of one thread at each stop, in seconds."""
    left: list[str] = field(default_factory=list)
    """What could not be taken away again, in words."""


class Session:
    """The connection to a hook that is in place.

    `start` hands every frame to a sink, on a thread of its own. `detach` asks the hook to take itself out. Frames that came
    before `start` are kept and handed over first.
    """

    def __init__(
        self,
        connection: socket.socket,
        decoder: wire.Decoder,
        early: list[tuple[int, bytes]],
        *,
        pid: int,
        hello: dict[str, Any],
        how: str,
        report: Report | None = None,
        settled: threading.Event | None = None,
    ) -> None:
        self.pid = pid
        """The job's process, as seen from here."""
        self.hello = hello
        """What the hook said first: proto, pid, tid and uid (its own view), py, implementation, torch, argv, cwd."""
        self.how = how
        """"injected" or "run"."""
        self.report = report or Report()
        """Complete once `settled`."""
        self._settled = settled
        self._connection = connection
        self._decoder = decoder
        self._early = early
        self._offers = _offers(early)
        self._traces = TraceFolder(pid)
        self._sending = threading.Lock()
        self._over = threading.Event()
        self._heard = time.monotonic()
        self._goodbye: dict[str, Any] | None = None
        self._reason = "connection closed"
        self._reader: threading.Thread | None = None
        self._sink: Sink = _nowhere
        self._on_end: OnEnd = _nothing

    brings_sources: bool = False
    """Whether readings of the machine and its GPUs come along with the hook's frames, from the job's own host."""
    host: str | None = None
    """The job's host; None: this one."""

    @staticmethod
    def clock() -> int:
        """The time now in ns on the clock of the job's host, CLOCK_MONOTONIC."""
        return time.monotonic_ns()

    @property
    def mechanism(self) -> str:
        """By which form the hook came in: "pending", "thread" or "run"."""
        return self.report.mechanism or self.how

    @property
    def last_frame_age(self) -> float:
        """Seconds since something came from the hook. It says something every second, unless the job is stopped, is starved of
        processor time, or holds the GIL in native code."""
        return time.monotonic() - self._heard

    @property
    def offers(self) -> dict[str, Any]:
        """What this Python and this torch offered when the hook came in, by name; see `hook/offers.py`."""
        return self._offers

    @property
    def over(self) -> bool:
        """Whether nothing more will come."""
        return self._over.is_set()

    def settled(self, seconds: float) -> bool:
        """Wait until what the injection needed is out of the target again; False when it is not by then."""
        return self._settled is None or self._settled.wait(seconds)

    def start(self, sink: Sink, on_end: OnEnd) -> None:
        """Begin reading. `sink(kind, body)` gets every frame, `on_end(reason)` is called once; both on the reader's thread."""
        self._sink, self._on_end = sink, on_end
        self._connection.settimeout(None)
        self._reader = threading.Thread(target=self._read, name=f"tuimon reader {self.pid}", daemon=True)
        self._reader.start()

    def send(self, message: dict[str, Any]) -> bool:
        """Send a command to the hook, one for a profiler window with where its file goes; False when the connection is gone."""
        if message.get("cmd") == "window":
            message = {**message, "dir": self._traces.path()}
        try:
            with self._sending:
                self._connection.sendall(wire.json_frame(message))
        except OSError:
            return False
        return True

    def trace_folder(self) -> int | None:
        """The folder of the files of profiler windows, opened, for the caller to close; None where there is none."""
        return self._traces.opened()

    def pass_on(self, *, whole: bool) -> None:
        """Nothing: all that a hook here says is handed on anyway. For one whose calls are folded on its node, it is said."""

    def detach(self, timeout: float = GOODBYE_S) -> dict[str, Any] | None:
        """Have the hook taken out; gives its goodbye ({"detached":.., "left": [..]}), or None when there was none in time.

        Everything that the hook still had to say goes to the sink first.
        """
        deadline = time.monotonic() + timeout
        if not self.over and self.send({"cmd": "detach"}):
            if self._reader is None:
                self.start(self._sink, self._on_end)
            self._over.wait(timeout)
        self.settled(max(0.0, deadline - time.monotonic()))
        self.close()
        return self._goodbye

    def close(self) -> None:
        """Close the connection; a hook that is still in takes itself out when it sees that. May be called twice."""
        with contextlib.suppress(OSError):
            self._connection.shutdown(socket.SHUT_RDWR)
        if self._reader is not None and self._reader is not threading.current_thread():
            self._reader.join(2.0)
        self._connection.close()
        self._traces.close()

    # ------------------------------------------------------------------------------------------------------ the reader

    def _read(self) -> None:
        try:
            self._take(self._early)
            self._early = []
            while True:
                data = self._connection.recv(1 << 18)
                if not data:
                    break
                self._heard = time.monotonic()
                self._take(self._decoder.feed(data))
        except wire.WireError as error:
            self._reason = f"the hook sent something that is not in the protocol ({error})"
            self.send({"cmd": "detach"})
        except OSError as error:
            self._reason = f"connection lost ({error.strerror or error})"
        except Exception as error:  # noqa: BLE001 - it would be lost with this thread
            self._reason = f"reading failed, which is a fault of tuimon ({type(error).__name__}: {error})"
            self.send({"cmd": "detach"})
        finally:
            # nobody reads any more: a hook that is still in takes itself out when it sees that
            with contextlib.suppress(OSError):
                self._connection.shutdown(socket.SHUT_RDWR)
            self._over.set()
            self._on_end(self._reason)

    def _take(self, frames: list[tuple[int, bytes]]) -> None:
        for kind, body in frames:
            if kind == wire.JSON_FRAME and b'"detached"' in body:
                message = _message(body)
                if "detached" in message:
                    self._goodbye = message
                    self._reason = str(message.get("reason", "detached"))
            self._sink(kind, body)


def _offers(early: list[tuple[int, bytes]]) -> dict[str, Any]:
    for kind, body in early:
        if kind == wire.JSON_FRAME and b'"offers"' in body:
            found = _message(body).get("offers")
            if isinstance(found, dict):
                return found
    return {}


def _message(body: bytes) -> dict[str, Any]:
    """A frame's object; empty where it is none: whoever is handed the frame next says so."""
    try:
        return wire.read_json(body)
    except wire.WireError:
        return {}


def _nowhere(_kind: int, _body: bytes) -> None:
    pass


def _nothing(_reason: str) -> None:
    pass
