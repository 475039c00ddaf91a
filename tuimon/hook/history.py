"""What happened before the attach, from the tables that Dynamo keeps: cache entries, break reasons, the last compilations."""

import re
import sys
import time
from itertools import chain
from operator import attrgetter

from . import stack
from .compile_log import metrics_of
from .facts import frame_evaluator
from .regions import resumed_code
from .remains import Mortal

RESUME = re.compile(r"__resume_at_(\d+)_")
_AT = re.compile(r"_at_(\d+)$")
_TYPE = re.compile(r"___check_type_id\(L\['(\w+)'\], \d+\), type=<class '(?:[\w.]*\.)?(\w+)'>")
MOST_GUARDS = 2000  # of one entry that are searched for the type of what its function belongs to
# failures that go to the job as an exception: the frame is tried again, and no call of it runs in eager
_BROKE = ("Unsupported", "UserError")
RAISED = ("BackendCompilerFailed", "FailOnRecompileLimitHit", "UncapturedHigherOrderOpError", "ResumePrologueTracingError")


class History(metaclass=Mortal):
    """What Dynamo's tables hold, read once."""

    def __init__(self, hook):
        self.codes = list(_codes(hook))
        self.entries = []  # (compile id, frame's code, entry's code, global scope), each frame's oldest first
        self.dead = []  # (compile id, frame's code): entries that no call can fit any more, because something of theirs is gone
        self.owners = {}  # compile id -> the type that the frame's function belongs to, by the entry's guards
        self.by_id = {}  # compile id -> frame's code
        for code in self.codes:
            for compile_id, entry_code, scope, owner in cache_entries(code):
                if scope is None:
                    self.dead.append((compile_id, code))
                else:
                    self.entries.append((compile_id, code, entry_code, scope))
                self.by_id[compile_id] = code
                if owner:
                    self.owners[compile_id] = owner
        utils = sys.modules.get("torch._dynamo.utils")
        self.metrics = list(utils.get_compilation_metrics()) if hasattr(utils, "get_compilation_metrics") else []

    def frames(self):
        """[(code, [compile ids])] of the code objects that have cache entries."""
        ids = {}
        for compile_id, code in self.by_id.items():
            ids.setdefault(id(code), (code, []))[1].append(compile_id)
        return list(ids.values())

    def dead_graphs(self):
        """[(compile id, frame's code)] of the dead entries that hold a graph, as their compilations told."""
        held = {str(getattr(one, "compile_id", None)) for one in self.metrics if getattr(one, "graph_op_count", None)}
        return [(compile_id, code) for compile_id, code in self.dead if compile_id in held]

    def left_to_eager(self):
        """[(code, compile id, "limit" or "skipped", line at which it failed)] of frames whose calls run in eager.

        Of the code objects themselves Dynamo does not tell that it has given them up; that one of them was is known by the
        failure of its last compilation, and which one it is by its place, or by the number of its frame.
        """
        found, again = [], set()
        known = {id(code) for code in self.by_id.values()}
        bare = [code for code in self.codes if id(code) not in known]
        by_frame = {compile_id.rpartition("/")[0]: code for compile_id, code in self.by_id.items()}
        for metrics in reversed(self.metrics):
            compile_id, told = str(getattr(metrics, "compile_id", None)), _named(metrics)
            frame, _, number = compile_id.rpartition("/")
            if getattr(metrics, "is_forward", None) is False or frame in again:
                continue
            if number == "0" or told.get("fail_type") is None:
                again.add(frame)  # an older one under this frame's number is of another frame, or was mended
            if told.get("fail_type") is None:
                continue
            suppressed = '"suppress_errors": true' in str(getattr(metrics, "dynamo_config", ""))
            if not suppressed and any(name in str(told["fail_type"]) for name in RAISED):
                continue
            again.add(frame)
            if stack.limit(told) is not None:
                code = by_frame.get(frame)
                why = "limit"
            else:
                place = (told["co_name"], told["co_filename"], told["co_firstlineno"])
                code = next((one for one in bare if (one.co_name, one.co_filename, one.co_firstlineno) == place), None)
                bare = [one for one in bare if one is not code]
                why = "skipped"
            if code is not None:
                found.append((code, compile_id, why, told["fail_user_frame_lineno"]))
        return found[::-1]


def _codes(hook):
    """The code objects that Dynamo has looked at."""
    frames = sys.modules.get("torch._dynamo.convert_frame")
    seen = getattr(getattr(frames, "input_codes", None), "seen", None)
    if seen is None or not hasattr(frame_evaluator(), "_debug_get_cache_entry_list"):
        if frames is not None:
            hook.instrument("history", "this torch does not list its cache entries")
        return
    for held in list(seen):
        code = held() if callable(held) else held
        if hasattr(code, "co_code"):
            yield code


def cache_entries(code):
    """The cache entries of a code object as (compile id, entry's code, global scope, owner), oldest first.

    The scope is None, and the code may be, where an entry is dead: what its guards spoke of is gone.

    What `_debug_get_cache_entry_list` gives points into memory of Dynamo's that a `torch._dynamo.reset()` on another thread
    frees. So the entries are asked for and read within one call in C, during which no other thread runs; what is kept are
    ordinary objects. It is asked only of code objects that Dynamo itself lists.
    """
    list_entries = frame_evaluator()._debug_get_cache_entry_list
    read = list(map(_READ, chain.from_iterable(map(list_entries, (code,)))))
    found = []
    for compile_id, entry_code, manager in read:
        scope = getattr(manager, "global_scope", None)
        scope = scope.get("G") if isinstance(scope, dict) else None  # guards know the frame's globals as "G"
        if compile_id is not None:
            alive = isinstance(scope, dict) and hasattr(entry_code, "co_names")
            found.append((str(compile_id), entry_code, scope if alive else None, _owner(code, manager)))
    # Dynamo moves an entry to the front when it is used
    return sorted(found, key=lambda entry: _number(entry[0]))


_READ = attrgetter("compile_id", "code", "guard_manager")


def _number(compile_id):
    last = compile_id.rpartition("/")[2]
    return int(last) if last.isdigit() else 0


def _owner(code, manager):
    """The type of what a method, or a wrapper of torch's around a module, was compiled for: its guards name it."""
    arguments = code.co_varnames[: min(1, code.co_argcount)]
    method = "self" in arguments and "torch_dynamo_resume_in" not in code.co_name
    wrapper = "fn" in code.co_freevars and code.co_filename.endswith("/torch/_dynamo/external_utils.py")
    if not method and not wrapper:
        return ""
    for text in list(getattr(manager, "code_parts", None) or ())[:MOST_GUARDS]:
        match = _TYPE.match(text) if type(text) is str else None
        if match is not None and match.group(1) == ("self" if method else "fn"):
            return match.group(2)
    return ""


def break_line(code, entry_code, scope):
    """The line at which a cache entry leaves its frame's code; None where it does not leave it.

    It goes on with resume functions, which Dynamo names after that line. Where one is not to be found, its name in the scope
    has an offset of the instruction behind the break, as Dynamo counts, which is not always where Python has it.
    """
    offsets = []
    for name in entry_code.co_names:
        match = RESUME.match(name)
        if match is not None:
            offsets.append(int(match.group(1)))
            resumed = _AT.search(getattr(resumed_code(scope.get(name)), "co_name", ""))
            if resumed is not None:
                return int(resumed.group(1))
    before = min(offsets) - 2 if offsets else -1
    for start, end, line in code.co_lines() if before >= 0 else ():
        if start <= before < end:
            return line
    return None


def send(hook, past):
    """Queue the history: past compilations, frames with their entries. The breaks come from `send_breaks`."""
    now_wall, now = time.time(), time.monotonic_ns()
    sentence = _headline()
    for metrics in past.metrics:
        told = metrics_of(lambda key, metrics=metrics: getattr(metrics, key, None))
        if sentence and told.get("fail_type") in _BROKE and stack.limit(told) is None:
            told["headline"] = sentence
        hook.outbox.put({"k": "past_compile", "t": now, "wall": now_wall, "metrics": told})
    breaks = {}
    for compile_id, code, entry_code, scope in past.entries:
        line = break_line(code, entry_code, scope)
        if line is not None:
            breaks[compile_id] = line
    for code, ids in past.frames():
        owners = list(dict.fromkeys(past.owners[one] for one in ids if one in past.owners))
        _send_frame(hook, now, code, ids, [[one, breaks[one]] for one in ids if one in breaks], owners)
    for code, _, why, _ in past.left_to_eager():
        if why == "skipped":
            _send_frame(hook, now, code, [], [], [])
            if not sentence:
                hook.send_gap("boundaries.headline", "of a frame skipped before the attach Dynamo keeps the reason alone")


def _headline():
    """What Dynamo logs before the reason for which it gives a frame up, from its own code; "" where it has no such sentence."""
    translator = getattr(sys.modules.get("torch._dynamo.symbolic_convert"), "InstructionTranslatorBase", None)
    code = getattr(getattr(translator, "run", None), "__code__", None)
    texts = [one for one in getattr(code, "co_consts", ()) if type(one) is str]
    return next((text.strip() for text in texts if "Graph break encountered:" in text), "")


def _send_frame(hook, now, code, ids, breaks, owners):
    hook.outbox.put(
        {
            "k": "frame",
            "t": now,
            "code": hook.codes.number(code),
            "function": code.co_name,
            "file": code.co_filename,
            "line": code.co_firstlineno,
            "entries": ids,
            "breaks": breaks,
            "owners": owners,
        }
    )


def _named(metrics):
    names = ("fail_type", "fail_reason", "co_name", "co_filename", "co_firstlineno", "fail_user_frame_lineno")
    return {name: getattr(metrics, name, None) for name in names}


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
