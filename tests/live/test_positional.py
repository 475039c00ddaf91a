"""Graphs, resume functions and backwards are called by position alone, as the timers on them take it (`hook/timers`).

The timers are replaced by ones that take keywords too and note them. The programs call compiled functions in many ways: by
keyword, with defaults, from modules, closures and generators, over breaks in nested calls, with sizes, through hooks,
checkpoints and compiled autograd.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from tests.support.hooked import run

pytestmark = pytest.mark.live

PYTHONS = [sys.executable, *filter(os.path.isfile, os.environ.get("TUIMON_PYTHONS", "").split(":"))]

NOTED = """
import collections, json, torch  # torch first: the hook hides its own timers from Dynamo where it finds them
from tuimon.hook import timers
calls, odd = collections.Counter(), []
def noting(kind, make):
    def made(fn, *rest):
        timed = make(fn, *rest)
        def called(*args, **kwargs):
            calls[kind] += 1
            if kwargs: odd.append([kind, sorted(kwargs)])
            return timed(*args, **kwargs)
        return called
    return made
attach()
for kind in ("call_timer", "sized_timer", "resume_timer"):
    setattr(timers, kind, noting(kind, getattr(timers, kind)))
"""

PROGRAMS = """
import contextlib, torch
import torch.utils.checkpoint
t = lambda *size: torch.randn(*(size or (4, 4)), requires_grad=True)
broken = torch._dynamo.graph_break

def keywords(x, /, y=None, *rest, scale=2.0, **more):
    x = x * scale + (0 if y is None else y)
    broken()
    return x.sin() + sum(rest) + sum(more.values())

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = torch.nn.Linear(4, 4)
    def forward(self, x, *, mask=None, **extra):
        h = self.inner(x)
        broken()
        return (h if mask is None else h * mask).relu() + extra.get("bias", 0)

def helper(x, *, by):
    x = x + by
    broken()
    return x * by

def nested(x, by=3):
    held = x.cos()
    y = helper(held, by=by)
    return y + held

def closing(x):
    k = x.sum()
    def inner(z, *, w=1):
        broken()
        return z * k * w
    return inner(x, w=2) + k

def within(x):
    with torch.no_grad():
        y = x * 2
        broken()
        y = y + 1
    try:
        broken()
    except ValueError:
        return x
    return x * y

def items(x):
    for i in range(3):
        yield x * i

def turning(x):
    for one in items(x):
        x = x + one
        broken()
    return x

def sized(x, n=1):
    return x.reshape(-1).repeat(n) * n

class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2
    @staticmethod
    def backward(ctx, grad):
        return grad * 2

def custom(x):
    return Double.apply(x).sin()

def checked(x):
    return torch.utils.checkpoint.checkpoint(lambda a: a.sin().cos(), x, use_reentrant=False)

def hooked(x):
    y = x.sin()
    y.register_hook(lambda grad: grad * 2)
    return y.cos()

def each(backend):
    compiled = {f.__name__: torch.compile(f, backend=backend) for f in
                (keywords, nested, closing, within, turning, sized, custom, checked, hooked)}
    net = torch.compile(Net(), backend=backend)
    for _ in range(2):
        x = t()
        out = [compiled[name](x) for name in compiled if name != "sized"]
        out += [compiled["keywords"](x, scale=3.0), compiled["keywords"](x, t(), t(), bias=t()), compiled["nested"](by=4, x=x)]
        out += [net(x), net(x=x, mask=t(), bias=t())]
        sum(o.sum() for o in out).backward(retain_graph=True)
        torch.autograd.grad(sum(o.sum() for o in out), [x], allow_unused=True)
    for rows in (4, 5, 6, 7):
        compiled["sized"](t(rows, 4), n=rows).sum().backward()

each("aot_eager")
torch._dynamo.reset()
eager = torch.compile(nested, backend="eager")
eager(t(), by=2), eager(x=t())

torch._dynamo.reset()
weight = torch.nn.Parameter(torch.randn(4))
optimizer = torch.optim.Adam([weight])
step = torch.compile(lambda: optimizer.step(), backend="aot_eager")
for _ in range(3):
    weight.sum().backward()
    step()
each_of = torch.compile(lambda x: torch.func.vmap(lambda row: row.sin())(x), backend="aot_eager")
each_of(t())

if hasattr(torch._dynamo.config, "nested_graph_breaks"):
    torch._dynamo.reset()
    with torch._dynamo.config.patch(nested_graph_breaks=True), contextlib.suppress(torch._dynamo.exc.TorchDynamoException):
        for f in (nested, closing, turning):
            torch.compile(f, backend="aot_eager")(t()).sum().backward()

torch._dynamo.reset()
with torch._dynamo.config.patch(compiled_autograd=True):
    both = torch.compile(lambda x: x.sin().sum().backward(), backend="aot_eager")
    for _ in range(2):
        both(t())
detach()
print(json.dumps([odd, calls]))
"""


@pytest.mark.parametrize("python", PYTHONS)
def test_no_graph_is_called_by_keyword(tmp_path: Path, python: str) -> None:
    odd, calls = run(NOTED + PROGRAMS, tmp_path, python=python).values
    assert odd == []
    assert calls["call_timer"] > 50 and calls["resume_timer"] > 20 and calls["sized_timer"] > 3
