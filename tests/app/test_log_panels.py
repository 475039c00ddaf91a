"""Panels of a TORCH_TRACE log: columns that need what ran say "not in this file", and none shows a 0 that nobody counted."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.app.test_panels import draw, text
from tests.sources.logs import BREAK, FILE, GRAPH, ids, line, metrics, model, start
from tuimon import events as ev
from tuimon.app.details.opening import open_about, open_page
from tuimon.app.panels import target
from tuimon.app.panels.all import BY_ID, PANELS
from tuimon.app.panels.frames import calls_words
from tuimon.app.scene import Scene
from tuimon.draw.glyphs import GLYPH_SETS
from tuimon.model import Model
from tuimon.model.about import About

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


def test_the_end_of_a_file_is_no_end_of_an_attachment(log: Model, scene: Scene) -> None:
    log.target.ended, log.target.ended_detail = "detached", "read to its end: 26 records"
    first = text(draw(BY_ID["now"], scene, 100, 10)).split("\n")
    assert "read to its end: 26 records" in "\n".join(first) and "no longer attached" not in "\n".join(first)


def test_calls_of_regions_that_are_not_in_the_file_are_no_0(log: Model, scene: Scene) -> None:
    page = open_page("findings", scene, "frames")
    assert page is not None
    (key,) = log.frames
    found = open_about(scene, About("frame", key))
    assert found is not None
    told = text(found[1](scene, 100).lines)
    assert f"[0/0] forward, calls {UNTOLD}" in told and "0 calls" not in told


def test_the_name_of_a_file_is_not_crowded_out(log: Model, scene: Scene) -> None:
    log.target.command = "/data/of/all/the/teams/logs/dedicated_log_torch_trace_rank_0_a74od7a1.log"
    log.target.ended, log.target.ended_detail = "detached", "read to its end: 26 records"
    log.coverage.not_available["loop heads"] = "not told"
    second = text(target.draw(scene, target.Status(), [("answer", "text")], 80, 2)).split("\n")[1]
    assert "dedicated_lo" in second and "not available" not in second
    assert "1 thing not available here" in text(target.draw(scene, target.Status(), [], 200, 2))
