"""Where the job's loop turns, and what its main thread is seen doing, in real torch programs."""

from __future__ import annotations

import collections
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.live.test_eager_calls import on
from tests.support.hooked import DYNAMO, Outcome, run
from tuimon.events import Samples

pytestmark = pytest.mark.live

PYTHONS = [sys.executable, *(f"/opt/py/v{version}/bin/python" for version in ("3.12", "3.13"))]

LOOPS = """
import collections, json, logging, sys, time, torch
torch.manual_seed(0)
net = torch.nn.Linear(4, 4)
passed = collections.Counter()
patience = time.monotonic() + 60

@torch.compile(backend="eager")
def f(x):
    return x.sin()

def number():
    return _hooked.session.codes.number(sys._getframe(2).f_code)
def seen():
    # whether the caller was the innermost in the last look: a stall is as long as it takes to be seen
    last = _hooked.session._looking._last
    return time.monotonic() > patience or (last is not None and last[1][-1][0] == number())
def watched():
    code, told = number(), list(_hooked.session.loops._told.values())
    return time.monotonic() > patience or any(row[1] == code for message in told for row in message["heads"])

def items(n):
    for i in range(n):
        if i % 5 == 4:
            while LOOK and not seen(): time.sleep(0.03)  # the wait
        yield i

def train(n):
    batches = items(n)
    for i in range(n):
        passed["train"] += 1
        next(batches)
        f(net(torch.ones(4))).sum().backward()
        if i % 5 == 2:
            while LOOK and not seen(): time.sleep(0.03)  # the stall
        while not watched(): time.sleep(0.01)

attach()
for epoch in range(2):
    train(20)
detach()
assert not hasattr(sys, "monitoring") or [sys.monitoring.get_tool(tool) for tool in (3, 4)] == [None, None]
assert not hasattr(torch.autograd._engine_run_backward, "__wrapped__")
print(json.dumps(passed))
"""

LATE = """
import json, sys, time, torch
attach_at, passed = 5, 0

@torch.compile(backend="eager")
def f(x):
    for _ in range(40): x = (x @ x).tanh()
    return x

x = torch.rand(256, 256)
f(x)
def serve(n):
    global passed
    for i in range(n):
        if i == 5: attach()
        if i > 5 and told(): passed += 1
        f(x)
        if passed == 5: return
def told():
    return bool(_hooked.session.loops._told)  # by then the heads that are told are watched
serve(2000)
detach()
print(json.dumps(passed))
"""

NEUTRAL = """
import json, logging, sys, time, torch, torch._dynamo, tuimon
from torch._dynamo import utils
logging.getLogger("torch._dynamo").setLevel(logging.ERROR)
torch.manual_seed(0)
net = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))
opt = torch.optim.SGD(net.parameters(), lr=0.1)
compiled = torch.compile(net, backend="aot_eager")
def batches(n):
    for i in range(n):
        time.sleep(0.03)
        yield torch.randn(3 + i % 3, 4)
def train_step(x):
    opt.zero_grad()
    loss = compiled(x).square().mean()
    loss.backward()
    opt.step()
    return loss.item()
@torch.compile(backend="eager")
def broken(x):
    x = x + 1
    print(end="")
    for _ in range(2):
        x = x * 2
        print(end="")
    return x
results = []
BEGIN
for _ in range(2):
    for x in batches(12):
        tuimon.step()
        results.append(train_step(x))
        results.append(broken(x).sum().item())
        time.sleep(0.03)
    AGAIN
counters = {key: dict(value) for key, value in utils.counters.items()}
metrics = [(m.co_name, m.fail_type, m.guard_count, m.cache_size, m.graph_op_count) for m in utils.get_compilation_metrics()]
END
results.append([p.sum().item() for p in net.parameters()])
failed = sorted((key.co_name, len(value)) for key, value in utils.guard_failures.items())
print(json.dumps([results, counters, metrics, failed]))
"""


def heads(python: str) -> bool:
    return sys.version_info >= (3, 12) if python == sys.executable else "3.10" not in python


def messages(outcome: Outcome, kind: str) -> list[dict[str, Any]]:
    return [message for message in outcome.messages if message.get("k") == kind]


def counted(outcome: Outcome) -> dict[tuple[str, str], int]:
    """Samples by (role, function) of their instruments."""
    names = {added["instrument"]: (added["role"], added["function"]) for added in messages(outcome, "added")}
    found: collections.Counter[tuple[str, str]] = collections.Counter()
    for event in outcome.events:
        for row in event.rows if isinstance(event, Samples) else ():
            found[names[row[0]]] += 1
    return found


def seen(outcome: Outcome, function: str) -> list[tuple[int, int]]:
    """(line, whether it was a generator's) of each look whose innermost frame of the user's was in the function."""
    names = {message["code"]: message["function"] for message in messages(outcome, "code")}
    found, rows = [], []
    for look in messages(outcome, "look"):
        rows = look.get("rows", rows)
        if names[rows[-1][0]] == function:
            found.append((rows[-1][1], rows[-1][3]))
    return found


def line_of(tmp_path: Path, text: str) -> int:
    lines = (tmp_path / "program.py").read_text().splitlines()
    return next(number for number, line in enumerate(lines, 1) if text in line)


@pytest.mark.parametrize("python", PYTHONS)
def test_the_loop_of_the_steps_is_found_and_stalls_are_seen(tmp_path: Path, python: str) -> None:
    outcome = run(LOOPS.replace("LOOK", "True"), tmp_path, after=DYNAMO, python=on(python))
    roles = {added["instrument"]: added["role"] for added in messages(outcome, "added")}
    names = {message["code"]: message["function"] for message in messages(outcome, "code")}
    told = messages(outcome, "loops")
    assert {"forward", "engine"} <= {roles[message["anchor"]] for message in told}
    for message in told:
        if roles[message["anchor"]] == "engine":
            assert [names[code] for _, code, _, _ in message["heads"]] == ["<module>", "train"]
            assert {"<module>", "train"} <= {names[code] for code, _ in message["site"]}
    stalls, waits = line_of(tmp_path, "# the stall"), line_of(tmp_path, "# the wait")
    assert (stalls, 0) in seen(outcome, "train")
    assert (waits, 1) in seen(outcome, "items")
    found = counted(outcome)
    if heads(python):
        # watched from the first step on, and each time the head is passed once more than the body runs
        assert (found["loop", "train"], outcome.values["train"]) == (20 + 21, 40)
        assert found["loop", "<module>"] == 2
        assert 4 <= found["data", "items"] <= 42
    else:
        assert all(row[0] == 0 for message in told for row in message["heads"])
        assert ("loop", "train") not in found
    assert [message["left"] for message in messages(outcome, "detached")] == [[]]


@pytest.mark.parametrize("python", PYTHONS)
def test_of_what_was_compiled_before_the_attach_the_loop_is_found_too(tmp_path: Path, python: str) -> None:
    outcome = run(LATE, tmp_path, after=DYNAMO, python=on(python))
    assert outcome.values == 5
    before = {added["instrument"] for added in messages(outcome, "added") if added["before_attach"]}
    (told, *_) = messages(outcome, "loops")
    assert told["anchor"] in before
    names = {message["code"]: message["function"] for message in messages(outcome, "code")}
    assert [names[code] for _, code, _, _ in told["heads"]][:1] == ["serve"]
    if heads(python):
        assert counted(outcome)["loop", "serve"] >= 4


@pytest.mark.parametrize("python", PYTHONS)
def test_nothing_is_compiled_otherwise(tmp_path: Path, python: str) -> None:
    plain = run(
        NEUTRAL.replace("BEGIN", "").replace("END", "").replace("AGAIN", "pass"), tmp_path, after=DYNAMO, python=on(python)
    )
    begin = "attach(step='__main__:train_step')"
    again = f"detach(); {begin}"
    hooked = run(
        NEUTRAL.replace("BEGIN", begin).replace("END", "detach()").replace("AGAIN", again),
        tmp_path,
        after=DYNAMO,
        python=python,
    )
    assert plain.values == hooked.values
    found = counted(hooked)
    assert found["mark", "step"] == 24
    assert 20 <= found["mark", "train_step"] <= 24, "from the first look on"
    assert [message["left"] for message in messages(hooked, "detached")] == [[], [], []]


def test_stacks_are_not_looked_at_where_that_is_not_wanted(tmp_path: Path) -> None:
    program = LOOPS.replace("LOOK", "False").replace("attach()", "attach(stacks=False)")
    outcome = run(program, tmp_path, after=DYNAMO)
    assert messages(outcome, "look") == []
    assert messages(outcome, "status")[-1]["instruments"]["stack looks"].startswith("off: ")
