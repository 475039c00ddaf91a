"""What the hook reads from the compiling thread: values without any code of the job's, owners, limits, frames."""

from __future__ import annotations

import collections
import dataclasses
import enum
import functools
import gc
import sys
import types
import warnings
import weakref
from collections.abc import Iterator
from typing import Any

import pytest

from tuimon.hook import stack, values
from tuimon.hook.compile_log import DROPPED_WHEN_NONE, METRICS, metrics_of


class Colour(enum.Enum):
    RED = 1
    BLUE = 2


@dataclasses.dataclass
class Config:
    width: int = 5


class Slotted:
    __slots__ = ("k",)

    def __init__(self) -> None:
        self.k = 7


class Plain:
    scale = 3

    def __init__(self, **attributes: Any) -> None:
        self.__dict__.update(attributes)


class Growing(collections.OrderedDict):  # type: ignore[type-arg]
    """A dict of the job's own class."""


def closure(k: int) -> types.FunctionType:
    def inner() -> int:
        return k

    return inner  # type: ignore[return-value]


Pair = collections.namedtuple("Pair", "a b")
LOCAL = {
    "m": 2,
    "f": 2.5,
    "flag": False,
    "text": "b",
    "long": "y" * 500,
    "none": None,
    "huge": 1 << 5000,
    "l": [1, 2],
    "t": (1, 2, 3),
    "pair": Pair(1, 9),
    "s": {"b"},
    "d": {"b": 1, "a": {"lr": 0.02}},
    "own": Growing(b=4),
    "deque": collections.deque([1, 2]),
    "r": range(4),
    "o": Plain(k=2, deep=[{"x": 1}]),
    "slotted": Slotted(),
    "config": Config(),
    "colour": Colour.BLUE,
    "part": functools.partial(int, base=2),
    "closed": closure(11),
    "method": Plain.__init__,
    "obj": object(),
    "self": Plain(param_groups=[{"lr": 0.03}], training=False),
    "___stack0": 3,
    "kind": Config,
    "é": 8,
}
EVERYWHERE = {"G1": 2.0, "seen": [1, 2, 3], "config": types.SimpleNamespace(n=4), "here": types.ModuleType("m")}
EVERYWHERE["here"].n = 6  # type: ignore[attr-defined]
_target = Plain(k=1)
EVERYWHERE["weak"] = weakref.ref(_target)


@pytest.mark.parametrize(
    ("guard", "expected"),
    [
        ("m == 1", {"m": "2"}),
        ("f == 1.5", {"f": "2.5"}),
        ("flag == True", {"flag": "False"}),
        ("text == 'a'", {"text": "'b'"}),
        ("none is not None", {"none": "None"}),
        ("___stack0 == 2", {"___stack0": "3"}),
        ("é == 1", {"é": "8"}),
        ("'é' == text and m == 1", {"text": "'b'", "m": "2"}),
        ("huge == 1", {"huge": "int of more than 256 bits"}),
        ("len(l) == 1", {"len(l)": "2"}),
        ("not t", {"len(t)": "3"}),
        ("not flag", {"flag": "False"}),
        ("not s", {"len(s)": "1"}),
        ("len(deque) == 1", {"len(deque)": "2"}),
        ("len(d) != 1", {"len(d)": "2"}),
        ("l[0] == 3", {"l[0]": "1"}),
        ("l[-1] == 3", {"l[-1]": "2"}),
        ("list.__getitem__(l, 1) == 3", {"list.__getitem__(l, 1)": "2"}),
        ("pair[1] == 3", {"pair[1]": "9"}),
        ("d['a']['lr'] == 0.01", {"d['a']['lr']": "0.02"}),
        ("dict.__getitem__(own, 'b') == 1", {"dict.__getitem__(own, 'b')": "4"}),
        ("list(dict.keys(d))[0] == 'a'", {"list(dict.keys(d))[0]": "'b'"}),
        ("list(d)[1] == 'b'", {"list(d)[1]": "'a'"}),
        ("___dict_contains('c', d)", {}),
        ("not ___dict_contains('a', d)", {}),
        ("set.__contains__(s, 'a')", {}),
        ("r.stop == 3", {"r.stop": "4"}),
        ("o.k == 1", {"o.k": "2"}),
        ("o.deep[0]['x'] == 0", {"o.deep[0]['x']": "1"}),
        ("getattr(o, 'k') == 1", {"getattr(o, 'k')": "2"}),
        ("o.scale == 1", {"o.scale": "3"}),
        ("slotted.k == 1", {"slotted.k": "7"}),
        ("config.width == 1", {"config.width": "5"}),
        ("self.param_groups[0]['lr'] == 0.01", {"self.param_groups[0]['lr']": "0.03"}),
        ("self.training == True", {"self.training": "False"}),
        ("part.keywords['base'] == 1", {"part.keywords['base']": "2"}),
        ("closed.__closure__[0].cell_contents == 1", {"closed.__closure__[0].cell_contents": "11"}),
        ("G['G1'] == 1.0", {"G['G1']": "2.0"}),
        ("len(G['seen']) == 2", {"len(G['seen'])": "3"}),
        ("G['config'].n == 3", {"G['config'].n": "4"}),
        ("G['here'].n == 3", {"G['here'].n": "6"}),
        ("G['weak']().k == 0", {"G['weak']().k": "1"}),
        ("___check_obj_id(colour, 139872577533840)", {"colour": "Colour.BLUE"}),
        ("___check_obj_id(closed, 139872577533840)", {"closed": "function inner"}),
        ("___check_obj_id(closed.__code__, 139872577533840)", {"closed.__code__": "code of inner"}),
        ("___check_type_id(config, 94086963223056)", {"type(config)": "Config"}),
        ("___check_type_id(kind, 94086963223056)", {"type(kind)": "type"}),
        ("(type(f) is float and __math_isnan(f))", {"type(f)": "float", "f": "2.5"}),
        ("2 <= m <= 5", {"m": "2"}),
        ("Eq(Mod(m, 2), 0)", {"m": "2"}),
        ("m + l[0] * 2 < 9", {"m": "2", "l[0]": "1"}),
        ("obj is m", {"obj": "object", "m": "2"}),
        ("nowhere == 1", {}),
        ("o.nothing == 1", {}),
        ("m.real == 1", {}),
        ("l[7] == 1", {}),
        ("d['z'] == 1", {}),
        ("G['nowhere'] == 1", {}),
        ("G == 1", {}),
        ("len(m) == 1", {"m": "2"}),
        ("__import__('os').system('false')", {}),
        ("m.bit_length() == 1", {}),
        ("[m for m in l] == 1", {}),
        ("(lambda: 1)() == 1", {}),
        ("tensor 'x' size mismatch at index 0. expected 3, actual 4", {}),
        ("GLOBAL_STATE changed: grad_mode ", {}),
        ('Duplicate tensors found: ["a", "b"]', {}),
        ("text == '\\d'", {}),
        ("", {}),
        ("m == \0", {}),
        ("(" * 400, {}),
        ("m == " + "1" * 600, {}),
    ],
)
def test_values(guard: str, expected: dict[str, str]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert dict(values.now(guard, LOCAL, EVERYWHERE)) == expected


def test_long_values_and_expressions_are_cut() -> None:
    ((_, value),) = values.now("long == ''", LOCAL, {})
    assert value == repr("y" * values.SHORT)
    assert values.now("o" + ".k" * 120 + " == 1", LOCAL, {}) == []


CALLED: list[str] = []


def trap(name: str, answer: Any = 1) -> Any:
    def called(*_: Any, **__: Any) -> Any:
        CALLED.append(name)
        return answer

    return called


class Meta(type):
    __getattribute__ = trap("Meta.__getattribute__")
    __instancecheck__ = trap("Meta.__instancecheck__")
    __subclasscheck__ = trap("Meta.__subclasscheck__")
    __eq__ = trap("Meta.__eq__", False)
    __hash__ = trap("Meta.__hash__")  # type: ignore[assignment]


_TRAPS = ("__getattr__", "__getattribute__", "__len__", "__bool__", "__eq__", "__repr__", "__str__", "__iter__", "__contains__")
_MORE = ("__getitem__", "__call__", "__index__", "__format__", "__instancecheck__", "keys", "items", "values", "size")
_DEFINED = {name: trap(name) for name in _TRAPS + _MORE} | {
    "__hash__": lambda _: hash("k"),
    "__eq__": trap("__eq__", False),
    "k": property(trap("k")),
}
KINDS = [
    Meta("Hostile", (base,), {**_DEFINED, "__class__": property(trap("__class__"))})  # what isinstance would ask
    for base in (object, dict, list, tuple, str, set)
]
DICTLESS = type("Dictless", (), {"__dict__": property(trap("__dict__"))})


def hostile() -> Iterator[Any]:
    yield from (kind() for kind in KINDS)
    yield DICTLESS()
    yield {KINDS[0](): 1, "k": 2}
    yield KINDS[0]


@pytest.mark.parametrize("which", range(9))
def test_no_code_of_the_job_runs(which: int) -> None:
    value = list(hostile())[which]
    guards = [
        "x == 1",
        "not x",
        "len(x) == 1",
        "x.k == 1",
        "x.missing == 1",
        "x['k'] == 1",
        "x[0] == 1",
        "list(dict.keys(x))[0] == 1",
        "list(x)[0] == 1",
        "x.size()[0] == 1",
        "x() == 1",
        "x.k() == 1",
        "type(x) is int",
        "___check_type_id(x, 1)",
        "___check_obj_id(x, 1)",
        "x.k.k == 1",
        "getattr(x, 'k') == 1",
    ]
    CALLED.clear()
    told = [dict(values.now(guard, {"x": value}, {"x": value})) for guard in guards]
    compiled = types.SimpleNamespace(
        code=(lambda self: self).__code__, local={"self": value}, everywhere={}, closure=(types.CellType(value),)
    )
    owner = stack.owner(compiled)
    assert CALLED == [] and owner
    if which == 7:
        assert told[5] == {"x['k']": "2"}  # the other key has the same hash and is not asked


class Text(str):
    __slots__ = ()
    __format__ = trap("Text.__format__", "")
    __getitem__ = trap("Text.__getitem__", "")
    __contains__ = trap("Text.__contains__", True)


def test_names_that_are_strings_of_the_jobs_are_not_asked() -> None:
    def function() -> None:
        pass

    class Named:
        pass

    function.__name__, function.__qualname__, Named.__name__ = Text("works"), Text("of.works"), Text("Named")
    CALLED.clear()
    assert dict(values.now("f == n", {"f": function, "n": Named()}, {})) == {"f": "function works", "n": "Named"}
    assert stack._function(function) == "of.works"
    assert stack._told(Named()) == "Named"
    assert CALLED == []


def failure(*names: str) -> Exception:
    made: type[Exception] = Exception
    for name in names:
        made = type(name, (made,), {})
    return made()


@pytest.mark.parametrize(
    ("error", "one_graph", "on_break", "suppressed", "expected"),
    [
        (failure("Unsupported"), False, False, False, False),
        (failure("Unsupported"), True, False, False, True),
        (failure("Unsupported"), False, True, False, True),
        (failure("Unsupported", "RecompileLimitExceeded"), False, False, False, False),
        (failure("UserError"), False, False, False, False),
        (failure("BackendCompilerFailed"), False, False, False, True),
        (failure("BackendCompilerFailed"), False, False, True, False),
        (failure("TorchRuntimeError"), False, False, False, True),
        (failure("FailOnRecompileLimitHit"), False, False, False, True),
        (failure("FailOnRecompileLimitHit"), False, False, True, False),
        (failure("UncapturedHigherOrderOpError"), False, False, True, True),
        (failure("ResumePrologueTracingError"), False, False, True, True),
    ],
)
def test_which_failures_go_to_the_job(
    error: Exception, one_graph: bool, on_break: bool, suppressed: bool, expected: bool
) -> None:
    box = types.SimpleNamespace(error_on_graph_break=on_break)
    compiled = stack.Compiling({"code": None, "one_graph": one_graph, "convert_frame_box": box})
    config = '{"recompile_limit": 8, "suppress_errors": true}' if suppressed else '{"suppress_errors": false}'
    metrics = {"fail_type": type(error).__name__, "dynamo_config": config}
    assert stack.raised(metrics, compiled, error) is expected


def test_threads_that_change_a_dict_meanwhile_cost_the_value_only(monkeypatch: pytest.MonkeyPatch) -> None:
    def raises(_: Any) -> Any:
        raise RuntimeError("dictionary changed size during iteration")

    monkeypatch.setattr(values, "list", raises, raising=False)
    with pytest.raises(values.Unreadable):
        values.item({"a": 1}, "a")


def test_texts_of_dynamo() -> None:
    compiled = types.SimpleNamespace(local=LOCAL, everywhere=EVERYWHERE)
    texts = [
        "0/1: m == 1      # return x + m  # a.py:3 in f (HINT: something)\nUser stack trace:\n  File m == 9",
        "!0/0/0: ___check_obj_id(colour, 139), type=<class '__main__.Colour'>  # case  # a.py:4 in f",
        "0/0: tensor 'x' size mismatch at index 0. expected 3, actual 4",
        "",
        None,
    ]
    assert stack.values_now(texts, compiled) == {"m": "2", "colour": "Colour.BLUE"}
    many = [f"0/{n}: l[{n % 2}] == 1 and t[{n % 3}] == 1 and m == 1 and f == 1 and r.stop == 1 and o.k == 1" for n in range(50)]
    assert len(stack.values_now(many, compiled)) == values.MOST


@pytest.mark.parametrize(
    ("kind", "reason", "limit"),
    [
        (None, None, None),
        (
            "Unsupported",
            "Dynamo recompile limit exceeded\n  Developer debug context: Limit type: recompile_limit",
            "recompile_limit",
        ),
        ("Unsupported", "Limit type: accumulated_recompile_limit", "accumulated_recompile_limit"),
        ("RecompileLimitExceeded", "cache_size_limit reached", "cache_size_limit"),
        ("RecompileLimitExceeded", "reached", "recompile_limit"),
        ("Unsupported", "Tensor.item() with capture_scalar_outputs=False", None),
        ("FailOnRecompileLimitHit", "Hard failure due to fail_on_recompile_limit_hit", None),
    ],
)
def test_limits(kind: str | None, reason: str | None, limit: str | None) -> None:
    assert stack.limit({"fail_type": kind, "fail_reason": reason}) == limit


def test_owners_without_torch() -> None:
    def of(function: Any, **local: Any) -> str:
        return stack.owner(types.SimpleNamespace(code=function.__code__, local=local, everywhere={}, closure=()))

    class Block:
        def forward(this, x: int) -> int:
            return x

    def free(block: Any) -> None: ...

    def named(self: Any) -> None: ...

    assert of(Block.forward, this=Block(), x=1) == "Block"
    assert of(free, block=Block()) == ""
    assert of(named, self=Block()) == "Block"
    assert of(named) == ""


def frame_of(module: str, name: str, body: str, **local: Any) -> Any:
    """Run a function `name` of a module; what its body's `look()` gets is the frame."""
    seen: list[Any] = []
    scope = {"__name__": module, "look": lambda: seen.append(sys._getframe(1)), "gc": gc}
    exec(f"def {name}({', '.join(local)}):\n    look()\n    {body}", scope)
    scope[name](**local)  # type: ignore[operator]
    return seen[0]


def test_a_frame_that_is_read_keeps_nothing() -> None:
    class Thing:
        pass

    gone: list[weakref.ref[Thing]] = []
    seen: list[Any] = []

    def make() -> Thing:
        thing = Thing()
        gone.append(weakref.ref(thing))
        return thing

    def look() -> None:
        found = stack.compiling(sys._getframe(1), {"frame_id": 0, "frame_compile_id": 1})
        assert found is not None
        seen.append(found.code.co_name)

    scope: dict[str, Any] = {"__name__": "torch._dynamo.convert_frame", "make": make, "look": look}
    scope["check"] = lambda: seen.append(gone[0]())
    exec("def _compile(code, compile_id):\n    thing = make()\n    look()\n    thing = None\n    check()", scope)
    gc.disable()
    try:
        scope["_compile"](look.__code__, types.SimpleNamespace(frame_id=0, frame_compile_id=1))
    finally:
        gc.enable()
    assert seen == ["look", None]


def test_a_compilation_that_an_exception_came_out_of() -> None:
    scope: dict[str, Any] = {"__name__": "torch._dynamo.convert_frame"}
    exec("def _compile(code, compile_id):\n    raise ValueError", scope)
    code = test_metrics_that_are_not_there_are_left_out.__code__
    with pytest.raises(ValueError) as raised:
        scope["_compile"](code, types.SimpleNamespace(frame_id=2, frame_compile_id=0))
    found = stack.compiled_before(raised.value, {"frame_id": 2, "frame_compile_id": 0})
    assert found is not None and found.code is code
    assert stack.compiled_before(raised.value, {"frame_id": 3, "frame_compile_id": 0}) is None
    assert stack.compiled_before(ValueError(), {}) is None and stack.compiled_before(None, {}) is None


@pytest.mark.parametrize("module", ["mine", "torch._dynamo.convert_frame"])
def test_frames_of_others_are_not_read(module: str) -> None:
    frame = frame_of(module, "_compile", "pass", code=1, compile_id=types.SimpleNamespace(frame_id=7, frame_compile_id=0))
    assert stack.compiling(frame, {"frame_id": 3, "frame_compile_id": 0}) is None  # another module's, or another compilation
    assert stack.reasons(frame) == [] and stack.broke_at(frame, None, "") is None


def test_metrics_that_are_not_there_are_left_out() -> None:
    told = metrics_of({"compile_id": "0/0", "gc_time_us": 5}.get)
    assert told["gc_time_us"] == 5 and told["guard_count"] is None
    assert set(told) == set(METRICS) - DROPPED_WHEN_NONE | {"gc_time_us"}
