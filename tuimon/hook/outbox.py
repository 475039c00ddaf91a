"""What goes out: a bounded queue that the job's threads fill, and a sender that empties it without ever waiting.

The job's side of this is one `append` (see `timers`). Everything that costs time - numbering threads, packing, sending -
happens on the hook's own thread. What does not fit is dropped and counted.
"""

import collections
import socket
import threading
import time

from . import wire

QUEUE_LIMIT = 131072  # entries; a sample is about 200 bytes in the job, so at most some 26 MB
UNSENT_LIMIT = 4 * 1024 * 1024  # bytes that the socket has not taken yet; beyond it nothing is packed any more
FACTS_ABOVE_LIMIT = 16384  # messages have that much room of their own: samples without them would mean nothing
SAMPLES_A_FRAME = 2048  # bounds how long the hook's thread holds the GIL in one piece

# A job may have given SIGPIPE back its deadly default: a send to a tuimon that is gone must not raise it.
_QUIETLY = getattr(socket, "MSG_NOSIGNAL", 0)


class Outbox:
    """The queue between the job's threads and the hook's sender."""

    def __init__(self, sock):
        self.queue = collections.deque()
        self.limit = QUEUE_LIMIT
        self.dropped = [0]  # a list, so that the timers' closures can count in it
        self.samples = 0
        self._unsent = bytearray()
        self._threads = {}
        self._sock = sock

    def put(self, message):
        """Queue a JSON-able dict. Never blocks; a full queue drops and counts."""
        if len(self.queue) < self.limit + FACTS_ABOVE_LIMIT:
            self.queue.append(message)
        else:
            self.dropped[0] += 1

    def flush(self):
        """Pack what is queued and give the socket what it takes. Raises OSError when the connection is gone."""
        self._send()
        queue = self.queue
        while queue and len(self._unsent) < UNSENT_LIMIT:
            self._pack(queue)
            self._send()

    @property
    def unsent(self):
        """Whether the socket still owes us room."""
        return bool(self._unsent)

    def finish(self, seconds):
        """Send what is left, for at most so many seconds: used when the job or the session ends."""
        deadline = time.monotonic() + seconds
        try:
            self._sock.settimeout(max(0.01, seconds))
            while (self.queue or self._unsent) and time.monotonic() < deadline:
                if self.queue and len(self._unsent) < UNSENT_LIMIT:
                    self._pack(self.queue)
                with memoryview(self._unsent) as view:
                    sent = self._sock.send(view[: 1 << 16], _QUIETLY)
                del self._unsent[:sent]
        except OSError:
            pass

    def _pack(self, queue):
        rows = []
        while queue:
            entry = queue[0]
            if type(entry) is not tuple:
                if rows:
                    break
                queue.popleft()
                self._unsent += wire.json_frame(entry)
                return
            queue.popleft()
            instrument, ident, flags, begin, end = entry
            number = self._threads.get(ident)
            if number is None:
                number = self._meet_thread(ident)
            rows.append((instrument, number, flags, begin, end))
            if len(rows) >= SAMPLES_A_FRAME:
                break
        if rows:
            self.samples += len(rows)
            self._unsent += wire.samples_frame(rows)

    def _meet_thread(self, ident):
        number = len(self._threads)
        self._threads[ident] = number
        self._unsent += wire.json_frame({"k": "thread", "t": time.monotonic_ns(), "thread": number, "name": thread_name(ident)})
        return number

    def _send(self):
        while self._unsent:
            try:
                with memoryview(self._unsent) as view:
                    sent = self._sock.send(view[: 1 << 18], _QUIETLY)
            except (BlockingIOError, InterruptedError):
                return
            del self._unsent[:sent]


_names = {}


def thread_name(ident):
    """A name for a thread, the same for samples and compile events: "main", or threading's name with its ident.

    Asked again it answers as before: a short-lived thread is gone when its samples are packed.
    """
    name = _names.get(ident)
    if name is None:
        name = _names[ident] = _find_name(ident)
    return name


def _find_name(ident):
    if ident == threading._main_thread.ident:
        return "main"
    thread = threading._active.get(ident)
    return f"{thread.name if thread is not None else 'thread'} ({ident & 0xFFFFFF:x})"
