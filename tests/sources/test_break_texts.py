"""Dynamo's texts about graph breaks taken apart, and whatever else may stand where one is expected."""

from __future__ import annotations

import time

from hypothesis import given
from hypothesis import strategies as st

from tuimon.sources import break_texts
from tuimon.sources.break_texts import graph_broke

SKIPPED = """Graph break in user code at /w/tower.py:22
Graph Break Reason: Failed to handle graph break gracefully. Skipping the function and falling back to eager. Graph break \
encountered:

Unsupported Tensor.item() call with capture_scalar_outputs=False
  Explanation: Dynamo does not support tracing `Tensor.item()` with config.capture_scalar_outputs=False.
  Hint: Set `torch._dynamo.config.capture_scalar_outputs = True`.

  Developer debug context: call_method TensorVariable() item () {}

 For more details about this graph break, please visit: https://meta-pytorch.github.io/compile-graph-break-site/gb/gb0124.html

*** While handling this graph break, another graph break occurred: ***

graph break in loop
  Explanation: torch.compile detected a graph break in a for/while loop.
  Hint: Resolving the earlier graph break may resolve this one.

  Developer debug context: frame skipped: forward (/w/tower.py line 18)

 For more details about this graph break, please visit: https://meta-pytorch.github.io/compile-graph-break-site/gb/gb7000.html

Stack variable source attribution:
  NullVariable originated from:
  File "/w/elsewhere.py", line 99, in iterate
                self.stats.append(float(x.abs().max().item()))

User code traceback:
  File "/w/tower.py", line 28, in <module>
    net(torch.randn(4, 8))
  File "/w/tower.py", line 22, in forward
    self.stats.append(float(x.abs().max().item()))
                            ^^^^^^^^^^^^^^^^^^^^

Traceback (most recent call last):
  File "/usr/lib/torch/_dynamo/symbolic_convert.py", line 1603, in step
"""


def test_a_frame_that_is_skipped_whole_has_its_headline_and_both_types() -> None:
    event = graph_broke(1, "0/0", 0, SKIPPED, at=(3, 230))
    assert event.headline.startswith("Failed to handle graph break gracefully. Skipping the function and falling back to eager")
    assert event.kind == event.reason == "Unsupported Tensor.item() call with capture_scalar_outputs=False"
    assert (event.also, event.gb_id) == ("graph break in loop", "GB0124")
    assert (event.file, event.line, event.function) == ("/w/tower.py", 22, "forward")
    assert event.source == "self.stats.append(float(x.abs().max().item()))"
    assert (event.code, event.offset, event.skipped_frame) == (3, 230, False)  # that it is skipped, its compilation's end tells
    assert [line for _, line, _ in event.stack] == [28, 22]
    assert len(event.hints) == 2


def test_a_text_without_a_type_is_its_own_kind() -> None:
    event = graph_broke(1, "0/0", 0, "Graph break in user code at /w/a.py:3\nReason: no idea\n")
    assert (event.kind, event.headline, event.file, event.line, event.also) == ("no idea", "", "/w/a.py", 3, "")


def test_an_empty_text_is_a_break_of_unknown_kind() -> None:
    event = graph_broke(1, "0/0", 0, "")
    assert (event.kind, event.reason, event.function, event.file, event.line) == ("unknown", "unknown", "?", "", 0)


@given(st.text(), st.text(max_size=5))
def test_any_text_is_a_break(text: str, between: str) -> None:
    cut = SKIPPED.replace("\n", f"\n{between}", 3)
    for one in (text, SKIPPED[: len(text) * 40] + text, cut, text + SKIPPED):
        event = graph_broke(1, "0/0", 0, one)
        assert event.kind and event.line >= 0


def test_texts_of_any_size_are_read_at_once() -> None:
    spaces, long = " " * 50_000_000, '  File "/w/a.py", line 1, in f\n' * 100_000
    began = time.process_time()
    for text in (spaces, f'File "a", line 1, in {spaces}', "Explanation:" + spaces, long, "Hint: x\n" * 100_000):
        event = graph_broke(1, "0/0", 0, text)
        assert len(event.stack) <= break_texts.DEEPEST and len(event.hints) <= break_texts.MOST_HINTS
        assert sum(map(len, event.hints)) + len(event.explanation) < 10 * break_texts.LONGEST_LINE
    assert time.process_time() - began < 60  # a minute is what a pattern that goes back and forth would not do it in
