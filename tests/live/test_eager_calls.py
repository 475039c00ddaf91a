"""Calls that run in eager and what breaks them, counted in real torch programs and compared with what the program counts.

The programs count for themselves: `torch.compiler.is_compiling()` is true while Dynamo traces, so what stands behind `if not
is_compiling()` is in no graph and runs only in eager.
"""

from __future__ import annotations

import collections
import sys
from pathlib import Path

import pytest

from tests.support.hooked import DYNAMO, Outcome, run
from tuimon.events import Samples

pytestmark = pytest.mark.live

PYTHONS = [sys.executable, *(f"/opt/py/v{version}/bin/python" for version in ("3.10", "3.12", "3.13"))]
"""This one and, where they are on the machine with torch in them, others."""

COUNTS = """
import collections, json, logging, sys, threading, torch, torch._dynamo
logging.getLogger("torch._dynamo").setLevel(logging.ERROR)
is_compiling = torch.compiler.is_compiling
torch._dynamo.config.recompile_limit = 3
ran, passed = collections.Counter(), collections.Counter()
"""

LIMITED = (
    COUNTS
    + """
attach()
static = dict(backend="eager", dynamic=False)

@torch.compile(**static)
def plain(x):
    if not is_compiling(): ran["plain"] += 1
    return x.sin()
for i in range(30): plain(torch.ones(i % 8 + 1))

@torch.compile(**static)
def goes_on(x, k):
    torch._dynamo.graph_break()
    if not is_compiling(): ran["torch_dynamo_resume_in_goes_on"] += 1
    return x * k
for i in range(12): goes_on(torch.ones(2), i % 6 + 0.5)

class Model(torch.nn.Module):
    def forward(self, x):
        if not is_compiling(): ran["forward"] += 1
        return x + 1
model = torch.compile(Model(), **static)
for i in range(12): model(torch.ones(i % 5 + 1, 3))

class Thing:
    @torch.compile(**static)
    def method(self, x):
        if not is_compiling(): ran["method"] += 1
        return x + 1
thing = Thing()
for i in range(12): thing.method(torch.ones(i % 5 + 1, 3))

def make(scale):
    def closure(x):
        if not is_compiling(): ran["closure"] += 1
        return x * scale
    return torch.compile(closure, **static)
made = [make(0.5), make(1.5)]
for i in range(12): made[i % 2](torch.ones(i % 5 + 1))

@torch.compile(**static)
def mapped(x):
    if not is_compiling(): ran["mapped"] += 1
    return x.cos()
for _ in range(3): list(map(mapped, [torch.ones(i + 1) for i in range(5)]))

@torch.compile(**static)
def threaded(x):
    if not is_compiling(): ran["threaded"] += 1
    return x.cos()
def work():
    for i in range(10): threaded(torch.ones(i % 5 + 1))
threads = [threading.Thread(target=work) for _ in range(3)]
for t in threads: t.start()
for t in threads: t.join()

@torch.compile(**static)
def recursive(x, n):
    torch._dynamo.graph_break()
    if not is_compiling(): ran["torch_dynamo_resume_in_recursive"] += 1
    return recursive(x + 1, n - 1) if n else x
for i in range(8): recursive(torch.ones(2), i % 5)

def inner(x, k):
    if not is_compiling(): ran["inner"] += 1
    return x * k
def second(x, k):
    if not is_compiling(): ran["second"] += 1
    return x * k
@torch.compile(**static)
def outer(x, k):
    for _ in range(1): print(end="")  # given up: what it calls are frames of their own
    return inner(x, k) + sum(map(second, [x, x], [k, k + 9]))
for i in range(14): outer(torch.ones(2), i % 6 + 0.5)
detach()
print(json.dumps([ran, passed]))
"""
)

SKIPPED = (
    COUNTS
    + """
attach()
lock = threading.Lock()

@torch.compile(backend="eager")
def loop(x):
    if not is_compiling(): ran["loop"] += 1
    for i in range(4):
        x = x + 1
        if not is_compiling(): passed["loop"] += 1
        print(
            end=""
        )
    return x

@torch.compile(backend="eager")
def held(x):
    if not is_compiling(): ran["held"] += 1
    for i in range(2):
        if not is_compiling(): passed["held"] += 1
        with lock:
            x = x + 1
    return x

@torch.compile(backend="eager")
def raising(x):
    if not is_compiling(): ran["raising"] += 1
    try:
        if not is_compiling(): passed["raising"] += 1
        {}[x.sum().item()]
    except KeyError:
        pass
    return x + 1

def helper(x, n):
    if not is_compiling() and counting: ran["helper"] += 1
    for i in range(n):
        if not is_compiling() and counting: passed["helper"] += 1
        print(end="")
    return x + 1
counting = True
@torch.compile(backend="eager")
def caller(x):
    if not is_compiling(): ran["caller"] += 1; passed["caller"] += 1
    with lock:
        pass
    return helper(x, 2)
compiled_helper = torch.compile(helper, backend="eager")

for _ in range(5):
    loop(torch.ones(2)); held(torch.ones(2)); raising(torch.ones(2)); caller(torch.ones(2)); compiled_helper(torch.ones(2), 3)
    counting = False
    helper(torch.ones(2), 3)  # the user's own, of which Dynamo knows nothing: no call of the frame
    torch.compiler.disable(helper)(torch.ones(2), 3)
    counting = True
detach()
print(json.dumps([ran, passed]))
"""
)


LATE = (
    COUNTS
    + """
import os, time
static = dict(backend="eager", dynamic=False)
def limited(x):
    if not is_compiling(): ran["limited"] += 1
    return x.sin()
def looping(x):
    if not is_compiling(): ran["looping"] += 1
    for i in range(3):
        if not is_compiling(): passed["looping"] += 1
        print(end="")
    return x
def waiting(x):
    if not is_compiling(): ran["waiting"] += 1
    return x.cos()
f, g, w = (torch.compile(function, **static) for function in (limited, looping, waiting))
def calls(n):
    for i in range(n): f(torch.ones(i % 6 + 1)); g(torch.ones(2))
calls(12)
ran.clear(); passed.clear()
attach()
line = looping.__code__.co_firstlineno + 4
past = [(limited.__code__, "0/3", "limit", None), (looping.__code__, "1/0", "skipped", line)]
_hooked.session.eager.place_existing(past)
_hooked.session.eager.place_existing(past)
calls(12)

w(torch.ones(2))
stance = torch.compiler.set_stance("eager_on_recompile")
end = time.monotonic() + 30
while _hooked.session.eager._stance != "eager_on_recompile" and time.monotonic() < end: time.sleep(.01)
for i in range(6): w(torch.ones(i + 1))
torch.compiler.set_stance("default")

child = os.fork()
if not child:
    calls(6); os._exit(0)
assert os.waitpid(child, 0)[1] == 0
calls(3)
detach()
ended = dict(ran), dict(passed)
calls(12)
evaluator = torch._C._dynamo.eval_frame
assert evaluator.set_guard_complete_hook(None) is None and sys.getprofile() is None
if hasattr(sys, "monitoring"): assert [sys.monitoring.get_tool(tool) for tool in (3, 4)] == [None, None]
print(json.dumps(ended))
"""
)

NEUTRAL = (
    COUNTS
    + """
from torch._dynamo import utils
lock = threading.Lock()
BEGIN
def looked_up(x): return x.sin()
def given_up(x):
    for _ in range(2):
        with lock: x = x + 1
    return helper(x)
def helper(x):
    for _ in range(2): print(end="")
    return x * 2
results = []
for _ in range(2):
    f, g = torch.compile(looked_up, backend="eager", dynamic=False), torch.compile(given_up, backend="eager")
    for i in range(10): results.append(f(torch.ones(i % 5 + 1)).sum().item())
    for i in range(4): results.append(g(torch.ones(3)).sum().item())
    torch._dynamo.reset()
counters = {key: dict(value) for key, value in utils.counters.items()}
compiled = [(m.co_name, m.fail_type, m.guard_count, m.cache_size) for m in utils.get_compilation_metrics()]
END
print(json.dumps([results, counters, compiled, {str(key): len(value) for key, value in utils.guard_failures.items()}]))
"""
)


def counted(outcome: Outcome, role: str, why: str) -> dict[str, int]:
    """Samples by the function of the instrument; resume functions without what torch puts behind their names."""
    added = [m for m in outcome.messages if m.get("k") == "added" and (m["role"], m.get("why")) == (role, why)]
    names = {m["instrument"]: m["function"].partition("_at_")[0] for m in added}
    found = collections.Counter(dict.fromkeys(names.values(), 0))
    for event in outcome.events:
        for row in event.rows if isinstance(event, Samples) else ():
            if row[0] in names:
                assert row[3] == row[4]
                found[names[row[0]]] += 1
    return dict(found)


def gaps(outcome: Outcome) -> dict[str, str]:
    return {m["what"]: m["why"] for m in outcome.messages if m.get("k") == "gap"}


def on(python: str) -> str:
    if not Path(python).exists():
        pytest.skip(f"there is no {python}")
    return python


def watches_one_function(python: str) -> bool:
    return sys.version_info >= (3, 12) if python == sys.executable else "3.10" not in python


@pytest.mark.parametrize("python", PYTHONS)
def test_past_the_limit_each_call_in_eager_is_counted(tmp_path: Path, python: str) -> None:
    outcome = run(LIMITED, tmp_path, after=DYNAMO, python=on(python))
    ran, _ = outcome.values
    found = counted(outcome, "eager", "limit")
    assert found == ran, (found, ran)
    assert len({*ran, "threaded"}) == 10  # three threads that compile at once need not reach the limit
    assert ("frames.eager_calls" in gaps(outcome)) is not watches_one_function(python)  # for the one that is given up
    assert [m["left"] for m in outcome.messages if m.get("k") == "detached"] == [[]]


@pytest.mark.parametrize("python", PYTHONS)
def test_calls_and_crossings_of_frames_that_are_skipped_are_counted(tmp_path: Path, python: str) -> None:
    outcome = run(SKIPPED, tmp_path, after=DYNAMO, python=on(python))
    ran, passed = outcome.values
    if watches_one_function(python):
        assert counted(outcome, "eager", "skipped") == ran
        assert counted(outcome, "crossing", "") == passed
        assert gaps(outcome) == {}
    else:
        assert set(gaps(outcome)) == {"frames.eager_calls", "boundaries.crossings"}
        assert all("3.12 has" in why for why in gaps(outcome).values())
        assert counted(outcome, "eager", "skipped") == {}
    assert [m["left"] for m in outcome.messages if m.get("k") == "detached"] == [[]]


@pytest.mark.parametrize("python", PYTHONS)
def test_what_was_met_before_the_attach_and_stances(tmp_path: Path, python: str) -> None:
    outcome = run(LATE, tmp_path, after=DYNAMO, python=on(python))
    ran, passed = outcome.values
    assert counted(outcome, "eager", "limit") == {"limited": ran["limited"]}
    assert counted(outcome, "eager", "stance")["waiting"] == ran["waiting"] == 5
    if watches_one_function(python):
        assert counted(outcome, "eager", "skipped") == {"looping": ran["looping"]}
        assert counted(outcome, "crossing", "") == passed
        assert [m["counted"][:7] for m in outcome.messages if m.get("role") == "crossing"] == ["by line"]
    assert [m["left"] for m in outcome.messages if m.get("k") == "detached"] == [[]]


@pytest.mark.parametrize("python", PYTHONS)
def test_nothing_is_compiled_otherwise(tmp_path: Path, python: str) -> None:
    plain = run(NEUTRAL.replace("BEGIN", "").replace("END", ""), tmp_path, after=DYNAMO, python=on(python))
    hooked = run(NEUTRAL.replace("BEGIN", "attach()").replace("END", "detach()"), tmp_path, after=DYNAMO, python=python)
    assert plain.values == hooked.values
    assert counted(hooked, "eager", "limit") == {"looked_up": 8}


RAISING = (
    COUNTS
    + """
attach()
@torch.compile(backend="eager", dynamic=False)
def f(x):
    if not is_compiling(): ran["f"] += 1
    return x + 1
def run():
    for i in range(6): f(torch.ones(i + 1))
run()
def tracer(frame, *_):
    if frame.f_code.co_filename.endswith("lookups.py"): raise KeyboardInterrupt
sys.settrace(tracer)
run()
sys.settrace(None)
detach()
print(json.dumps(ran))
"""
)


def test_nothing_can_be_raised_out_of_the_hook_that_dynamo_calls(tmp_path: Path) -> None:
    """It would end the process, in C++. What a signal's handler raises at any line is played by a tracer here."""
    outcome = run(RAISING, tmp_path, after=DYNAMO)
    assert outcome.values == {"f": 6}
    assert counted(outcome, "eager", "limit") == outcome.values


SHORT_STANCE = (
    COUNTS
    + """
from torch._dynamo import decorators
original = decorators._set_stance
attach()
@torch.compile(backend="eager", dynamic=False)
def f(x):
    if not is_compiling(): ran["f"] += 1
    return x + 1
f(torch.ones(1))
for _ in range(3):
    with torch.compiler.set_stance("eager_on_recompile"):
        for i in range(3): f(torch.ones(i + 1))
detach()
print(json.dumps([ran, decorators._set_stance is original]))
"""
)


def test_a_stance_that_is_taken_back_at_once_is_seen(tmp_path: Path) -> None:
    outcome = run(SHORT_STANCE, tmp_path, after=DYNAMO)
    assert outcome.values == [{"f": 6}, True]
    assert {name: n for name, n in counted(outcome, "eager", "stance").items() if n} == {"f": 6}
