"""Panels of a TORCH_TRACE log: columns that need what ran say "not in this file", and none shows a 0 that nobody counted."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.app.test_panels import draw, text
from tests.sources.logs import BREAK, FILE, GRAPH, ids, line, metrics, model, start
from tuimon import events as ev
from tuimon.app.details import open_page
from tuimon.app.panels import BY_ID, PANELS
from tuimon.app.panels.frames import calls_words
from tuimon.app.scene import Scene
from tuimon.draw.glyphs import GLYPH_SETS
from tuimon.model import Model

BROKE = line({"artifact": {"name": "dynamo_graph_break_reason", "encoding": "string"}, **ids()}, BREAK)
LOG = FILE + start() + BROKE + GRAPH + metrics()
UNTOLD = "not in this file"


@pytest.fixture
def log(tmp_path: Path) -> Model:
    return model(tmp_path, LOG)


@pytest.fixture
def scene(log: Model) -> Scene:
    return Scene(log, GLYPH_SETS["braille"], log.now_ns)


@pytest.mark.parametrize("panel", ["now", "boundaries", "regions", "surroundings"])
@pytest.mark.parametrize("width", [80, 120, 200])
def test_it_is_said(panel: str, width: int, scene: Scene) -> None:
    assert UNTOLD in text(draw(BY_ID[panel], scene, width, 10))


def test_rows_are_there_without_numbers(scene: Scene) -> None:
    regions = text(draw(BY_ID["regions"], scene, 120, 10)).splitlines()
    assert regions[1].split() == ["calls,", "time", "ops", "id", "frame"]
    assert regions[2].split() == ["not", "in", "this", "file", "2", "0/0", "fwd", "f", "model.py:12"]
    boundaries = text(draw(BY_ID["boundaries"], scene, 120, 10)).splitlines()
    assert "crossed, time" in boundaries[1] and "median" not in boundaries[1]
    assert UNTOLD in boundaries[2] and "model.py:14" in boundaries[2]


@pytest.mark.parametrize("width", [40, 60, 100])
def test_every_panel_draws(width: int, scene: Scene) -> None:
    for panel in PANELS:
        draw(panel, scene, width, 8)


def test_details(log: Model, scene: Scene) -> None:
    for panel, key in (("regions", next(iter(log.regions))), ("boundaries", next(iter(log.boundaries)))):
        page = open_page(panel, scene, key)
        assert page is not None
        told = text(page[1](scene, 100).lines)
        assert UNTOLD in told and "no call" not in told
    page = open_page("now", scene, None)
    assert page is not None
    told = text(page[1](scene, 100).lines)
    assert UNTOLD in told
    assert "not imported" not in told and "since the attach" not in told
    (frame,) = log.frames.values()
    assert calls_words(log, frame) == UNTOLD


def test_an_empty_log_says_so(tmp_path: Path) -> None:
    empty = model(tmp_path, FILE)
    told = Scene(empty, GLYPH_SETS["braille"], empty.now_ns)
    assert "no compiled graph in this file" in text(draw(BY_ID["regions"], told, 100, 6))
    assert "graph breaks: not in this file: no record of a compilation" in text(draw(BY_ID["boundaries"], told, 100, 6))
    whole = model(tmp_path, FILE + start() + GRAPH + metrics())
    told = Scene(whole, GLYPH_SETS["braille"], whole.now_ns)
    assert "no graph break was seen in this file: Dynamo traced 1 frame whole" in text(draw(BY_ID["boundaries"], told, 100, 6))


def test_a_trace_that_tells_of_no_compilation_says_so() -> None:
    trace = Model()
    trace.apply(
        [ev.TargetSeen(0, None, "t.json", None, None, "file", 1e9), ev.NotInFile(0, ("compiles",), "a profiler's trace")]
    )
    trace.apply([ev.TargetEnded(1, "detached", "read to its end")])
    told = Scene(trace, GLYPH_SETS["braille"], trace.now_ns)
    for panel in ("boundaries", "recompiles"):
        assert "not in this file: a profiler's trace" in text(draw(BY_ID[panel], told, 100, 6))


def test_breaks_that_an_old_torch_did_not_write_down(tmp_path: Path) -> None:
    old = model(tmp_path, FILE + start() + GRAPH + metrics(restart_reasons=["step graph break"]))
    told = Scene(old, GLYPH_SETS["braille"], old.now_ns)
    drawn = " ".join(text(draw(BY_ID["boundaries"], told, 100, 8)).split())
    assert "not in this file: its torch wrote no record of graph breaks" in drawn
