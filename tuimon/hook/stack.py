"""What the compiling thread's own Python stack tells and torch's log does not.

Dynamo's frames hold the code object that is being compiled, the variables of the call that led to it and, where a graph breaks,
the instruction. They are looked at while Dynamo logs, at compile time only. Frames are torch's own and are found by the names
that torch 2.9 to 2.14 give them; where a name has changed, nothing is found and nothing is told.
"""

import re
import sys
import types

from . import values
from .remains import Mortal

FARTHEST = 400  # frames looked at, and exceptions' tracebacks likewise
CHAIN = 8  # exceptions that led to one another
MOST_CHILDREN = 6
LONGEST_OWNER = 120  # characters

_PLACE = re.compile(r"user code at (.+):(\d+)$", re.MULTILINE)
_FIRST_LINES = 4000
_ENTRY = re.compile(r"!?\d+(?:/\d+)+: ")
_COMMENT = re.compile(r"(?:, type=<class '[^']*'>)?\s{2,}#")
_ALWAYS_RAISED = frozenset(("ResumePrologueTracingError", "UncapturedHigherOrderOpError"))
_NEVER_RAISED = frozenset(("Unsupported", "UserError", "RecompileLimitExceeded"))  # by itself; or what is derived from them
_LIMIT = re.compile(r"(?:accumulated_)?(?:recompile|cache_size)_limit")


class Compiling(metaclass=Mortal):
    """The frame that is being compiled on this thread: what Dynamo's `_compile` was called with."""

    def __init__(self, variables):
        self.code = variables["code"]
        self.local = _dict(variables.get("locals"))
        self.everywhere = _dict(variables.get("globals"))
        self.closure = variables.get("closure") or ()
        box = variables.get("convert_frame_box")
        # a failure goes to the job as an exception, whatever it is: `fullgraph=True`, `error_on_graph_break(True)`
        self.raises = bool(variables.get("one_graph") or getattr(box, "error_on_graph_break", False))


def compiling(frame, metadata):
    """The compilation that a record is about, from the frame that logs it outwards; None where it is not on this stack."""
    for _ in range(FARTHEST):
        if frame is None:
            return None
        if _is(frame, "_compile", "convert_frame"):
            found = read(frame, _compiling_of, metadata)
            if found is not None:
                return found
        frame = frame.f_back
    return None


def compiled_before(error, metadata):
    """The compilation that an exception which is being handled has come out of; None where it is in none."""
    traceback = None if error is None else error.__traceback__
    for _ in range(FARTHEST):
        if traceback is None:
            return None
        if _is(traceback.tb_frame, "_compile", "convert_frame"):
            return read(traceback.tb_frame, _compiling_of, metadata)
        traceback = traceback.tb_next
    return None


def _compiling_of(variables, metadata):
    compile_id = variables.get("compile_id")
    for name in ("frame_id", "frame_compile_id"):
        if metadata.get(name) is not None and getattr(compile_id, name, None) not in (None, metadata[name]):
            return None  # one compilation within another
    return Compiling(variables)


def broke_at(frame, error, payload):
    """(code object, offset) of the instruction that broke; None where it is not told.

    For each function of the job that Dynamo is tracing, inlined ones too, there is a frame `step`: in the traceback of the
    exception that is being handled, and outside of where that was caught on the stack, from `frame` outwards. The one at the
    logged place is meant; where none is, the deepest of the first exception that has any, else of the stack.
    """
    match = _PLACE.search(payload[:_FIRST_LINES]) if payload else None
    place = None if match is None else (match.group(1), int(match.group(2)))
    deepest = None
    for found in _steps(frame, error):
        if found:
            for code, offset, line in found:
                if (code.co_filename, line) == place:
                    return code, offset
            deepest = deepest or found[0][:2]
    return deepest


def _steps(frame, error):
    """For each exception, last the stack: [(code object, offset, line)], the deepest first."""
    for _ in range(CHAIN):
        if error is None:
            break
        found = []
        traceback = error.__traceback__
        for _ in range(FARTHEST):
            if traceback is None:
                break
            _add_step(found, traceback.tb_frame)
            traceback = traceback.tb_next
        yield found[::-1]
        error = error.__cause__ or error.__context__
    found = []
    for _ in range(FARTHEST):
        if frame is None or _is(frame, "_compile", "convert_frame"):
            break
        _add_step(found, frame)
        frame = frame.f_back
    yield found


def _add_step(found, frame):
    if _is(frame, "step", "symbolic_convert"):
        told = read(frame, _instruction, None)
        if told[1] is not None:
            found.append(told)


def _instruction(variables, _):
    tracer = variables.get("self")
    offset = getattr(getattr(tracer, "current_instruction", None), "offset", None)
    return tracer.f_code, offset, getattr(tracer, "lineno", None)


def reasons(frame):
    """The texts of the guards that failed, newest entry first, as Dynamo holds them when it logs them; [] where it does not."""
    for _ in range(FARTHEST):
        if frame is None or _is(frame, "_compile", "convert_frame"):
            break
        if _is(frame, "get_and_maybe_log_recompilation_reasons", "guards"):
            found = read(frame, _reasons_of, None)
            return found if type(found) is list else []
        frame = frame.f_back
    return []


def _reasons_of(variables, _):
    return variables.get("reasons")


def values_now(texts, compiled):
    """{expression: value in the call that failed} of the guards in Dynamo's texts, at most `values.MOST`."""
    found = {}
    for text in texts[: values.MOST]:
        if type(text) is str:
            guard = _COMMENT.split(_ENTRY.sub("", text.partition("\n")[0], 1), 1)[0].strip()
            for expression, value in values.now(guard, compiled.local, compiled.everywhere):
                if len(found) == values.MOST:
                    return found
                found.setdefault(expression, value)
    return found


def limit(metrics):
    """The name of the limit that refused a compilation: the job goes on in eager. None where its metrics tell no such thing."""
    kind, reason = str(metrics.get("fail_type")), str(metrics.get("fail_reason"))
    if metrics.get("fail_type") is None or "FailOn" in kind:  # that one is raised to the job
        return None
    match = _LIMIT.search(reason)
    if match is not None:
        return match.group()
    return "recompile_limit" if "RecompileLimitExceeded" in kind else None


def raised(metrics, compiled, error):
    """Whether a failed compilation, which `error` ends, goes to the job as an exception; otherwise its frame runs in eager."""
    kinds = {str(metrics.get("fail_type")), *(values.name_of(kind) for kind in values.bases(type(error)))}
    if compiled.raises or kinds & _ALWAYS_RAISED:
        return True
    return not kinds & _NEVER_RAISED and '"suppress_errors": true' not in str(metrics.get("dynamo_config"))


# -------------------------------------------------------------------- what a frame's function belongs to


def owner(compiled):
    """What the function belongs to, by type names alone; empty where there is nothing to tell.

    "Block" for a method, "Sequential(Linear, Tanh)" for a wrapper of torch's around a module.
    """
    code = compiled.code
    arguments = code.co_varnames[: code.co_argcount]
    resumed = "torch_dynamo_resume_in" in code.co_name
    if arguments and (not resumed or "self" in arguments):
        name = "self" if resumed else arguments[0]
        held = _get(compiled.local, name)
        if held is not None and (name == "self" or _has(type(held), code)):
            return _told(held)
    if _is_torch(code.co_filename):
        for cell in compiled.closure:
            try:
                held = cell.cell_contents
            except ValueError:
                continue  # a variable that has no value yet
            if values.is_a(held, values.module_type()):
                return _told(held)
            told = _function(held)
            if told:
                return told
    return ""


def _has(kind, code):
    """Whether a class has this code as a method: not everybody calls the first argument `self`."""
    for owner in values.bases(kind):
        method = values.members(owner).get(code.co_name)
        if type(method) is types.FunctionType and method.__code__ is code:
            return True
    return False


def _told(value):
    """A type's name; of torch's own modules, which say little by themselves, with the names of their parts."""
    kind = type(value)
    name = values.type_name(value)[:LONGEST_OWNER]
    if not values.is_a(value, values.module_type()) or not _defined_in_torch(kind):
        return name
    parts = _get(values.namespace(value) or {}, "_modules")
    children = [child for child in list(dict.values(parts)) if child is not None] if values.is_a(parts, dict) else []
    if not children:
        return name
    names = [values.type_name(child)[:40] for child in children[:MOST_CHILDREN]]
    if len(children) > MOST_CHILDREN:
        names.append("..")
    while len(names) > 1 and len(name) + len(", ".join(names)) > LONGEST_OWNER - 2:
        names[-2:] = [".."]
    return f"{name}({', '.join(names)})"


def _function(value):
    """The name of a function that a wrapper of torch's calls; of a method the type's."""
    if type(value) is types.MethodType:
        return _told(value.__self__)
    name = values.text(value.__qualname__) if type(value) is types.FunctionType else "<locals>"
    return "" if "<locals>" in name else name[:LONGEST_OWNER]


def _defined_in_torch(kind):
    module = values.members(kind).get("__module__")
    return type(module) is str and module.startswith("torch.")


def _is_torch(file):
    folder = getattr(sys.modules.get("torch"), "__path__", None)
    return bool(folder) and file.startswith(folder[0])


# -------------------------------------------------------------------- reading frames


def _is(frame, name, module):
    return frame.f_code.co_name == name and dict.get(frame.f_globals, "__name__") == "torch._dynamo." + module


def read(frame, take, argument):
    """`take(the frame's variables, argument)`.

    Up to Python 3.12 the variables are a copy that stays with the frame and keeps alive what is in it, also when the function
    has let go of it. So the copy is emptied; the next one to ask for it has it filled anew.
    """
    variables = frame.f_locals
    try:
        return take(variables, argument)
    finally:
        if type(variables) is dict:
            variables.clear()


def _dict(value):
    return value if type(value) is dict else {}


def _get(table, name):
    try:
        return values.item(table, name)
    except values.Unreadable:
        return None
