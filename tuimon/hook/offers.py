"""What this Python and this torch offer to the hook, by name. Looks only at what the job has loaded; imports nothing.

torch's names here are private: each is looked for, and one that is missing is told by its name, so that the screen can say
"not available in torch X" instead of showing nothing.
"""

import sys

# (instrument, module, names in it: attributes of attributes joined by dots; one of them has to be there)
WANTED = (
    ("skip", "torch._C", ("_dynamo.eval_frame.skip_code", "_dynamo.eval_frame.set_code_exec_strategy")),
    ("regions", "torch._dynamo.output_graph", ("OutputGraph.install_global_unsafe",)),
    ("history", "torch._dynamo.convert_frame", ("input_codes",)),
    ("history", "torch._C", ("_dynamo.eval_frame._debug_get_cache_entry_list",)),
    ("history", "torch._dynamo.utils", ("get_compilation_metrics",)),
    ("history", "torch._dynamo.utils", ("graph_break_reasons",)),
    ("steps", "torch.autograd.profiler", ("record_function.__enter__",)),
    ("compile ids", "torch._guards", ("CompileContext.current_compile_id",)),
)


def gather():
    """{"python": [..], "torch": {instrument: whether it can be put in}, "missing": [names]}.

    None stands for an instrument whose part of torch is not loaded yet.
    """
    found = {}
    missing = []
    for instrument, module, names in WANTED:
        loaded = sys.modules.get(module)
        if loaded is None or (getattr(getattr(loaded, "__spec__", None), "_initializing", False) is True):
            found.setdefault(instrument, None)
            continue
        there = any(_has(loaded, name) for name in names)
        if not there:
            missing.append(f"{module}.{names[0]}")
        if found.get(instrument, True) is not False:
            found[instrument] = there
    return {"python": _python(), "torch": found, "missing": missing}


def _has(owner, path):
    for name in path.split("."):
        try:
            owner = getattr(owner, name)
        except Exception:  # noqa: BLE001 - a module may answer for its attributes in any way
            return False
    return True


def _python():
    found = [name for name in ("monitoring", "remote_exec") if hasattr(sys, name)]
    gil = getattr(sys, "_is_gil_enabled", None)
    if gil is not None and not gil():
        found.append("free-threaded")
    return found
