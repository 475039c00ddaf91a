"""torch's records as events: the texts below are of the form that torch 2.9 to 2.14 write."""

from __future__ import annotations

import json

from tuimon import events as ev
from tuimon.sources.trace_records import record_events

IDS = {"frame_id": 2, "frame_compile_id": 1, "attempt": 0}

DISABLED = """Graph break in user code at /w/layer.py:14
Graph Break Reason: Encountered graph break when attempting to trace CALL: a function call, e.g. f(x, y):

Skip calling `torch.compiler.disable()`d function
  Explanation: Skip calling function `<function stats at 0x7f>` since it was wrapped with `torch.compiler.disable`
    (reason: None)
  Hint: Remove the `torch.compiler.disable` call
  Hint: Or keep it,
    if it is meant.

  Developer debug context: <function stats at 0x7f>

 For more details about this graph break, please visit: https://meta-pytorch.github.io/compile-graph-break-site/gb/gb0098.html

User code traceback:
  File "/w/train.py", line 20, in <module>
    layer(x)
  File "/w/layer.py", line 14, in torch_dynamo_resume_in_layer_at_12
    s = stats(h)

Traceback (most recent call last):
  File "/lib/torch/_dynamo/symbolic_convert.py", line 1, in wrapper
    raise Unsupported
"""

SKIPPED = """Graph break: torch.compile cannot properly resume from this graph break, which results in a skip.
torch.compile will skip tracing the frame Tower.forward (/w/tower.py line 18) and fall back to eager.
The graph break occurred in the following user code:
  File "/w/tower.py", line 22, in forward
    self.stats.append(x.item())

Traceback (most recent call last):
  File "/lib/torch/x.py", line 1, in y
torch._dynamo.exc.Unsupported: Unsupported Tensor.item() call with capture_scalar_outputs=False
  Explanation: Dynamo does not support tracing `Tensor.item()`
"""


def only(record: dict[str, object], payload: str | None = None) -> ev.Event:
    (event,) = record_events(5, "main", {**IDS, **record}, payload)
    return event


def break_of(text: str) -> ev.GraphBroke:
    event = only({"artifact": {"name": "dynamo_graph_break_reason"}}, text)
    assert isinstance(event, ev.GraphBroke)
    return event


def test_a_graph_break_has_its_line_kind_hints_and_id() -> None:
    event = break_of(DISABLED)
    assert (event.compile_id, event.file, event.line, event.function) == ("2/1", "/w/layer.py", 14, "layer")
    assert event.kind == "Skip calling `torch.compiler.disable()`d function"
    assert event.gb_id == "GB0098" and event.requested and not event.skipped_frame
    assert event.hints == ("Remove the `torch.compiler.disable` call", "Or keep it, if it is meant.")
    assert event.explanation.endswith("`torch.compiler.disable` (reason: None)")
    assert event.stack[0] == ("/w/train.py", 20, "<module>") and len(event.stack) == 2


def test_a_frame_that_is_skipped_whole_says_so() -> None:
    event = break_of(SKIPPED)
    assert event.skipped_frame and (event.file, event.line, event.function) == ("/w/tower.py", 22, "forward")
    assert "results in a skip" in event.reason
    assert "Unsupported Tensor.item()" in event.kind


def test_recompile_reasons_come_as_a_list_or_as_one_text() -> None:
    name = {"artifact": {"name": "recompile_reasons"}}
    several = only(name, json.dumps(["2/0: n == 1", "1/0/0: no entry number"]))
    one = only(name, '"2/0: size mismatch: expected 8, actual 6"')
    plain = only(name, "2/0: not JSON")
    assert isinstance(several, ev.GuardsFailed) and several.failed[0] == ("2/0", "n == 1")
    assert isinstance(one, ev.GuardsFailed) and one.failed == (("2/0", "size mismatch: expected 8, actual 6"),)
    assert isinstance(plain, ev.GuardsFailed) and plain.failed == (("2/0", "not JSON"),)


def test_metrics_become_seconds_and_a_refusal_is_no_failure() -> None:
    metrics = {"compile_id": "2/1", "co_name": "f", "duration_us": 1_500_000, "inductor_cumulative_compile_time_us": None}
    event = only({"compilation_metrics": metrics})
    assert isinstance(event, ev.CompileFinished)
    assert (event.total_s, event.inductor_s, event.began_ns) == (1.5, None, 5 - 1_500_000_000)
    refused = only(
        {"compilation_metrics": {**metrics, "fail_type": "torch._dynamo.exc.RecompileLimitExceeded", "fail_reason": "x"}}
    )
    assert isinstance(refused, ev.CompileFinished) and refused.refused and refused.failed is None
    failed = only({"compilation_metrics": {**metrics, "fail_type": "Unsupported", "fail_reason": "why\nlong"}})
    assert isinstance(failed, ev.CompileFinished) and failed.failed == "Unsupported: why" and not failed.refused


def test_caches_phases_and_strangers() -> None:
    cache = only({"artifact": {"name": "aotautograd_cache_bypass"}})
    assert cache == ev.CacheLooked(5, "2/1", "aot_autograd", "bypass", "main")
    began = record_events(5, "main", {**IDS, "phase": "entire_backward_compile", "begins": True}, None)
    assert [type(event).__name__ for event in began] == ["CompileStarted", "PhaseBegan"]
    assert record_events(5, "main", {"describe_tensor": {}}, None) == []
    assert record_events(5, "main", {"artifact": {"name": "inductor_output_code"}, **IDS}, "code") == []
    assert record_events(5, "main", {"dynamo_start": {"stack": []}}, None) == []
