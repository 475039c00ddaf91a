"""Calls that fit no cache entry and run in eager, told by Dynamo's own lookups. For Pythons without `sys.monitoring`.

Dynamo calls a hook after each lookup with its result, hit or miss, and not with the frame, which is not there yet. What runs
next on that thread is either the frame itself, in eager, or Dynamo's compiler. So at a miss, and only then, this thread's
profile function is set for the one event that tells which, and is gone before a line of either has run.

An exception out of that hook ends the process: torch's C++ lets it through where nothing may be thrown. In a Python function
one can be raised at any time (Ctrl-C, a handler of a signal, a debugger that is left), so the hook is no Python function: it is
put together from what C gives, and nothing is looked at for signals while it runs.

There is one such hook in the process, torch's own "guard collectives" use it too: where one is there, it stays alone.
"""

import sys
import threading
import time
import weakref
from _thread import get_ident
from collections import deque
from functools import partial
from itertools import repeat, starmap
from operator import and_, getitem, is_

from .facts import frame_evaluator
from .remains import Mortal


class Lookups(metaclass=Mortal):
    """Puts a sample for each call of a code object that missed and ran in eager, under numbers that were told of."""

    def __init__(self, hook, replaced):
        """`replaced()` is called at the end if somebody else is then found in the hook's place."""
        self._hook = hook
        self._replaced = replaced
        self._watched = {}  # id of a code object -> (weak reference to it, number)
        self._set = None
        self.unseen = deque(maxlen=1)
        """Not empty where of some misses it could not be seen whose they are, because a profiler had this place."""

    def why_not(self):
        """Why lookups cannot be watched here, a sentence; None where they can."""
        evaluator = frame_evaluator()
        if not hasattr(evaluator, "set_guard_complete_hook"):
            return "this torch does not tell how its lookups end"
        if self._set is None:
            try:
                if sys.getprofile() is None:
                    sys.setprofile(None)
            except Exception:  # noqa: BLE001 - an audit hook of the job's raises what it likes
                return "the job allows no profile functions"
            self._install(evaluator.set_guard_complete_hook)
        if self._set is None:
            return "the job has a hook of its own (guard collectives?) where Dynamo tells of its lookups"
        return None

    def calls(self, code, number):
        """Put a sample under `number` for each such call of the code object from now on. Only where `why_not` gave None."""
        key = id(code)
        # the callback is C alone, `pop(key, reference)`: it runs wherever the job drops the code object
        self._watched[key] = (weakref.ref(code, partial(self._watched.pop, key)), number)

    def number_of(self, code):
        """The number under which its calls are told; None where they are not watched."""
        entry = self._watched.get(id(code))
        return None if entry is None else entry[1]

    def forget_calls(self, code):
        """No more samples for this code object."""
        self._watched.pop(id(code), None)

    def _install(self, put):
        entered = _entered(self._watched, self._hook.outbox, self._hook.here)
        self._hook.skip(entered)
        ours = _looked(entered, self._hook.here, self.unseen)
        there = {}
        look = partial(there.setdefault, "is")
        deque(map(put, map(look, map(put, (None,)))), 0)  # taken out and put back in one call in C: no lookup misses it
        if there["is"] is not None:
            return
        put(ours)
        self._set = put

        def put_back():
            found = put(None)
            if found is ours:
                return True
            put(found)  # somebody has put theirs in ours' place since: it stays
            self._replaced()
            return False

        self._hook.undo.add("the hook of Dynamo's lookups", put_back)


# What Dynamo and the interpreter call, on the job's threads: for these the rules of `timers` hold.


def _entered(watched, outbox, here):
    """A profile function for one event: the next function that is called on this thread is the one that missed, or it is
    Dynamo's, which compiles it."""
    now, ident, identity, dropped, limit = time.monotonic_ns, get_ident, id, outbox.dropped, outbox.limit
    queue, size, profile = outbox.queue, len, sys.setprofile
    put, look = queue.append, watched.get

    def entered(frame, event, _):
        if event == "call":
            profile(None)
            entry = look(identity(frame.f_code))
            if entry is not None and here[0]:
                if size(queue) < limit:
                    at = now()
                    put((entry[1], ident(), 0, at, at))
                else:
                    dropped[0] += 1

    return entered


class _Answer(dict, metaclass=Mortal):  # type: ignore[type-arg]
    """Gives True for True; for anything else what `__missing__` gives, which is put into each by itself."""

    # looked for in the class, where its place is found, and by that in the one that is asked: in C all the way
    __slots__ = ("__dict__", "__missing__")


def _looked(entered, here, unseen):
    """Dynamo's hook, in C alone: gives back what it is given, and at a miss sets the thread's profile function.

    Not where a profiler has the place. Some leave no object there that `sys.getprofile` could give, but have one ready for new
    threads. Each of these is one pass of an endless pipe: is the place free, what is to be done, do it, give False.
    """
    no_profiler = map(is_, starmap(sys.getprofile, repeat(())), repeat(None))
    none_for_new = map(is_, starmap(getattr, repeat((threading, "_profile_hook", None))), repeat(None))
    free = map(and_, no_profiler, none_for_new)
    nothing = partial(bool)
    todo = ((nothing, nothing), (partial(unseen.append, True), partial(sys.setprofile, entered)))
    of_those = map(getitem, repeat(todo), starmap(getitem, repeat((here, 0))))
    done = map(partial.__call__, map(getitem, of_those, free))
    answer = _Answer({True: True})
    answer.__missing__ = partial(next, map(is_, done, repeat(todo)))  # what it is asked for stands where `next` has its default
    return answer.__getitem__
