"""All that the hook takes from torch by a private name, in one table, looked for in the job's own torch at the attach.

torch promises none of these names. What is missing is told as a gap, by what the user loses with it ("not available in torch
X"), so that nothing is silently empty. The same table is checked against torch's sources of other versions (tests/hook).

A row: what is lost, as the report names it; the instrument that needs it, or ""; the module; names in it, of which one has to
be there (attributes of attributes are joined by dots); variables that the function of the first name must have; and why.
"""

import sys

from .remains import Mortal

CONVERT = "torch._dynamo.convert_frame"
UTILS = "torch._dynamo.utils"
C = "torch._C"
EVALUATOR = "_dynamo.eval_frame."

NAMES = (
    ("regions", "skip", C, (EVALUATOR + "skip_code", EVALUATOR + "set_code_exec_strategy"), (), "nothing can be timed unseen"),
    ("regions", "regions", "torch._dynamo.output_graph", ("OutputGraph.install_global_unsafe",), (), "no graph can be timed"),
    ("frames", "history", CONVERT, ("input_codes",), (), "frames from before the attach are not known"),
    ("frames", "history", C, (EVALUATOR + "_debug_get_cache_entry_list",), (), "cache entries cannot be listed"),
    ("compiles", "history", UTILS, ("get_compilation_metrics",), (), "compilations from before the attach are not known"),
    ("boundaries", "history", UTILS, ("graph_break_reasons",), (), "reasons from before the attach are not known"),
    ("history", "", UTILS, ("counters",), (), "Dynamo's totals are not known"),
    ("steps", "steps", "torch.autograd.profiler", ("record_function.__enter__",), (), "the optimizer's steps are not seen"),
    ("steps", "steps", "torch.autograd.profiler", ("record_function.__exit__",), (), "the optimizer's steps are not seen"),
    ("data waits", "", "torch.utils.data.dataloader", ("_BaseDataLoaderIter.__next__",), (), "waits for loaders are not seen"),
    ("engine", "", "torch.autograd.graph", ("_engine_run_backward",), (), "backward passes of eager code are not seen"),
    ("profiler", "", "torch.profiler.profiler", ("profile.step",), (), "what a profiler takes is not seen"),
    ("communication", "", "torch._C._distributed_c10d", ("ProcessGroup.allreduce",), (), "collectives are not seen"),
    ("communication", "", "torch._C._distributed_c10d", ("Work.wait",), (), "waits for collectives are not seen"),
    ("regions", "compile ids", "torch._guards", ("CompileContext.current_compile_id",), (), "graphs have no compile id"),
    ("compiles", "", "torch._logging._internal", ("trace_structured",), (), "compilations are not told while they run"),
    ("compiles", "", "torch._logging.structured", ("INTERN_TABLE",), (), "file names of the user's stack are not known"),
    (
        "frames.code",
        "",
        CONVERT,
        ("_compile",),
        ("code", "compile_id", "locals", "globals", "closure"),
        "frames are told by id",
    ),
    ("compiling.since", "", CONVERT, ("_compile",), ("start_time_ns",), "when a compilation under way began is not known"),
    (
        "boundaries.offset",
        "",
        "torch._dynamo.symbolic_convert",
        ("InstructionTranslatorBase.step",),
        (),
        "the instruction that broke is not known",
    ),
    (
        "recompiles.now",
        "",
        "torch._dynamo.guards",
        ("get_and_maybe_log_recompilation_reasons",),
        ("reasons",),
        "what the guards saw is not known",
    ),
    ("recompiles.limit", "", UTILS, ("CompilationMetrics.fail_reason",), (), "a refusal cannot be told from a failure"),
    (
        "compiles.caches",
        "",
        UTILS,
        ("CompilationMetrics.inductor_fx_local_cache_hit_count",),
        (),
        "of compilations from before the attach",
    ),
    ("boundaries.line", "", UTILS, ("CompilationMetrics.fail_user_frame_lineno",), (), "of frames skipped before the attach"),
    ("target.options", "", UTILS, ("CompilationMetrics.dynamo_config",), (), "only the hook's own thread's settings are known"),
    ("target.options", "", "torch._dynamo.eval_frame", ("_stance",), (), "the stance is not known"),
    ("frames.eager_calls", "", C, (EVALUATOR + "set_guard_complete_hook",), (), "not counted on Python 3.10 and 3.11"),
    (
        "frames.eager_calls",
        "",
        C,
        (EVALUATOR + "get_eval_frame_callback",),
        (),
        "calls that Dynamo is not there to see count too",
    ),
)


class TorchNames(metaclass=Mortal):
    """The self-test: looks for each name once its module is loaded, and tells once what is not there."""

    def __init__(self, hook):
        self._hook = hook
        self._left = list(NAMES)

    def look(self):
        """Look for the names whose modules are there by now. Cheap once they all were."""
        if self._left:
            self._hook.guarded("torch's names", self._look, None)

    def _look(self):
        left, missing = [], {}
        for row in self._left:
            found = there(row)
            if found is None:
                left.append(row)
            elif not found:
                missing.setdefault(row[0], []).append(row)
        self._left = left
        for what, rows in missing.items():
            self._hook.send_gap(what, "; ".join(sentence(row) for row in rows))


def loaded(module):
    """A module that the job has imported to its end; None where it has not."""
    found = sys.modules.get(module)
    if found is None or getattr(getattr(found, "__spec__", None), "_initializing", False) is True:
        return None
    return found


def there(row):
    """Whether one of the row's names is there; None where its module is not, or not yet."""
    _, _, module, names, variables, _ = row
    owner = loaded(module)
    if owner is None:
        return None
    if not any(has(owner, name) for name in names):
        return False
    return not variables or _has_variables(owner, names[0], variables)


def has(owner, path):
    """Whether an object has an attribute, that one another, and so on along a path with dots."""
    for name in path.split("."):
        try:
            owner = getattr(owner, name)
        except Exception:  # noqa: BLE001 - a module may answer for its attributes in any way
            return False
    return True


def _has_variables(owner, name, variables):
    function = getattr(owner, name)
    while hasattr(function, "__wrapped__"):
        function = function.__wrapped__
    code = getattr(function, "__code__", None)
    known = () if code is None else (*code.co_varnames, *code.co_cellvars, *code.co_freevars)
    return all(variable in known for variable in variables)


def sentence(row):
    """Why it is missing, for a person."""
    _, _, module, names, variables, why = row
    version = getattr(getattr(sys.modules.get("torch"), "version", None), "__version__", None) or "of this job"
    lacking = f"{module}.{names[0]}" + (f" with {', '.join(variables)}" if variables else "")
    return f"not available in torch {version}: {why} ({lacking} is not there)"
