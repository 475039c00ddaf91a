"""What the compiler made, as the hook tells it of real jobs: live, late, and for each size."""

from __future__ import annotations

import base64
import zlib
from pathlib import Path
from typing import Any

import pytest

from tests.support.hooked import DYNAMO, Outcome, run
from tuimon.events import GraphSeen

pytestmark = pytest.mark.live

NET = """
import json, torch
import torch._dynamo.utils as utils
torch.set_num_threads(1); torch.manual_seed(0)
net = torch.nn.Linear(64, 32)
def secret_name(x):
    # the users own comment
    return torch.relu(net(x)) @ net.weight
"""


def graphs(outcome: Outcome) -> list[dict[str, Any]]:
    """The messages, with their text."""
    found = [dict(message) for message in outcome.messages if message.get("k") == "graph"]
    for message in found:
        message["text"] = zlib.decompress(base64.b64decode(message.pop("z"))).decode()
    return found


def test_forward_and_backward_come_when_they_are_compiled(tmp_path: Path) -> None:
    outcome = run(
        "attach()\n"
        + NET
        + """
for backend in ("aot_eager", "eager"):
    torch._dynamo.reset()
    torch.compile(secret_name, backend=backend)(torch.randn(16, 64)).sum().backward()
    with torch.no_grad():
        torch.compile(secret_name, backend=backend)(torch.randn(16, 64))
detach()
""",
        tmp_path,
        after=DYNAMO,
    )
    found = graphs(outcome)
    assert [(one["kind"], one["compile_id"], one["attempt"]) for one in found] == [
        ("aot_forward_graph", "0/0", 0),
        ("aot_backward_graph", "0/0", 0),
        ("aot_inference_graph", "0/1", 0),
        ("dynamo_output_graph", "0/0", 0),
        ("dynamo_output_graph", "0/1", 0),
    ]
    assert all("mm" in one["text"] or "@" in one["text"] for one in found)
    for one in found:
        assert "secret" not in one["text"] and "comment" not in one["text"], one["text"]
    assert dict(outcome.model.target.options)["num_threads"] == "1"  # type: ignore[union-attr]


def test_a_job_shorter_than_the_time_between_two_looks_tells_its_threads(tmp_path: Path) -> None:
    """It sets them when the hook has looked already, at the attach; and compiles nothing."""
    outcome = run(
        "import torch; torch.set_num_threads(3); attach(); torch.set_num_threads(1); detach()", tmp_path, after=DYNAMO
    )
    told = [dict(message["options"]).get("num_threads") for message in outcome.messages if message.get("k") == "facts"]
    assert told[-1] == "1", told
    assert dict(outcome.model.target.options)["num_threads"] == "1"  # type: ignore[union-attr]


def test_each_size_has_its_own_number_and_the_compiler_sees_nothing(tmp_path: Path) -> None:
    outcome = run(
        NET
        + """
SIZES = (8, 12, 20, 20, 28, 20, 8)
def watched(backend):
    torch._dynamo.reset(); utils.counters.clear()
    compiled = torch.compile(secret_name, backend=backend)
    sums = []
    for n in SIZES:
        torch.manual_seed(n)
        loss = compiled(torch.randn(n, 64)).sum()
        loss.backward(); sums.append(loss.item())
    return sums, {name: dict(value) for name, value in utils.counters.items()}
same = []
for backend in ("eager", "aot_eager"):
    plain = watched(backend)
    attach(); hooked = watched(backend); detach()
    same.append(plain == hooked)
print(json.dumps(same))
""",
        tmp_path,
        after=DYNAMO,
    )
    assert outcome.values == [True, True]
    variants = [message for message in outcome.messages if message.get("k") == "added" and message.get("variant_of")]
    assert [size for message in variants for _, size in message["sizes"]] == [12, 20, 28, 8] * 2
    assert {name for message in variants for name, _ in message["sizes"]} <= {"s77", "s27", "s0"}
    assert {message["compile_id"] for message in variants} == {"0/1"}
    assert [message["left"] for message in outcome.messages if message.get("k") == "detached"] == [[], []]


def test_a_graph_from_before_the_attach_is_told_by_inductors_object(tmp_path: Path) -> None:
    outcome = run(
        NET
        + """
a, b = torch.nn.Parameter(torch.randn(64, 32)), torch.nn.Parameter(torch.randn(32, 8))
def products(x):
    # the users own comment
    return x @ a @ b  # and nothing for which Inductor needs a C++ compiler
compiled = torch.compile(products)
compiled(torch.randn(16, 64)).sum().backward()
with torch.no_grad():
    compiled(torch.randn(16, 64))
before = {name: dict(value) for name, value in utils.counters.items()}
attach(); compiled(torch.randn(16, 64)).sum().backward(); detach()
print(json.dumps(before == {name: dict(value) for name, value in utils.counters.items()}))
""",
        tmp_path,
        after=DYNAMO,
    )
    assert outcome.values is True
    found = graphs(outcome)
    told = sorted((one["compile_id"], one["kind"], one["direction"], one["place"]) for one in found)
    assert told == [
        ("0/0", "aot_backward_graph", "backward", 0),
        ("0/0", "aot_forward_graph", "forward", 0),
        ("0/0", "inductor_output_code", "backward", 0),
        ("0/0", "inductor_output_code", "forward", 0),
        ("0/1", "aot_forward_graph", "forward", 0),
        ("0/1", "inductor_output_code", "forward", 0),
    ]
    assert all(one["before_attach"] for one in found)
    assert all("mm" in one["text"] for one in found) and not any("comment" in one["text"] for one in found)


def test_a_graph_from_before_the_attach_is_written_where_the_backend_keeps_it(tmp_path: Path) -> None:
    """By its nodes: the same operations as torch's own text of it tells, live."""
    outcome = run(
        NET
        + """
def more(x):
    a, b = torch.relu(net(x)).chunk(2, 1)
    y = (a @ b.T) * 2 + x.shape[0]
    y += 1
    return torch.nn.functional.softmax(y, dim=-1).sum() + torch.nn.functional.layer_norm(a, [16]).T.sum()
def job(backend):
    torch._dynamo.reset()
    compiled = torch.compile(more, backend=backend)
    compiled(torch.randn(16, 64)).backward()
    with torch.no_grad():
        compiled(torch.randn(16, 64))
    return compiled
for backend in ("eager", "aot_eager"):
    torch._dynamo.reset(); attach(); compiled = job(backend); detach()
    utils.counters.clear()
    attach(); compiled(torch.randn(16, 64)).backward(); detach()
    assert not utils.counters["frames"], utils.counters
""",
        tmp_path,
        after=DYNAMO,
    )
    found = [event for event in outcome.events if isinstance(event, GraphSeen)]
    about = [(one.compile_id, one.direction, one.level) for one in found]
    eager, aot = about[:2], about[4:7]
    assert about == [*eager, *eager, *aot, *aot], about
    assert {level for *_, level in eager} == {"torch"} and {level for *_, level in aot} == {"aten"}
    assert [one.before_attach for one in found] == [False] * 2 + [True] * 2 + [False] * 3 + [True] * 3
    for live, late in zip(found[:2] + found[4:7], found[2:4] + found[7:], strict=True):
        assert not late.cut and sorted(late.rows) == sorted(live.rows)
        assert (sorted(late.reads), sorted(late.writes)) == (sorted(live.reads), sorted(live.writes))
    assert not any(message["left"] for message in outcome.messages if message.get("k") == "detached")
