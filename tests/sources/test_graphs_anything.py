"""Whatever a hook or a file says of graphs, windows and kernels: no exception leaves the decoder, the model or the roofline."""

from __future__ import annotations

import base64
import copy
import zlib
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.sources.test_graph_text import TEXTS
from tests.sources.test_live_anything import ANYTHING, EVIL, MESSAGES, ODD, body, paths
from tuimon.hook import wire
from tuimon.model import Model
from tuimon.report import build, render
from tuimon.roofline.inforce import Known, known
from tuimon.roofline.live import roofline
from tuimon.sources.live import LiveDecoder

T = 3_000_000_000
GEMM = ["gemm", "aten::mm", [["c10::BFloat16", [64, 64]], ["c10::BFloat16", [64, 64]]], "", "0/1", 0, 3, 3000, 900, 1100]
ALONE = ["k", "", [], "", None, 0, 1, 500, 500, 500]


def packed(text: str) -> str:
    return base64.b64encode(zlib.compress(text.encode(), 1)).decode()


ABOUT: list[dict[str, Any]] = [
    {"k": "graph", "t": T, "compile_id": "0/1", "attempt": 0, "kind": "aot_forward_graph", "z": packed(TEXTS["dynamic"][0][1]),
     "length": 9, "before_attach": False, "model_bytes": None},
    {"k": "graph", "t": T, "compile_id": "0/1", "attempt": 0, "kind": "inductor_output_code",
     "z": packed(next(text for kind, text in TEXTS["dynamic"] if kind == "inductor_output_code")), "length": 9,
     "before_attach": False, "model_bytes": 4096},
    {"k": "added", "t": T, "instrument": 9, "role": "forward", "compile_id": "0/1", "name": "n", "function": "f",
     "file": "f.py", "line": 1, "backend": "inductor", "before_attach": False, "variant_of": 1, "sizes": [["s77", 20]]},
    {"k": "window", "t": T, "window": 1, "state": "closed", "why": "w", "steps": 5, "job_s": 0.5, "slower": 2.0,
     "begin_ns": T, "end_ns": T + 9, "path": ""},
    {"k": "event", "type": "KernelsSeen", "t_ns": T, "window": 1, "rows": [GEMM, ALONE], "begin_ns": T, "end_ns": T + 9000,
     "busy": [[0, 5000]], "regions": [["0/1", 3, 6000]], "device": "NVIDIA H100 80GB HBM3", "linked": 0.5},
    {"k": "event", "type": "CountersSeen", "t_ns": T, "source": "s", "rows": [["k", 2, 900, 5e6, 1e6, None, "vector", "f32"]],
     "device": "NVIDIA H100 80GB HBM3"},
]  # fmt: skip
SAMPLES = [(9, 1, 0, T + at * 100_000, T + at * 100_000 + 50_000) for at in range(40)]
PLACES = [(number, path) for number, message in enumerate(ABOUT) for path in paths(message)]


@pytest.fixture(scope="module")
def figures() -> Known:
    return known()


def changed(at: int, path: tuple[Any, ...], value: Any) -> list[dict[str, Any]]:
    messages = copy.deepcopy(ABOUT)
    inner: Any = messages[at]
    for step in path[:-1]:
        inner = inner[step]
    inner[path[-1]] = value
    return messages


def fold(messages: list[dict[str, Any]]) -> Model:
    decoder, model = LiveDecoder(1, "train.py", "run"), Model()
    frames = [(wire.JSON_FRAME, body(one)) for one in (MESSAGES[0], MESSAGES[1], MESSAGES[3], *messages)]
    frames.append((wire.SAMPLES_FRAME, wire.samples_frame(SAMPLES)[wire.HEADER.size :]))
    for kind, data in frames:
        try:
            events = decoder.frame(kind, data)
        except wire.WireError:
            continue
        model.apply(events)
    return model


def test_the_messages_are_sound(figures: Known) -> None:
    model = fold(ABOUT)
    assert model.kernels and model.counters is not None and model.windows
    assert any(point.operations for point in roofline(model, figures, window_s=None).points)


@pytest.mark.parametrize("value", ODD, ids=lambda value: repr(value)[:12])
def test_any_odd_value_at_any_place(value: Any, figures: Known) -> None:
    for at, path in PLACES:
        roofline(fold(changed(at, path, value)), figures, window_s=None)


@settings(max_examples=100, deadline=None)
@given(place=st.sampled_from(PLACES), value=ANYTHING)
def test_any_value_at_any_place(figures: Known, place: tuple[int, tuple[Any, ...]], value: Any) -> None:
    build(fold(changed(*place, value)), known=figures)


def test_nothing_in_any_text_acts_on_a_terminal(figures: Known) -> None:
    for at, path in PLACES:
        model = fold(changed(at, path, EVIL))
        written = render(build(model, known=figures), "text")
        assert "\x1b" not in written and "\u202e" not in written, (at, path)
