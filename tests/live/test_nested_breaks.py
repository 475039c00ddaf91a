"""With `nested_graph_breaks` Dynamo traces calls of its own resume functions: no timer may stand in for them there."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.hooked import DYNAMO, run

pytestmark = pytest.mark.live

PROGRAM = """
import json, torch, threading
import torch._dynamo.utils as utils
def helper(x):
    x = x * 2
    torch._dynamo.graph_break()
    return x.sin()
def outer(x):
    y = helper(x.cos())
    torch._dynamo.graph_break()
    return y + x
def from_elsewhere():  # as an attach is: on a thread that has settings of its own
    thread = threading.Thread(target=attach)
    thread.start()
    thread.join()
def steps(before=lambda i: None):
    torch._dynamo.reset(); utils.counters.clear(); torch.manual_seed(0)
    compiled, sums = torch.compile(outer, backend="aot_eager"), []
    for i in range(12):
        before(i)
        total = compiled(torch.randn(4, requires_grad=True)).sum()
        total.backward()
        sums.append(total.item())
    return sums, {key: dict(value) for key, value in utils.counters.items()}
def habit(i):
    if i == 4: from_elsewhere()
    if i == 8: detach()
with torch._dynamo.config.patch(nested_graph_breaks=True):
    plain, late = steps(), steps(habit)
    from_elsewhere()
    first = steps()
    detach()
print(json.dumps([late == plain, first == plain]))
"""


def test_a_job_with_nested_breaks_runs_as_it_would(tmp_path: Path) -> None:
    outcome = run(PROGRAM, tmp_path, after=DYNAMO)
    assert outcome.values == [True, True]
    gaps = [message["why"] for message in outcome.messages if message.get("k") == "gap" and message["what"] == "boundaries"]
    assert len(gaps) == 2 and "nested_graph_breaks" in gaps[0]
    assert [message["left"] for message in outcome.messages if message.get("k") == "detached"] == [[], []]
    forward = [region for region in outcome.model.regions.values() if region.direction == "forward"]
    assert sum(region.calls for region in forward) >= 4 * 3
