"""What was being compiled when tuimon came, read from outside: from the stacks of the job's threads.

A compilation that begins while tuimon is there is told by torch's log. One that was under way is not: then the frames of
Dynamo and of what it calls say what is compiled, and how far it is. So the hook's thread looks at all stacks when it is put in,
and once a second as long as a compilation found there has not come up in the log. A look costs some 0.1 ms.

Frames are torch's own and are found by the names that torch 2.9 to 2.14 give them.
"""

import sys
import time

from . import stack
from .frames import rows_of, variables_of
from .remains import Mortal

FARTHEST = 4000  # frames of one thread that are looked at
MOST_TOLD = 32  # frames of the user's stack that are told
EVERY_S = 1.0
INSTRUMENT = "compiling at attach"

# (module below torch, function, what it does), looked up from the innermost frame outwards
PHASES = (
    ("_inductor.async_compile", "wait", "building kernels"),
    ("_inductor.cpp_builder", "build", "building kernels"),
    ("_inductor.codecache", "load_by_key_path", "loading kernels"),
    ("_inductor.select_algorithm", "autotune", "timing kernels"),
    ("_inductor.runtime.triton_heuristics", "benchmark_all_configs", "timing kernels"),
    ("_inductor.graph", "compile_to_module", "generating code"),
    ("_inductor.graph", "codegen", "generating code"),
    ("_inductor.graph", "run", "lowering the graph"),
    ("_inductor.fx_passes.pre_grad", "pre_grad_passes", "optimising the graph"),
    ("_inductor.fx_passes.joint_graph", "joint_graph_passes", "optimising the graph"),
    ("_inductor.fx_passes.post_grad", "post_grad_passes", "optimising the graph"),
    ("_inductor.compile_fx", "_compile_fx_inner", "optimising the graph"),
    ("_inductor.compile_fx", "compile_fx_inner", "optimising the graph"),
    ("_functorch.partitioners", "min_cut_rematerialization_partition", "dividing forward and backward"),
    ("_functorch.partitioners", "default_partition", "dividing forward and backward"),
    ("_functorch._aot_autograd.graph_compile", "aot_stage1_graph_capture", "tracing forward and backward"),
    ("_functorch.aot_autograd", "aot_stage1_graph_capture", "tracing forward and backward"),
    ("_functorch.aot_autograd", "create_aot_dispatcher_function", "tracing forward and backward"),
    ("_functorch._aot_autograd.graph_compile", "aot_stage2_compile", "in AOTAutograd"),
    ("_functorch.aot_autograd", "aot_module_simplified", "in AOTAutograd"),
    ("_dynamo.output_graph", "call_user_compiler", "in the backend"),
    ("_dynamo.guards", "get_and_maybe_log_recompilation_reasons", "asking why guards failed"),
    ("_dynamo.guards", "build_guards", "building guards"),
    ("_dynamo.convert_frame", "build_guards", "building guards"),
    ("_dynamo.symbolic_convert", "run", "tracing the code"),
    ("_dynamo.convert_frame", "trace_frame", "tracing the code"),
    ("_dynamo.convert_frame", "_compile", "starting"),
    ("_functorch._aot_autograd.runtime_wrappers", "get_or_compile", "starting"),
)
_WORDS = {("torch." + module, function): words for module, function, words in PHASES}
_FUNCTIONS = frozenset(function for _, function, _ in PHASES)
_BACKWARD = "torch._functorch._aot_autograd.runtime_wrappers"  # up to torch 2.9 `_backward_impl` compiles by itself


class Found(metaclass=Mortal):
    """A compilation that goes on on a thread."""

    def __init__(self):
        self.compile_id = None
        self.direction = "forward"
        self.code = None
        self.owner = ""
        self.phase = None
        self.since = None  # seconds since 1970
        self.user = []


class Now(metaclass=Mortal):
    """Tells what compiles, as long as no record of torch's does."""

    def __init__(self, hook, heard):
        """`heard`: a set, kept up by others, of idents of threads on which torch's log has told of a compilation."""
        self._hook = hook
        self._heard = heard
        self._next = 0.0
        self.open = {}  # thread's ident -> (compile id, direction, phase) as told last

    def look(self, codes=None):
        """Look at every thread now. `codes`: {compile id: code object} of the cache entries, which name a backward's frame.

        What the log has told of since it is listened to may have begun before: it is told here too.
        """
        self._hook.guarded(INSTRUMENT, self._look, None, codes or {}, ())

    def tick(self):
        """To be called often: looks again once a second, while there is something to look for."""
        if not self.open:
            return
        for ident in list(self.open):
            if ident in self._heard:
                self.open.pop(ident, None)
        now = time.monotonic()
        if self.open and now >= self._next:
            self._hook.guarded(INSTRUMENT, self._look, None, {}, self._heard)

    def _look(self, codes, heard):
        self._next = time.monotonic() + EVERY_S
        still = set()
        for ident in list(sys._current_frames()):
            found = compiling(ident)
            if found is None or ident in heard:
                continue
            still.add(ident)
            self._tell(ident, found, codes)
        for ident in list(self.open):
            if ident not in still:
                self.open.pop(ident, None)

    def _tell(self, ident, found, codes):
        state = (found.compile_id, found.direction, found.phase)
        before = self.open.get(ident)
        if before == state:
            return
        self.open[ident] = state
        outbox, code = self._hook.outbox, found.code
        if code is None:
            code = codes.get(found.compile_id)
        at, wall = time.monotonic_ns(), time.time()
        outbox.put(
            {
                "k": "compiling",
                "t": at,
                "wall": wall,
                "thread": outbox.name_of(ident),
                "compile_id": found.compile_id,
                "direction": found.direction,
                "code": None if code is None else self._hook.codes.number(code),
                "function": "?" if code is None else code.co_name,
                "file": "" if code is None else code.co_filename,
                "line": 0 if code is None else code.co_firstlineno,
                "owner": found.owner,
                "phase": found.phase,
                "since_wall": None if found.since is None else min(found.since, wall),
                "stack": found.user,
            }
        )


def compiling(ident):
    """The compilation that a thread is in, as `Found`; None where it is in none.

    The innermost one, where one is within another.
    """
    found = Found()
    inside = called = None
    for code, line, _, names in rows_of(ident, FARTHEST):
        function = code.co_name
        if inside is not None:
            if not _is_library(code.co_filename) and len(found.user) < MOST_TOLD:
                found.user.insert(0, [code.co_filename, line, function])
        elif function in _FUNCTIONS or function == "_backward_impl":
            module = names.get("__name__")
            if found.phase is None:
                found.phase = _WORDS.get((module, function))
            if not _can_be_read(called):
                pass
            elif module == "torch._dynamo.convert_frame" and function == "_compile":
                inside = _read(ident, code, _forward, found)
            elif module == _BACKWARD and found.phase is not None and function in ("get_or_compile", "_backward_impl"):
                inside = _read(ident, code, _backward, found)
            elif module == "torch._inductor.compile_fx" and function == "_compile_fx_inner":
                _read(ident, code, _began, found)
        called = names
    return found if inside else None


def _read(ident, code, take, found):
    """`take(variables, found)` of the innermost frame with this code, if it is still there."""
    for variables in variables_of(ident, code, FARTHEST):
        return take(variables, found)
    return None


def _can_be_read(called):
    """Whether the variables of a frame of torch's can be read, by the globals of what it has called (None: it runs itself).

    Up to Python 3.12 a trace or profile function in Python (a debugger's) stands in the place of the callee. When it is over
    the interpreter takes the frame's variables from the same dict that was read and emptied here: they would be gone.
    """
    if called is None or sys.version_info >= (3, 13):
        return True
    module = dict.get(called, "__name__")
    return type(module) is str and module.partition(".")[0] in ("torch", "contextlib")


def _forward(variables, found):
    compiled = stack.Compiling(variables)
    compile_id, began = variables.get("compile_id"), variables.get("start_time_ns")
    found.compile_id = None if compile_id is None else str(compile_id)
    found.code, found.owner = compiled.code, stack.owner(compiled)
    found.since = began / 1e9 if type(began) is int else None
    return True


def _backward(variables, found):
    """Its compilation is little more than Inductor's: what that noted as its begin stands for the begin."""
    context = variables.get("saved_compile_context")
    compile_id = getattr(context, "compile_id", None)
    found.compile_id = None if compile_id is None else str(compile_id)
    found.direction = "backward"
    return context is not None


def _began(variables, found):
    began = variables.get("start")
    found.since = began if type(began) is float else None


def _is_library(file):
    return "/torch/" in file or file.startswith("<")
