"""Steps, from the optimizer, at a place that the compiler does not look at.

torch's own optimizer hooks are no such place: where a job compiles its optimizer, Dynamo traces through them, and a hook that
it must not trace becomes a graph break that the job did not have. But every `Optimizer.step` runs inside
`torch.autograd.profiler.record_function("Optimizer.step#...")`, which Dynamo replaces by nothing without looking at its
methods. So those two methods are what we stand in for; an optimizer that is compiled itself passes no record_function, and
tuimon counts the region of its step instead.

A loader's wait for its next batch is such a place too: torch's iterators make it within `record_function("enumerate(DataLoader)
#...")`, with workers or without.
"""

import sys
import time
from _thread import get_ident

from .remains import Mortal
from .sites import LONG_NS
from .thread_clock import APART_NS, READ
from .weave import indented

MARK = "Optimizer.step#"
LOADING = "enumerate(DataLoader)#"
MARKS = (MARK, LOADING)
SURE = 64  # steps of one object in a row before one in `SELDOM` is looked at closely
SELDOM = 16

# What is done at the begin of the one and around the other, as statements within torch's own (`weave`): the same as the two
# functions of `Steps._timers` do around them. The first look at the name is rough; what is none of `MARKS` ends in `_took`.
ENTER = """
try:
    text = self.name
    first = text[0]
    if (first == "O" or first == "e") and size(text) > 10 and text[10] in "sD" and room[0]:
        began[identity(self)] = now()
except Exception:
    pass
"""
EXIT = (
    "begin = began.pop(identity(self), None) if began else None",
    "begin = None",
    f"""
if begin is not None:
    end, state = now(), known(of(self, "name", None))
    if state is not None and state[2] and size(queue) < room[0]:
        state[2] -= 1
        thread = ident()
        put((state[1], thread, 0, begin, end))
        {indented(READ, 8)}
    else:
        passed(self, begin, end, exc_type)
""",
)


class Steps(metaclass=Mortal):
    """Times `Optimizer.step`, and the loader's waits, from the moment torch is there."""

    def __init__(self, hook):
        self._hook = hook
        self._numbers = {}
        self._classes = {}
        """name of the record_function -> [steps of the same object in a row, its instrument, steps to be taken for its own]."""
        self._loaders = {}  # name of the record_function -> instrument
        self._on = False

    def watch(self):
        """Put the timers in; does nothing where torch's profiler module is not loaded yet, or the second time."""
        context = getattr(sys.modules.get("torch.autograd.profiler"), "record_function", None)
        if self._on or context is None or not self._hook.can_skip:
            return
        self._on = True
        enter, leave = vars(context).get("__enter__"), vars(context).get("__exit__")
        if enter is None or leave is None:
            self._hook.instrument("steps", "this torch has another record_function")
            return
        ours = self._timers(enter, leave)
        for original, (function, body) in zip((enter, leave), ours):  # noqa: B905 - 3.10 syntax
            name = function.__name__
            function.__wrapped__ = original  # TorchScript compiles these two from their source, which inspect finds by this
            function.__qualname__, function.__module__ = original.__qualname__, original.__module__  # by which it is pickled
            self._hook.skip(function)
            setattr(context, name, function)
            self._hook.undo.attribute(context, name, function, original)
            self._hook.weaving.later([(context, name)], function, original, *body)
        self._hook.instrument("steps", "on")

    def _timers(self, enter, leave):
        """The two stand-ins, and what their bodies are made of (`ENTER`, `EXIT`): both must do the same."""
        clock, outbox, began = self._hook.thread_clock, self._hook.outbox, {}
        now, ident, starts, apart = time.monotonic_ns, get_ident, str.startswith, APART_NS
        queue, room, put = outbox.queue, outbox.room, outbox.queue.append
        known, passed, read, last = self._classes.get, self._passed, clock.read, clock.last.get

        # all that the job does within a record_function passes these two: what is no step costs one look at a name
        def __enter__(self):
            try:
                if starts(self.name, MARKS) and room[0]:
                    began[id(self)] = now()
            except Exception:  # noqa: BLE001 - no text: torch itself will say so
                pass
            return enter(self)

        def __exit__(self, exc_type, exc_value, traceback):
            if not began:
                return leave(self, exc_type, exc_value, traceback)
            begin = began.pop(id(self), None)
            result = leave(self, exc_type, exc_value, traceback)
            if begin is not None:
                end, state = now(), known(getattr(self, "name", None))
                if state is not None and state[2] and len(queue) < room[0]:
                    state[2] -= 1
                    thread = ident()
                    put((state[1], thread, 0, begin, end))
                    if end - last(thread, 0) >= apart:
                        read(thread, end)
                else:
                    passed(self, begin, end, exc_type)
            return result

        first = {"began": began, "now": now, "room": room, "identity": id, "size": len}
        then = {**first, "known": known, "passed": passed, "queue": queue, "put": put, "ident": ident, "of": getattr}
        then.update(clock.given())
        return (__enter__, (first, ENTER)), (__exit__, (then, *EXIT))

    def _passed(self, it, begin, end, exc_type):
        """One of `MARKS` has ended: of a loader, or of an optimizer that is not known well enough, or there is no room."""
        self._hook.guarded("steps", self._took, None, it.name, begin, end, exc_type is not None, sys._getframe(2))

    def _took(self, name, begin, end, raised, frame):
        outbox, clock = self._hook.outbox, self._hook.thread_clock
        if not name.startswith(MARKS):
            return
        if len(outbox.queue) >= outbox.room[0]:
            if outbox.room[0]:
                outbox.dropped[0] += 1
            return
        thread = get_ident()
        if name.startswith(MARK):
            outbox.queue.append((self._number_of(name, frame), thread, 0, begin, end))
            clock.read(thread, end)
        else:
            number = self._loader_of(name)
            outbox.queue.append((number, thread, int(raised), begin, end))  # at the loader's end: StopIteration
            if end - begin >= LONG_NS:
                self._hook.sites.tell("data", number, begin, end)

    def _loader_of(self, name):
        """The instrument of a kind of loader: "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"."""
        number = self._loaders.get(name)
        if number is None:
            number = self._loaders[name] = self._hook.next_number()
            self._hook.send_added(number, "data", None, "DataLoader", name[len(LOADING) :], "", 0, False)
        return number

    def _number_of(self, name, frame):
        """The instrument of the optimizer whose step runs in `frame`: one for each object, so that two are told from two steps.

        To find the object costs some microseconds (its frame's variables have to be copied). Once `SURE` steps of a class
        have all been one object's, only one step in `SELDOM` is looked at that closely: the others do not come here.
        """
        state = self._classes.get(name)
        if state is None:
            state = self._classes[name] = [0, None, 0]
        state[0] += 1
        optimizer = frame.f_locals.get("self") if frame.f_code.co_name == "wrapper" else None
        key = name if optimizer is None else id(optimizer)
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = self._hook.next_number()
            kind = name[len(MARK) :].partition(".")[0] or "optimizer"
            self._hook.send_added(number, "optimizer", None, kind, kind, "", 0, False)
        if state[1] != number:
            state[:] = 0, number, 0  # another object than the last time: look at each of the next steps
        elif state[0] >= SURE:
            state[2] = SELDOM - 1
        return number
