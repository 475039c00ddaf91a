"""What the job's main thread is seen doing while nothing else tells: a low-rate sample of its stack.

The hook's own thread asks, every 50 ms, whether the thread that runs the steps has put a row of late; only if it has not for 20
ms, and is neither within a timed call nor compiling, its stack is read: code objects, lines and offsets, never a variable; and
from then on every 20 ms, until there is a row again. So a healthy job of short steps is never looked at, and a long stretch of
other Python at most fifty times a second, from its 60th millisecond on at the latest. (To ask oftener is what the hook's thread
would spend most of its time with, and each time it takes the job's lock.) In a long stretch, and where the same is seen over
and over, looks become fewer; where they cost more than 1 % of the time, they end.

A look is one call of C code, so no frame moves under it. C code that keeps the lock for itself (a
collection, a long sort) cannot be seen from here: the look comes after it.
"""

import threading
import time

from . import frames
from .loops import FARTHEST, GENERATOR, is_timed, is_users
from .remains import Mortal
from .torch_names import loaded

INSTRUMENT = "stack looks"
ITERATORS = "iterators"
EVERY_NS = 20_000_000
ASK_NS = 50_000_000  # between two looks at whether there were rows, where there were
CALM_NS = 100_000_000  # the same where the job has not stopped for a moment in the last `CALM` of them
CALM = 20
SELDOM_NS = 1_000_000_000  # where a look would tell nothing new for long
PATIENT_NS = 200_000_000  # within a timed call, a compilation or an import
SLOWEST_NS = 100_000_000  # so far apart looks are put where they are dear; beyond that they end
ENOUGH = 50  # looks of a stretch, after which they become fewer
SAME = 50  # looks that saw the same before they become fewer
LOOPS_NS = 100_000_000  # between two looks for loops, the first so many times; then a second
EAGERLY = 50
MOST_ROWS = 12
TAIL = 32  # rows that are looked through for one of the thread's; where more have come there most probably is one
BATCH = 50  # looks of which the cost is told
DEAR = 0.01  # of the time
COMPILING = ("_compile", "torch._dynamo.convert_frame")
IMPORTING = "<frozen importlib"


class Looking(metaclass=Mortal):
    """Looks at the stack of the thread that runs the steps. All of it on the hook's own thread."""

    def __init__(self, hook, loops, wanted=True):
        """`loops`: a `Loops`. `wanted`: whether stacks may be looked at while nothing is timed, at all."""
        self._hook = hook
        self._loops = loops
        self._on = wanted
        self._seen = 0
        self._told = 0
        self._since = 0
        self._soon = False
        self._calm = 0  # times in a row that there were rows until shortly before
        self._ended = 0
        self._ticked = 0
        self._next = 0
        self._least = EVERY_NS
        self._every = EVERY_NS
        self._same = 0
        self._last = None
        self._costs = []
        self._batch_began = 0
        self._next_loops = 0
        self._for_loops = 0
        self._iterators = set()
        if not wanted:
            hook.instrument(INSTRUMENT, "off: switched off by an option")

    @property
    def on(self):
        """Whether stacks are looked at."""
        return self._on

    def rest_ms(self):
        """How long to wait before the next `tick`, in ms; 0 where it does not matter."""
        if not self._on:
            return 0
        if self._soon and self._every < SLOWEST_NS:
            return EVERY_NS // 1_000_000
        return (ASK_NS if self._calm < CALM else CALM_NS) // 1_000_000

    def tick(self):
        """To be called as often as `rest_ms` says, before the queue is emptied."""
        if self._hook.here[0] and loaded("torch") is not None:
            self._hook.guarded(INSTRUMENT if self._on else "loops", self._tick, None, time.monotonic_ns())

    def _tick(self, now):
        ident = self._loops.thread() or threading._main_thread.ident
        before, self._ticked = self._ticked, now
        self._soon = True
        if self._is_busy(ident):
            self._since = max(before, min(self._ended or now, now))  # its last row's end, where that was seen
            self._every, self._same, self._last = self._least, 0, None
            self._next = self._since + self._least
            self._soon = now - self._since >= EVERY_NS // 2
            self._calm = 0 if self._soon else self._calm + 1
            if self._loops.wanted and now >= self._next_loops:
                self._for_loops += 1
                self._next_loops = now + (LOOPS_NS if self._for_loops < EAGERLY else SELDOM_NS)
                self._loops.look(ident)
            if now < self._next:
                return
        else:
            self._calm = 0
        # half a tick early is on time
        if not self._on or self._since == 0 or now < self._next - EVERY_NS // 2:
            self._since = self._since or now
            return
        self._next = now + self._every
        self._look(ident, now)
        self._pay(time.monotonic_ns() - now, now)

    def _is_busy(self, ident):
        """Whether the thread has put a row since the last time. Rather yes than no."""
        outbox = self._hook.outbox
        queue, numbers = outbox.queue, self._loops.numbers
        told, size = outbox.messages, len(queue)
        came = outbox.packed + size - self._seen
        rows = came - (told - self._told)  # the hook's own words, which come every second, are no sign of life
        self._seen, self._told, self._ended = self._seen + came, told, 0
        for back in range(1, min(came, size, TAIL) + 1 if rows > 0 else 0):
            entry = queue[size - back]
            if type(entry) is tuple:
                rows -= 1
                if entry[1] == ident and not self._ended:
                    self._ended = max(entry[3], entry[4])  # of a reading of the clock the second is no instant, but less
                if entry[0] in numbers:
                    self._loops.saw(entry[1])
                    if entry[1] == ident:
                        break  # so the others' that came since are counted with it
        # of those that have gone already, or are more than are looked at, most probably one is
        return bool(self._ended) or rows > 0

    def _look(self, ident, now):
        seen, importing = [], False
        for code, line, offset, names in frames.rows_of(ident, FARTHEST):
            file = code.co_filename
            if is_timed(code) or (code.co_name == COMPILING[0] and names.get("__name__") == COMPILING[1]):
                self._every, self._last = min(2 * self._every, PATIENT_NS), None
                return
            if file.startswith(IMPORTING):
                importing = True
            else:
                seen.append((code, line, offset))
        seen.reverse()  # outermost first
        rows = self._rows(seen)
        message = {"k": "look", "t": now, "thread": ident, "since": self._since}
        if (ident, rows) == self._last:
            self._same += 1
            message["same"] = True
            if self._same >= SAME:
                self._every = min(2 * self._every, SELDOM_NS)
        else:
            self._same, self._last = 0, (ident, rows)
            # fewer in a long stretch, which has been looked at often enough by then
            often = max(self._least, min((now - self._since) // ENOUGH, SLOWEST_NS))
            self._every = min(2 * self._every, PATIENT_NS) if importing else often
            message["rows"] = rows
            self._hook.guarded(ITERATORS, self._find_iterator, None, [row[0] for row in seen])
        self._hook.outbox.put(message)

    def _rows(self, seen):
        number, half = self._hook.codes.number, MOST_ROWS // 2
        rows = []
        for code, line, offset in seen if len(seen) <= MOST_ROWS else seen[:half] + seen[-half:]:
            rows.append([number(code), line or 0, offset, 1 if code.co_flags & GENERATOR else 0])
        return rows

    def _find_iterator(self, seen):
        """Where a loop that is known is seen waiting for its next item, have the iterator timed from now on (Python 3.12)."""
        for at in range(len(seen) - 1):
            caller, code = seen[at : at + 2]
            gives = (code.co_flags & GENERATOR and not code.co_name.startswith("<")) or code.co_name == "__next__"
            if not gives or not is_users(code) or not self._loops.watches(caller):
                continue
            told = self._hook.codes.number(code)
            if told not in self._iterators:
                self._iterators.add(told)
                number = self._hook.next_number()
                name = getattr(code, "co_qualname", code.co_name)
                place = code.co_name, code.co_filename, code.co_firstlineno
                self._hook.send_added(number, "data", None, name, *place, False, code=told)
                self._hook.eager.monitoring().waits(code, number)
            return

    def _pay(self, cost, now):
        """Note what a look has cost, in ns; state the rate once in a while, and end it where it is dear."""
        self._costs.append(cost)
        if len(self._costs) == 1:
            self._batch_began = now
        if len(self._costs) < BATCH and INSTRUMENT in self._hook.instruments:
            return
        usual = sorted(self._costs)[len(self._costs) // 2]  # of one during which another thread got the lock, the clock lies
        if len(self._costs) >= BATCH:
            self._costs.clear()
            if usual * BATCH > DEAR * (now - self._batch_began):
                self._least *= 2
                if self._least > SLOWEST_NS:
                    self._on = False
                    self._hook.instrument(
                        INSTRUMENT, f"off: a look took {usual / 1e3:.0f} us, more than {DEAR:.0%} of the time"
                    )
                    return
        self._hook.instrument(INSTRUMENT, rate(self._least, usual))


def rate(every, cost):
    """How often stacks are looked at, in words; `every` and `cost` of one look in ns."""
    return f"on: every {every // 1_000_000} ms while nothing else is seen, {cost / 1e3:.0f} us each"
