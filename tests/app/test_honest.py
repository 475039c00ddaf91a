"""What the screen must not claim: a standstill between two looks, a rate of the past, a share that nobody measured."""

from __future__ import annotations

import pytest

from tests.app.test_panels import draw, scene, text, top
from tests.support.fake_feed import MODEL, MS, SCENES, Job, S, Script, busy, ended
from tests.support.monitor import Driven, drive
from tuimon import events as ev
from tuimon.app.details import step
from tuimon.app.details.opening import open_page
from tuimon.app.panels import log, tiny
from tuimon.app.panels.all import BY_ID
from tuimon.app.panels.pace import compile_line, latest_compile
from tuimon.app.scene import PanelView
from tuimon.draw.text import line_cells
from tuimon.model.parts import LogLine

RESUMED = "torch_dynamo_resume_in_forward_at_82"


def header(events: list[ev.Event], width: int = 120, **more: float) -> str:
    return top(scene(events, **more), width)  # type: ignore[arg-type]


def over(events: list[ev.Event], detail: str = "the process has ended", status: int | None = None) -> list[ev.Event]:
    return [*events, ev.TargetEnded(max(event.t_ns for event in events) + S, "exited", detail, status)]


def test_a_redraw_between_two_looks_claims_no_standstill() -> None:
    job = Job()
    job.steps(40)

    async def body(on: Driven) -> None:
        assert on.app._timer is not None
        on.app._timer.stop()  # the only beats are the test's own
        on.clock.on(4.4)
        await on.press("j")
        assert "no step for" not in on.text and "medians" not in on.text
        await on.tick(0.6)
        assert "no step for 5.0 s" in on.text

    drive(job.script.events, (120, 40), body)


def test_a_rate_of_the_past_is_not_told_as_one_of_now() -> None:
    assert "compiling for 13 s: forward model.py:12 [0/1]" in header(SCENES["compiling"](), later_s=10.0)
    assert "/s" not in header(SCENES["compiling"](), later_s=10.0)
    assert header(ended()).startswith(" ended: killed by signal 9")
    assert "was 25.8/s" in text(draw(BY_ID["now"], scene(ended()), 100, 7))


def untimed() -> list[ev.Event]:
    """A boundary that is crossed where no graph ran before the break."""
    script = Script()
    script.attach()
    script.compile("0/0", "forward")
    script.breaks("0/0", 41, "a reason", "a kind")
    resume = script.instrument("resume", "0/0", "torch_dynamo_resume_in_forward_at_41", line=41)
    step = script.instrument("optimizer", None, "SGD.step")
    for _ in range(9):
        begin, script.t = script.t, script.t + 20 * MS
        script.add(ev.Samples(script.t, ((resume, 1, 0, begin, begin), (step, 1, 0, script.t - MS, script.t))))
    return script.events


def test_crossings_without_a_time_have_no_share() -> None:
    what = scene(untimed())
    row = text(draw(BY_ID["boundaries"], what, 140, 4)).split("\n")[2].split()
    assert row[:3] == ["-", "1", "9"]
    page = open_page("boundaries", what, next(iter(what.model.boundaries)))
    assert page is not None
    assert "0 of 9 crossings timed: no graph runs before the break" in text(page[1](what, 130).lines)


def compiling(function: str, compile_id: str = "0/0", phase: str = "OutputGraph.call_user_compiler") -> list[ev.Event]:
    script = Script()
    script.attach()
    script.add(ev.CompileStarted(script.t, compile_id, 0, function, MODEL, 82, "main"))
    script.add(ev.PhaseBegan(script.t, compile_id, phase, "main"))
    script.t += 3 * S
    script.host()
    return script.events


@pytest.mark.parametrize("width", [69, 60, 50, 40])
def test_a_line_of_a_compilation_keeps_its_age_and_cuts_names_by_meaning(width: int) -> None:
    what = scene(compiling(RESUMED))
    running = latest_compile(what.model)
    assert running is not None
    line = compile_line(what, running, width)
    words = text([line])
    assert line_cells(line) <= width
    assert "torch_dynamo" not in words and "forward resumed" in words and words.endswith("  3.0 s")
    if width == 69:
        assert "OutputGraph.call_user_compiler" in words and ":82" in words


def test_nothing_is_said_to_have_held_while_it_is_being_compiled() -> None:
    what = scene(compiling("encode"))
    for panel in ("boundaries", "recompiles", "regions"):
        words = text(draw(BY_ID[panel], what, 120, 5))
        assert "compiling encode [0/0] now" in words
        assert "held" not in words and "whole" not in words
    again = Script()
    again.attach()
    again.compile("0/0", "encode")
    again.add(ev.CompileStarted(again.t, "0/1", 0, "encode", MODEL, 82, "main"))
    words = text(draw(BY_ID["recompiles"], scene(again.events), 120, 5))
    assert "recompiling encode [0/1] now" in words and "held" not in words


def test_empty_panels_of_a_job_that_is_over_do_not_say_yet() -> None:
    script = Script()
    script.attach()
    script.compile("0/0", "forward")
    what = scene(over(script.events))
    assert "no region was called: 1 frame known" in text(draw(BY_ID["regions"], what, 100, 5))
    assert "no recompile was seen: the guards of 1 compiled frame held" in text(draw(BY_ID["recompiles"], what, 100, 5))
    assert "no graph break was seen" in text(draw(BY_ID["boundaries"], what, 100, 5))
    assert "last seen" in text(draw(BY_ID["surroundings"], scene(ended()), 80, 7)).split("\n")[0]


def test_an_end_whose_status_is_not_known_leaves_room_for_who_it_was() -> None:
    detail = "the process has ended (with what status only its parent knows)"
    second = header(over(busy(), detail), 80).split("\n")[1]
    assert "ENDED status unknown" in second and "pid 4242" in second and "train.py" in second
    panel = text(draw(BY_ID["now"], scene(over(busy(), detail)), 60, 4)).split("\n")[0]
    assert "ended in step 260: the process" in panel and "…" in panel


def test_the_cost_of_the_hook_waits_until_there_is_something_to_measure_it_by() -> None:
    script = Script()
    script.attach()
    script.t += 4 * S
    script.status(100)
    assert "hook - of the job" in header(script.events)
    script.t += 2 * S
    script.status(100)
    assert "hook 0.07% of the job" in header(script.events)


def test_a_job_without_an_optimizer_is_told_why_there_are_no_steps() -> None:
    script = Script()
    script.attach()
    script.compile("0/0", "forward")
    region = script.instrument("forward", "0/0", "forward")
    script.add(ev.Samples(script.t, tuple((region, 1, 0, script.t + at, script.t + at + 1) for at in range(7))))
    words = " ".join(text(draw(BY_ID["now"], scene(script.events), 60, 4)).split())
    assert "no step told apart so far; 7 calls of regions so far" in words


def test_a_function_that_was_to_mark_steps_and_never_came_is_told_in_the_panel() -> None:
    said = "--step train:stpe: train has no stpe so far"
    script = Script()
    script.attach()
    script.compile("0/0", "forward")
    of = scene(script.events)
    of.model.coverage.instruments["marked steps"] = f"on: {said}"
    assert f"no step so far: {said}" in " ".join(text(draw(BY_ID["now"], of, 90, 4)).split())
    of = scene(busy())
    of.model.coverage.instruments["marked steps"] = f"on: {said}"
    assert f"from the optimizer: {said}" in " ".join(text(draw(BY_ID["now"], of, 160, 12)).split())
    assert step.how(of.model).endswith(said)


def test_ids_that_come_again_after_a_reset_are_told_apart() -> None:
    script = Script()
    script.attach()
    for _ in range(2):
        script.compile("0/0", "forward")
        script.instrument("forward", "0/0", "forward")
    words = text(draw(BY_ID["regions"], scene(script.events), 100, 6))
    assert words.count("0/0 ") == 2 and words.count("0/0 r1") == 1


def test_one_compilation_is_once() -> None:
    script = Script()
    script.attach()
    script.compile("0/0", "forward")
    step = script.instrument("optimizer", None, "SGD.step")
    for _ in range(3):
        script.t += 20 * MS
        script.add(ev.Samples(script.t, ((step, 1, 0, script.t - MS, script.t),)))
    assert "compiled once, 2.50 s" in text(draw(BY_ID["now"], scene(script.events), 160, 7))


def test_the_order_comes_first_in_the_title() -> None:
    view = PanelView(sort=1)
    title = text(draw(BY_ID["boundaries"], scene(busy()), 80, 8, view=view)).split("\n")[0]
    assert "breaks · by crossings ▾; host time, median" in title


def test_the_line_of_the_filter_says_what_it_is() -> None:
    async def body(on: Driven) -> None:
        await on.press("slash", *"item")
        assert on.text.split("\n")[-1].startswith(" filter: item")
        await on.press("enter")
        await on.tick()
        assert "q quit" in on.text.split("\n")[-1]

    drive(busy(), (80, 24), body)


def test_a_frozen_screen_stands_still_up_to_its_second_line() -> None:
    job = Job()
    job.steps(30)

    async def body(on: Driven) -> None:
        await on.press("space")
        before = on.text.split("\n")[0], on.text.split("\n")[1].partition("dropped")[2].partition("FROZEN")[0]
        job.script.events.clear()
        job.steps(50, length_ms=90.0)
        on.feed.give(*job.script.events)
        await on.tick()
        now = on.text.split("\n")[0], on.text.split("\n")[1].partition("dropped")[2].partition("FROZEN")[0]
        assert now == before and before[0].strip() and "\u00b7" in before[1]

    drive(job.script.events, (120, 40), body)


def test_a_tiny_screen_says_that_it_is_frozen_and_still_how_the_job_ended() -> None:
    async def body(on: Driven) -> None:
        await on.press("space")
        assert on.text.startswith("FROZEN +0")
        await on.tick()
        now_ns = on.feed.model.now_ns
        on.feed.give(ev.TargetEnded(now_ns, "exited", "the process has ended (nobody knows how)", None))
        await on.tick()
        assert on.text.split("\n")[:2] == ["FROZEN +1", "ended: status unknown"]
        assert on.text.split("\n")[-1].startswith("q quit")

    drive(busy(), (30, 10), body)


def test_a_tall_tiny_screen_has_more_rows() -> None:
    lines = text(tiny.draw(scene(busy()), 50, 14)).split("\n")
    assert sum("model.py:" in line for line in lines) >= 4 and "train.py:33" in "\n".join(lines)
    assert lines[-1].startswith("q quit")


@pytest.mark.parametrize(
    ("raw", "row"),
    [
        ("\x1b[1;31mbad\x1b[0m news", "bad news"),
        ("\x1b]0;a title\x07after \x1b]8;;http://x\x1b\\link", "after link"),
        (
            "W1129 19:28:55.681000 1914 torch/_dynamo/x.py:12] [0/8] hit the limit",
            "W torch/_dynamo/x.py:12] [0/8] hit the limit",
        ),
        ("W1129 is no such prefix", "W1129 is no such prefix"),
    ],
)
def test_rows_of_the_log_are_readable(raw: str, row: str) -> None:
    assert log.row_text(LogLine(0, "job", raw)) == row


def test_the_page_of_a_log_line_has_all_of_it() -> None:
    script = Script()
    script.attach()
    script.add(ev.Line(script.t, "W1129 19:28:55.681000 1914 x.py:1] hit", "job"))
    what = scene(script.events)
    page = open_page("log", what, "1")
    assert page is not None and "W1129 19:28:55.681000 1914 x.py:1] hit" in text(page[1](what, 80).lines)
