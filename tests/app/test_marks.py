"""Filter, sort, marks: the same keys in every panel that has rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.app.steps_scene import slow_job
from tests.support.fake_feed import busy
from tests.support.monitor import Driven, drive, settings
from tuimon.app.filtering import matches
from tuimon.app.panels import points as panel
from tuimon.app.panels.all import PANELS
from tuimon.app.plane import Plane
from tuimon.app.scene import PanelView
from tuimon.app.screens.page import PageScreen
from tuimon.model import Model
from tuimon.roofline.ceilings import Ceiling
from tuimon.roofline.points import Point, Roofline

CEILING = Ceiling("this CPU f32", 98e9, 20e9, "DRAM", "calibrated")


def compute(model: Model, *chosen: Any) -> Roofline:
    """Three points that differ in everything."""
    points = tuple(
        Point(name, "region", intensity, rate, share, "modelled", "upper", boundary="DRAM", seconds=1.0, calls=10,
              key=f"region {name}", of_roof=of_roof)
        for name, intensity, rate, share, of_roof in (
            ("alpha", 4.2, 51e9, 0.6, 0.9), ("beta", 1.0, 60e9, 0.3, 0.1), ("gamma", 9.0, 1e9, 0.1, None),
        )
    )  # fmt: skip
    return Roofline(points, None, (CEILING,), 0, None, "", 1.0, (), ())


def test_what_a_filter_lets_through() -> None:
    assert matches("Item", "Tensor.item()") and not matches("zzz", "Tensor.item()")
    assert not matches("!item", "Tensor.item()") and matches("!zzz", "Tensor.item()")
    assert matches("", "x") and matches("!", "x")


ROWS = [panel for panel in PANELS if panel.id not in ("now", "findings")]


def test_rows_are_filtered_marked_and_copied_alike() -> None:
    async def of(one: Any, on: Driven) -> None:
        await on.press(str(one.number))
        view = on.app.main.focused_panel.view
        await on.tick()
        shown = one.keys(on.app.panel_scene(), view)
        assert shown
        if one.filterable:
            await on.press("slash", "tilde", "enter")
            assert "nothing matches the filter" in " ".join(on.text.split())
            await on.press("escape", "slash", "exclamation_mark", "tilde", "enter")
            assert one.keys(on.app.panel_scene(), view) == shown
            await on.press("escape")
        if one.id != "boundaries":
            await on.press("g", "m")
            assert len(view.marks) == 1 and "marked; 1 here" in on.text
            marked = view.cursor
            if len(shown) > 1:
                await on.press("G", "apostrophe")
                assert view.cursor == marked
                await on.press("j")
                sign = [line for line in on.text.split("\n") if line.startswith("•")]
                assert sign or one.id in ("surroundings", "roofline")
                await on.press("k")
            await on.press("m", "apostrophe")
            assert view.marks == set() and "no row here is marked" in on.text
        await on.press("y")
        logged = on.feed.model.log[-1].text
        assert logged.startswith("copied: ") and len(logged) > 20
        assert "it is in the log (7)" in on.text
        await on.press("escape")
        assert on.app.main.zoomed is None

    async def body(on: Driven) -> None:
        for one in ROWS:
            await of(one, on)

    drive(busy(), (120, 40), body, settings(roofline=compute))


def test_every_order_can_be_had_and_turned_round() -> None:
    async def of(one: Any, on: Driven) -> None:
        await on.press(str(one.number))
        await on.tick()
        for order in (*one.sorts[1:], one.sorts[0]):
            await on.press("s")
            assert f"sorted by {order}" in on.text
        before = one.keys(on.app.panel_scene(), on.app.main.focused_panel.view)
        await on.press("S")
        assert f"sorted by {one.sorts[0]}, the other way round" in on.text
        after = one.keys(on.app.panel_scene(), on.app.main.focused_panel.view)
        assert sorted(after) == sorted(before) and (after != before or len(set(before)) < 2), one.id
        await on.press("escape")

    async def body(on: Driven) -> None:
        for one in ROWS:
            if one.sorts:
                await of(one, on)

    drive(busy(), (120, 40), body, settings(roofline=compute))


PAGES = {
    "boundary": ("2", "enter"),
    "recompile": ("3", "enter"),
    "region": ("4", "enter"),
    "machine": ("5", "enter"),
    "ceilings": ("6", "enter"),
    "event": ("7", "enter"),
    "steps": ("1", "enter"),
    "finding": ("w", "enter"),
    "windows": ("6", "p"),
}
OF_SLOW = {"step": ("n", "enter")}


@pytest.mark.parametrize(("job", "pages"), [(busy, PAGES), (slow_job, OF_SLOW)], ids=["busy", "slow"])
def test_pages_are_narrowed_frozen_and_copied_alike(job: Callable[[], Any], pages: dict[str, tuple[str, ...]]) -> None:
    async def of(keys: tuple[str, ...], on: Driven) -> None:
        await on.press(*keys)
        page = on.app.screen
        assert isinstance(page, PageScreen)
        before = on.text.split("\n")[2:-1]
        await on.press("space")
        assert "FROZEN" in on.text.split("\n")[0]
        await on.press("space")
        assert "FROZEN" not in on.text
        await on.press("slash", "exclamation_mark", "tilde", "enter")
        assert [line for line in on.text.split("\n")[2:-1] if line] == [line for line in before if line]
        await on.press("escape", "slash", "tilde", "enter")
        assert len([line for line in on.text.split("\n")[2:-1] if line]) <= 2
        await on.press("escape")
        assert on.app.screen is page
        await on.press("y")
        assert on.feed.model.log[-1].text.startswith("copied: ") and len(on.feed.model.log[-1].text) > 20
        await on.press("colon", *"freeze", "enter")
        assert on.app.screen is page and "FROZEN" in on.text.split("\n")[0]
        await on.press("question_mark", "question_mark", "escape")
        assert on.app.screen is on.app.main
        await on.press("space", "escape")
        assert "FROZEN" not in on.text

    async def body(on: Driven) -> None:
        for keys in pages.values():
            await of(keys, on)

    drive(job(), (80, 60), body, settings(roofline=compute))


def test_points_go_by_what_was_chosen() -> None:
    model = Model()
    scene: Any = type("Scene", (), {"plane": Plane(compute), "model": model})
    names = {
        order: [point.name for point in panel.arranged(scene, PanelView(sort=at))] for at, (order, _) in enumerate(panel.SORTS)
    }
    assert names == {
        "time": ["alpha", "beta", "gamma"],
        "share of the roof": ["beta", "alpha", "gamma"],
        "rate": ["beta", "alpha", "gamma"],
        "intensity": ["gamma", "alpha", "beta"],
        "name": ["alpha", "beta", "gamma"],
    }
    assert [point.name for point in panel.arranged(scene, PanelView(filter="!beta", reverse=True))] == ["gamma", "alpha"]


def test_accepted_boundaries_are_the_marked_ones(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    async def body(on: Driven) -> None:
        await on.press("2", "apostrophe")
        assert "no row here is marked" in on.text
        await on.press("m")
        assert on.app.main.asking.is_open and "why it is fine" in on.text
        await on.press("escape")

    drive(busy(), (80, 24), body)


def test_a_second_click_opens_the_row() -> None:
    async def body(on: Driven) -> None:
        at = next(at for at, line in enumerate(on.text.split("\n")) if "model.py:57" in line and at > 2)
        await on.pilot.click(offset=(30, at))
        await on.settle()
        await on.pilot.click(offset=(30, at))
        await on.settle()
        assert "boundary at" in on.text.split("\n")[0]

    drive(busy(), (80, 24), body)
