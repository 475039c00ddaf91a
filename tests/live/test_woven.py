"""What of torch's own is compiled anew with our lines in it: it is on each Python, tells the same rows, and goes again."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from tests.support.hooked import run

pytestmark = pytest.mark.live

PYTHONS = [sys.executable, *filter(os.path.isfile, os.environ.get("TUIMON_PYTHONS", "").split(":"))]

PROGRAM = """
import json, pickle, time, traceback, torch, torch.autograd.graph, torch.autograd.profiler as profiler, torch.profiler
from torch.utils.data import DataLoader
R = profiler.record_function
ENGINE = "_engine_run_backward"
HELD = [(R, "__enter__"), (R, "__exit__"), (torch.autograd.graph, ENGINE), (torch.autograd, ENGINE)]
look = lambda: [vars(owner).get(name) for owner, name in HELD]
by_name = lambda: [pickle.loads(pickle.dumps(one)) is one for one in look()]
weight = torch.nn.Parameter(torch.ones(3))
optimizers = [torch.optim.SGD([weight], lr=0.1), torch.optim.Adam([weight])]

class Fails(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x): return x * 2
    @staticmethod
    def backward(ctx, grad): raise KeyError("the job's")

def places(error):
    rows = traceback.extract_tb(error.__traceback__)
    return [(row.filename, row.lineno, row.name) for row in rows]

def work():
    found = []
    for one in DataLoader(list(range(6)), batch_size=2):
        found.append(int(one.sum()))
    for optimizer in optimizers:
        for _ in range(80):
            optimizer.zero_grad()
            weight.sum().backward()
            optimizer.step()
    torch.autograd.grad((weight * 2).sum(), [weight])
    for wrong in (lambda: Fails.apply(weight).sum().backward(), lambda: torch.ones(1).backward(), lambda: R(5).__enter__(),
                  lambda: optimizers[0].step(lambda: 1 / 0)):
        try:
            wrong()
        except Exception as error:
            found.append([repr(error), places(error)])
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as prof:
        with R("mine"):
            optimizers[0].step()
    names = ("mine", "Optimizer.step#SGD.step")
    found.append(sorted((event.name, event.count) for event in prof.events() if event.name in names))
    return found

def rows(since):
    while session.outbox.queue or len(seen) == since or time.monotonic() - last[0] < 0.3: time.sleep(0.05)
    return sorted(seen[since:])

before = look()
plain = work()
seen, last, roles = [], [0.0], {}
from tuimon.hook import weave
added, one = _session.Session.send_added, weave.Weaving.one
def told(self, number, role, *rest, **more):
    roles[number] = role
    return added(self, number, role, *rest, **more)
_session.Session.send_added, weave.Weaving.one = told, lambda self: None  # nothing but the engine is woven yet
attach()
session = _hooked.session
def taken(samples):
    last[0] = time.monotonic()
    seen.extend((roles.get(row[0], "?"), row[2]) for row in samples)
session.outbox.look = taken
standing, named = look(), by_name()
work(); told_first = rows(0)
n = len(seen)
weave.Weaving.one = one
while session.weaving._waiting: time.sleep(0.05)
woven = look()
named += by_name()
second = work(); told_second = rows(n)
@torch.jit.script
def scripted(x: torch.Tensor) -> torch.Tensor:
    with profiler.record_function("named"):
        return x + 1
scripted(torch.zeros(1))
detach()
after = look()
third = work()
usual = lambda rows: [row for row in rows if row[0] not in ("cpu", "gc", "loop")]
print(json.dumps({
    "same": [second == plain, third == plain],
    "files": [[one.__code__.co_filename, one.__code__.co_name] for one in woven],
    "torch": [[one.__code__.co_filename, one.__code__.co_name] for one in before],
    "replaced": [a is not b and (b is c) == (name == ENGINE) for (_, name), a, b, c in zip(HELD, before, standing, woven)],
    "left": [a is b for a, b in zip(before, after)], "named": named,
    "first": usual(told_first), "second": usual(told_second),
    "instruments": session.instruments.get("weaving", ""), "dropped": session.outbox.dropped[0],
}))
"""


@pytest.mark.parametrize("python", PYTHONS)
def test_the_functions_of_torch_are_woven_and_tell_the_same(tmp_path: Path, python: str) -> None:
    values = run(PROGRAM, tmp_path, python=python).values
    assert values["files"] == values["torch"]
    assert all(values["replaced"]) and all(values["left"]) and all(values["named"])
    assert all(values["same"]), values["same"]
    assert values["instruments"] == "" and values["dropped"] == 0
    assert values["first"] == values["second"]
    roles = {tuple(row) for row in values["second"]}
    assert roles >= {("optimizer", 0), ("data", 0), ("data", 1), ("engine", 0), ("engine", 1)}
