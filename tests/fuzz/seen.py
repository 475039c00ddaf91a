"""Everything that a person may get to see of a model: no exception leaves any of it, and nothing in it acts on a terminal."""

from __future__ import annotations

import json
import unicodedata
import xml.etree.ElementTree as ET
from collections.abc import Iterable

from tests.report.obeys import wrong
from tuimon.app.details import source_page, step
from tuimon.app.details.opening import open_about, open_page, open_source
from tuimon.app.details.paged import Source
from tuimon.app.look.looks import runs
from tuimon.app.look.themes import load_themes
from tuimon.app.panels import overview, tiny
from tuimon.app.panels import target as target_panel
from tuimon.app.panels.all import BY_ID
from tuimon.app.plane import Plane
from tuimon.app.scene import PanelView, Scene
from tuimon.commands.watch import progress
from tuimon.draw.glyphs import GLYPH_SETS
from tuimon.draw.svg import svg
from tuimon.draw.text import Line, line_cells
from tuimon.model import Model
from tuimon.model.about import About
from tuimon.model.findings import findings
from tuimon.report import build, render
from tuimon.report.prometheus import exposition
from tuimon.report.ranks import Watched
from tuimon.roofline.ceilings import load_ceilings
from tuimon.roofline.inforce import Known
from tuimon.roofline.live import roofline
from tuimon.roofline.machines import machines
from tuimon.roofline.points import Roofline

SIZES = ((120, 30), (40, 12), (7, 3), (1, 1))
THEME = load_themes().themes["dark"]
CEILINGS = load_ceilings()
KNOWN = Known(machines(), ceilings=CEILINGS)
MOST_ROWS = 4
"""Rows of a panel that are opened."""


def harmless(text: str, but: str = "\n") -> None:
    """Raises AssertionError where something in it would act on a terminal."""
    bad = {one for one in text if unicodedata.category(one) in ("Cc", "Cf", "Cs") and one not in but}
    assert not bad, f"{sorted(map(ascii, bad))} in what is written"


def looked_at(model: Model, *, thorough: bool) -> None:
    """The report as text; with `thorough` in every form, and every panel and page."""
    findings(model)
    made = build(model)
    harmless(render(made, "text"))
    if not thorough:
        return
    harmless(render(made, "md"))
    harmless(progress(model))
    found = [one for one in wrong(json.loads(render(made, "json"))) if "less than the minimum" not in one]  # of a line, a count
    assert not found, found[:5]
    harmless(exposition([Watched("rank 0", 0, 1, None, model)]))
    pictures(model)


def compute(model: Model, boundary: str | None, name: str | None, here: bool) -> Roofline:
    """The roofline that a monitor shows, on a machine of which nothing but the shipped figures is known."""
    return roofline(model, KNOWN, ceiling=name, boundary=boundary, here=here)


def pictures(model: Model) -> None:
    """The panels in some sizes, and the pages behind their rows."""
    for glyphs in ("braille", "ascii"):
        scene = Scene(model, GLYPH_SETS[glyphs], model.now_ns, CEILINGS, Plane(compute), host="elsewhere")
        status = target_panel.Status()
        for width, height in SIZES:
            _drawn(tiny.draw(scene, width, height, status), width)
            target_panel.draw(scene, status, overview.answer(scene), width, 2)
            for panel in BY_ID.values():
                drawn = panel.draw(scene, PanelView(filter="x" if width == 40 else ""), width, height, True)
                assert len(drawn) <= height, panel.id
                _pictured(drawn, width, height)
        if glyphs == "ascii":
            continue
        for panel in BY_ID.values():
            panel.answer(scene)
            for sort in range(len(panel.sorts)):
                keys = panel.keys(scene, PanelView(sort=sort, reverse=sort % 2 == 1))
            keys = panel.keys(scene, PanelView())
            for key in (*keys[:MOST_ROWS], None):
                if key is not None and panel.copied is not None:
                    harmless(panel.copied(scene, key), "")
                _page(open_page(panel.id, scene, key), scene)
        _pages(scene, model)


def _pages(scene: Scene, model: Model) -> None:
    for one in model.compilations[-MOST_ROWS:]:
        _page(open_about(scene, About("compilation", one.key)), scene)
    for account in [*list(model.steps.accounts)[-2:], *(one.account for one in list(model.steps.slow)[-2:])]:
        opened = step.opened(scene, account.index)
        if opened is not None:
            step.title(opened)
            harmless(opened.sentence, "")
            for width in (100, 20):
                step.lines(scene, opened, width)
    for boundary in list(model.boundaries.values())[:MOST_ROWS]:
        source = source_page.of_boundary(boundary)
        if source is not None:
            _page(open_source(scene, source), scene)


def _page(page: object, scene: Scene) -> None:
    if page is None:
        return
    _, build_it = page  # type: ignore[misc]
    for width in (100, 20):
        made = build_it(scene, width)
        for link in made.links:
            assert 0 <= link.line < len(made.lines)
            if isinstance(link.to, Source):
                source_page.title(link.to)


def _drawn(lines: Iterable[Line], width: int) -> None:
    for line in lines:
        assert line_cells(line) <= width, line


def _pictured(lines: list[Line], width: int, height: int) -> None:
    """As a picture, which some program will read as XML."""
    if width == 40:
        ET.fromstring(svg(runs(lines, THEME), width, height, title="x", ground="#000000", text="#ffffff"))
