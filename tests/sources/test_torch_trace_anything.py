"""Whatever a log holds: no exception leaves the reader, the model, a report or a panel, and what is whole in it is read."""

from __future__ import annotations

import json
import random
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.sources.logs import BREAK, FILE, GRAPH, WHOLE, head, ids, line, metrics, phase, start
from tuimon.app.panels.all import PANELS
from tuimon.app.scene import PanelView, Scene
from tuimon.draw.glyphs import GLYPH_SETS
from tuimon.model import Model
from tuimon.report import build, render
from tuimon.sources.carried import checked
from tuimon.sources.files import no_progress, open_any
from tuimon.sources.trace_file import Unreadable

BROKE = line({"artifact": {"name": "dynamo_graph_break_reason", "encoding": "string"}, **ids()}, BREAK)
FAILED = line({"artifact": {"name": "recompile_reasons", "encoding": "json"}, **ids(0, 1)}, ["0/0: x size mismatch"])
LOOKED = line({"artifact": {"name": "fx_graph_cache_miss", "encoding": "json"}, **ids()}, {"key": "x"})
ORDER = line({"artifact": {"name": "graph_execution", "encoding": "json"}}, {"graph_execution_order": [{"compile_id": "0/0"}]})
AOT = line({"aot_forward_graph": {}, **ids()}, "def forward(self, x: 'f32[2, 2]'):\n    return (x,)")
CODE = line({"inductor_output_code": {"filename": "x"}, **ids()}, "def call(args):\n    tangents_1, = args\n    return ()")
SECOND = start(36002, ids(0, 1)) + FAILED + metrics(36003, ids(0, 1)) + metrics(36004, ids(), "bwd_compilation_metrics")
ALL = FILE + start() + phase("entire_frame_compile", "B", 36000, **ids()) + BROKE + GRAPH + AOT + CODE + LOOKED + metrics()
ALL += SECOND + ORDER


def read(content: bytes) -> Model:
    """A model of a file of these bytes, with all that is made of it. Raises Unreadable."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x.log"
        path.write_bytes(content)
        found, _ = open_any(path)
        model = Model()
        for one in found:
            model = Model()
            for batch in one.events(no_progress):
                assert [checked(event) for event in batch] == batch
                model.apply(batch)
    report = build(model)
    for form in ("text", "md", "json"):
        render(report, form)
    scene = Scene(model, GLYPH_SETS["braille"], model.now_ns)
    for panel in PANELS:
        panel.draw(scene, PanelView(), 100, 12, True)
    return model


def harmless(content: bytes) -> Model | None:
    try:
        return read(content)
    except Unreadable as error:
        assert str(error)
        return None


def test_the_whole_of_it_is_read() -> None:
    model = read(ALL.encode())
    assert len(model.compilations) == 3 and len(model.boundaries) == 1 and model.recorded.executed == ("0/0",)
    assert model.coverage.not_available.keys() <= {"boundaries"}


@pytest.mark.parametrize("seed", range(4))
def test_cut_at_any_byte(seed: int) -> None:
    content, rnd = ALL.encode(), random.Random(seed)
    for _ in range(15):
        harmless(content[: rnd.randrange(len(content))])


@pytest.mark.parametrize("seed", range(4))
def test_damaged_in_any_place(seed: int) -> None:
    content, rnd = ALL.encode(), random.Random(seed)
    for _ in range(15):
        damaged = bytearray(content)
        for _ in range(rnd.randrange(1, 30)):
            damaged[rnd.randrange(len(damaged))] = rnd.randrange(256)
        harmless(bytes(damaged))


@pytest.mark.parametrize("seed", range(3))
def test_lines_lost_doubled_and_shuffled(seed: int) -> None:
    lines, rnd = ALL.splitlines(keepends=True), random.Random(seed)
    for _ in range(10):
        some = [one for one in lines if rnd.random() < 0.8] + rnd.choices(lines, k=5)
        if rnd.random() < 0.5:
            rnd.shuffle(some)
        harmless("".join(some).encode())


def test_damage_in_one_record_leaves_the_others() -> None:
    lines = ALL.splitlines(keepends=True)
    for at, text in enumerate(lines):
        if not text.startswith("V") or "compilation_metrics" in text:
            continue
        model = read("".join([*lines[:at], text.replace('": ', '" ', 1), *lines[at + 1 :]]).encode())
        assert len(model.compilations) == 3
        assert "could not be read" in model.coverage.not_available["the whole file"]


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=8)
    | st.sampled_from(["0/0", 2**63, -(2**70), "x" * 999]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=6,
)
TEXTS = st.text(st.characters(exclude_characters="\0"), max_size=40)
"""Without NUL: a file that has it near its begin is refused as no text."""
RECORDS: list[tuple[dict[str, Any], str | None]] = []
for _text in ALL.split("\nV")[:]:
    _first, _, _rest = _text.partition("\n")
    _payload = "\n".join(one[1:] for one in _rest.split("\n")) if _rest.startswith("\t") else None
    RECORDS.append((json.loads(_first[_first.index("{") :]), _payload))


@st.composite
def damaged(draw: st.DrawFn) -> str:
    """A record in which some value, wherever in it, is another."""
    told, payload = draw(st.sampled_from(RECORDS))
    told = json.loads(json.dumps(told))
    within: Any = told
    while True:
        key = draw(st.sampled_from(sorted(within) if isinstance(within, dict) else range(len(within))))
        if not isinstance(within[key], (dict, list)) or not within[key] or draw(st.booleans()):
            within[key] = draw(VALUES)
            break
        within = within[key]
    if draw(st.booleans()):
        payload = draw(st.none() | TEXTS | VALUES.map(json.dumps))
    text = f"{head()} {json.dumps(told)}\n"
    return text if payload is None else text + "".join(f"\t{one}\n" for one in payload.split("\n"))


@settings(max_examples=60, deadline=None)
@given(st.lists(damaged(), min_size=1, max_size=8))
def test_values_of_any_kind(some: list[str]) -> None:
    content = FILE + start() + "".join(some) + metrics(36009, ids(7, 0))
    model = harmless(content.encode("utf-8", "surrogatepass"))
    assert model is not None and any(one.compile_id == "7/0" for one in model.compilations)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.text(max_size=60) | st.sampled_from(ALL.splitlines()), max_size=12))
def test_text_of_any_kind(some: list[str]) -> None:
    harmless("\n".join(some).encode("utf-8", "surrogatepass"))


@pytest.mark.parametrize(
    "text",
    [
        f"{head()} " + '{"a":' * 100_000,
        f'{head()} {{"str": ["{"x" * 100_000}", 0]}}\n' + WHOLE,
        f'{head()} {{"chromium_event": {{}}}}\n' + "\t[" * 10 + "\n" + "\t" + "[" * 100_000 + "\n" + WHOLE,
        FILE + start() + metrics(duration_us=1e308) + metrics(duration_us=-5) + metrics(duration_us=float("nan")),
        FILE + start(36000, {"frame_id": 10**30, "frame_compile_id": -1, "attempt": 2**80}),
        FILE + "".join(start(36000 + n, ids(n, 0)) for n in range(3000)),
    ],
)
def test_what_is_large_or_deep(text: str) -> None:
    harmless(text.encode())
