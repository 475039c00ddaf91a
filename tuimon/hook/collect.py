"""Collections of garbage: when the interpreter stops to look for it, for how long, and what set it off.

`gc.callbacks` are called on the thread that collects, which holds the GIL: the whole job stands. They cost nothing that could
be measured next to the collection itself.
"""

import gc
import sys
import time
from _thread import get_ident

from .remains import Mortal
from .sites import LONG_NS

INSTRUMENT = "collections"
LEAST_NS = 50_000  # shorter ones are not told: a busy job makes thousands a second of them
GENERATION = 8  # bits to shift, in a sample's flags
PATIENCE_S = 0.5
NEVER = 1 << 63  # later than any: the begin of a collection in whose middle we came


class Collections(metaclass=Mortal):
    """Puts one sample for each collection that took long enough to matter."""

    def __init__(self, hook):
        self._hook = hook
        self._on = False
        self._ours = None

    def watch(self):
        """Be told of collections from now on; does nothing before torch is there, or the second time."""
        if self._on or not self._hook.can_skip:
            return
        self._on = True
        number = self._hook.next_number()
        self._hook.send_added(number, "gc", None, "gc", "gc.collect", "", 0, False)
        collected = self._ours = _callback(number, self._hook.outbox, self._hook.here, self._hook.sites.tell)
        self._hook.skip(collected)
        gc.callbacks.append(collected)
        self._hook.undo.add("gc.callbacks", lambda: _take_away(collected))
        self._hook.instrument(INSTRUMENT, "on")

    def forked(self):
        """In a child that the job has forked, before it runs anything: there is nobody to tell."""
        _remove(self._ours)


def _callback(number, outbox, here, tell):
    """What the interpreter calls at the begin and at the end of a collection: for it the rules of `timers` hold."""
    now, ident, dropped, limit = time.monotonic_ns, get_ident, outbox.dropped, outbox.limit
    queue, least, long, shift = outbox.queue, LEAST_NS, LONG_NS, GENERATION
    put = queue.append
    begin = NEVER  # there is one collection at a time

    def collected(phase, info):
        nonlocal begin
        if phase == "start":
            begin = now()
            return
        end = now()
        if end - begin >= least and here[0]:
            if len(queue) < limit:
                put((number, ident(), (info["generation"] & 0xFF) << shift, begin, end))
                if end - begin >= long:
                    tell("gc", number, begin, end)
            else:
                dropped[0] += 1
        begin = NEVER

    return collected


def _take_away(collected):
    """Remove it from the list, which the interpreter goes through by index.

    A callback of somebody else's behind ours would be passed over if ours went while a thread is in ours or in one behind it.
    So that is waited for, for a while.
    """
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline and _is_called(collected):
        time.sleep(0.001)
    _remove(collected)
    return _place(collected) is None


def _place(collected):
    # by identity: `index` and `remove` would ask the job's own callbacks whether they are equal to ours
    for at, one in enumerate(gc.callbacks):
        if one is collected:
            return at
    return None


def _remove(collected):
    at = _place(collected)
    # nothing runs in between these two
    if at is not None and gc.callbacks[at : at + 1] and gc.callbacks[at] is collected:
        del gc.callbacks[at]


def _is_called(collected):
    at = _place(collected)
    if at is None or at == len(gc.callbacks) - 1:
        return False
    codes = [getattr(one, "__code__", None) for one in gc.callbacks[at:]]
    for frame in sys._current_frames().values():
        while frame is not None:
            if any(frame.f_code is code for code in codes):
                return True
            frame = frame.f_back
    return False
