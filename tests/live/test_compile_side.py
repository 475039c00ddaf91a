"""What the hook reads from Dynamo's stack while torch compiles: identity, owner, the instruction that broke, values now."""

from __future__ import annotations

import dis
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.hooked import Outcome, run

SPY = """
import json, torch
class Spy:
    def __init__(self, real): self.calls, self.monitoring = [], real.monitoring
    def refused(self, code, compile_id, limit): self.calls.append(["refused", code.co_name, compile_id, limit])
    def skipped(self, code, compile_id, at_code, at_offset):
        self.calls.append(["skipped", code.co_name, compile_id, at_code and at_code.co_name, at_offset])
    def look(self, *_): pass
    def place_existing(self, *_): pass
    def watch_stance(self): pass
def spy():
    _hooked.session.eager = made = Spy(_hooked.session.eager); return made
"""


def records(outcome: Outcome, key: str) -> list[dict[str, Any]]:
    """The trace messages whose record is of a kind, or the artifact of a name."""
    found = [message for message in outcome.messages if message.get("k") == "trace"]
    return [m for m in found if key in m["record"] or m["record"].get("artifact", {}).get("name") == key]


def codes(outcome: Outcome) -> dict[int, dict[str, Any]]:
    """The messages about code objects, by their numbers; each must come before the first that names it, and once."""
    known: dict[int, dict[str, Any]] = {}
    for message in outcome.messages:
        if message.get("k") == "code":
            assert message["code"] not in known
            known[message["code"]] = message
        else:
            assert message.get("code") in {None, *known} and message.get("at", {}).get("code") in {None, *known}
    return known


def on(outcome: Outcome) -> None:
    """No instrument has failed, nor is one missing but for the watch on loops, which Python 3.12 brings."""
    states = {name: state.partition(":")[0] for name, state in outcome.model.coverage.instruments.items()}
    if sys.version_info < (3, 12):
        assert states.pop("loop heads", "3.12 has").endswith("3.12 has")
    assert set(states.values()) == {"on"}, outcome.model.coverage.instruments


def test_code_objects_are_told_apart_by_identity(tmp_path: Path) -> None:
    outcome = run(
        """
import torch
attach()
def make(k):
    scope = {}
    exec(compile("def f(x): return x + 1", "same.py", "exec"), scope)
    return scope["f"]
kept = [make(0), make(1)]
for generation in range(2):
    for f in kept:
        torch.compile(f, backend="eager")(torch.ones(2))
    torch._dynamo.reset()
detach()
""",
        tmp_path,
    )
    on(outcome)
    known = codes(outcome)
    started, ended = records(outcome, "dynamo_start"), records(outcome, "compilation_metrics")
    numbers = [m["code"] for m in started]
    assert len(set(numbers)) == 2 and numbers == [*numbers[:2]] * 2 == [m["code"] for m in ended]
    assert {known[n]["file"] for n in numbers} == {"same.py"} and {known[n]["function"] for n in numbers} == {"f"}


def test_owners(tmp_path: Path) -> None:
    outcome = run(
        """
import torch
from torch import nn
attach()
class Block(nn.Module):
    def forward(this, x):
        y = x.sin(); print(end=""); return y + len(this._modules)
class Named(nn.Sequential): pass
long = nn.Sequential(*[m for _ in range(6) for m in (nn.Linear(2, 2), nn.Tanh())])
x = torch.ones(1, 2)
for made in (Block(), nn.Sequential(nn.Linear(2, 2), nn.Tanh()), long, nn.Linear(2, 2), Named(nn.Tanh())):
    torch.compile(made, backend="eager")(x)
torch.compile(lambda x: x + 1, backend="eager")(x)
detach()
""",
        tmp_path,
    )
    on(outcome)
    known = codes(outcome)
    told: dict[str, str] = {}
    for message in records(outcome, "dynamo_start"):
        told.setdefault(message.get("owner", ""), known[message["code"]]["function"])
    ends = (
        "",
        "Block",
        "Linear",
        "Named",
        "Sequential(Linear, Tanh)",
        "Sequential(Linear, Tanh, Linear, Tanh, Linear, Tanh, ..)",
    )
    assert set(told) == set(ends), told
    assert told["Block"] in ("forward", "torch_dynamo_resume_in_forward_at_9") and told["Sequential(Linear, Tanh)"] == "inner"
    assert all(m.get("owner", "") in ends for m in records(outcome, "compilation_metrics"))


GUARDS = """
import enum, functools, json, types, torch
from torch import nn
torch.set_num_threads(1)
x = torch.ones(4)
class E(enum.Enum): A = 1; B = 2
class Obj:
    def __init__(self, k): self.k = k
class Counter(nn.Module):
    def __init__(self): super().__init__(); self.n = 0
    def forward(self, x): self.n += 1; return x + self.n
class Dropping(nn.Module):
    def __init__(self): super().__init__(); self.d = nn.Dropout(0.1)
    def forward(self, x): return self.d(x)
G1 = 1.0
GL = [1]
def one(t): return t + 1
def two(t): return t + 2
def more():
    global G1; G1 = 2.0; GL.append(2)
def closing():
    k = 1
    def f(x): return x * k
    def change():
        nonlocal k; k = 2
    return f, change
closed, change = closing()
dropping, counter = Dropping(), Counter()
class Group:
    def __init__(self): self.param_groups = [{"lr": 0.01}]
group = Group()
def lower(): group.param_groups[0]["lr"] = 0.005
def mode(c):
    with nn.parameter.torch.overrides.TorchFunctionMode(): c(torch.ones(1))
def size(t): return t + 1
def read(x):
    s = x.sum().item(); return x * s
CASES = {
    "size range": (lambda x: x + 1 if x.shape[0] > 5 else x - 1, [(torch.ones(3),), (torch.ones(7),)], dict(dynamic=True)),
    "zero one": (lambda x: x + 1, [(torch.ones(3),), (torch.ones(4),), (torch.ones(1),)], {}),
    "int": (lambda x, m: x + m, [(x, 1), (x, 2)], {}),
    "float": (lambda x, m: x + m, [(x, 1.5), (x, 2.5)], {}),
    "bool": (lambda x, m: x + 1 if m else x, [(x, True), (x, False)], {}),
    "str": (lambda x, m: x + 1 if m == "a" else x, [(x, "a"), (x, "b")], {}),
    "enum": (lambda x, m: x + 1 if m is E.A else x, [(x, E.A), (x, E.B)], {}),
    "list": (lambda x, l: x + len(l) + l[0], [(x, [1]), (x, [1, 2])], {}),
    "tuple": (lambda x, l: x + l[0], [(x, (1,)), (x, (1, 2))], {}),
    "args": (lambda x, *a: x + len(a), [(x,), (x, 1)], {}),
    "dict": (lambda x, d: x + sum(d.values()), [(x, {"a": 1}), (x, {"a": 1, "b": 2})], {}),
    "order": (lambda x, d: x + list(d.values())[0], [(x, {"a": 1, "b": 2}), (x, {"b": 1, "a": 2})], {}),
    "function": (lambda x, f: f(x), [(x, one), (x, two)], {}),
    "partial": (lambda x, f: f(x), [(x, functools.partial(torch.add, other=n)) for n in (1, 2)], {}),
    "attribute": (lambda x, o: x + o.k, [(x, Obj(1)), (x, Obj(2))], {}),
    "class": (lambda x, o: x + o.k, [(x, Obj(1)), (x, types.SimpleNamespace(k=1))], {}),
    "counter": (counter, [(x,), (x,)], {}),
    "training": (dropping, [(x,), dropping.eval, (x,)], {}),
    "global": (lambda x: x * G1, [(x,), more, (x,)], {}),
    "global list": (lambda x: x * len(GL), [(x,), more, (x,)], {}),
    "closure": (closed, [(x,), change, (x,)], {}),
    "lr": (lambda x: x * group.param_groups[0]["lr"], [(x,), lower, (x,)], {}),
    "nan": (lambda x, f: x * f, [(x, float("nan")), (x, 1.0)], {}),
    "range": (lambda x, r: x + r.stop, [(x, range(3)), (x, range(4))], {}),
    "read": (read, [(x,), (x + 1,)], {}),
    "dtype": (lambda x: x + 1, [(torch.ones(3),), (torch.ones(3).double(),)], {}),
    "grad mode": (lambda x: x + 1, [(x,), lambda: torch.set_grad_enabled(False), (x,)], {}),
}
attach()
for name, (f, calls, options) in CASES.items():
    _hooked.session.outbox.put({"k": "case", "name": name})
    torch._dynamo.reset()
    c = torch.compile(f, backend="eager", **options)
    for call in calls:
        try:
            call() if callable(call) else c(*call)
        except torch._dynamo.exc.TorchDynamoException as error:
            print("!!", name, error)
    torch.set_grad_enabled(True)
detach()
"""
EXPECTED = {
    "size range": {"x.size()[0]": "7"},
    "zero one": {"x.size()[0]": "1"},
    "int": {"m": "2"},
    "float": {"m": "2.5"},
    "bool": {"m": "False"},
    "str": {"m": "'b'"},
    "enum": {"m": "E.B"},
    "list": {"len(l)": "2"},
    "tuple": {"len(l)": "2"},
    "args": {"len(a)": "1"},
    "dict": {"len(d)": "2"},
    "order": {"list(dict.keys(d))[0]": "'b'"},
    "function": {"f.__code__": "code of two"},
    "partial": {"f.keywords['other']": "2"},
    "attribute": {"o.k": "2"},
    "class": {"type(o)": "SimpleNamespace"},
    "counter": {"self.n": "1"},
    "training": {"self._modules['d'].training": "False"},
    "global": {"G['G1']": "2.0"},
    "global list": {"len(G['GL'])": "3"},
    "closure": {"k": "2"},
    "lr": {"G['group'].param_groups[0]['lr']": "0.005"},
    "nan": {"type(f)": "float", "f": "1.0"},
    "range": {"r.stop": "4"},
    "read": {"___stack0": "8.0"},
    "dtype": {},
    "grad mode": {},
}


@pytest.fixture(scope="module")
def of_guards(tmp_path_factory: pytest.TempPathFactory) -> tuple[Outcome, dict[str, list[dict[str, Any]]]]:
    outcome = run(GUARDS, tmp_path_factory.mktemp("guards"))
    told: dict[str, list[dict[str, Any]]] = {}
    name = ""
    for message in outcome.messages:
        name = message["name"] if message.get("k") == "case" else name
        if message.get("k") == "trace" and message["record"].get("artifact", {}).get("name") == "recompile_reasons":
            told.setdefault(name, []).append(message)
    return outcome, told


@pytest.mark.parametrize("name", EXPECTED)
def test_values_now(of_guards: tuple[Outcome, dict[str, list[dict[str, Any]]]], name: str) -> None:
    outcome, told = of_guards
    on(outcome)
    messages = told[name]
    assert messages[-1].get("now", {}) == EXPECTED[name], (messages[-1], outcome.stdout)
    assert all("code" in message for message in messages)


def test_breaks_and_what_is_called_for_frames_left_to_eager(tmp_path: Path) -> None:
    program = (
        SPY
        + """
attach(); spied = spy()
def resumed(x):
    y = x.sin(); print(end=""); return y + 1
def looping(x):
    for _ in range(3):
        x = x + 1
        s = x.sum().item()
    return x * s
def helper(x):
    return x * (x.data_ptr() % 7)
def calling(x):
    for _ in range(2):
        x = helper(x.clone())
    return x
def limited(x, n): return x + n
def strict(x):
    print(end=""); return x
x = torch.ones(3)
torch.compile(resumed, backend="eager")(x)
torch.compile(looping, backend="eager")(x)
torch.compile(calling, backend="eager")(x)
torch._dynamo.config.recompile_limit = 2
for n in range(4): torch.compile(limited, backend="eager", dynamic=False)(x, n)
torch._dynamo.config.recompile_limit = 8
try: torch.compile(strict, backend="eager", fullgraph=True)(x)
except torch._dynamo.exc.Unsupported: pass
open_ = len(_hooked.session._log._broke)
detach()
import dis
shown = {f.__name__: [[i.offset, i.opname, i.positions.lineno if hasattr(i, "positions") and i.positions else None]
         for i in dis.get_instructions(f)] for f in (resumed, looping, calling, helper)}
print(json.dumps([spied.calls, open_, shown]))
"""
    )
    outcome = run(program, tmp_path)
    on(outcome)
    known = codes(outcome)
    calls, still_open, shown = outcome.values
    assert still_open == 0
    at: dict[str, set[tuple[str, int]]] = {}
    for message in records(outcome, "dynamo_graph_break_reason"):
        place = message["at"]
        at.setdefault(known[message["code"]]["function"], set()).add((known[place["code"]]["function"], place["offset"]))
    for frame, where in {"resumed": "resumed", "looping": "looping", "calling": "helper"}.items():
        ((function, offset),) = at[frame]
        assert function == where
        (opname,) = [op for instruction_at, op, _ in shown[where] if instruction_at == offset]
        assert opname.startswith(("CALL", "BINARY")) and opname in dis.opmap, opname
    skipped = [call for call in calls if call[0] == "skipped"]
    assert {(name, where, offset) for _, name, _, where, offset in skipped} >= {
        ("looping", *next(iter(at["looping"]))),
        ("calling", *next(iter(at["calling"]))),
    }
    assert not any(name in ("resumed", "strict", "limited") for _, name, *_ in skipped)
    refused = [call for call in calls if call[0] == "refused"]
    assert [(name, limit) for _, name, _, limit in refused] == [("limited", "recompile_limit")]
    metrics = [m for m in records(outcome, "compilation_metrics") if m["record"]["compilation_metrics"]["fail_type"]]
    assert {call[2] for call in calls} <= {m["record"]["compilation_metrics"]["compile_id"] for m in metrics}
    assert any(m["record"]["compilation_metrics"].get("fail_user_frame_lineno") for m in metrics)


def test_a_failure_in_the_look_loses_no_record(tmp_path: Path) -> None:
    outcome = run(
        """
import json, torch
attach()
_hooked.session.codes.number = lambda code: 1 / 0
f = torch.compile(lambda x, n: x + n, backend="eager", dynamic=False)
values = [float(f(torch.zeros(1), n)) for n in (2, 3)]
detach()
print(json.dumps(values))
""",
        tmp_path,
    )
    assert outcome.values == [2.0, 3.0]
    assert "ZeroDivisionError" in outcome.model.coverage.instruments["compile identity"]
    assert outcome.model.coverage.instruments["compile events"] == "on"
    assert len(records(outcome, "dynamo_start")) == 2 and len(records(outcome, "recompile_reasons")) == 1


def test_nothing_of_the_job_is_kept(tmp_path: Path) -> None:
    outcome = run(
        """
import gc, json, sys, torch, weakref
attach()
class Thing:
    def __init__(self, k): self.k = k
gone = []
SOURCE = '''
def looping(x, thing):
    for _ in range(2):
        s = x.sum().item()
    return x * s
def plain(x, thing, n):
    y = x.sin(); print(end=""); return y + thing.k + n
'''
def round_(number):
    scope = {}
    exec(SOURCE, scope)
    looping, plain = scope.pop("looping"), scope.pop("plain")
    things = [Thing(number), torch.ones(number + 2), torch.nn.Linear(2, 2)]
    gone.extend(weakref.ref(thing) for thing in things)
    gone.append(weakref.ref(looping.__code__))  # torch itself keeps that of a function that it resumes
    torch.compile(looping, backend="eager")(things[1], things[0])
    for n in (2, 3): torch.compile(plain, backend="eager", dynamic=False)(things[1], things[0], n)
    torch.compile(things[2], backend="eager")(torch.ones(1, 2))
    torch._dynamo.reset()
round_(0); gc.collect(); gone.clear()
gc.set_debug(gc.DEBUG_SAVEALL); gc.collect(); gc.garbage.clear()
round_(1)
gc.set_debug(0); gc.collect()
def of(objects, start): return [type(o).__name__ for o in objects if str(type(o).__module__).startswith(start)]
ours, cycles = of(gc.get_objects(), "tuimon.hook.stack"), of(gc.garbage, "tuimon")
frames = [o.f_code.co_name for o in gc.garbage if type(o).__name__ == "frame" and "/tuimon/hook/" in o.f_code.co_filename]
gc.garbage.clear(); gc.collect()
kept = [type(reference()).__name__ for reference in gone if reference() is not None]
detach()
print(json.dumps([ours, cycles, frames, kept]))
""",
        tmp_path,
    )
    assert outcome.values[:3] == [[], [], []]
    assert outcome.values[3] == [], outcome.values


def test_a_mode_and_a_subclass_of_the_job_are_not_asked(tmp_path: Path) -> None:
    outcome = run(
        """
import json, torch
from torch.overrides import TorchFunctionMode
from tuimon.hook import values
asked = []
class Mode(TorchFunctionMode):
    def __torch_function__(self, f, types, args=(), kwargs=None):
        asked.append(str(f)); return f(*args, **(kwargs or {}))
class Own(torch.Tensor):
    @classmethod
    def __torch_function__(cls, f, types, args=(), kwargs=None):
        asked.append(str(f)); return super().__torch_function__(f, types, args, kwargs or {})
plain, own = torch.ones(7, 2), torch.ones(7).as_subclass(Own)
nested = torch.nested.nested_tensor([torch.ones(2), torch.ones(3)])
parameter = torch.nn.Parameter(torch.ones(3))
def now(x):
    texts = ("x.size()[0] == 1", "x.stride()[0] == 1", "x.storage_offset() == 1", "x.dim() == 1", "x.shape[0] == 1", "not x")
    return [dict(values.now(text, {"x": x}, {})) for text in texts]
with Mode():
    asked.clear()
    found = [now(x) for x in (plain, parameter, own, nested)]
print(json.dumps([asked, found]))
""",
        tmp_path,
    )
    asked, (plain, parameter, own, nested) = outcome.values
    assert asked == []
    sizes = [{"x.size()[0]": "7"}, {"x.stride()[0]": "2"}, {"x.storage_offset()": "0"}, {"x.dim()": "2"}, {}]
    assert plain == [*sizes, {"x": "Tensor"}]
    assert parameter[0] == {"x.size()[0]": "3"} and own[:5] == [{}] * 5 and nested[0] == {}
