"""Steps that the user has marked: by `tuimon.step()` in the code, or by naming a function from outside.

`tuimon.step()` calls what stands in one place of the package `tuimon` in the job; that is filled here, and emptied at the end.
A function that is named is watched by `sys.monitoring` where the Python has it: nothing is replaced. Elsewhere a wrapper takes
its place in its module or class, and only where no frame that Dynamo has compiled names it: a guard on it would fail.
"""

import sys
import time
from _thread import get_ident

from .facts import frame_evaluator
from .remains import Mortal

INSTRUMENT = "marked steps"
WHAT = "steps.marked"
SLOT = "_step"
WAITS = "on: "  # what follows is what has not come yet
COMPILED = "{} is compiled itself, and its calls are not seen then: name the function that calls it"
USED = (
    "{} may be called by a function that is compiled: on this Python it would have to be replaced, and guards on it would "
    "fail. Python 3.12 can watch it as it is; or call tuimon.step() in the loop"
)
DEEPEST = 20  # wrappers around a function


class Marks(metaclass=Mortal):
    """Puts a sample of role "mark", begin == end, for each step that is begun."""

    def __init__(self, hook, wanted=None):
        """`wanted`: "module:function" or "module:Class.method" of what a step begins with; None for no such."""
        self._hook = hook
        self._wanted = wanted if type(wanted) is str else None
        self._module = None  # the tuimon whose place is filled
        self._lost = None  # gives why what is marked cannot be any more, or None

    def watch(self):
        """Put in what can be put in now; to be called often, cheap when there is nothing to do."""
        if not self._hook.can_skip:
            return
        module = sys.modules.get("tuimon")
        if module is not self._module and type(module) is type(sys) and SLOT in vars(module):
            self._module = module
            self._fill(module)
        if self._wanted is not None:
            self._find(self._wanted)
        if self._lost is not None:
            self._still()

    # ---------------------------------------------------------------- tuimon.step()

    def _fill(self, module):
        before = vars(module)[SLOT]
        number, told = self._hook.next_number(), []
        place = "tuimon.step()", "step", getattr(module, "__file__", None) or "", 0

        def tell():
            self._hook.send_added(number, "mark", None, *place, False)
            self._hook.instrument(INSTRUMENT, "on")

        ours = _marker(number, self._hook.outbox, self._hook.here, told, tell)
        self._hook.skip(ours)
        setattr(module, SLOT, ours)

        def put_back():
            if vars(module).get(SLOT) is not ours:
                return False
            setattr(module, SLOT, before)
            return True

        self._hook.undo.add(f"tuimon.{SLOT}", put_back)

    # ---------------------------------------------------------------- --step module:function

    def _find(self, wanted):
        owner, found, missing = resolve(wanted)
        if missing:
            told = f"{WAITS}{missing}"
            if self._hook.instruments.get(INSTRUMENT) != told:
                self._hook.instrument(INSTRUMENT, told)
            return
        self._wanted = None
        last = wanted.rpartition(":")[2].rpartition(".")[2]
        function = _plain(found)
        if function is None:
            why = f"{wanted} is no function of Python's: name one that is, such as the one that calls it"
        elif hasattr(found, "_torchdynamo_orig_callable"):
            why = COMPILED.format(wanted)
        else:
            why = self._mark(wanted, owner, last, found, function)
        if why is None:
            self._hook.instrument(INSTRUMENT, "on")
        else:
            self._hook.instrument(INSTRUMENT, why)
            self._hook.send_gap(WHAT, why)

    def _mark(self, wanted, owner, name, found, function):
        """Give None, or why it cannot be."""
        code = function.__code__
        if has_entries(code):
            return COMPILED.format(wanted)
        monitoring = self._hook.eager.monitoring()
        why_not = monitoring.why_not()
        if why_not is None:
            monitoring.mark(code, self._number(wanted, code))
            self._lost = lambda: COMPILED.format(wanted) if has_entries(code) else None
            return None
        if hasattr(sys, "monitoring"):
            return f"{wanted} is not marked: {why_not}"
        if found is not function or vars(owner).get(name) is not function:
            return f"{wanted} is wrapped or inherited, and has to be replaced on this Python: name the plain function itself"
        names, codes = callers(function, name)
        met = [_latest()]
        if known_to_dynamo(codes, names):
            return USED.format(wanted)
        put_back = self._replace(owner, name, function, self._number(wanted, code))

        def lost():
            latest = _latest()
            if latest != met[0]:
                met[0] = latest
                if known_to_dynamo(codes, names):
                    put_back()  # before the frame that has just come up is compiled
                    return USED.format(wanted)
            return None

        self._lost = lost
        return None

    def _number(self, wanted, code):
        number = self._hook.next_number()
        place = code.co_name, code.co_filename, code.co_firstlineno
        self._hook.send_added(number, "mark", None, wanted, *place, False, code=self._hook.codes.number(code))
        return number

    def _replace(self, owner, name, function, number):
        ours = _caller(function, number, self._hook.outbox, self._hook.here)
        for attribute in ("__name__", "__qualname__", "__module__", "__doc__"):
            setattr(ours, attribute, getattr(function, attribute))
        ours.__wrapped__ = function
        self._hook.skip(ours)
        setattr(owner, name, ours)

        def put_back():
            if vars(owner).get(name) is ours:
                setattr(owner, name, function)
            return vars(owner).get(name) is function

        self._hook.undo.add(f"{getattr(owner, '__name__', owner)}.{name}", put_back)
        return put_back

    def _still(self):
        """Whether what is marked can go on being: Dynamo may have met another frame."""
        why = self._lost()
        if why is not None:
            self._lost = None
            self._hook.instrument(INSTRUMENT, why)
            self._hook.send_gap(WHAT, why)


# What the job calls, on its own threads: for these the rules of `timers` hold.


def _marker(number, outbox, here, told, tell):
    now, ident, dropped, limit = time.monotonic_ns, get_ident, outbox.dropped, outbox.limit
    queue, size = outbox.queue, len
    put, first = queue.append, told.append

    def step():
        if here[0]:
            if not told:
                first(True)
                tell()
            if size(queue) < limit:
                at = now()
                put((number, ident(), 0, at, at))
            else:
                dropped[0] += 1

    return step


def _caller(fn, mark, outbox, here):
    # `mark`, not `number`: by that name a timer is known on a stack, and what it times is not looked into
    now, ident, dropped, limit = time.monotonic_ns, get_ident, outbox.dropped, outbox.limit
    queue, size = outbox.queue, len
    put = queue.append

    def marked(*args, **kwargs):
        if here[0]:
            if size(queue) < limit:
                at = now()
                put((mark, ident(), 0, at, at))
            else:
                dropped[0] += 1
        return fn(*args, **kwargs)

    return marked


# -------------------------------------------------------------------- finding it


def resolve(wanted):
    """(owner, what it has under the last name, what is missing in words or "") of "module:function" or "module:Class.method".

    The module goes by what the job calls it: "package.alias" too, where that is a module under another name.
    """
    name, _, path = wanted.partition(":")
    owner, missing = _module(name)
    parts = path.split(".")
    found, said = owner, name
    for part in parts:
        if missing:
            return None, None, f"--step {wanted}: {missing}"
        owner, found = found, _own(found, part)
        missing = f"{said} has no {part} so far" if found is _NOTHING else ""
        said = f"{said}:{part}" if said == name else f"{said}.{part}"
    return owner, found, f"--step {wanted}: {missing}" if missing else ""


def _module(name):
    """(a module of the job, what is missing in words or ""), also one being imported; a script goes by its file's name too."""
    known, rest = name, []
    while known and sys.modules.get(known) is None:
        known, _, last = known.rpartition(".")
        rest.insert(0, last)
    if known:
        found = sys.modules[known]
        for part in rest:
            inner = _own(found, part)
            if inner is _NOTHING:
                return None, f"there is no module {known}.{part} in the job yet"
            found, known = inner, f"{known}.{part}"
        return found, ""
    main = sys.modules.get("__main__")
    file = getattr(main, "__file__", None)
    if type(file) is str and file.rpartition("/")[2] == name + ".py":
        return main, ""
    return None, f"there is no module {name} in the job yet"


_NOTHING = object()


def _own(owner, name):
    """What a module or a class has under a name, without running code of the job; _NOTHING where it has not."""
    kinds = type.__dict__["__mro__"].__get__(owner) if isinstance(owner, type) else (owner,)
    for kind in kinds:
        try:
            take = type.__dict__["__dict__"].__get__ if isinstance(kind, type) else vars
            table = take(kind)
        except (AttributeError, TypeError):
            return _NOTHING
        if name in table:
            return table[name]
    return _NOTHING


def _plain(found):
    """The function that runs when this is called: below wrappers that say what they wrap."""
    for _ in range(DEEPEST):
        names = getattr(found, "__dict__", None) if type(found).__name__ == "function" else None
        inner = getattr(found, "__func__", None) if type(found) in (staticmethod, classmethod) else None
        if inner is None and names:
            inner = names.get("__wrapped__")
        if inner is None:
            break
        found = inner
    return found if type(found) is _FUNCTION else None


_FUNCTION = type(_plain)


def _seen():
    """What Dynamo keeps of the code objects that it has compiled; None where it is not there."""
    return getattr(getattr(sys.modules.get("torch._dynamo.convert_frame"), "input_codes", None), "seen", None)


def _latest():
    """What is another once Dynamo has met another frame."""
    seen = _seen()
    return (len(seen), id(seen[-1])) if seen else None


def has_entries(code):
    """Whether calls of a code object may run something that Dynamo has made of it."""
    entries = getattr(frame_evaluator(), "_debug_get_cache_entry_list", None)
    return entries is not None and bool(entries(code))


def known_to_dynamo(codes, names):
    """Whether one of these code objects has been compiled, or a frame that uses one of these names."""
    for held in list(_seen() or ()):
        code = held() if callable(held) else held
        if any(code is each for each in codes):
            return True
        if hasattr(code, "co_names") and any(name in code.co_names for name in names):
            return True  # it may be another's name: then the user loses no more than this
    return False


def callers(function, name):
    """(names, code objects) of a function and of what may call it: functions around it that use its name, or one of those."""
    around = []
    for value in list(function.__globals__.values()):
        for each in list(vars(value).values()) if isinstance(value, type) else (value,):
            if type(each) is _FUNCTION and each.__globals__ is function.__globals__:
                around.append(each)
    names, codes = {name}, [function.__code__]
    grown = True
    while grown:
        grown = False
        for each in around:
            if all(each.__code__ is not code for code in codes) and not names.isdisjoint(each.__code__.co_names):
                names.add(each.__name__)
                codes.append(each.__code__)
                grown = True
    return names, codes
