"""How much CPU time a thread had used at the end of a step: what tells a thread that worked from one that did not run.

One reading is a system call, so it is taken at the end of a backward or of an optimizer's step, and not more often than once in
`APART_NS` on a thread.
"""

import time

from .remains import Mortal

APART_NS = 2_000_000
MOST_THREADS = 256


class ThreadClock(metaclass=Mortal):
    """Puts samples of role "cpu": an instant, and the CPU time of the thread at it."""

    def __init__(self, hook):
        self._hook = hook
        self.last = {}
        """Thread's ident -> when it was read last: whoever calls often can see by it that it is too early for `read`."""
        self.read = _not_yet
        """`read(thread, end)`, to be called on the thread itself when something ended at `end`."""
        self._number = 0

    def watch(self):
        """Make `read`, once."""
        if self.read is not _not_yet or not self._hook.can_skip:
            return
        number = self._number = self._hook.next_number()
        self._hook.send_added(number, "cpu", None, "CPU time of the thread", "time.thread_time_ns", "", 0, False)
        self.read = _reader(number, self.last, self._hook.outbox)
        self._hook.skip(self.read)

    def given(self):
        """What `READ` needs."""
        return {
            "clock": self.last, "last": self.last.get, "read": self.read, "cpu": self._number,
            "used": time.thread_time_ns, "apart": APART_NS,
        }  # fmt: skip


# What `read` does, as statements (`weave`), where a row of this `thread` has just ended at `end`: no frame for what is usual.
READ = """
before = last(thread, 0)
if end - before >= apart:
    if before and size(queue) < room[0]:
        clock[thread] = end
        put((cpu, thread, 0, now(), used()))
    else:
        read(thread, end)
"""


def _not_yet(thread, end):
    pass


def _reader(number, last, outbox):
    """For what it gives the rules of `timers` hold."""
    now, used, apart, most = time.monotonic_ns, time.thread_time_ns, APART_NS, MOST_THREADS
    queue, limit, dropped = outbox.queue, outbox.limit, outbox.dropped
    put, size = queue.append, len

    def read(thread, end):
        if end - last.get(thread, 0) >= apart:
            if size(last) >= most:
                last.clear()
            last[thread] = end
            if size(queue) < limit:
                put((number, thread, 0, now(), used()))
            else:
                dropped[0] += 1

    return read
