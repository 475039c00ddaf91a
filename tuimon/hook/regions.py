"""Timers on compiled graphs, forward and backward, and on the resume functions that end a boundary.

Dynamo calls a compiled graph through a global of the user's module, `__compiled_fn_N_<uuid>`, and goes on after a graph break
through `__resume_at_N_M`. New ones pass `OutputGraph.install_global_unsafe`; those that exist are named in the bytecode of
Dynamo's cache entries. A backward graph is reached through the `backward` of a class that AOTAutograd makes for each graph,
whatever the backend. All of it is put back at detach.
"""

import sys
import weakref
from functools import partial

from . import facts, timers
from .graphs import autograd_functions, is_autograd_function
from .remains import Mortal
from .settings import nested_breaks_here
from .sizes import Sizes
from .texts import INSTRUMENT as TEXTS

FORWARD = "__compiled_fn_"
RESUME = "__resume_at_"


class Regions(metaclass=Mortal):
    """Finds regions, old and new, and times them."""

    def __init__(self, hook):
        self._hook = hook
        # the references' callbacks are C alone, `pop(key, reference)`: they run wherever the job drops the object, and what a
        # signal's handler raises in Python there would be lost
        self._placed = {}  # id of our wrapper -> (weak reference to it, scope, name)
        self._backwards = {}  # id of a backward's class -> weak reference to it
        self._watching = False
        self._nested = False
        hook.undo.add("regions", self._put_back)

    # ---------------------------------------------------------------- to be called when Dynamo is there

    def watch(self):
        """Time every region that is compiled from now on. Does nothing where Dynamo is not loaded yet, or the second time."""
        if self._watching or not self._hook.can_skip:
            return
        module = sys.modules.get("torch._dynamo.output_graph")
        graph_class = getattr(module, "OutputGraph", None)
        if graph_class is None:
            return
        original = graph_class.__dict__.get("install_global_unsafe")
        if original is None:
            self._watching = True
            self._hook.instrument("regions", "this torch has no OutputGraph.install_global_unsafe")
            return
        self._watching = True
        place, withdraw = self._place_new, self._withdraw
        guard, here = self._hook.guarded, self._hook.here

        def install_global_unsafe(self, name, value):
            placed = guard("regions", place, value, self, name, value)
            original(self, name, placed)
            if placed is not value and not here[0]:  # the session ended in between
                guard("regions' end", withdraw, None, self, name, placed, value)

        self._hook.skip(install_global_unsafe)
        graph_class.install_global_unsafe = install_global_unsafe
        self._hook.undo.attribute(graph_class, "install_global_unsafe", install_global_unsafe, original)
        self._hook.instrument("regions", "on")

    def place_existing(self, entries):
        """Time the regions of cache entries: an iterable of (compile id, frame's code, entry's code, global scope)."""
        belongs = {}
        times = (FORWARD,) if self._hook.settings.nested_breaks() else (FORWARD, RESUME)
        for compile_id, code, entry_code, scope in entries:
            for name in entry_code.co_names:
                if name.startswith(RESUME) and RESUME not in times:
                    self._tell_nested()
                elif name.startswith(times):
                    value = scope.get(name)
                    if callable(value) and id(value) not in self._placed:
                        belongs.update((made, compile_id) for made in autograd_functions(value))
                        if name.startswith(FORWARD):
                            self._hook.guarded(TEXTS, self._hook.texts.late, None, compile_id, value)
                        wrapper = self._wrap(scope, name, value, compile_id, code, True)
                        # Dynamo drops the global with the entry's code, which `entries` keeps alive; but the name is in the
                        # user's module, and other threads have run meanwhile
                        if scope.get(name) is value:
                            scope[name] = wrapper
        self.find_backwards(True, belongs)

    def tell_dead(self, graphs):
        """Tell of graphs from before the attach that no call reaches: an iterable of (compile id, frame's code)."""
        for compile_id, code in graphs:
            self._hook.send_added(self._hook.next_number(), "forward", compile_id, FORWARD, *_place_of(code), True)

    # ---------------------------------------------------------------- forward regions and resume functions

    def _place_new(self, graph, name, value):
        if not name.startswith((FORWARD, RESUME)) or not callable(value) or not self._hook.here[0]:
            return value
        if name.startswith(RESUME) and nested_breaks_here():
            self._tell_nested()
            return value
        compile_id = facts.compile_id()
        wrapper = self._wrap(graph.global_scope, name, value, compile_id, getattr(graph, "f_code", None), False, graph)
        if name.startswith(FORWARD):
            self.find_backwards(False, dict.fromkeys(autograd_functions(value), compile_id))
        return wrapper

    def _tell_nested(self):
        """Such a resume function is called by code that Dynamo traces, and it would trace our timer with it."""
        if not self._nested:
            self._nested = True
            self._hook.send_gap(
                "boundaries", "crossings are not counted where the job compiles with torch._dynamo.config.nested_graph_breaks"
            )

    def _timers(self):
        clock = self._hook.clock
        return clock if clock.is_there() else timers

    @staticmethod
    def _withdraw(graph, name, placed, value):
        if graph.global_scope.get(name) is placed:
            graph.global_scope[name] = value

    def _wrap(self, scope, name, value, compile_id, code, before_attach, graph=None):
        forward = name.startswith(FORWARD)
        number = self._hook.next_number()
        made_by = self._timers()
        sizes = self._hook.guarded("sizes", Sizes.taken_by, None, self._hook, number, graph) if forward else None
        if sizes is not None:
            wrapper = made_by.sized_timer(value, number, self._hook.outbox, sizes)
        else:
            make = made_by.call_timer if forward else made_by.resume_timer
            wrapper = make(value, number, self._hook.outbox)
        wrapper.__wrapped__ = value
        self._hook.skip(wrapper)
        function, file, line = _place_of(code)
        if not forward:
            function, file, line = _place_of(resumed_code(value)) or (function, file, line)
        if sizes is not None:
            sizes.about = compile_id, name, function, file, line
        self._hook.send_added(
            number,
            "forward" if forward else "resume",
            compile_id,
            name,
            function,
            file,
            line,
            before_attach,
            backend=_backend_name(graph) if forward else None,
        )
        self._hook.region_placed()
        key = id(wrapper)
        self._placed[key] = (weakref.ref(wrapper, partial(self._placed.pop, key)), scope, name)
        return wrapper

    # ---------------------------------------------------------------- backward regions

    def find_backwards(self, before_attach, belongs):
        """Time the backward of every graph that AOTAutograd made and that is not timed yet.

        `belongs` tells by class which compilation a graph is of; one that is in no frame's graph has none.
        """
        autograd = sys.modules.get("torch.autograd.function")
        base = getattr(autograd, "Function", None)
        if base is None:
            return
        for made in base.__subclasses__():
            if not is_autograd_function(made) or "backward" not in vars(made) or not self._is_new(made):
                continue
            original = vars(made)["backward"]
            if not isinstance(original, staticmethod):
                self._hook.instrument("backward regions", "this torch makes its backward in another way")
                continue
            self._time_backward(made, original, belongs.get(made) or _saved_compile_id(made), before_attach)

    def _is_new(self, made):
        """Whether this is the first to ask about the class: two threads can look at once."""
        key = id(made)
        reference = weakref.ref(made, partial(self._backwards.pop, key))
        return self._backwards.setdefault(key, reference) is reference

    def _time_backward(self, made, original, compile_id, before_attach):
        number = self._hook.next_number()
        timed = self._timers().call_timer(original.__func__, number, self._hook.outbox)
        timed.__wrapped__ = original
        self._hook.skip(timed)
        made.backward = staticmethod(timed)
        name = f"CompiledFunction_{getattr(made, '_aot_id', number)}"
        self._hook.send_added(number, "backward", compile_id, name, name, "", 0, before_attach)
        self._hook.instrument("backward regions", "on")
        # nothing here may hold the class: the job drops its graphs, and ours must not keep them
        key = id(made)
        self._placed[key] = (weakref.ref(made, partial(self._placed.pop, key)), None, name)
        if not self._hook.here[0]:  # the session ended in between: `_put_back` may have missed it
            _put_back_backward(made)

    # ---------------------------------------------------------------- undoing

    def _put_back(self):
        ok = True
        for reference, scope, name in list(self._placed.values()):
            placed = reference()
            if placed is None:
                continue  # Dynamo has dropped the entry (a reset)
            if scope is None:
                ok = _put_back_backward(placed) and ok
            elif scope.get(name) is placed:  # otherwise the job has put something else there
                scope[name] = placed.__wrapped__
                ok = scope[name] is placed.__wrapped__ and ok
        self._placed.clear()
        self._backwards.clear()
        return ok


def _put_back_backward(made):
    ours = vars(made).get("backward")
    original = getattr(getattr(ours, "__func__", None), "__wrapped__", None)
    if not isinstance(original, staticmethod):
        return False  # somebody has wrapped ours since
    made.backward = original
    return vars(made)["backward"] is original


def _place_of(code):
    if code is None:
        return ("?", "", 0)
    return (code.co_name, code.co_filename, code.co_firstlineno)


def resumed_code(value):
    """The code that a resume global goes on with: its own, or - where it closes over variables - the one its maker holds."""
    code = getattr(value, "__code__", None)
    if code is None or code.co_name != "_make_fn":
        return code
    for cell in value.__closure__ or ():
        held = cell.cell_contents
        if hasattr(held, "co_firstlineno"):
            return held
    return code


def _backend_name(graph):
    compiler = getattr(graph, "compiler_fn", None)
    for _ in range(3):
        name = getattr(compiler, "compiler_name", None)
        if isinstance(name, str):
            return name
        inner = getattr(compiler, "compiler_fn", None) or getattr(compiler, "_torchdynamo_orig_callable", None)
        if inner is None:
            break
        compiler = inner
    return getattr(compiler, "__name__", None)


def _saved_compile_id(made):
    saved = getattr(getattr(made, "_lazy_backward_info", None), "saved_compile_context", None)
    compile_id = getattr(saved, "compile_id", None)
    return None if compile_id is None else str(compile_id)
