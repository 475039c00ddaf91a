"""`tuimon run` on programs that tell the truth about themselves: a backend of their own counts the calls of each graph, what
stands behind `if not is_compiling()` counts what runs in eager, and torch's own metrics say what was compiled again and why."""

from __future__ import annotations

import json
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.support.command import tuimon

pytestmark = pytest.mark.live
pytest.importorskip("torch")

PYTHONS = [sys.executable, *(path for path in ("/opt/py/v3.12/bin/python",) if Path(path).exists())]
"""This one and, where it is on the machine with torch in it, one that can watch a function alone."""

PROGRAM = """\
import collections, json, os, sys, torch, torch._dynamo
from torch._guards import CompileContext
from torch._dynamo.utils import get_compilation_metrics
is_compiling = torch.compiler.is_compiling
graphs, eager, resets = collections.Counter(), collections.Counter(), [0]

def counting(graph, inputs):
    name = f"{resets[0]}:{CompileContext.current_compile_id()}"
    @torch._dynamo.disable
    def call(*args):
        graphs[name] += 1
        return graph.forward(*args)
    graphs[name] += 0
    return call

static = dict(backend=counting, dynamic=False)
STEPS = 21

# the last thing in a function breaks, and nothing is left that Dynamo could go on with
def told(y):
    torch._dynamo.graph_break()  # told
    return y
@torch.compile(**static)
def hands_over(x):
    return told(x.sin())

# a method breaks that each layer of a stack calls: the stack itself is given up, its layers are not
class Layer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight, self.seen = torch.nn.Linear(3, 3), 0.0
    def note(self, y):
        if not is_compiling(): eager["note"] += 1
        self.seen = y.detach().sum().item()  # note
        return y.tanh()
    def forward(self, x):
        y = self.note(self.weight(x))
        return y + 1
class Stack(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.ModuleList(Layer() for _ in range(3))
    def forward(self, x):
        if not is_compiling(): eager["Stack.forward"] += 1
        for layer in self.layers:
            x = layer(x)
        return x
stack = torch.compile(Stack(), **static)

# a branch that is taken now and then
@torch.compile(**static)
def seldom(x, report):
    y = x.cos()
    if report:
        torch._dynamo.graph_break()  # seldom
        y = y * 2
    return y + 1

# two reads of the device in one expression
@torch.compile(backend=counting)
def spread(x):
    return x * (x.max().item() - x.min().item())  # spread

# two compilations of one function share its budget; calls that fit nothing run in eager
torch._dynamo.config.recompile_limit = 4
def scaled(x):
    if not is_compiling(): eager["scaled"] += 1
    return x * 3
first, second = torch.compile(scaled, **static), torch.compile(scaled, backend="eager", dynamic=False)

# an exception leaves between the break and what is behind it
@torch.compile(backend=counting)
def leaves(x, ends):
    y = x.exp()
    ends()  # leaves
    return y - 1
@torch.compiler.disable
def fails(): raise ValueError
@torch.compiler.disable
def passes(): pass

for step in range(STEPS):
    x = torch.linspace(-1, 1, 3) * (step + 1)
    hands_over(x); stack(x); seldom(x, step % 7 == 6); spread(x)
    first(torch.ones(1 + step % 5)); second(torch.ones(1 + step % 5))
    try: leaves(x, fails if step == 4 else passes)
    except ValueError: pass

again = [(m.compile_id, m.co_name) for m in get_compilation_metrics() if m.recompile_reason and not m.fail_type]
torch._dynamo.reset()
resets[0] += 1
for step in range(STEPS): seldom(torch.ones(3), False)
json.dump({"graphs": graphs, "eager": eager, "again": again}, open(sys.argv[1], "w"))
"""


@dataclass
class Told:
    """What a program says of itself, and what the report says of it."""

    truth: dict[str, Any]
    report: dict[str, Any]
    python: str

    @property
    def watches_functions(self) -> bool:
        """Whether this Python can count the calls of a function that Dynamo skips."""
        return not self.report["target"]["python"].startswith(("3.10", "3.11"))

    def at(self, mark: str) -> list[dict[str, Any]]:
        """The boundaries on the line that bears this mark."""
        line = next(n for n, text in enumerate(PROGRAM.splitlines(), 1) if text.endswith(f"# {mark}"))
        return [one for one in self.report["boundaries"] if one["line"] == line and one["file"].endswith("program.py")]

    def frame(self, function: str, owner: str = "") -> dict[str, Any]:
        """The one frame of this name, in the first generation."""
        (found,) = [
            one
            for one in self.report["frames"]
            if owner in (one["display"] or "") and one["function"] == function and one["key"].startswith("0:")
        ]
        frame: dict[str, Any] = found
        return frame


@pytest.fixture(scope="module", params=PYTHONS)
def told(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Told:
    folder = tmp_path_factory.mktemp("unseen")
    program, truth = folder / "program.py", folder / "truth.json"
    program.write_text(PROGRAM)
    ran = tuimon("run", "--headless", "--format", "json", "--", request.param, str(program), str(truth))
    assert ran.status == 0, ran.err
    return Told(json.loads(truth.read_text()), ran.report, request.param)


def test_each_graph_is_called_as_often_as_its_backend_says(told: Told) -> None:
    mine: Counter[str] = Counter()
    for region in told.report["regions"]:
        if region["direction"] == "forward":
            mine[f"{region['generation']}:{region['compile_id']}"] += region["calls"]
    others = {name: calls for name, calls in mine.items() if name not in told.truth["graphs"]}
    assert {name: mine[name] for name in told.truth["graphs"]} == told.truth["graphs"]
    assert all(name.startswith(told.frame("scaled")["key"] + "/") for name in others)  # that backend counts nothing


def test_what_was_compiled_again_is_what_torch_says(told: Told) -> None:
    mine = [[one["compile_id"], one["function"]] for one in told.report["recompiles"] if not one["refused"]]
    assert sorted(mine) == sorted(told.truth["again"])


def test_a_break_in_the_last_thing_of_a_function_is_crossed_at_each_call(told: Told) -> None:
    handed_over = next(one for one in told.at("told") if one["frame"] == told.frame("hands_over")["key"])
    assert handed_over["crossings"] == 21 and handed_over["host"]["median"] is None


def test_a_method_that_breaks_in_each_layer_of_a_stack(told: Told) -> None:
    stack = told.frame("forward", "Stack")
    assert stack["fell_back"] == "skipped" and stack["compiled_calls"] == 0
    assert stack["eager_calls"] == (told.truth["eager"]["Stack.forward"] if told.watches_functions else None)
    layers = told.frame("forward", "Layer")
    assert layers["fell_back"] is None and layers["calls"] == 63
    caller, method = sorted(told.at("note"), key=lambda one: one["frame"] != layers["key"])
    assert (caller["crossings"], method["crossings"]) == (63, 63)
    assert caller["reads_host"] and method["reads_host"] and not method["skipped_frame"]
    assert caller["breaks"] + method["breaks"] == 4  # the stack's, the layer's two entries', the method's own


def test_a_rare_branch_and_two_breaks_on_one_line(told: Told) -> None:
    (seldom,) = told.at("seldom")
    assert (seldom["crossings"], seldom["requested"]) == (3, True)
    spread = told.at("spread")
    assert [one["crossings"] for one in spread] == [21, 21]
    assert all("Tensor.item()" in one["reason"] and one["reads_host"] for one in spread)


def test_two_compilations_of_one_function_share_its_limit(told: Told) -> None:
    frame = told.frame("scaled")
    assert frame["limit_hit"] and frame["limit"] == 4 and frame["entries"] == 4
    assert (frame["eager_calls"], frame["calls"]) == (told.truth["eager"]["scaled"], 42)


def test_a_crossing_that_ends_in_an_exception_is_none(told: Told) -> None:
    (leaves,) = told.at("leaves")
    assert leaves["crossings"] == 20


def test_the_sums_are_right_and_what_is_unknown_has_a_reason(told: Told) -> None:
    reasons = {row["what"] for row in told.report["coverage"]["not_available"]}
    for frame in told.report["frames"]:
        if None not in (frame["calls"], frame["compiled_calls"], frame["eager_calls"]):
            assert frame["calls"] == frame["compiled_calls"] + frame["eager_calls"]
        for name in ("calls", "compiled_calls", "eager_calls"):
            assert frame[name] is not None or f"frames[{frame['key']}].{name}" in reasons
    for boundary in told.report["boundaries"]:
        assert boundary["crossings"] is not None or f"boundaries[{boundary['key']}].crossings" in reasons
