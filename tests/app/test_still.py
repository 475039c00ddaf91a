"""A still does not move."""

from __future__ import annotations

from tests.support.fake_feed import Job
from tuimon.app.panels.all import PANELS
from tuimon.app.scene import PanelView, Scene
from tuimon.app.still import still
from tuimon.draw.glyphs import BRAILLE
from tuimon.model import Model


def everything(model: Model, now_ns: int) -> list[object]:
    scene = Scene(model, BRAILLE, now_ns)
    return [panel.draw(scene, PanelView(), 120, 40, False) for panel in PANELS]


def test_later_events_do_not_show_in_it() -> None:
    job = Job()
    job.steps(40)
    job.ragged(1, 7)
    job.steps(3)
    model = Model()
    model.apply(job.script.events)
    image, now = still(model), model.now_ns
    before = everything(image, now)
    assert before == everything(model, now)
    job.script.events.clear()
    job.steps(30)
    job.ragged(2, 3)
    job.script.host(12)
    job.script.status(99, dropped=4)
    job.steps(1)
    model.apply(job.script.events)
    assert everything(image, now) == before
    assert everything(model, model.now_ns) != before
