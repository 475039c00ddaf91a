"""What happened before the attach, from the tables that Dynamo keeps: cache entries, break reasons, the last compilations."""

import sys
import time
from itertools import chain
from operator import attrgetter

from .compile_log import METRICS, _short
from .facts import frame_evaluator


def cache_entries(hook):
    """The live cache entries as (compile id, frame's code, entry's code, global scope), each frame's oldest first.

    What `_debug_get_cache_entry_list` gives points into memory of Dynamo's that a `torch._dynamo.reset()` on another thread
    frees. So the entries are asked for and read within one call in C, during which no other thread runs; what is kept are
    ordinary objects. It is asked only of code objects that Dynamo itself lists.
    """
    frames = sys.modules.get("torch._dynamo.convert_frame")
    evaluator = frame_evaluator()
    seen = getattr(getattr(frames, "input_codes", None), "seen", None)
    list_entries = getattr(evaluator, "_debug_get_cache_entry_list", None)
    if seen is None or list_entries is None:
        if frames is not None:
            hook.instrument("history", "this torch does not list its cache entries")
        return []
    found = []
    for held in list(seen):
        code = held() if callable(held) else held
        if not hasattr(code, "co_code"):
            continue
        read = list(map(_READ, chain.from_iterable(map(list_entries, (code,)))))
        of_frame = []
        for compile_id, entry_code, manager in read:
            scope = getattr(manager, "global_scope", None)
            scope = scope.get("G") if isinstance(scope, dict) else None  # guards know the frame's globals as "G"
            if compile_id is not None and isinstance(scope, dict):
                of_frame.append((str(compile_id), code, entry_code, scope))
        # Dynamo moves an entry to the front when it is used
        found += sorted(of_frame, key=lambda entry: _number(entry[0]))
    return found


_READ = attrgetter("compile_id", "code", "guard_manager")


def _number(compile_id):
    last = compile_id.rpartition("/")[2]
    return int(last) if last.isdigit() else 0


def send(hook, entries):
    """Queue the history: past compilations, frames with their entries. The breaks come from `send_breaks`."""
    utils = sys.modules.get("torch._dynamo.utils")
    if utils is None:
        return
    now_wall, now = time.time(), time.monotonic_ns()
    for metrics in list(utils.get_compilation_metrics()) if hasattr(utils, "get_compilation_metrics") else ():
        hook.outbox.put(
            {
                "k": "past_compile",
                "t": now,
                "wall": now_wall,
                "metrics": {key: _short(getattr(metrics, key, None)) for key in METRICS},
            }
        )
    frames = {}
    for compile_id, code, _, _ in entries:
        frames.setdefault(code, []).append(compile_id)
    for code, ids in frames.items():
        hook.outbox.put(
            {
                "k": "frame",
                "t": now,
                "function": code.co_name,
                "file": code.co_filename,
                "line": code.co_firstlineno,
                "entries": ids,
            }
        )


def send_breaks(hook):
    """Queue the graph breaks of the past and Dynamo's totals. After the regions, so that the breaks find their boundaries."""
    utils = sys.modules.get("torch._dynamo.utils")
    if utils is None:
        return
    now = time.monotonic_ns()
    for past in list(getattr(utils, "graph_break_reasons", ())):
        stack = [[frame.filename, frame.lineno, frame.name] for frame in past.user_stack]
        hook.outbox.put({"k": "past_break", "t": now, "reason": str(past.reason), "stack": stack})
    counters = getattr(utils, "counters", {})
    stats = counters.get("stats", {})
    frames = counters.get("frames", {})
    breaks = counters.get("graph_break", {})
    hook.outbox.put(
        {
            "k": "counted",
            "t": now,
            "compiles": frames.get("ok"),
            "breaks": sum(breaks.values()) if breaks else 0,
            "graphs": stats.get("unique_graphs"),
        }
    )
