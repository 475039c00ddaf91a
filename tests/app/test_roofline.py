"""Panel 6 driven by its keys: points, ceilings, boundaries, the whole process, profiler windows; and its words while empty."""

from __future__ import annotations

import pytest

from tests.app.test_panels import scene, sound, text
from tests.support.fake_feed import SCENES, Script, busy
from tests.support.monitor import Driven, drive, settings
from tests.support.points import BF16, compute, cpu, h100, windows
from tuimon import events as ev
from tuimon.app.details.opening import open_page
from tuimon.app.details.roofline import lines as page_of_point
from tuimon.app.panels.all import BY_ID
from tuimon.app.panels.frame import fitted
from tuimon.app.plane import Plane
from tuimon.app.scene import PanelView, Scene
from tuimon.app.settings import Settings
from tuimon.draw.glyphs import GLYPH_SETS
from tuimon.model import Model
from tuimon.roofline.points import RULE, Point, Roofline

WIDE, NARROW = (120, 40), (80, 24)
PANEL = BY_ID["roofline"]


def given(known: Roofline) -> Settings:
    return settings(roofline=compute(known))


def shown(known: Roofline, glyphs: str = "braille", events: list[ev.Event] | None = None) -> Scene:
    return scene(events or busy(), glyphs, plane=Plane(compute(known)))


@pytest.mark.parametrize("glyphs", sorted(GLYPH_SETS))
@pytest.mark.parametrize("known", [h100(), cpu()], ids=["h100", "cpu"])
def test_any_size(known: Roofline, glyphs: str) -> None:
    what = shown(known, glyphs, windows())
    for width, height in ((1, 1), (9, 4), (47, 12), (60, 18), (79, 21), (80, 21), (100, 18), (100, 22), (120, 37), (200, 57)):
        for cursor in (None, "nobody", known.points[-1].key):
            view = PanelView(cursor=cursor)
            sound(fitted(PANEL.draw(what, view, width, height, True), width, height, what.glyphs), width, height, glyphs)


def test_the_page_has_the_rule_the_rows_and_what_is_not_known() -> None:
    async def body(on: Driven) -> None:
        await on.press("6")
        for fact in (
            RULE,
            "94% of the compiled time",
            "no formula: aten::_foobar (4.0%)",
            "power cap",
            "OVER: tf32 is allowed",
        ):
            assert fact in on.text, fact
        assert "mm 8192x" in on.line("≤206")

    drive(busy(), WIDE, body, given(h100()))


def test_beside_a_table_from_a_hundred_columns_on_else_a_few_rows_below() -> None:
    async def body(on: Driven) -> None:
        await on.press("6")
        assert "1 ● device 0" in on.line("F/s │") or any("device 0" in line and "│" in line for line in on.text.split("\n"))
        await on.resize(99, 30)
        await on.tick()
        row = on.line("●  device 0 ")
        assert "│" not in row and row.startswith(" 1 ●")
        await on.resize(80, 24)
        await on.tick()
        assert RULE.replace(" at the stated boundary", "") in on.text
        assert len([line for line in on.text.split("\n") if "┤" in line or "│" in line]) >= 10

    drive(busy(), (100, 30), body, given(h100()))


def test_left_and_right_select_points_and_enter_opens_one() -> None:
    async def body(on: Driven) -> None:
        await on.press("6", "right", "right")
        assert on.app.main.focused_panel.view.cursor == h100().points[1].key
        assert any(line.find("▸2 ◁") >= 0 for line in on.text.split("\n"))
        await on.press("left", "enter")
        assert "device device 0" in on.text and "counted by the hardware" in on.text
        await on.press("escape", "right", "enter")
        for fact in (
            "13.2 TFLOP, by formula",
            "a lower bound of the traffic",
            "≤206 FLOP/byte: an upper bound",
            "slowest to fastest",
        ):
            assert fact in on.text, fact

    drive(busy(), WIDE, body, given(h100()))


def test_a_page_has_the_causes_the_ceilings_and_why_there_is_no_place() -> None:
    what = shown(h100())

    def page(name: str) -> str:
        key = next(point.key for point in h100().points if name in point.name)
        opened = open_page("roofline", what, key)
        assert opened is not None
        return text(opened[1](what, 100).lines)

    over = page("512x512 float32")
    assert "tf32 is allowed" in over and "perhaps the clock is above" in over
    assert "no formula for aten::_foobar" in page("_foobar")
    assert "datasheet: NVIDIA H100 data sheet" in over and "at 1,830 MHz" in over
    assert "cannot be told" in page("layer_norm")
    gone = open_page("roofline", what, "nobody")
    assert gone is not None and gone[0] == "ceilings"


def test_a_regions_page_says_how_each_operator_is_counted() -> None:
    job = Script()
    job.attach()
    job.compile("0/0", "forward")
    job.instrument("forward", "0/0", "forward")
    model = Model()
    model.apply(job.events)
    (region,) = model.regions.values()
    row = ("addmm", (("f32", ("8",)),), (("f32", ("8", "8")),), "{}", 3)
    odd = ("my.thing", (), (), "{}", 1)
    region.graphs.append(ev.GraphSeen(model.now_ns, "0/0", "forward", 0, 0, "aten", (row, odd), (), ()))
    known = cpu()
    at = Roofline(
        tuple(_named(point, f"region {region.key}") for point in known.points[:1]),
        None,
        known.ceilings,
        0,
        None,
        "",
        0.5,
        (),
        (),
    )
    what = Scene(model, GLYPH_SETS["braille"], model.now_ns, (), Plane(compute(at)))
    opened = open_page("roofline", what, f"region {region.key}")
    assert opened is not None
    said = text(opened[1](what, 100).lines)
    assert "addmm x 3" in said and "2 " in said.split("addmm x 3")[1].split("\n")[0]
    assert "no formula" in said.split("my.thing x 1")[1].split("\n")[0]


def _named(point, key):  # type: ignore[no-untyped-def]
    from dataclasses import replace

    return replace(point, key=key)


def test_ceilings_and_boundaries_go_round() -> None:
    async def body(on: Driven) -> None:
        await on.press("6")
        assert "1 of 4" in on.line("6 roofline")
        await on.press("c")
        assert "2 of 4" in on.line("6 roofline") and "ceiling: H100 SXM tf32" in on.text
        await on.press("b")
        assert "all points at HBM" in on.text and "all at HBM" in on.line("6 roofline")
        await on.press("b")
        assert "4 of 4" in on.line("6 roofline") and "at L2" in on.line("6 roofline")
        await on.press("b")
        assert "1 of 4" in on.line("6 roofline") and "all at" not in on.line("6 roofline")

    drive(busy(), WIDE, body, given(h100()))


def test_its_keys_are_its_own_only_while_it_has_the_keys() -> None:
    async def body(on: Driven) -> None:
        theme = on.app.theme
        await on.press("t")
        assert on.app.theme != theme and on.app.plane.trails
        theme = on.app.theme
        await on.press("a")
        assert "one process is watched" in on.text
        await on.press("p", "b", "left", "right")
        assert on.app.main is on.app.screen
        await on.press("i", "u")
        assert on.app.plane.trails and not on.app.plane.whole
        await on.press("6", "i")
        assert on.app.theme == theme and not on.app.plane.trails
        await on.press("u")
        assert on.app.plane.whole and "whole process" in on.line("6 roofline")
        await on.press("u", "6", "tab")
        assert not on.app.plane.whole and on.app.main.focus_id != "roofline"
        await on.press("i")
        assert not on.app.plane.trails

    drive(busy(), WIDE, body, given(h100()))


def test_the_footer_and_the_help_have_its_keys() -> None:
    async def body(on: Driven) -> None:
        assert "left right" not in on.text.split("\n")[-1]
        await on.press("6")
        footer = on.text.split("\n")[-1]
        for words in ("left right point", "c ceiling", "p profiler"):
            assert words in footer
        await on.press("question_mark")
        seen = []
        for _ in range(8):
            seen.append(on.text)
            await on.press("pagedown")
        assert any("keys: roofline" in one for one in seen)

    drive(busy(), WIDE, body, given(h100()))


def test_a_click_selects_the_row() -> None:
    async def body(on: Driven) -> None:
        await on.press("6")
        await on.tick()
        line = next(at for at, row in enumerate(on.text.split("\n")) if "≤183" in row)
        await on.pilot.click("#panel-roofline", offset=(70, line - 2))
        await on.pilot.pause()
        cursor = on.app.main.focused_panel.view.cursor
        assert cursor is not None and "addmm 8192" in cursor

    drive(busy(), WIDE, body, given(h100()))


class TestWindows:
    def test_it_says_what_it_costs_and_asks_for_a_second_key(self) -> None:
        async def body(on: Driven) -> None:
            await on.press("6", "p")
            assert on.feed.commands == []
            for fact in ("stands still", "stderr", "p opens a window of 5 steps", "none yet"):
                assert fact in on.text, fact
            await on.press("plus", "p")
            assert on.feed.commands == [{"cmd": "window", "window": 1, "steps": 10, "most_s": 10}]
            assert "asked for a window of 10 steps" in on.text
            now = on.feed.model.now_ns
            on.feed.give(ev.WindowChanged(now, 1, "open", steps=10))
            await on.tick()
            assert "open for 10 steps; x cancels it" in on.text
            await on.press("x")
            assert on.feed.commands[-1] == {"cmd": "window_cancel", "window": 1}
            on.feed.give(ev.WindowChanged(now, 1, "closed", steps=10, job_s=0.284, slower=1.9))
            await on.tick(5)
            assert "the job stood still for 284 ms" in " ".join(on.text.split()) and "1.90 times as long" in " ".join(
                on.text.split()
            )
            await on.press("x")
            assert "no window waits or is open" in on.text
            await on.press("p")
            assert on.feed.commands[-1]["window"] == 2

        drive(busy(), WIDE, body, given(h100()))

    def test_a_refusal_is_shown_with_its_reason_and_a_feed_may_say_no(self) -> None:
        async def body(on: Driven) -> None:
            await on.press("6")
            assert "window waits for a step to begin" in on.text
            await on.press("p")
            assert "refused: the job profiles itself (step 36)" in on.text
            on.feed.deaf = "this is a file, not a job"
            await on.press("p")
            assert "this is a file, not a job" in on.text

        drive(windows(), WIDE, body, given(h100()))

    def test_numbers_go_on_from_those_that_are_known(self) -> None:
        async def body(on: Driven) -> None:
            await on.press("6", "p", "p")
            assert on.feed.commands[-1]["window"] == 4

        drive(windows(), WIDE, body, given(h100()))


class TestStill:
    def test_nothing_is_repainted_when_nothing_changed(self) -> None:
        async def body(on: Driven) -> None:
            await on.press("6")
            await on.tick()
            widget = on.app.main.panels["roofline"]
            for _ in range(5):
                on.clock.on(1.0)
                assert widget.sync(on.app.panel_scene(), due=True) == 0

        drive(busy(), WIDE, body, given(h100()))

    def test_a_roofline_is_worked_out_only_when_the_model_has_changed(self) -> None:
        worked = []
        of = compute(h100())

        def counted(model: Model, boundary: str | None, ceiling: str | None, here: bool) -> Roofline:
            worked.append(here)
            return of(model, boundary, ceiling, here)

        async def body(on: Driven) -> None:
            assert worked == [] or on.app.main.plan.panels.get("roofline")
            await on.press("6")
            await on.tick()
            before = len(worked)
            await on.press("right", "right", "t")
            await on.tick()
            assert len(worked) == before
            on.feed.give(ev.WindowChanged(on.feed.model.now_ns, 9, "waiting"))
            await on.tick()
            assert len(worked) == before + 1 and all(worked)

        drive(busy(), NARROW, body, settings(roofline=counted))


class TestEmpty:
    def empty(self, events: list[ev.Event]) -> str:
        what = scene(events, plane=Plane())
        return " ".join(text(PANEL.draw(what, PanelView(), 99, 37, False)).split())

    def test_before_anything_is_compiled(self) -> None:
        assert "becomes a point with its first call" in self.empty(SCENES["empty"]())

    def test_while_it_compiles(self) -> None:
        assert "points come with the calls that follow" in self.empty(SCENES["compiling"]())

    def test_without_a_graph(self) -> None:
        assert "torch has told no graph of the 6 regions here" in self.empty(busy())

    def test_with_what_a_source_says(self) -> None:
        events = busy()
        events.append(ev.NotAvailable(events[-1].t_ns, "graphs", "torch 2.3 tells no graphs"))
        assert "torch 2.3 tells no graphs" in self.empty(events)

    def test_measured_points_do_not_stand_below_a_roof_of_no_machine(self) -> None:
        known = h100()
        bare = Roofline(known.points, known.process, (), 0, None, "", 0.94, (), ("no figures for this machine",))
        what = shown(bare)
        said = text(PANEL.draw(what, PanelView(), 120, 37, False))
        assert "no ceiling: no figures for this machine" in said and "lab" not in said and "ridge" not in said
        assert "≤206" in said and "1k" in said
        what.plane.ceiling = "lab"
        assert "lab (declared)" in text(PANEL.draw(what, PanelView(), 120, 37, False))

    def test_a_roof_of_no_machine_is_not_drawn_for_what_was_measured(self) -> None:
        """Nor above points that have no place: it would be read as their machine's."""
        kernel = Point("k", "kernel", None, None, 1.0, "measured", "exact", why_not="its operations are not known")
        known = Roofline((kernel,), None, (), 0, None, "", None, (), ())
        said = text(PANEL.draw(shown(known), PanelView(), 120, 37, False))
        assert "lab (declared)" not in said and "no figures for this machine" in said

    def test_the_page_of_a_point_without_a_place_claims_nothing(self) -> None:
        kernel = Point("k", "kernel", None, None, 1.0, "modelled", "unknown", key="kernel k", why_not="no operator")
        known = Roofline((kernel,), None, (), 0, None, "", None, (), ())
        said = text(page_of_point(shown(known), "kernel k", 100))
        assert "not known, by formula" not in said and "each input read once" not in said
        assert "bytes may be wrong either way" not in said

    def test_no_figures_of_this_machine_shows_the_declared_ceilings_once_they_are_asked_for(self) -> None:
        known = Roofline((), None, (), 0, None, "", None, (), ("no figures for this machine: `tuimon calibrate`",))
        what = shown(known)
        said = text(PANEL.draw(what, PanelView(), 120, 37, False))
        assert "lab (declared)" not in said and "tuimon calibrate" in said and "c shows a declared roof" in said
        what.plane.next_ceiling(what.model, what.ceilings)
        said = text(PANEL.draw(what, PanelView(), 120, 37, False))
        assert what.plane.ceiling is not None and what.plane.ceiling in said and "tuimon calibrate" in said
        assert BF16.name not in said
