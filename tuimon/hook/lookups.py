"""Calls that fit no cache entry and run in eager, told by Dynamo's own lookups. For Pythons without `sys.monitoring`.

Dynamo calls a hook after each lookup with its result, hit or miss, and not with the frame, which is not there yet. What runs
next on that thread is either the frame itself, in eager, or Dynamo's compiler. So at a miss, and only then, this thread's
profile function is set for the one event that tells which, and is gone before a line of either has run.

There is one such hook in the process, torch's own "guard collectives" use it too: the one that was there is called first, and
its answer is the answer.
"""

import sys
import time
import weakref
from _thread import get_ident
from functools import partial

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
        self.unseen = [0]
        """Misses of which it could not be seen whose they are, because a profiler had this place."""

    def why_not(self):
        """Why lookups cannot be watched here, a sentence; None where they can."""
        if hasattr(frame_evaluator(), "set_guard_complete_hook"):
            return None
        return "this torch does not tell how its lookups end"

    def calls(self, code, number):
        """Put a sample under `number` for each such call of the code object from now on. Only where `why_not` gave None."""
        key = id(code)
        # the callback is C alone, `pop(key, reference)`: it runs wherever the job drops the code object
        self._watched[key] = (weakref.ref(code, partial(self._watched.pop, key)), number)
        if self._set is None:
            self._install()

    def number_of(self, code):
        """The number under which its calls are told; None where they are not watched."""
        entry = self._watched.get(id(code))
        return None if entry is None else entry[1]

    def forget_calls(self, code):
        """No more samples for this code object."""
        self._watched.pop(id(code), None)

    def _install(self):
        self._set = frame_evaluator().set_guard_complete_hook
        entered = _entered(self._watched, self._hook.outbox, self._hook.here)
        ours = _looked(entered, self._hook.here, self.unseen)
        self._hook.skip(entered)
        self._hook.skip(ours)
        previous = self._set(ours)
        if previous is not None:
            ours = _looked_after(previous, entered, self._hook.here, self.unseen)
            self._hook.skip(ours)
            self._set(ours)

        def put_back():
            found = self._set(previous)
            if found is ours:
                return True
            self._set(found)  # somebody has put theirs in ours' place since: it stays
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


def _looked(entered, here, unseen):
    """Dynamo's hook: gives back what it is given."""
    profiler, profile = sys.getprofile, sys.setprofile

    def looked(hit):
        if hit:
            return hit
        if here[0]:
            if profiler() is None:
                profile(entered)
            else:
                unseen[0] += 1
        return hit

    return looked


def _looked_after(previous, entered, here, unseen):
    """The same where somebody's hook was there before: theirs decides."""
    profiler, profile = sys.getprofile, sys.setprofile

    def looked(hit):
        hit = previous(hit)
        if not hit and here[0]:
            if profiler() is None:
                profile(entered)
            else:
                unseen[0] += 1
        return hit

    return looked
