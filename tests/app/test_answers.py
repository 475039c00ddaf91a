"""The first line of every screen: it answers the question that the screen is opened with, whatever the job does."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest

from tests.app.steps_scene import slow_job
from tests.app.test_panels import scene, text
from tests.support.fake_feed import MS, SCENES, Job, S, Script, busy, ended
from tests.support.gpu_scenes import MACHINES
from tests.support.monitor import Driven, drive, settings
from tests.support.points import compute, h100, windows
from tests.support.scenes import WHOLE, before_attach, lost, stopped
from tuimon import events as ev
from tuimon.app.look.roles import ROLES
from tuimon.app.panels import overview
from tuimon.app.panels.all import BY_ID, OVER, PANELS
from tuimon.app.scene import Panel, PanelView
from tuimon.app.screens.steady import HOLD_S, Steady, shape
from tuimon.draw.text import Line

ALL = (*PANELS, *OVER)


def said(line: Line) -> str:
    return text([line])


@pytest.mark.parametrize("name", sorted({**SCENES, **{f"gpu-{name}": events for name, events in MACHINES.items()}}))
def test_every_screen_has_an_answer_in_one_line(name: str) -> None:
    events = {**SCENES, **{f"gpu-{name}": events for name, events in MACHINES.items()}}[name]()
    for later_s in (0.0, 60.0):
        what = scene(events, later_s=later_s)
        for answer in (overview.answer, *(panel.answer for panel in ALL)):
            line = answer(what)
            assert said(line).strip(), (name, answer)
            for part, role in line:
                assert "\n" not in part and part.isprintable() and role in ROLES


@pytest.mark.parametrize("name", ["busy", "awkward", "slow", "ended", "lost", "stopped", "attaching", "before-attach", "ranks"])
def test_it_stands_in_the_first_row_of_the_screen(name: str) -> None:
    async def body(on: Driven) -> None:
        main = on.app.main
        for key in ("", *"1234567", "w"):
            if key:
                await on.press(key)
            answer = said(main.answer(on.app.panel_scene()))
            first = on.text.split("\n")[0]
            assert first.startswith(" ") and first[1:40].rstrip("…") == answer[:39], (key, first)
            if key:
                await on.press("escape")

    drive(WHOLE[name](), (80, 24), body)


def answer_of(panel: str, events: list[ev.Event], later_s: float = 0.0) -> str:
    return said(BY_ID[panel].answer(scene(events, later_s=later_s)))


def test_the_overview_says_what_it_does_and_what_costs_most() -> None:
    job = Job()
    job.steps(30)
    of = said(overview.answer(scene(job.script.events)))
    assert of == "step 30, 24.0 ms; costliest: 17.0% of a step at model.py:57: Tensor.item()"
    # what runs in eager unseen may cost all of it, and comes before
    assert said(overview.answer(scene(busy()))) == "step 260, 24.0 ms; model.py:12: forward is at its limit of 3 entries"


def test_the_overview_of_a_healthy_job() -> None:
    script = Script()
    script.attach()
    step = script.instrument("optimizer", None, "SGD.step")
    for _ in range(30):
        script.t += 20 * MS
        script.add(ev.Samples(script.t, ((step, 1, 0, script.t - MS, script.t),)))
    assert said(overview.answer(scene(script.events))) == "step 30, 20.0 ms; healthy: nothing stands out"


def test_a_job_that_had_slow_steps_is_not_called_healthy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(overview, "_cost", lambda scene: [])  # as where they are over, and no finding
    told = said(overview.answer(scene(slow_job())))
    assert "; 9 steps were slow, the worst step " in told and "healthy" not in told, told


def test_a_job_that_lacks_cores_is_not_called_healthy() -> None:
    script = Script()
    script.attach()
    step = script.instrument("optimizer", None, "SGD.step")
    for number in range(8):
        for _ in range(30):
            script.t += 20 * MS
            script.add(ev.Samples(script.t, ((step, 1, 0, script.t - MS, script.t),)))
        script.host()
        read = script.events[-1]
        assert isinstance(read, ev.HostSampled)
        script.events[-1] = replace(read, run_queue_wait_s=0.5 * number)  # of each 0.6 s, it waits 0.5 s for a core
    lacking = said(overview.answer(scene(script.events)))
    assert lacking.startswith("step 240, 20.0 ms; the job lacks 0.83 cores: "), lacking
    assert "healthy" not in lacking


def test_how_it_stands_with_the_job_comes_first() -> None:
    assert said(overview.answer(scene(SCENES["waiting"]()))).startswith("waiting for torch")
    assert said(overview.answer(scene(SCENES["attaching"]()))).startswith("attaching to process 4242")
    assert said(overview.answer(scene(SCENES["compiling"](), later_s=2))).startswith(
        "compiling for 5.2 s: forward model.py:12 [0/1], optimising the graph"
    )
    assert said(overview.answer(scene(ended()))).startswith(
        "ended: killed by signal 9 (out of memory?) at 14:13:36 in step 260; "
    )
    assert said(overview.answer(scene(lost()))).startswith("not heard of since 14:13:36 in step 260: connection to node7 lost")
    told = said(overview.answer(scene(before_attach())))
    assert told == "from before the attach: 1 frame, 2 graph breaks, 1 recompile (1.90 s); no call seen since"
    for panel in ALL:
        if panel.id not in ("log", "ranks"):
            assert said(panel.answer(scene(SCENES["waiting"]()))).startswith("waiting for torch"), panel.id
            assert said(panel.answer(scene(ended()))).startswith("ended: "), panel.id
            assert said(panel.answer(scene(lost()))).startswith("lost: "), panel.id


def test_how_it_ended_is_said_once_and_when_is_not_cut() -> None:
    for detail, begin in (
        (
            "the process has ended (with what status only its parent knows)",
            "ended at 14:13:36 in step 260, with what status only",
        ),
        ("the program has ended: exit status 1", "ended: exit status 1 at 14:13:36 in step 260; "),
    ):
        events = [replace(one, detail=detail) if isinstance(one, ev.TargetEnded) else one for one in ended()]
        assert said(overview.answer(scene(events))).startswith(begin)


def test_how_long_a_compilation_takes_is_not_cut() -> None:
    async def body(on: Driven) -> None:
        await on.tick(60)
        first = on.text.split("\n")[0]
        assert first.startswith((" compiling for 1m", " compiling for 6")), first

    drive(SCENES["compiling"](), (60, 20), body)


def test_a_job_that_is_stopped_says_so_wherever_one_looks() -> None:
    async def body(on: Driven) -> None:
        for key in "123456w":
            await on.press(key)
            assert on.text.startswith(" stopped for 41 s (kill -CONT 4242) in step 260"), key
            await on.press("escape")

    drive(stopped(), (80, 24), body)


def test_the_answers_of_the_panels() -> None:
    assert answer_of("boundaries", busy()) == "model.py:57 costs most: 17.0% of a step, 260 crossings: Tensor.item()"
    assert answer_of("recompiles", busy()) == (
        "2 in 3.80 s, 1 refused at the limit; last: forward model.py:12 [0/3] refused: x has 3 dimensions, had 2"
    )
    assert answer_of("regions", busy()) == "forward model.py:12 [0/0] bwd takes 30.0% of the steps, 260 calls, median 7.20 ms"
    assert "; 9 slow; last: D step 109: 141 ms, 6.9 times the usual: data wait 100%" in answer_of("now", slow_job())
    job = Job()
    job.steps(12)
    assert answer_of("now", job.script.events) == "none of 12 steps was slow; the median takes 24.0 ms"
    assert "no step for 12 s, 500 times the usual" in answer_of("now", job.script.events, later_s=12)
    assert answer_of("surroundings", busy()) == "the job has 1.08 cores, 1.20 GiB resident"
    assert answer_of("log", busy()).startswith("13 events; last at 14:13:35 job: epoch 1")
    assert answer_of("ranks", busy()).startswith("one process is watched")
    assert answer_of("findings", busy()) == "3 to look at; number 2 costs most, 1.06 s so far at model.py:57"


def test_what_stands_out_of_a_gpu_comes_first() -> None:
    assert answer_of("surroundings", MACHINES["eight"]()) == "!! GPU 2 hot: 91 C"
    assert "GPU 0 of the job: a kernel ran for" in answer_of("surroundings", MACHINES["one"]())


def test_the_roofline_says_how_far_below_its_roof_it_is() -> None:
    async def body(on: Driven) -> None:
        await on.press("6")
        assert " of HBM's roof, in 100% of the time; 11 more" in on.text.split("\n")[0]

    drive(windows(), (80, 24), body, settings(roofline=compute(h100())))


# ------------------------------------------------------------------------------------------------- held


def test_the_first_line_does_not_flip_within_three_seconds() -> None:
    what = scene(busy())
    steady = Steady()
    pace = ("step 43, 24.0 ms", "strong")
    one: Line = [pace, ("; healthy: nothing stands out", "good")]
    two: Line = [pace, ("; ", "text"), ("costliest: 2.1% of a step at ", "text"), ("model.py:57", "place")]
    at = 50 * S
    assert steady.line("", what, one, at) == one
    seen = []
    for beat in range(40):  # near a threshold it is the one and the other in turns, four times a second
        at += S // 4
        seen.append(steady.line("", what, two if beat % 2 else one, at))
    flips = [number for number in range(1, len(seen)) if seen[number] != seen[number - 1]]
    assert flips and min(b - a for a, b in pairwise(flips)) >= HOLD_S * 4 - 1
    assert len(flips) <= 3


def test_numbers_go_on_and_what_a_person_does_is_answered_at_once() -> None:
    what = scene(busy())
    steady = Steady()
    at = 50 * S
    steady.line("", what, [("step 43, 24.0 ms", "strong")], at)
    assert said(steady.line("", what, [("step 44, 24.1 ms", "strong")], at + 1)) == "step 44, 24.1 ms"
    later: Line = [("step 80, 24.1 ms", "strong"), ("; healthy", "good")]
    assert said(steady.line("", what, later, at + S)) == "step 80, 24.1 ms"  # the pace is the one of now, the rest waits
    assert said(steady.line("", what, later, at + 4 * S)) == "step 80, 24.1 ms; healthy"
    compiling: Line = [("compiling for ", "compile"), ("1.2 s", "strong")]  # what the panels say at once
    assert steady.line("", what, compiling, at + 4 * S + 1) == compiling
    assert steady.line("", what, later, at + 4 * S + 2) == later
    assert said(steady.line("regions", what, [("other", "text")], at + S)) == "other"  # another screen
    assert said(steady.line("regions", scene(ended()), [("ended: x", "text")], at + S)) == "ended: x"
    assert said(steady.line("regions", scene(ended()), [("more", "text")], None)) == "more"  # no clock
    assert shape([("model.py:57", "place")]) != shape([("model.py:41", "place")])


def test_the_answer_of_a_table_goes_with_its_rows() -> None:
    what = scene(busy())
    steady = Steady()
    one: Line = [("2 to look at", "strong")]
    two: Line = [("3 to look at", "strong"), ("; number 1 costs most", "text")]
    assert steady.line("findings", what, one, 50 * S, due=True, rows=3) == one
    assert steady.line("findings", what, two, 50 * S + 1, due=False, rows=3) == one
    assert steady.line("findings", what, two, 50 * S + 2, due=False, rows=4) == two  # another row is drawn at once
    assert steady.line("findings", what, one, 50 * S + 3, due=True, rows=4) == one


# ------------------------------------------------------------------------------------------------- empty panels


WHEN = (
    *("when", "once", "as ", "after", "until", "while", "so far", "with the", "yet: ", "appear", "comes", "come ", "is over"),
    *("not attached", "before", " now", "each", "attaching to"),
)


@pytest.mark.parametrize("panel", ALL, ids=lambda panel: panel.id)
def test_an_empty_panel_says_what_would_fill_it_and_when(panel: Panel) -> None:
    for name in ("nothing", "empty", "waiting", "attaching"):
        if name not in SCENES:
            continue
        what = scene(SCENES[name]())
        lines = panel.draw(what, PanelView(), 78, 20, False)
        body = " ".join(text(lines[1:]).split())
        if panel.keys(what, PanelView()):
            continue
        assert any(word in f"{body} " for word in WHEN), (name, body)
        assert len(body) > 12, (name, body)
