"""Code objects of the job, each under a number: what tells two frames apart when their names, lines and ids are the same.

Code objects compare by value, so two closures' worth of the same source would be one in a dict; here they are told apart by
identity. Nothing is kept alive for it: a code object that the job drops takes its entry with it, before its address is used
again.
"""

import itertools
import time
import weakref
from functools import partial

from .remains import Mortal

MOST = 16384  # code objects known at a time; beyond it the one known longest is forgotten, and would get another number


class Codes(metaclass=Mortal):
    """Numbers code objects and tells tuimon, once for each, what a number stands for."""

    def __init__(self, hook):
        self._hook = hook
        self._known = {}  # id of a code object -> (weak reference to it, number)
        self._numbers = itertools.count(1)

    def number(self, code):
        """The number of a code object. Its message is queued before this returns, so before any that names the number."""
        key = id(code)
        entry = self._known.get(key)
        if entry is not None and entry[0]() is code:
            return entry[1]
        number = next(self._numbers)
        self._tell(code, number)
        # the callback is C alone, `pop(key, reference)`: it runs wherever the job drops the code object, also under Dynamo
        ours = (weakref.ref(code, partial(self._known.pop, key)), number)
        entry = self._known.setdefault(key, ours)
        if entry[0]() is not code:
            entry = self._known[key] = ours
        if len(self._known) > MOST:
            self._forget_one()
        return entry[1]  # another thread's, if that was quicker: then ours has been told and is never used

    def _forget_one(self):
        try:  # noqa: SIM105 - contextlib's functions are Python, which Dynamo would look at
            self._known.pop(next(iter(self._known)), None)
        except (StopIteration, RuntimeError):
            pass  # another thread has changed the table in between: the next one forgets

    def _tell(self, code, number):
        self._hook.outbox.put(
            {
                "k": "code",
                "t": time.monotonic_ns(),
                "code": number,
                "function": code.co_name,
                "qualname": getattr(code, "co_qualname", code.co_name),
                "file": code.co_filename,
                "line": code.co_firstlineno,
            }
        )
