"""What goes out: a bounded queue that the job's threads fill, and a sender that empties it without ever waiting.

The job's side of this is one `append` (see `timers`). Everything that costs time - numbering threads, packing, sending -
happens on the hook's own thread. What does not fit is dropped and counted.
"""

import collections
import socket
import threading
import time
from _thread import get_ident
from itertools import repeat, starmap

from . import wire
from .remains import Mortal

QUEUE_LIMIT = 131072  # entries; a sample is about 200 bytes in the job, so at most some 26 MB
UNSENT_LIMIT = 4 * 1024 * 1024  # bytes that the socket has not taken yet; beyond it nothing is packed any more
FACTS_ABOVE_LIMIT = 16384  # messages have that much room of their own: samples without them would mean nothing
WHOLE = ("payload", "z")  # fields that are never cut here
LONGEST_TEXT = 4096  # characters: names and reasons are the job's own text; payloads of the trace have a bound of their own
TAKEN_AT_ONCE = 64
SAMPLES = {tuple}  # the types of what is taken where no message is among it
SAMPLES_A_FRAME = 4096  # bounds how long the hook's thread holds the GIL in one piece

# A job may have given SIGPIPE back its deadly default: a send to a tuimon that is gone must not raise it.
_QUIETLY = getattr(socket, "MSG_NOSIGNAL", 0)


class Outbox(metaclass=Mortal):
    """The queue between the job's threads and the hook's sender."""

    def __init__(self, sock):
        self.queue = collections.deque()
        self.limit = QUEUE_LIMIT
        self.room = [QUEUE_LIMIT]
        """The same in a list, for the timers (`timers`): 0 once nothing is to come any more."""
        self.dropped = [0]  # a list, so that the timers' closures can count in it
        self.samples = 0
        self.packed = 0
        """Entries of either kind that have left the queue."""
        self.messages = 0
        """Messages that have been put; too few where threads of the job put some at once."""
        self.taken = 0
        """Bytes that the other side has taken since `finish` began."""
        self.look = None
        """Called with the samples that are packed, on the hook's thread; None: nobody looks."""
        self.hurry = False
        """Something was put that is to be packed soon, though the next flush is not due."""
        self._unsent = bytearray()
        self._packing = None
        """The thread on which a message is being made right now."""
        self._names = {}
        self._sock = sock

    def put(self, message, soon=False):
        """Queue a JSON-able dict, or what makes one (or None, for nothing) when it is called on the hook's thread.

        What is put while a message is being made goes out before it, so that what a message names is known when it comes.
        Never blocks; a full queue drops and counts. Gives whether it was taken.
        """
        if self._packing is not None and self._packing == get_ident():
            self._add(message() if callable(message) else message)
            return True
        if len(self.queue) < self.limit + FACTS_ABOVE_LIMIT:
            self.messages += 1
            self.queue.append(message)
            self.hurry = self.hurry or soon
            return True
        self.dropped[0] += 1
        return False

    def name_of(self, ident):
        """A name for a thread: "main", or threading's name with its ident. The first time, tuimon is told.

        Asked again it answers as before, also when the thread has ended meanwhile.
        """
        name = self._names.get(ident)
        if name is None:
            thread = threading._active.get(ident)
            native = getattr(thread, "native_id", None)
            name = f"{thread.name if thread is not None else 'thread'} ({ident & 0xFFFFFF:x})"
            if ident == threading._main_thread.ident:
                name = "main"
            self._names[ident] = name
            self.put({"k": "thread", "t": time.monotonic_ns(), "thread": ident, "name": name, "native": native})
        return name

    def name_threads(self):
        """Name every thread that Python knows of now."""
        names = self._names
        for ident in list(threading._active):
            if ident not in names:
                self.name_of(ident)

    def flush(self):
        """Pack what is queued and give the socket what it takes. Raises OSError when the connection is gone."""
        self.hurry = False
        self.name_threads()
        self._send()
        queue = self.queue
        while queue and len(self._unsent) < UNSENT_LIMIT:
            self._pack(queue)
            self._send()

    def finish(self, seconds, in_all):
        """Send what is left: used when the job or the session ends.

        Gives up where nothing has been taken for so many seconds, and in any case after `in_all`: on a busy machine a moment is
        over before this thread has run at all, and the last message is the one that says how it ended.
        """
        deadline = time.monotonic() + in_all
        try:
            self._sock.settimeout(max(0.01, seconds))
            while (self.queue or self._unsent) and time.monotonic() < deadline:
                if self.queue and len(self._unsent) < UNSENT_LIMIT:
                    self._pack(self.queue)
                with memoryview(self._unsent) as view:
                    sent = self._sock.send(view[: 1 << 16], _QUIETLY)
                del self._unsent[:sent]
                self.taken += sent
        except OSError:
            pass

    def _pack(self, queue):
        rows, left = [], min(len(queue), SAMPLES_A_FRAME)
        while left:
            # in C, some at a time: one by one in Python takes four times as long
            taken = list(starmap(queue.popleft, repeat((), min(left, TAKEN_AT_ONCE))))
            left -= len(taken)
            if set(map(type, taken)) != SAMPLES:
                first = next(at for at, entry in enumerate(taken) if type(entry) is not tuple)
                queue.extendleft(reversed(taken[first:]))
                del taken[first:]
                left = 0
            rows += taken
        self.packed += len(rows) or 1
        if rows:
            self.samples += len(rows)
            if self.look is not None:
                self.look(rows)
            self._unsent += wire.samples_frame(rows)
        else:
            message = queue.popleft()
            if callable(message):
                self._packing = get_ident()
                try:
                    message = message()
                finally:
                    self._packing = None
            self._add(message)

    def _add(self, message):
        if message is not None:
            self._unsent += wire.json_frame(_cut(message))

    def falls_silent(self):
        """Nothing that the job still calls puts a sample from now on. Also for a child, forked while a message was made."""
        self.room[0] = 0
        self._packing = None

    def _send(self):
        while self._unsent:
            try:
                with memoryview(self._unsent) as view:
                    sent = self._sock.send(view[: 1 << 18], _QUIETLY)
            except (BlockingIOError, InterruptedError):
                return
            del self._unsent[:sent]


def _cut(value):
    """The same without what is too long of its texts."""
    if isinstance(value, str):
        return value if len(value) <= LONGEST_TEXT else value[:LONGEST_TEXT]
    if isinstance(value, dict):
        return {key: item if key in WHOLE else _cut(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_cut(item) for item in value]
    return value
