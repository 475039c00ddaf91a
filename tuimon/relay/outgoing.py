"""What goes out on the line, from many threads: one queue, one thread that writes.

Nobody who puts something here ever waits. The line may be slow or dead while the hook's frames come in as fast as ever; they
are read on, so that the hook is never held up by a network, and what the line cannot carry is dropped here and counted.
Samples go first: they have little room, scaled to what the line carries, so that what arrives is seconds old and not minutes.
The seldom messages, without which samples mean nothing, have a lot of room; those of the relay itself are always put.

Below the queue lie the buffers of pipes, ssh and TCP, megabytes of them. They are kept short from here: the far side says how
much it has got, and no more than the window is on its way.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections import Counter, deque
from typing import Any

from tuimon.hook import wire
from tuimon.relay.protocol import PASSED_ON

FACTS_LIMIT = 16 << 20
"""Bytes queued above which the seldom messages are dropped too."""
SMALLEST, LARGEST = 32 << 10, 8 << 20
"""Bounds of the window and of the room for samples, in bytes."""
FIRST_WINDOW, FIRST_ROOM = 64 << 10, 2 << 20
"""As long as nothing is known of the line: little on its way, so that it is soon known; a lot may wait."""
LAG_S = 1.0
"""The window is what the line carries in so long, at most twice what it was before.."""
ROOM_S = 2.0
"""..and the room for samples what it carries in so long."""
MEASURED_S = 0.25
"""What the line carries is measured over at least so long, while it was what held us up."""


class Outgoing:
    """The queue to a descriptor. `over` is set when it can take nothing any more, `sent` counts the bytes handed over."""

    def __init__(self, fd: int) -> None:
        self.over = threading.Event()
        self.window = FIRST_WINDOW
        self.room = FIRST_ROOM
        self._fd = fd
        self._changed = threading.Condition()
        self._queue: deque[tuple[int, bytes]] = deque()
        self._held = 0
        self._dropped: Counter[int] = Counter()
        self._stream = 0
        self.sent = self._got = 0
        self._waiting_since: tuple[float, int] | None = None
        self._writing = False
        threading.Thread(target=self._write, name="tuimon line", daemon=True).start()

    def control(self, word: str, **more: Any) -> None:
        """Queue a message of the relay itself."""
        with self._changed:
            self._add(0, wire.json_frame({"relay": word, **more}))

    def frame(self, session: int, kind: int, body: bytes) -> None:
        """Queue a frame of a session; dropped and counted where there is no room."""
        samples = kind == wire.SAMPLES_FRAME
        if not samples:
            body = PASSED_ON + body
        with self._changed:
            if self._held + len(body) > (self.room if samples else FACTS_LIMIT):
                self._dropped[session] += len(body) // wire.SAMPLE.size if samples else 1
            else:
                self._add(session, wire.HEADER.pack(kind, len(body)) + body)

    def hurry(self, session: int) -> None:
        """A session is over: what is still to be said must not wait behind samples for longer than a moment."""
        with self._changed:
            if not self.held_up or self._held <= SMALLEST:
                return
            kept: deque[tuple[int, bytes]] = deque()
            for owner, data in self._queue:
                if owner == session and data[0] == wire.SAMPLES_FRAME:
                    self._dropped[session] += (len(data) - wire.HEADER.size) // wire.SAMPLE.size
                    self._held -= len(data)
                else:
                    kept.append((owner, data))
            self._queue = kept

    def dropped(self, session: int) -> int:
        """How many samples and messages of a session have been dropped so far."""
        return self._dropped[session]

    def got(self, total: int) -> None:
        """The other end has taken so many bytes in all."""
        now = time.monotonic()
        with self._changed:
            fresh = min(total, self.sent) - self._got
            if fresh <= 0:
                return
            self._got += fresh
            if self._waiting_since is not None and now - self._waiting_since[0] > MEASURED_S:
                # the line was the limit meanwhile: so much is what it carries
                since, got = self._waiting_since
                rate = (self._got - got) / (now - since)
                self.window = int(min(max(rate * LAG_S, self.window / 2, SMALLEST), self.window * 2, LARGEST))
                self.room = int(min(max(rate * ROOM_S, SMALLEST), LARGEST))
                self._waiting_since = None
            self._changed.notify_all()

    @property
    def held_up(self) -> bool:
        """Whether the line is slower than what is to go over it."""
        return self._waiting_since is not None

    def flush(self, seconds: float) -> bool:
        """Wait until all has been written; False when it is not by then."""
        with self._changed:
            self._changed.wait_for(lambda: self.over.is_set() or not (self._queue or self._writing), seconds)
            return not (self._queue or self._writing)

    def _add(self, session: int, data: bytes) -> None:
        if not self.over.is_set():
            self._queue.append((session, data))
            self._held += len(data)
            self._changed.notify_all()

    def _next(self) -> bytes:
        """The next bytes to write: one frame, with the switch to its session before it where it is another one."""
        with self._changed:
            self._writing = False
            self._changed.notify_all()
            while not self._queue or self.sent - self._got >= self.window:
                if self._queue and self._waiting_since is None:
                    self._waiting_since = time.monotonic(), self._got
                self._changed.wait()
            session, data = self._queue.popleft()
            self._held -= len(data)
            if session not in (0, self._stream):
                self._stream = session
                data = wire.json_frame({"relay": "of", "s": session}) + data
            self.sent += len(data)
            self._writing = True
            return data

    def _write(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                view = memoryview(self._next())
                while view:
                    view = view[os.write(self._fd, view) :]
        with self._changed:
            self.over.set()
            self._queue.clear()
            self._writing = False
            self._changed.notify_all()
