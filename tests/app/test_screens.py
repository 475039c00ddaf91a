"""The monitor driven by its keys."""

from __future__ import annotations

import pytest

from tests.support.fake_feed import MODEL, SCENES, Job, S, busy, ended, many
from tests.support.monitor import Driven, drive, settings
from tuimon import events as ev
from tuimon.app.screens import asking

WIDE, NARROW = (120, 40), (80, 24)


def test_the_target_line_says_who_and_how() -> None:
    async def body(on: Driven) -> None:
        first, second = on.text.split("\n")[:2]
        for fact in ("step 260, 24.0 ms", "forward is at its limit of 3 entries"):
            assert fact in first
        for fact in ("python train.py --size small", "pid 4242", "attached", "hook 0.03%", "dropped 0", "4 Hz"):
            assert fact in second
        await on.resize(200, 60)
        for fact in ("torch 2.13.0", "cpu"):
            assert fact in on.text.split("\n")[1]

    drive(busy(), WIDE, body)


def test_number_keys_zoom_and_come_back() -> None:
    async def body(on: Driven) -> None:
        await on.press("3")
        assert "2 boundaries" not in on.text and "3 recompiles" in on.text
        await on.press("4")
        assert "3 recompiles" not in on.text and "4 regions" in on.text
        await on.press("4")
        assert "2 boundaries" in on.text and "▸ 4 regions" in on.text
        await on.press("6", "escape")
        assert "2 boundaries" in on.text
        await on.press("8")
        assert "2 boundaries" in on.text

    drive(busy(), NARROW, body)


def test_tab_goes_round_the_panels() -> None:
    async def body(on: Driven) -> None:
        seen = []
        for _ in range(7):
            seen.append(on.app.main.focus_id)
            await on.press("tab")
        assert seen == ["boundaries", "recompiles", "regions", "surroundings", "roofline", "log", "now"]
        await on.press("shift+tab")
        assert on.app.main.focus_id == "now"

    drive(busy(), WIDE, body)


def test_tab_passes_over_panels_that_are_not_shown_and_zoomed_goes_to_the_next() -> None:
    async def body(on: Driven) -> None:
        await on.press("tab", "tab", "tab")
        assert on.app.main.focus_id == "surroundings"
        await on.press("tab")
        assert on.app.main.focus_id == "now"
        await on.press("7", "tab")
        assert on.app.main.zoomed == "now" and "▸ 1 now" in on.text

    drive(busy(), NARROW, body)


def test_rows_move_and_the_selection_stays_on_its_row() -> None:
    async def body(on: Driven) -> None:
        view = on.app.main.focused_panel.view
        await on.press("j")
        first = view.cursor
        await on.press("j")
        assert view.cursor != first
        await on.press("k")
        assert view.cursor == first
        chosen = on.line("▸17.0%" if "▸17.0%" in on.text else "17.0%")
        assert chosen.startswith("▸")
        await on.press("s")  # by crossings
        await on.press("s")  # by median
        await on.press("S")
        assert view.cursor == first
        assert on.line("17.0%").startswith("▸")
        await on.press("g")
        assert view.cursor != first

    drive(busy(), WIDE, body)


def test_sorts_and_their_marks() -> None:
    async def body(on: Driven) -> None:
        assert "share▾" in on.text
        await on.press("s")
        assert "crossed▾" in on.text
        await on.press("S")
        assert "crossed▴" in on.text
        await on.press("tab", "tab", "tab")
        await on.press("s")
        assert "no order to choose" in on.text

    drive(busy(), WIDE, body)


def test_a_filter_narrows_while_one_types() -> None:
    async def body(on: Driven) -> None:
        asking.ask_for_filter(on.app.main)
        assert on.app.focused is on.app.main.asking.line  # at once: on a busy machine a key may come before any refresh
        await on.press("escape")
        await on.press("slash", *"item")
        assert "filter 'item': 1 of 3" in on.text and "asked for:" not in on.text
        await on.press("enter")
        assert "filter 'item': 1 of 3" in on.text
        await on.press("escape")
        assert "asked for:" in on.text
        await on.press("slash", *"zzz")
        assert "nothing matches the filter" in on.text
        await on.press("escape")
        assert "asked for:" in on.text
        await on.press("slash", *"q")
        assert on.app.is_running and on.feed.detached == 0

    drive(busy(), WIDE, body)


def test_tab_out_of_the_filter_keeps_it() -> None:
    async def body(on: Driven) -> None:
        await on.press("slash", *"item", "tab")
        assert on.app.main.focus_id == "recompiles"
        assert "filter 'item': 1 of 3" in on.text
        await on.press("5", "slash")
        assert "no rows to filter" in on.text

    drive(busy(), WIDE, body)


def test_freeze_stops_the_screen_and_not_the_collecting() -> None:
    job = Job()
    job.steps(30)

    async def body(on: Driven) -> None:
        await on.press("space")
        before = on.text.split("\n")[2:]
        assert "FROZEN +0" in on.text
        job.script.events.clear()
        job.steps(50)
        on.feed.give(*job.script.events)
        await on.tick()
        assert "FROZEN +400 events" in on.text  # eight samples a step
        assert on.text.split("\n")[2:] == before
        assert on.feed.model.steps.n == 80
        await on.press("j", "enter")
        assert "crossings           " in on.text and " 30" in on.line("crossings ")
        assert "FROZEN" in on.text
        await on.press("escape", "space")
        assert "FROZEN" not in on.text and "running step 80" in on.text

    drive(job.script.events, WIDE, body)


def test_details_of_a_boundary(tmp_path) -> None:  # type: ignore[no-untyped-def]
    source = tmp_path / "model.py"
    source.write_text("\n".join(f"line {number}" for number in range(1, 100)))
    job = Job()
    job.steps(12)
    events = []
    for event in job.script.events:
        if isinstance(event, (ev.GraphBroke, ev.InstrumentAdded)) and event.file == MODEL:
            import dataclasses

            more = {"stack": ()} if isinstance(event, ev.GraphBroke) else {}
            event = dataclasses.replace(event, file=str(source), **more)
        events.append(event)

    async def body(on: Driven) -> None:
        await on.press("enter")
        for fact in (
            "Unsupported Tensor.item() call",
            "line 57",
            "Dynamo does not know how to trace this call.",
            "• Move it out of the compiled function.",
            "not looked at",
            "in a steady step",
        ):
            assert fact in on.text, fact
        assert "▸    57 line 57" in on.text
        await on.press("escape")
        assert "2 boundaries" in on.text

    drive(events, (100, 60), body)


def test_details_of_recompiles_regions_and_panels() -> None:
    async def body(on: Driven) -> None:
        await on.press("3", "3", "enter")
        assert "refused recompile [0/3] of forward" in on.text
        assert "tensor 'x' rank mismatch. expected 2, actual 3" in on.text
        await on.press("escape", "4", "4", "enter")
        for fact in ("initial", "steady", "after guard change", "cache entries"):
            assert fact in on.text
        await on.press("escape", "1", "1", "enter")
        assert "the longest of the last" in on.text and "in a steady step" not in on.text
        await on.press("q", "5", "5", "enter")
        assert "resident memory" in on.text
        await on.press("q", "6", "6", "c", "enter")
        assert "ceilings (c selects the next)" in on.text
        assert on.app.is_running

    drive(busy(), WIDE, body)


def test_the_log_follows_until_one_moves_up() -> None:
    async def body(on: Driven) -> None:
        await on.press("7")
        assert "epoch 1" in on.text
        await on.press("k", "k")
        on.feed.give(*(ev.Line(on.feed.model.now_ns, f"line {number}", "job") for number in range(40)))
        await on.tick()
        assert "line 39" not in on.text.partition("\n")[2] and "newer below" in on.text
        await on.press("G")
        assert "line 39" in on.text
        await on.press("enter")
        assert "kind" in on.text and "line 39" in on.text

    drive(busy(), NARROW, body)


def test_help_is_for_the_panel_that_has_the_keys() -> None:
    async def body(on: Driven) -> None:
        await on.press("question_mark")
        assert "2 boundaries and graph breaks" in on.text
        await on.press("pagedown")
        assert "orders (s): cost" in on.text
        await on.press("G")
        assert "how numbers are made" in on.text
        await on.press("question_mark")  # the same key leads back
        assert "▸ 2 boundaries" in on.text and on.feed.detached == 0

    drive(busy(), NARROW, body)


def test_themes_go_round_and_everything_is_redrawn() -> None:
    async def body(on: Driven) -> None:
        names = list(on.app.settings.themes.themes)
        before = on.app.main.target_lines.render_line(0)
        await on.press("t")
        assert f"theme: {names[1]}" in on.text
        after = on.app.main.target_lines.render_line(0)
        assert [segment.style for segment in before] != [segment.style for segment in after]
        for _ in range(len(names) - 1):
            await on.press("t")
        assert on.app.theme == "tuimon-dark"

    drive(busy(), NARROW, body)


def test_without_colours_there_is_no_theme_to_choose() -> None:
    async def body(on: Driven) -> None:
        await on.press("t")
        assert "colours are off" in on.text
        for strip in on.app.screen._compositor.render_strips():
            for segment in strip:
                assert segment.style is None or segment.style.color is None or segment.style.color.is_default

    drive(busy(), NARROW, body, settings(theme="mono", colour_off=True))


def test_ceilings_go_round() -> None:
    async def body(on: Driven) -> None:
        assert "no points yet" in on.text and "c shows a declared roof" in on.text
        await on.press("c")
        assert "ceiling 2 of" in on.text
        await on.press("c")
        assert "ceiling 3 of" in on.text

    drive(busy(), WIDE, body)


def test_the_rate_can_be_chosen() -> None:
    async def body(on: Driven) -> None:
        await on.press("plus")
        assert "5 Hz" in on.text.split("\n")[1]
        await on.press("minus", "minus")
        assert "2 Hz" in on.text.split("\n")[1]

    drive(busy(), WIDE, body)


def test_a_message_goes_away_by_itself() -> None:
    async def body(on: Driven) -> None:
        await on.press("plus")
        assert "drawing 5 times a second" in on.text
        await on.tick(5)
        assert "drawing 5" not in on.text and "q quit" in on.text

    drive(busy(), WIDE, body)


def test_problems_with_files_are_said_at_the_start() -> None:
    async def body(on: Driven) -> None:
        assert "theme mine.toml: not TOML" in on.text

    drive(busy(), WIDE, body, settings(problems=("theme mine.toml: not TOML",)))


def test_an_ended_job_is_a_state() -> None:
    async def body(on: Driven) -> None:
        assert on.text.startswith(" ended: killed by signal 9") and "ENDED signal 9" in on.text and "model.py:57" in on.text
        await on.tick(60)
        assert on.app.is_running and on.text.startswith(" ended: killed by signal 9")
        await on.press("enter")
        assert "boundary at" in on.text

    drive(ended(), WIDE, body)


def test_a_job_that_ends_while_one_looks() -> None:
    async def body(on: Driven) -> None:
        on.feed.give(ev.TargetEnded(on.feed.model.now_ns + S, "lost", "the connection to the job was lost"))
        await on.tick()
        assert "LOST" in on.text and "not heard of since 14:13:36 in step 260: the connection to the job was lost" in on.text

    drive(busy(), WIDE, body)


@pytest.mark.parametrize("keys", [("q",), ("ctrl+q",), ("ctrl+c",), ("enter", "ctrl+c")])
def test_leaving_lets_the_job_go(keys: tuple[str, ...]) -> None:
    async def body(on: Driven) -> None:
        for key in keys:
            await on.pilot.press(key)
        for _ in range(200):
            if on.feed.detached:
                break
            await on.pilot.pause(0.01)

    app = drive(busy(), WIDE, body)
    assert app.feed.detached == 1  # type: ignore[attr-defined]
    assert app.return_code == 0


def test_the_palette_finds_actions() -> None:
    async def body(on: Driven) -> None:
        await on.press("colon")
        await on.press(*"freeze")
        for _ in range(100):
            await on.pilot.pause(0.02)
            if "freeze (space)" in on.text:
                break
        await on.press("enter")
        for _ in range(100):
            await on.pilot.pause(0.02)
            if "FROZEN" in on.text:
                break
        assert "FROZEN" in on.text

    drive(busy(), WIDE, body)


def test_thousands_of_rows() -> None:
    async def body(on: Driven) -> None:
        await on.press("4", "G")
        assert "of 3000" in on.text
        await on.press("pageup", "g", "pagedown")
        assert "of 3000" in on.text

    drive(many(3000), NARROW, body)


def test_nothing_is_painted_when_nothing_changes() -> None:
    async def body(on: Driven) -> None:
        await on.tick()
        widgets = [on.app.main.target_lines, on.app.main.keys_line, *on.app.main.panels.values()]
        shown = [widget.lines for widget in widgets]
        painted: list[object] = []
        for widget in widgets:
            widget.refresh = lambda *regions, **more: painted.append(regions)  # type: ignore[method-assign, assignment]
        for _ in range(5):
            await on.tick()
        assert painted == []
        assert [widget.lines for widget in widgets] == shown

    drive(ended(), WIDE, body)  # a job that is over: not even the time goes on


def test_only_lines_that_differ_are_painted() -> None:
    job = Job()
    job.steps(30)

    async def body(on: Driven) -> None:
        await on.tick()
        widget = on.app.main.panels["boundaries"]
        painted: list[object] = []
        widget.refresh = lambda *regions, **more: painted.extend(regions)  # type: ignore[method-assign, assignment]
        job.script.events.clear()
        job.steps(1)
        on.feed.give(*job.script.events)
        await on.tick()
        assert {region.y for region in painted} == {2, 3, 4}  # type: ignore[attr-defined]
        # the names at the right are not sent again
        assert all(region.width < 75 for region in painted)  # type: ignore[attr-defined]

    drive(job.script.events, WIDE, body)


@pytest.mark.parametrize("name", ["busy", "awkward", "nothing"])
def test_any_size(name: str) -> None:
    import random

    sizes = random.Random(name)

    async def body(on: Driven) -> None:
        shapes = [(1, 1), (20, 5), (59, 14), (60, 15), (200, 60), (110, 24), (3, 60), (200, 2)]
        shapes += [(sizes.randint(1, 200), sizes.randint(1, 70)) for _ in range(12)]
        for at, (width, height) in enumerate(shapes):
            await on.resize(width, height)
            await on.tick()
            lines = on.text.split("\n")
            assert len(lines) == height
            if at % 3 == 0:
                await on.press("2", "enter", "j", "escape", "2")

    drive(SCENES[name](), NARROW, body)


def test_twenty_by_five_has_useful_lines() -> None:
    async def body(on: Driven) -> None:
        assert on.text.split("\n") == [
            "25.8/s  24.0 ms",
            "step 260",
            "17.0% model.py:57 U…",
            "3 recompiles",
            "7.20 ms bwd forward",
        ]

    drive(busy(), (20, 5), body)


def test_a_picture_can_be_exported() -> None:
    pictures = []

    async def body(on: Driven) -> None:
        pictures.append(on.app.export_screenshot())

    drive(SCENES["awkward"](), WIDE, body)
    assert pictures[0].startswith("<svg") and "boundaries" in pictures[0]
