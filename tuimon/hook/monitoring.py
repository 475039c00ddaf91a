"""Calls of one function, and passages of one instruction in it, told by `sys.monitoring` (CPython 3.12 on).

Local events: only the code objects that are asked for are watched, everything else runs as before. A compiled call runs a code
object that Dynamo made for the cache entry, so an event of the original says that it ran in eager. Calls that Dynamo was not
there to see - plain calls of a function that is also compiled somewhere, or calls below `torch.compiler.disable` - are no calls
of the frame: Dynamo's own answer to "is the frame callback set on this thread" tells them apart.

An event is one instruction of a code object as it is seen by Dynamo, by its offset. A line would not do: a call that is
spread over several lines passes its first line twice.

Heads of loops, marked functions and iterators are watched in the same way and with the same tool. They are the user's own eager
code and count always. What they may cost is bounded: see `BUDGET`.
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
BUDGET = 5000
"""Passages of one loop's head, or items of one iterator, that are told until `Monitoring.refill`, once a second: a step's loop
has fewer, and at some 2 us each it is 1 % of a second. What has more is no step's: the interpreter is told to let it be."""
EVENTS = ("PY_START", "INSTRUCTION", "PY_RESUME", "PY_YIELD", "PY_RETURN")
TOOLS = (4, 3)  # of six: 0, 1, 2 and 5 are a debugger's, coverage's, a profiler's and an optimizer's by convention


class Monitoring(metaclass=Mortal):
    """Puts samples for calls and passages of code objects, under numbers that the caller has told of."""

    def __init__(self, hook, forced):
        """`forced`: a list of one item, true while calls count although Dynamo is not there to see them."""
        self._hook = hook
        self._forced = forced
        self._monitoring = getattr(sys, "monitoring", None)
        self._tool = None
        # id of a code object -> [weak reference to it, the number for its calls or None, {offset: number}, {head's offset:
        # [number, what is left of its budget]}, the number of its marks or None, None or [number, budget left, {thread: begin}]
        # of an iterator]; an entry goes with its code object, before that address is used again
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

    def head(self, code, offset, number):
        """Put a sample under `number` at each passage of a loop's head, by whomever it is run. As `calls`."""
        entry = self._entry(code)
        entry[3][offset] = [number, BUDGET]
        self._arm(code, entry)

    def mark(self, code, number):
        """Put a sample under `number` at the begin of each call of the code object, Dynamo there or not. As `calls`."""
        entry = self._entry(code)
        entry[4] = number
        self._arm(code, entry)

    def waits(self, code, number):
        """Put a sample under `number` from begin to end of each item that an iterator gives: a generator, or a `__next__`.

        As `calls`.
        """
        entry = self._entry(code)
        entry[5] = [number, BUDGET, {}]
        self._arm(code, entry)

    def refill(self):
        """Begin a new second. Gives (numbers of heads that were passed in the last one, numbers that were let go for ever)."""
        passed, let_go = set(), set()
        for entry in list(self._watched.values()):
            for offset, cell in list(entry[3].items()):
                if cell[1] < BUDGET:
                    passed.add(cell[0])
                if cell[1] <= 0:
                    let_go.add(cell[0])
                    entry[3].pop(offset, None)
                cell[1] = BUDGET
            waits = entry[5]
            if waits is not None:
                if waits[1] <= 0:
                    let_go.add(waits[0])
                    entry[5] = None
                waits[1] = BUDGET
        return passed, let_go

    def number_of_head(self, code, offset):
        """The number under which passages of a loop's head are told; None where they are not."""
        entry = self._watched.get(id(code))
        cell = None if entry is None else entry[3].get(offset)
        return None if cell is None else cell[0]

    def number_of_waits(self, code):
        """The number under which an iterator's items are told; None where they are not."""
        entry = self._watched.get(id(code))
        return None if entry is None or entry[5] is None else entry[5][0]

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
            reference = weakref.ref(code, partial(self._watched.pop, key))
            entry = self._watched.setdefault(key, [reference, None, {}, {}, None, None])
        return entry

    def _arm(self, code, entry):
        events = self._monitoring.events
        wanted = events.INSTRUCTION if entry[2] or entry[3] else 0
        if entry[1] is not None or entry[4] is not None:
            wanted |= events.PY_START
        if entry[5] is not None:
            wanted |= events.PY_START | events.PY_RESUME | events.PY_YIELD | events.PY_RETURN
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
            functions = _callbacks(self._watched, self._hook.outbox, self._hook.here, self._forced, monitoring.DISABLE)
            for event, function in zip(EVENTS, functions):  # noqa: B905 - 3.10 syntax
                self._hook.skip(function)
                monitoring.register_callback(tool, getattr(monitoring.events, event), function)
            return

    def _give_back(self):
        monitoring, tool, events = self._monitoring, self._tool, self._monitoring.events
        if monitoring.get_tool(tool) != NAME:
            return False  # somebody has freed it under us, and what they have put there is theirs
        quiet = True
        for entry in list(self._watched.values()):
            code = entry[0]()
            if code is not None:
                monitoring.set_local_events(tool, code, 0)
                quiet = quiet and monitoring.get_local_events(tool, code) == 0
        self._watched.clear()
        for event in EVENTS:
            monitoring.register_callback(tool, getattr(events, event), None)
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
        if entry is None or not here[0]:
            return
        _, number, _, _, mark, waits = entry
        if number is not None and (dynamo() is not None or forced[0]):
            if size(queue) < limit:
                at = now()
                put((number, ident(), 0, at, at))
            else:
                dropped[0] += 1
        if mark is not None:
            if size(queue) < limit:
                at = now()
                put((mark, ident(), 0, at, at))
            else:
                dropped[0] += 1
        if waits is not None:
            waits[2][ident()] = now()

    def passed(code, offset):
        entry = look(identity(code))
        if entry is None:
            return disable
        cell, number = entry[3].get(offset), entry[2].get(offset)
        if cell is not None:
            if cell[1] <= 0:
                return None if number is not None else disable
            cell[1] -= 1
            if here[0]:
                if size(queue) < limit:
                    at = now()
                    put((cell[0], ident(), 0, at, at))
                else:
                    dropped[0] += 1
        elif number is None:
            return disable
        if number is not None and here[0] and (dynamo() is not None or forced[0] or code.co_flags & GENERATOR):
            if size(queue) < limit:
                at = now()
                put((number, ident(), 0, at, at))
            else:
                dropped[0] += 1
        return None

    # what an iterator was begun with and did not end (it raised) is forgotten at its next begin; where it calls itself the
    # innermost is told: rather too little than too much

    def resumed(code, offset):
        entry = look(identity(code))
        if entry is None or entry[5] is None or entry[5][1] <= 0:
            return disable
        if here[0]:
            entry[5][2][ident()] = now()
        return None

    def gave(code, offset, value):
        entry = look(identity(code))
        if entry is None or entry[5] is None or entry[5][1] <= 0:
            return disable
        waits = entry[5]
        begin = waits[2].pop(ident(), None)
        if begin is not None and here[0]:
            waits[1] -= 1
            if size(queue) < limit:
                put((waits[0], ident(), 0, begin, now()))
            else:
                dropped[0] += 1
        return None

    return started, passed, resumed, gave, gave
