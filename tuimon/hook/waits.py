"""Timers on what a step may wait for in Python: the loader's start, the autograd engine, the profiler.

Each stands in for a function or method that torch looks up by its name at every call. The loader's `__next__` needs none: it
runs within a `record_function`, which `steps` stands in for. The engine is found twice, because `torch.autograd` has a copy of
the name; all of `Tensor.backward`, `autograd.backward` and `autograd.grad` pass one of the two.
"""

import sys
import time
import types
from _thread import get_ident

from .remains import Mortal
from .sites import LONG_NS
from .thread_clock import APART_NS, READ
from .timers import RAISED
from .weave import indented

LOADER = "torch.utils.data.dataloader"
ENGINE = "_engine_run_backward"
ENGINES = ("torch.autograd.graph", "torch.autograd")
TRACING = "_patched_engine_backward"  # what stands in the engine's place while torch traces without Dynamo, and then goes again
PROFILERS = (
    ("torch.profiler.profiler", "profile", ("start", "stop", "step"), "torch.profiler"),
    ("torch.profiler.profiler", "_KinetoProfile", ("start", "stop"), "torch.profiler"),
    ("torch.autograd.profiler", "profile", ("__enter__", "__exit__"), "torch.autograd.profiler"),
)
BY_METHOD = {"__enter__": "start", "__exit__": "stop"}


class Waits(metaclass=Mortal):
    """Puts the timers in, each as soon as the job has loaded what it stands in for."""

    def __init__(self, hook):
        self._hook = hook
        self._done = set()
        self._number = {}

    def watch(self):
        """Put in what can be put in now; cheap once all is."""
        if not self._hook.can_skip or len(self._done) == 2 + len(PROFILERS):
            return
        self._once("data", "data waits", self._loader)
        self._once("engine", "engine", self._engines)
        for row in PROFILERS:
            self._once(row, "profiler", self._profiler, *row)

    def _once(self, key, instrument, put_in, *args):
        if key not in self._done and self._hook.guarded(instrument, put_in, True, *args):
            self._done.add(key)

    # ---------------------------------------------------------------- each gives whether it is done with

    def _loader(self):
        loader = getattr(_loaded(LOADER), "DataLoader", None)
        if loader is None:
            return False
        original = vars(loader).get("__iter__")
        if not isinstance(original, types.FunctionType):
            self._hook.instrument("data waits", "this torch has another DataLoader")
            return True
        self._put(loader, "__iter__", original, "data", "DataLoader", "DataLoader.__iter__")
        self._hook.instrument("data waits", "on")
        return True

    def _engines(self):
        modules = [_loaded(name) for name in ENGINES]
        if None in modules:
            return False
        originals = [vars(module).get(ENGINE) for module in modules]
        if not all(isinstance(original, types.FunctionType) for original in originals):
            self._hook.instrument("engine", f"this torch has no {ENGINES[0]}.{ENGINE}")
            return True
        if any(original.__code__.co_name == TRACING for original in originals):
            return False  # it goes in a moment, and would take ours with it
        number = self._hook.next_number()
        self._hook.send_added(number, "engine", None, "autograd engine", ENGINE, "", 0, False)
        given = _given(number, self._hook.outbox, self._hook.thread_clock, self._first)
        made = {}
        for module, original in zip(modules, originals):  # noqa: B905 - 3.10 syntax
            ours = made.get(original) or self._hook.guarded("weaving", self._hook.weaving.made, None, original, given, *BODY)
            if ours is None:
                ours = _engine_timer(original, number, self._hook.outbox, self._hook.thread_clock, self._first)
                self._dress(ours, original, 6)
            made[original] = ours
            setattr(module, ENGINE, ours)
            self._hook.undo.add(f"{module.__name__}.{ENGINE}", _put_back(module, ours, original))
        self._hook.instrument("engine", "on")
        return True

    def _first(self, number):
        self._hook.guarded("loops", self._hook.loops.anchor, None, number)

    def _profiler(self, module, name, methods, told):
        owner = getattr(_loaded(module), name, None)
        if owner is None:
            return False
        for method in methods:
            original = vars(owner).get(method)
            if isinstance(original, types.FunctionType):
                self._put(owner, method, original, "profiler", f"{told} {BY_METHOD.get(method, method)}", f"{name}.{method}")
                self._hook.instrument("profiler", "on")
        return True

    # ---------------------------------------------------------------- common

    def _put(self, owner, attribute, original, role, name, function):
        number = self._number.get((role, name))
        if number is None:
            number = self._number[(role, name)] = self._hook.next_number()
            self._hook.send_added(number, role, None, name, function, "", 0, False)
        ours = _long_timer(original, number, role, self._hook.outbox, self._hook.here, self._hook.sites.tell)
        self._dress(ours, original, 3)
        setattr(owner, attribute, ours)
        self._hook.undo.attribute(owner, attribute, ours, original)

    def _dress(self, ours, original, call_at):
        look_like(ours, original, call_at)
        self._hook.skip(ours)


def _loaded(name):
    """A module that the job has imported to its end."""
    module = sys.modules.get(name)
    return None if getattr(getattr(module, "__spec__", None), "_initializing", False) is True else module


def look_like(ours, original, call_at):
    """Give a stand-in the name and the file of what it stands in for.

    Where a compiled function calls it, Dynamo breaks the graph: it goes by the file whether it may look into a function, and
    the reason that it notes names it. A stand-in with a file of its own would be looked into, and break for another reason.
    In a traceback its frame stands at the `def` of the original: `call_at` is how many lines after its own it calls that.
    """
    code, theirs = ours.__code__, original.__code__
    names = {"co_filename": theirs.co_filename, "co_name": theirs.co_name}
    if hasattr(code, "co_qualname"):
        names["co_qualname"] = theirs.co_qualname
    line = theirs.co_firstlineno - call_at
    ours.__code__ = code.replace(co_firstlineno=max(1, line), **names)
    ours.__name__, ours.__qualname__, ours.__module__ = original.__name__, original.__qualname__, original.__module__
    ours.__doc__, ours.__wrapped__ = original.__doc__, original


def _long_timer(fn, number, role, outbox, here, tell):
    """As `timers.call_timer`; of a call of `LONG_NS` and more it is told where it came from."""
    now, ident, dropped, limit = time.monotonic_ns, get_ident, outbox.dropped, outbox.limit
    queue, long = outbox.queue, LONG_NS
    put, size = queue.append, len

    def timed(*args, **kwargs):
        begin, raised = now(), 1
        try:
            result = fn(*args, **kwargs)
            raised = 0
            return result
        finally:
            if here[0]:
                end = now()
                if size(queue) < limit:
                    put((number, ident(), raised, begin, end))
                    if end - begin >= long:
                        tell(role, number, begin, end)
                else:
                    dropped[0] += 1

    return timed


def _engine_timer(fn, number, outbox, clock, first):
    """As `timers.call_timer`; at the end the thread's own clock is read. `first(number)` is called at the first call."""
    now, ident, size, apart = time.monotonic_ns, get_ident, len, APART_NS
    queue, room, dropped, came = outbox.queue, outbox.room, outbox.dropped, []
    put, come, read, last = queue.append, came.append, clock.read, clock.last.get

    def backward(*args, **kwargs):
        if not came and room[0]:
            come(True)
            first(number)
        begin = now()
        try:
            result = fn(*args, **kwargs)
        except BaseException:
            if size(queue) < room[0]:
                end, thread = now(), ident()
                put((number, thread, RAISED, begin, end))
                read(thread, end)
            elif room[0]:
                dropped[0] += 1
            raise
        if size(queue) < room[0]:
            end, thread = now(), ident()
            put((number, thread, 0, begin, end))
            if end - last(thread, 0) >= apart:
                read(thread, end)
        elif room[0]:
            dropped[0] += 1
        return result

    return backward


# The same as statements around those of torch's own function (`weave`). It is known for a timer by its free variables.
BODY = (
    """
if not came and room[0]:
    come(True)
    first(number)
begin, failed = now(), 0
""",
    "failed = raised",
    f"""
if size(queue) < room[0]:
    end, thread = now(), ident()
    put((number, thread, failed, begin, end))
    {indented(READ, 4)}
elif room[0]:
    dropped[0] += 1
""",
)


def _given(number, outbox, clock, first):
    came = []
    found = {"number": number, "came": came, "come": came.append, "first": first, "raised": RAISED}
    found.update(now=time.monotonic_ns, ident=get_ident, size=len, room=outbox.room, dropped=outbox.dropped)
    return {**found, **clock.given(), "queue": outbox.queue, "put": outbox.queue.append}


def _put_back(module, ours, original):
    """What puts the engine back.

    While torch traces without Dynamo a function of its own stands there, which holds what it found in a cell and puts that
    back in the end: then the original goes into that cell.
    """

    def put_back():
        there = vars(module).get(ENGINE)
        if there is ours:
            setattr(module, ENGINE, original)
        elif getattr(getattr(there, "__code__", None), "co_name", "") == TRACING:
            for cell in there.__closure__ or ():
                if cell.cell_contents is ours:
                    cell.cell_contents = original
            return all(cell.cell_contents is not ours for cell in there.__closure__ or ())
        return vars(module).get(ENGINE) is original

    return put_back
