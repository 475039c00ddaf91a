"""Calls of one function, and passages of one instruction in it, told by `sys.monitoring` (CPython 3.12 on).

Local events: only the code objects that are asked for are watched, everything else runs as before. A compiled call runs a code
object that Dynamo made for the cache entry, so an event of the original says that it ran in eager. Calls that Dynamo was not
there to see - plain calls of a function that is also compiled somewhere, or calls below `torch.compiler.disable` - are no calls
of the frame: Dynamo's own answer to "is the frame callback set on this thread" tells them apart.

An event is one instruction of a code object as it is seen by Dynamo, by its offset. A line would not do: a call that is
spread over several lines passes its first line twice.
"""

import sys
import time
import weakref
from _thread import get_ident
from functools import partial

from .facts import frame_evaluator
from .remains import Mortal

NAME = "tuimon"
GENERATOR = 0x20
"""Flag of a code object whose passages all count: what drives it can be a frame that Dynamo leaves alone with all below it."""
TOOLS = (4, 3)  # of six: 0, 1, 2 and 5 are a debugger's, coverage's, a profiler's and an optimizer's by convention


class Monitoring(metaclass=Mortal):
    """Puts samples for calls and passages of code objects, under numbers that the caller has told of."""

    def __init__(self, hook, forced):
        """`forced`: a list of one item, true while calls count although Dynamo is not there to see them."""
        self._hook = hook
        self._forced = forced
        self._monitoring = getattr(sys, "monitoring", None)
        self._tool = None
        # id of a code object -> [weak reference to it, the number for its calls or None, {offset: number}]; an entry goes with
        # its code object, before that address is used again
        self._watched = {}
        self.sees_all_calls = not hasattr(frame_evaluator(), "get_eval_frame_callback")

    def why_not(self):
        """Why nothing can be watched here, a sentence; None where it can. Takes one of the tools the first time."""
        if self._monitoring is None:
            return f"Python {sys.version_info[0]}.{sys.version_info[1]} has no way to watch one function alone; 3.12 has"
        if self._tool is None:
            self._take()
        if self._tool is None:
            owners = " and ".join(str(self._monitoring.get_tool(tool)) for tool in TOOLS)
            return f"both of the places in sys.monitoring that are free for such use are taken, by {owners}"
        return None

    def calls(self, code, number):
        """Put a sample under `number` for each call of the code object from now on. Only where `why_not` gave None."""
        entry = self._entry(code)
        entry[1] = number
        self._arm(code, entry)

    def passes(self, code, offset, number):
        """Put a sample under `number` each time the instruction at `offset` is about to run. As `calls`."""
        entry = self._entry(code)
        entry[2][offset] = number
        self._arm(code, entry)

    def number_of(self, code, offset=None):
        """The number under which calls, or passages of the instruction, are told; None where they are not watched."""
        entry = self._watched.get(id(code))
        if entry is None:
            return None
        return entry[1] if offset is None else entry[2].get(offset)

    def forget_calls(self, code):
        """No more samples for calls of this code object; passages in it are told as before."""
        entry = self._watched.get(id(code))
        if entry is not None:
            entry[1] = None
            self._arm(code, entry)

    def _entry(self, code):
        key = id(code)
        entry = self._watched.get(key)
        if entry is None:
            # the callback is C alone, `pop(key, reference)`: it runs wherever the job drops the code object
            entry = self._watched.setdefault(key, [weakref.ref(code, partial(self._watched.pop, key)), None, {}])
        return entry

    def _arm(self, code, entry):
        events = self._monitoring.events
        wanted = (events.PY_START if entry[1] is not None else 0) | (events.INSTRUCTION if entry[2] else 0)
        if not self._hook.here[0]:
            wanted = 0
        # all off and on again, because an instruction that was not wanted before has been switched off where it stands; in one
        # call in C, so that no other thread runs in between
        tool = self._tool
        tuple(map(self._monitoring.set_local_events, (tool, tool), (code, code), (0, wanted)))
        if wanted and not self._hook.here[0]:  # the session ended in between: `_give_back` may have missed it
            self._monitoring.set_local_events(tool, code, 0)

    def _take(self):
        monitoring = self._monitoring
        for tool in TOOLS:
            try:
                monitoring.use_tool_id(tool, NAME)
            except ValueError:
                continue
            self._tool = tool
            self._hook.undo.add("sys.monitoring", self._give_back)
            started, passed = _callbacks(self._watched, self._hook.outbox, self._hook.here, self._forced, monitoring.DISABLE)
            for function in (started, passed):
                self._hook.skip(function)
            monitoring.register_callback(tool, monitoring.events.PY_START, started)
            monitoring.register_callback(tool, monitoring.events.INSTRUCTION, passed)
            return

    def _give_back(self):
        monitoring, tool, events = self._monitoring, self._tool, self._monitoring.events
        if monitoring.get_tool(tool) != NAME:
            return False  # somebody has freed it under us, and what they have put there is theirs
        quiet = True
        for reference, _, _ in list(self._watched.values()):
            code = reference()
            if code is not None:
                monitoring.set_local_events(tool, code, 0)
                quiet = quiet and monitoring.get_local_events(tool, code) == 0
        self._watched.clear()
        for event in (events.PY_START, events.INSTRUCTION):
            monitoring.register_callback(tool, event, None)
        monitoring.free_tool_id(tool)
        return quiet and monitoring.get_tool(tool) is None


def _callbacks(watched, outbox, here, forced, disable):
    """What the interpreter calls, on the job's threads: for them the rules of `timers` hold."""
    now, ident, identity, dropped, limit = time.monotonic_ns, get_ident, id, outbox.dropped, outbox.limit
    queue, size = outbox.queue, len
    put, look = queue.append, watched.get
    # without it every call counts: `int()` is never None
    dynamo = getattr(frame_evaluator(), "get_eval_frame_callback", int)

    def started(code, offset):
        entry = look(identity(code))
        if entry is not None and here[0] and (dynamo() is not None or forced[0]):
            number = entry[1]
            if number is not None:
                if size(queue) < limit:
                    at = now()
                    put((number, ident(), 0, at, at))
                else:
                    dropped[0] += 1

    def passed(code, offset):
        entry = look(identity(code))
        number = None if entry is None else entry[2].get(offset)
        if number is None:
            return disable
        if here[0] and (dynamo() is not None or forced[0] or code.co_flags & GENERATOR):
            if size(queue) < limit:
                at = now()
                put((number, ident(), 0, at, at))
            else:
                dropped[0] += 1
        return None

    return started, passed
