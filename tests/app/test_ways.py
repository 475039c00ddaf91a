"""The way down: from a finding to its evidence, to the line of source with what Dynamo said of it, and back."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from tests.app.test_panels import scene, text
from tests.model.test_streams import STREAMS, recorded
from tests.support.fake_feed import MODEL, TRAIN, FakeFleet, Job, S, busy
from tests.support.golden import project_at_home
from tests.support.monitor import Driven, drive, settings
from tests.support.points import compute, h100, windows
from tests.support.scenes import WHOLE, before_attach
from tuimon import events as ev
from tuimon.app.details import narrowed
from tuimon.app.details.opening import open_about, open_source
from tuimon.app.details.paged import Link, Paged, Source, paged
from tuimon.app.panels import findings as panel
from tuimon.app.screens.page import PageScreen
from tuimon.draw.glyphs import BRAILLE
from tuimon.model import Model
from tuimon.model.about import About

NARROW = (80, 24)


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The program of the made-up jobs can be read where they have it."""
    monkeypatch.setattr(os, "open", project_at_home(tmp_path))


def page(on: Driven) -> PageScreen:
    assert isinstance(on.app.screen, PageScreen), on.text
    return on.app.screen


# ------------------------------------------------------------------------------------------------- down and back


def test_from_a_finding_to_the_source_and_back(program: None) -> None:
    async def body(on: Driven) -> None:
        await on.press("w", "j", "enter")
        assert on.text.startswith(" finding: boundary") and "260 crossings, 1 a step" in on.text and "next step" in on.text
        assert "· where                 /home/user/project/model.py:57" in on.text
        assert "enter model.py:57" in on.text.split("\n")[-1]
        await on.press("enter")
        for fact in (
            "/home/user/project/model.py:57",
            "Unsupported Tensor.item() call with capture_scalar_outputs=False",
            "Dynamo does not know how to trace this call.",
            "• Move it out of the compiled function.",
            "▸    57             largest = norm.item()",
        ):
            assert fact in on.text, fact
        source = [line for line in on.text.split("\n") if line[4:9].strip().isdecimal()]
        assert len(source) >= 9
        await on.press("enter")
        assert "this is the last page; esc goes back" in on.text
        await on.press("escape")
        assert on.text.startswith(" finding: boundary")
        await on.press("escape")
        assert "w what to look at" in on.text and on.line(" 2    1.06 s").startswith("▸")
        await on.press("escape")
        assert "▸ 2 boundaries" in on.text

    drive(busy(), NARROW, body)


async def walk(on: Driven) -> int:
    """Every finding, and everything that its page leads to. Gives how many there were."""
    await on.press("w")
    keys = panel.PANEL.keys(on.app.panel_scene(), on.app.main.panels["findings"].view)
    for key in keys:
        assert on.app.main.focused_panel.view.cursor == key
        await on.press("enter")
        finding, depth = page(on), len(on.app.screen_stack)
        assert finding.page.lines
        if key == panel.FRAMES:
            assert finding.page.links
        for number, link in enumerate(finding.page.links[:6]):
            await on.press("tab")
            assert finding.selected == number
            if isinstance(link.to, About) and link.to.kind == "rank":
                continue  # leaves all pages: a test of its own
            await on.press("enter")
            there = page(on)
            assert there is not finding and there.page.lines, link
            if isinstance(link.to, Source):
                assert f":{link.to.line}" in there.page_title
            await on.press("escape")
            assert on.app.screen is finding and len(on.app.screen_stack) == depth
        await on.press("escape", "j")
    await on.press("escape")
    assert on.app.screen is on.app.main and not on.app.main.is_over
    return len(keys)


@pytest.mark.parametrize("name", STREAMS)
def test_every_finding_of_a_real_job_leads_on(name: str) -> None:
    async def body(on: Driven) -> None:
        assert await walk(on) >= 1

    drive(list(recorded(name)), NARROW, body)


@pytest.mark.parametrize("name", ["busy", "slow", "gpu-eight", "gpu-lost", "ended", "lost"])
def test_every_finding_leads_on(name: str) -> None:
    async def body(on: Driven) -> None:
        assert await walk(on) >= 2

    drive(WHOLE[name](), NARROW, body)


def _withdrawn(model: Model, about: About) -> bool:
    """A break that was none of its own after all, as the log of that moment did not know; following it says so."""
    return about.kind == "boundary" and about.key not in model.boundaries


@pytest.mark.parametrize("name", [*STREAMS, "busy", "slow", "before-attach", "gpu-eight", "gpu-lost"])
def test_every_link_of_every_page_leads_somewhere(name: str) -> None:
    events = recorded(name) if name in STREAMS else WHOLE[name]()
    assert not isinstance(events, FakeFleet)
    what = scene(list(events))  # type: ignore[arg-type]
    model = what.model
    todo: list[About | Source] = [
        *(one.about for one in panel.latest_findings(what) if one.about is not None),
        *(line.about for line in model.log if line.about is not None and not _withdrawn(model, line.about)),
        *(About("boundary", key) for key in model.boundaries),
        *(About("recompile", one.key) for one in model.recompiles),
        *(About("region", key) for key in list(model.regions)[:40]),
        *(About("step", ""), About("frame", ""), About("settings", "x"), About("host", ""), About("gpu", "gpu 0")),
    ]
    seen: set[About | Source] = set()
    kinds: set[str] = set()
    while todo:
        to = todo.pop()
        if to in seen or len(seen) > 600:
            continue
        seen.add(to)
        if isinstance(to, Source):
            opened = open_source(what, to)
        elif to.kind == "rank" or (to.kind == "step" and to.key):
            continue  # screens of their own
        else:
            kinds.add(to.kind)
            found = open_about(what, to)
            assert found is not None, to
            opened = found
        for width in (20, 80):
            drawn = opened[1](what, width)
            assert drawn.lines and all(0 <= link.line < len(drawn.lines) for link in drawn.links), to
        todo += [link.to for link in drawn.links]
    assert {"frame", "settings", "host"} <= kinds


def test_what_is_gone_says_so(program: None) -> None:
    what = scene(busy())
    for kind in ("boundary", "recompile", "compilation", "region", "frame", "log"):
        assert open_about(what, About(kind, "nobody")) is None  # type: ignore[arg-type]

    async def body(on: Driven) -> None:
        await on.press("2", "enter")
        assert "boundary at" in on.text
        on.feed.model.boundaries.clear()
        await on.tick()
        assert "it is no longer known" in on.text
        await on.press("escape", "escape", "7", "g")
        assert on.app.is_running

    drive(busy(), NARROW, body)


def test_from_the_log_to_what_it_names() -> None:
    async def body(on: Driven) -> None:
        await on.press("7", "slash", *"recompiled", "enter", "g", "enter")
        assert "· all that is known of it" in on.text
        await on.press("enter")
        assert on.text.startswith(" recompile [0/1] of forward")
        await on.press("tab", "tab", "enter")
        assert on.text.startswith((" frame forward", " source "))
        await on.press("escape", "escape", "escape")
        assert "7 event log" in on.text

    drive(busy(), NARROW, body)


def test_a_slow_step_in_the_log_and_in_the_findings_leads_to_its_account() -> None:
    async def body(on: Driven) -> None:
        await on.press("w", "enter")
        assert "slow by data wait" in on.text
        await on.press("shift+tab", "enter")
        assert "its account beside the usual one" in on.text
        await on.press("escape", "escape", "escape", "7", "slash", *"slow", "enter", "g", "enter", "enter")
        assert "its account beside the usual one" in on.text

    drive(WHOLE["slow"](), NARROW, body)


def test_a_finding_on_ranks_leads_to_the_ranks() -> None:
    async def body(on: Driven) -> None:
        from tuimon.app.screens.page import follow

        await on.press("enter")
        page(on)
        follow(on.app, About("rank", "3"))
        await on.settle()
        assert "8 all ranks" in on.text and on.app.main.focused_panel.view.cursor == "3"
        await on.press("escape")
        assert "▸ 2 boundaries" in on.text

    drive(WHOLE["ranks"](), NARROW, body)


def test_who_goes_in_a_circle_is_told() -> None:
    async def body(on: Driven) -> None:
        await on.press("3", "enter")
        for _ in range(60):  # recompile, its frame, its recompile, ..
            links = page(on).page.links
            wanted = "frame" if on.text.startswith(" re") else "recompile"
            at = next(n for n, link in enumerate(links) if isinstance(link.to, About) and link.to.kind == wanted)
            page(on).selected = at
            await on.press("enter")
            if "in a circle" in on.text:
                break
        assert "this goes on in a circle; esc goes back" in on.text and len(on.app.screen_stack) < 30

    drive(busy(), NARROW, body)


# ------------------------------------------------------------------------------------------------- state, find, copy, mouse


def test_a_page_opens_where_it_was_left() -> None:
    async def body(on: Driven) -> None:
        await on.press("2", "enter", "j", "j", "tab", "tab")
        top, selected = page(on).top, page(on).selected
        assert top >= 2 and selected == 1
        await on.press("escape", "3", "3", "2", "2", "enter")
        assert (page(on).top, page(on).selected) == (top, selected)
        await on.press("escape", "j", "enter")
        assert (page(on).top, page(on).selected) == (0, None)  # another one

    drive(busy(), NARROW, body)


def test_the_findings_keep_their_row_and_their_filter() -> None:
    async def body(on: Driven) -> None:
        await on.press("w", "slash", *"boundary", "enter", "j", "w", "2", "2", "w")
        assert "filter 'boundary': 2 of 4" in on.text and on.line("takes 9%").startswith("▸")
        await on.press("escape", "escape")
        assert "▸ 2 boundaries" in on.text

    drive(busy(), NARROW, body)


def test_lines_of_a_page_can_be_found() -> None:
    async def body(on: Driven) -> None:
        await on.press("2", "enter", "slash", *"crossing")
        shown = [line for line in on.text.split("\n")[2:-1] if line.strip()]
        assert shown and all("crossing" in line for line in shown)
        await on.press("enter")
        assert "'crossing'" in on.text.split("\n")[0]
        await on.press("slash", *"xyz", "enter")
        assert "no line holds it; esc shows all" in on.text
        await on.press("escape")
        assert "boundary at" in on.text and "what it costs" in on.text
        await on.press("escape")
        assert "2 boundaries" in on.text

    drive(busy(), NARROW, body)


def test_narrowed_keeps_links_and_what_is_pinned() -> None:
    to = About("frame", "0:0")
    whole = Paged([[("head", "text")], [("one", "text")], [("two", "text")], [("three", "text")]], (Link(2, to),), "", 1, 3)
    some = narrowed.narrowed(whole, "!one")
    assert ["".join(part for part, _ in line) for line in some.lines] == ["head", "two", "three"]
    assert some.links == (Link(1, to),) and some.here == 2 and narrowed.narrowed(whole, "") is whole


def test_a_long_head_leaves_room_for_the_source() -> None:
    lines = [[(f" said {number}", "text")] for number in range(20)]
    long = paged([*lines, *([[("x", "source")]] * 30)], pinned=20)
    head = narrowed.head_of(long, 22, 80, BRAILLE)
    assert len(head) == 11 and "…" in text(head[-1:])
    assert narrowed.head_of(long, 8, 80, BRAILLE) == []


def test_what_is_copied_of_a_page(program: None) -> None:
    async def body(on: Driven) -> None:
        said: list[str] = []
        on.app.copy = said.append  # type: ignore[method-assign, assignment]
        await on.press("w", "j", "enter", "y", "tab", "y", "enter", "y")
        assert said[0].startswith("the boundary in forward at model.py:57 takes 17% of a step") and "next step: " in said[0]
        assert said[1] == said[2] == f"{MODEL}:57  largest = norm.item()"
        await on.press("escape", "escape", "escape", "2", "enter", "y")
        assert said[3].startswith(f"boundary at {MODEL}:57 in forward: ") and "17.0% of a step, 260 crossings" in said[3]
        await on.press("escape", "3", "enter", "y")
        assert said[4].startswith("recompile [0/3] of forward at") and "refused at the limit" in said[4]

    drive(busy(), NARROW, body)


def test_a_click_follows_a_link_and_the_wheel_scrolls(program: None) -> None:
    async def body(on: Driven) -> None:
        await on.press("w", "j", "enter")
        row = next(at for at, line in enumerate(on.text.split("\n")) if line.startswith("· where"))
        await on.pilot.click(offset=(30, row))
        await on.settle()
        assert on.text.startswith(" source model.py:57")
        await on.press("escape", "escape", "escape", "2", "enter")
        page(on).on_mouse_scroll_down(None)  # type: ignore[arg-type]
        assert page(on).top == 3

    drive(busy(), NARROW, body)


# ------------------------------------------------------------------------------------------------- files


def test_a_file_that_cannot_be_read_here_says_why_and_shows_what_the_job_told(tmp_path: Path) -> None:
    what = scene(busy())
    boundary = next(one for one in what.model.boundaries.values() if one.user_line == 57)
    boundary.source = "largest = norm.item()"
    drawn = open_source(what, Source("/home/user/project/model.py", 57, "forward", ("why",)))[1](what, 80)
    said = text(drawn.lines)
    assert (
        "cannot be opened: no such file" in said
        and "largest = norm.item()" in said
        and drawn.copied.endswith("largest = norm.item()")
    )
    os.mkfifo(tmp_path / "pipe.py")
    assert "is a fifo" in text(open_source(what, Source(str(tmp_path / "pipe.py"), 3))[1](what, 200).lines)
    (tmp_path / "model.py").write_text("a\nb\n")
    assert "has no line 9 now" in text(open_source(what, Source(str(tmp_path / "model.py"), 9))[1](what, 200).lines)


def test_a_line_that_is_another_one_here_is_said(tmp_path: Path) -> None:
    file = tmp_path / "model.py"
    file.write_text("one\ntwo\n")
    what = scene(busy())
    boundary = next(iter(what.model.boundaries.values()))
    boundary.user_file, boundary.user_line = str(file), 2
    for source, warned in (("two", False), ("x = y.item()", True), ("", False)):
        boundary.source = source
        said = text(open_source(what, Source(str(file), 2))[1](what, 200).lines)
        assert ("another line there than the job told of: x = y.item()" in said) is warned


def test_files_of_another_host_are_not_read(tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text("a\nb\n")
    what = scene(busy(), host="node7")
    said = text(open_source(what, Source(str(tmp_path / "model.py"), 1))[1](what, 200).lines)
    assert "is on node7: files of another host are not read" in said


def test_all_of_a_file_can_be_scrolled(tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text("\n".join(f"line {number}" for number in range(1, 301)))
    job = Job()
    job.steps(2)

    async def body(on: Driven) -> None:
        on.app.push_screen(PageScreen(*open_source(on.app.panel_scene(), Source(str(tmp_path / "model.py"), 150, "f"))))
        await on.settle()
        rows = on.text.split("\n")
        at = next(number for number, line in enumerate(rows) if "▸   150 line 150" in line)
        assert 8 <= at <= 16  # in the middle third of what scrolls
        await on.press("g")
        assert "line 1" in on.text and "function" in on.text
        await on.press("G")
        assert "line 300" in on.text and "function" in on.text

    drive(job.script.events, NARROW, body)


def test_the_signs_of_links_are_no_colour_alone() -> None:
    drawn = paged([*before_lines()])
    signs = [line[0][0] for line in narrowed.with_signs(drawn, 1, 40, BRAILLE)]
    assert signs == ["·", "▸"]


def before_lines() -> list[list[tuple[str, str]]]:
    from tuimon.app.details.paged import linked

    return [
        *linked([[(" one", "text")]], About("frame", "0:0")),
        *linked([[(" two", "text")]], Source(TRAIN, 1)),
    ]


def test_what_is_known_from_before_the_attach_can_be_walked() -> None:
    async def body(on: Driven) -> None:
        await on.press("2", "enter", "enter")
        assert on.text.startswith(" source ")
        await on.press("escape", "escape", "3", "enter", "tab", "enter", "escape", "escape")
        assert on.app.screen is on.app.main

    drive([*before_attach(), ev.HistoryCounted(2_000 * S, 2, 2, 2)], NARROW, body)


def test_the_selected_link_stays_the_same_while_others_come_and_go() -> None:
    one, two, three = (Source("a.py", number) for number in (1, 2, 3))
    shown = [one, two]

    def build(scene: object, width: int) -> Paged:
        lines: list[list[tuple[str, str]]] = [[(f"line {to.line}", "text")] for to in shown]
        return Paged(lines, tuple(Link(at, to) for at, to in enumerate(shown)))

    async def body(on: Driven) -> None:
        on.app.push_screen(PageScreen("a page", build))
        await on.settle()
        await on.press("tab", "tab")
        assert on.line("line 2").startswith("▸")
        shown.insert(0, three)
        await on.tick()
        assert on.line("line 2").startswith("▸") and "enter a.py:2" in on.text
        await on.press("escape")
        shown.insert(0, Source("a.py", 4))
        on.app.push_screen(PageScreen("a page", build))  # as it was left
        await on.settle()
        assert on.line("line 2").startswith("▸")
        shown.remove(two)
        await on.tick()
        assert page(on).selected is None

    drive(busy(), NARROW, body)


def test_from_a_point_of_the_roofline_to_the_line_of_its_region(program: None) -> None:
    async def body(on: Driven) -> None:
        await on.press("6", "enter")
        for _ in range(12):
            if on.text.startswith(" region "):
                break
            await on.press("escape", "right", "enter")
        await on.press("enter")
        assert on.text.startswith(" region [") and "its calls" in on.text
        await on.press("enter")
        assert on.text.startswith(" source model.py:"), on.text
        await on.press("escape", "escape", "escape")
        assert "▸ 6 roofline" in on.text

    known = h100()
    region = next(key for key, one in scene(busy()).model.regions.items() if one.direction == "forward")
    points = [replace(point, key=f"region {region}") if point.kind == "region" else point for point in known.points]
    drive(windows(), NARROW, body, settings(roofline=compute(replace(known, points=points))))


def test_a_word_to_the_person_goes_with_the_next_key() -> None:
    async def body(on: Driven) -> None:
        await on.press("2", "enter", "enter", "enter")
        assert "this is the last page" in on.text
        on.clock.on(1.0)
        await on.press("escape")
        assert "this is the last page" not in on.text and "esc back" in on.text.split("\n")[-1]

    drive(busy(), NARROW, body)


def test_tables_follow_at_once_when_a_page_is_left() -> None:
    job = Job()
    job.steps(30)

    async def body(on: Driven) -> None:
        await on.press("4", "enter")
        job.script.events.clear()
        job.steps(30)
        on.feed.give(*job.script.events)
        await on.tick(0.3)
        await on.press("escape", "4")
        on.clock.on(0.1)
        assert "step 60" in on.text.split("\n")[0] and " 60 " in on.line("fwd"), on.text

    drive(list(job.script.events), NARROW, body)


def test_a_page_says_what_it_is_however_narrow() -> None:
    async def body(on: Driven) -> None:
        await on.press("2", "enter", "space")
        await on.resize(24, 6)
        assert on.text.startswith(" boundary at") and " FROZEN" in on.text.split("\n")[0]
        await on.resize(80, 24)
        assert on.text.split("\n")[0].startswith(" boundary at /home/user/project/model.py:57  1-21 of ")

    drive(busy(), NARROW, body)
