"""Our lines within a function of torch's, where a function of ours around it would be called first.

A frame costs the job some thousand instructions, and torch enters a `record_function` four times in a step without anybody's
asking. So torch's own function is compiled once more from its source, with our lines in front and behind; it has the file, the
name, the line numbers and the globals of the one it stands for, and tracebacks show no frame of ours.

Done only where it is sure that the source is that of the function: compiled as it is, it must give the very code that the job
runs. Everywhere else the stand-in stays, which calls the function and does the same (see `steps`, `waits`). All of it happens
on the hook's own thread, some time after the attach.
"""

import types

from .remains import Mortal

ATTRIBUTES, BUILTINS = ("name", "pop"), ("Exception", "BaseException", "len", "max")  # that our statements may name
FUTURES = 0x1FE0000  # of a code object's flags: what `from __future__ import` has set
NESTED = 0x10
OTHERS = 0x20 | 0x80 | 0x100 | 0x200  # generators, coroutines
MOST_LINES = 200  # of a function
MOST_BEHIND = 6  # lines that its last statement may go on for
MOST_HEAD = 12  # lines of a `def`
# What is compiled is of no file until it stands: of text that is no Python the interpreter looks up the line in its file, which
# is a system call that a job's filter may not allow. This name is none that can be opened.
NO_FILE = "\ud800"
PARTS = (
    "co_name", "co_code", "co_names", "co_varnames", "co_freevars", "co_cellvars", "co_argcount", "co_posonlyargcount",
    "co_kwonlyargcount", "co_firstlineno", "co_stacksize", "co_exceptiontable",
)  # fmt: skip


class Weaving(metaclass=Mortal):
    """Replaces stand-ins by functions that are torch's and ours in one, each where that is sure."""

    def __init__(self, hook):
        self._hook = hook
        self._waiting = []

    def later(self, places, ours, original, given, front, raised="pass", behind=None):
        """A stand-in `ours` for `original` has been put in at `places`, [(owner, name)]: it may be replaced by a woven one.

        For `given`, `front`, `raised` and `behind` see `woven`.
        """
        self._waiting.append((places, ours, original, given, front, raised, behind))

    def made(self, original, given, front, raised="pass", behind=None):
        """What `woven` gives, ready to stand for the original: for what Dynamo guards, which must not change once more."""
        made = woven(original, given, front, raised, behind)
        if made is not None:
            made.__wrapped__ = original
            self._hook.skip(made)
            self._hook.sites.hidden.append(made.__code__)
        return made

    def one(self):
        """Replace one of those that wait, on the hook's thread."""
        if not self._waiting:
            return
        places, ours, original, *texts = self._waiting.pop(0)
        if any(vars(owner).get(name) is not ours for owner, name in places):
            return  # somebody has wrapped it since
        made = self.made(original, *texts)
        if made is None:
            return
        for owner, name in places:
            if vars(owner).get(name) is ours:
                setattr(owner, name, made)
                self._hook.undo.attribute(owner, name, made, ours)


def woven(function, given, front, raised="pass", behind=None):
    """`function` with our statements around its own; None where it is not sure that it would do the same.

    `given`: name -> what it stands for in our statements, by closure. `front`, `raised`, `behind`: statements as text, at the
    left margin: before the function's own; where those raise; and where all is done, whether they raised or not. They must
    raise nothing, and name nothing but what is given, arguments of the function, their own, and Python's.

    It is put together as text, not as a tree: two threads that make trees at once spoil each other's on some Pythons. Lines and
    columns are those of the original; its first line is by so many smaller as `front` has.
    """
    code = getattr(function, "__code__", None)
    if type(function) is not types.FunctionType or function.__closure__ or code.co_flags & OTHERS:
        return None
    owner = function.__qualname__.rpartition(".")[0].rpartition(".")[2]
    if not owner.isidentifier():
        owner = "_"  # not in a class: in a module, or in a function
    imports = _imports(code, function.__globals__)
    lines, head = _source_of(code, owner, imports)
    if not lines:
        return None
    margin, depth = _margin(lines[0]), _margin(next((line for line in lines[head:] if line.strip(b" \t\r\n")), b""))
    within = margin + 1 if margin else 3
    ours, after = front.strip("\n").split("\n"), []
    if behind is None:
        within = depth
    else:
        ours += ["try:"]
        rest = ["except BaseException:", " " + indented(raised, 1), " raise", "finally:", " " + indented(behind, 1)]
        after = "\n".join(rest).split("\n")
    before = code.co_firstlineno - len(ours) - 3
    if before < 1 or depth < within or (after and depth == within):
        return None
    text = [imports, *[""] * (before - 1), f"def maker({', '.join(given)}):", f" class {owner}:"]
    signature = [line.rstrip(b"\r\n") for line in lines[:head]]
    above = [line.encode() for line in text] + [signature[0] if margin else b"  " + signature[0], *signature[1:]]
    opened, closed = ([(" " * within + line).encode() for line in part] for part in (ours, after))
    new = _compiled(
        [*above, *opened, *(line.rstrip(b"\r\n") for line in lines[head:]), *closed], code, ("maker", owner, code.co_name)
    )
    alone = _compiled([b"def ours():", *opened, b" " * 40 + b"pass" if after else b"", *closed], code, ("ours",))
    if new is None or alone is None or not _apart(code, alone, given, function.__globals__) or {*new.co_freevars} - {*given}:
        return None
    new = new.replace(co_filename=code.co_filename)
    if hasattr(code, "co_qualname"):
        new = new.replace(co_qualname=code.co_qualname)
    closure = tuple(types.CellType(given[name]) for name in new.co_freevars)
    made = types.FunctionType(new, function.__globals__, function.__name__, function.__defaults__, closure)
    made.__qualname__, made.__module__, made.__doc__ = function.__qualname__, function.__module__, function.__doc__
    made.__kwdefaults__ = function.__kwdefaults__
    if getattr(function, "__annotate__", None) is None:
        made.__annotations__ = function.__annotations__
    else:
        made.__annotate__ = function.__annotate__  # from 3.14 on: they are worked out where somebody asks for them
    made.__dict__.update(function.__dict__)
    return made


def _imports(code, scope):
    """The statement that makes the compiler take for modules what are modules here: it makes other code of calls of theirs."""
    names = [name for name in code.co_names if type(scope.get(name)) is types.ModuleType]
    return "import " + ", ".join(names) if names else "pass"


def _source_of(code, owner, imports):
    """(its lines, how many of them are its `def`) of the function whose code this is; ([], 0) where they give another code."""
    first = code.co_firstlineno
    try:
        with open(code.co_filename, "rb") as file:
            lines = [line for at, line in zip(range(1, first + MOST_LINES), file) if at >= first]  # noqa: B905 - 3.10 syntax
    except OSError:
        return [], 0
    last = max(line for _, _, line in code.co_lines() if line) - first + 1
    if first < 3 or not lines:
        return [], 0
    above = [imports.encode(), *[b""] * (first - 2)]
    path = (code.co_name,)
    if _margin(lines[0]):
        above[-1], path = f"class {owner}:".encode(), (owner, code.co_name)
    for end in range(last, min(last + MOST_BEHIND, len(lines)) + 1):
        made = _compiled([*above, *(line.rstrip(b"\r\n") for line in lines[:end])], code, path)
        if made is not None and _same(made, code):
            break
    else:
        return [], 0
    for head in range(1, min(MOST_HEAD, end)):
        if _compiled([*above, *(line.rstrip(b"\r\n") for line in lines[:head]), b" " * 40 + b"pass"], code, path) is not None:
            return lines[:end], head
    return [], 0


def _compiled(text, code, path):
    """The code object on this path in lines of text; None where they are no Python, or it is not there."""
    try:
        made = compile(b"\n".join(text) + b"\n", NO_FILE, "exec", code.co_flags & FUTURES, True)
    except (SyntaxError, ValueError):
        return None
    return _inner(made, path)


def _margin(line):
    return len(line) - len(line.lstrip(b" "))


def _same(one, other):
    """Whether two code objects do the same at the same lines. (To compare them themselves looks at caches on some Pythons.)"""
    if any(getattr(one, part, None) != getattr(other, part, None) for part in PARTS):
        return False
    if (one.co_flags | NESTED) != (other.co_flags | NESTED) or list(one.co_lines()) != list(other.co_lines()):
        return False
    return repr(one.co_consts) == repr(other.co_consts)  # True is no 1; of a code within a code it is the address, and never


def _apart(code, ours, given, scope):
    """Whether the names of our statements, compiled alone, and those of the function and its module keep apart."""
    theirs = {*code.co_varnames, *code.co_names, *code.co_cellvars}
    arguments = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    named = {*ours.co_names} - {*given, *arguments}  # Python's own, and attributes
    return not theirs & {*given, *ours.co_varnames} and not named & {*scope} and named <= {*ATTRIBUTES, *BUILTINS}


def _inner(code, path):
    """The code object within a code object, by the names on the way to it; None where there is none."""
    for name in path:
        code = next((one for one in code.co_consts if getattr(one, "co_name", None) == name), None)
        if code is None:
            return None
    return code


def indented(text, by):
    """Statements, at the left margin, as they stand that far within others: all but the first line is indented."""
    return ("\n" + " " * by).join(text.strip("\n").split("\n"))
