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
from .thread_clock import APART_NS

MARK = "Optimizer.step#"
LOADING = "enumerate(DataLoader)#"
MARKS = (MARK, LOADING)
SURE = 64  # steps of one object in a row before one in `SELDOM` is looked at closely
SELDOM = 16


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
        for name, function, original in zip(("__enter__", "__exit__"), ours, (enter, leave)):  # noqa: B905 - 3.10 syntax
            function.__wrapped__ = original  # TorchScript compiles these two from their source, which inspect finds by this
            self._hook.skip(function)
            setattr(context, name, function)
            self._hook.undo.attribute(context, name, function, original)
        self._hook.instrument("steps", "on")

    def _timers(self, enter, leave):
        now, ident, starts, long, apart = time.monotonic_ns, get_ident, str.startswith, LONG_NS, APART_NS
        outbox, number_of, loader_of, known = self._hook.outbox, self._number_of, self._loader_of, self._classes.get
        read, last, tell = self._hook.thread_clock.read, self._hook.thread_clock.last.get, self._hook.sites.tell
        queue, room, dropped = outbox.queue, outbox.room, outbox.dropped
        put = queue.append
        began = {}

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
                end, name, thread = now(), self.name, ident()
                state = known(name)
                if len(queue) >= room[0]:
                    if room[0]:
                        dropped[0] += 1
                elif state is not None or not name.startswith(LOADING):
                    if state is not None and state[2]:
                        state[2] -= 1
                        put((state[1], thread, 0, begin, end))
                    else:
                        put((number_of(name), thread, 0, begin, end))
                    if end - last(thread, 0) >= apart:
                        read(thread, end)
                else:
                    number = loader_of(name)
                    put((number, thread, int(exc_type is not None), begin, end))  # at the loader's end: StopIteration
                    if end - begin >= long:
                        tell("data", number, begin, end)
            return result

        return __enter__, __exit__

    def _loader_of(self, name):
        """The instrument of a kind of loader: "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"."""
        number = self._loaders.get(name)
        if number is None:
            number = self._loaders[name] = self._hook.next_number()
            self._hook.send_added(number, "data", None, "DataLoader", name[len(LOADING) :], "", 0, False)
        return number

    def _number_of(self, name):
        """The instrument of the optimizer whose step is running: one for each object, so that two are told from two steps.

        To find the object costs some microseconds (its frame's variables have to be copied). Once `SURE` steps of a class
        have all been one object's, only one step in `SELDOM` is looked at that closely: the others do not come here.
        """
        state = self._classes.get(name)
        if state is None:
            state = self._classes[name] = [0, None, 0]
        state[0] += 1
        frame = sys._getframe(2)
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
