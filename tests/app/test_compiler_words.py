"""What the screen says of boundaries, recompiles and compilations, and the key that accepts a boundary."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.app.test_panels import draw, scene, text
from tests.support.fake_feed import MS, Job, S, Script, busy, compiling, ended
from tests.support.monitor import Driven, drive
from tuimon import events as ev
from tuimon.accepted import NAME, load
from tuimon.app.details import frames
from tuimon.app.details.boundary import lines as boundary_lines
from tuimon.app.details.opening import open_page
from tuimon.app.details.source import Excerpt
from tuimon.app.panels.all import BY_ID
from tuimon.app.panels.boundaries import reason_words
from tuimon.app.panels.frames import state_words
from tuimon.app.scene import Scene
from tuimon.model.parts import Frame

WIDE, NARROW = (120, 40), (80, 24)


def panel(name: str, what: Scene, width: int = 120, height: int = 12) -> str:
    return text(draw(BY_ID[name], what, width, height))


# ------------------------------------------------------------------------------------------------- boundaries


def test_what_a_boundary_is_marked_with() -> None:
    what = scene(busy())
    asked, logger, item = (next(b for b in what.model.boundaries.values() if b.user_line == line) for line in (33, 41, 57))
    assert "asked for: Call to" in panel("boundaries", what, 160)
    item.skipped_frame, item.crossings, item.share.count = True, 180, 0
    logger.asked_by = "library"
    shown = panel("boundaries", what, 160)
    first = shown.split("\n")[2]
    assert "eager whole: Unsupported Tensor.item()" in first and "180" in first  # what cannot be timed may cost all of it
    assert "a library asks: Attempted" in shown
    item.accepted = "known"
    shown = panel("boundaries", what, 160)
    assert "eager whole" not in shown and "accepted: Unsupported" in shown
    assert asked.requested


def test_evidence_of_a_sync_and_the_nature_of_the_operation_are_two_things() -> None:
    what = scene(busy())
    item = next(b for b in what.model.boundaries.values() if b.user_line == 57)
    # what kind of operation it is, and what was seen of it, are two columns
    row = panel("boundaries", what, 140).split("\n")[2]
    assert "yes" in row.split() and "sync not looked at" in panel("boundaries", what, 140).split("\n")[0]
    item.sync_looked = 40
    assert "none in 40" in panel("boundaries", what) and "none in 40" in panel("boundaries", what, 80)
    page = text(boundary_lines(what, item, Excerpt(), 100))
    assert "none seen in 40 crossings" in page and "yes, by the nature of the operation" in page
    item.sync_waited = 39
    assert "seen in 39 of 40" in text(boundary_lines(what, item, Excerpt(), 100)) and "39 of 40" in panel("boundaries", what)


def test_without_steps_the_crossings_stand_where_the_share_would() -> None:
    job = Script()
    job.attach()
    job.breaks("0/0", 41, "a reason", "a kind")
    what = scene(job.events)
    for one in what.model.boundaries.values():
        one.crossings = 180
    head, row = panel("boundaries", what, 80).split("\n")[1:3]
    assert "crossed" in head and "/step" not in head and "share" not in head and "180" in row


def test_two_boundaries_of_one_line_are_told_apart() -> None:
    what = scene(busy())
    one, two = list(what.model.boundaries.values())[:2]
    two.user_file, two.user_line, two.kind = one.user_file, one.user_line, one.kind
    shown = panel("boundaries", what, 80)
    assert "1st" in shown and "2nd" in shown and "3rd" not in shown


def test_a_long_reason_keeps_what_tells_it_from_others() -> None:
    what = scene(busy())
    item = next(b for b in what.model.boundaries.values() if b.user_line == 57)
    assert reason_words(item, "", 22, "~") == "Tensor.item()"
    assert reason_words(item, "", 90, "~") == "Unsupported Tensor.item() call with capture_scalar_outputs=False"
    assert reason_words(item, "", 8, "~") == "Tensor.~"
    before = replace(item, before_attach=True)  # does not take the room of the reason
    assert reason_words(before, "2nd", 22, "~") == "2nd: Tensor.item()"
    assert reason_words(before, "", 30, "~") == "Tensor.item() (before attach)"
    assert reason_words(replace(before, accepted="known"), "", 30, "~") == "accepted: Tensor.item()"


def test_a_full_frame_is_not_near_its_limit() -> None:
    frame = Frame("0:0", 0, 0)
    frame.limit = 8
    frame.entries = [f"0/{at}" for at in range(6)]
    assert state_words(frame)[0] == "near its limit"
    frame.entries = [f"0/{at}" for at in range(8)]
    assert state_words(frame)[0] == "full"


def test_a_skipped_frames_page_counts_calls_and_crossings() -> None:
    what = scene(busy())
    item = next(b for b in what.model.boundaries.values() if b.user_line == 57)
    frame = what.model.frames["0:1"]
    item.skipped_frame, item.crossings, item.frames, item.also = True, 180, [frame.key], "graph break in loop"
    item.headline, item.counted = "Failed to handle graph break gracefully.", "by line"
    frame.skipped, frame.eager_calls, frame.compiled_calls = True, 30, 0
    page = text(boundary_lines(what, item, Excerpt(), 100))
    for fact in ("30 of 30 in eager", "180 (by line)", "graph break in loop", "Failed to handle graph break"):
        assert fact in page


# ------------------------------------------------------------------------------------------------- accepting


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "pyproject.toml").write_text("")
    (folder / "model.py").write_text("\n" * 100)
    return folder


def job_in(folder: Path) -> list[ev.Event]:
    from dataclasses import replace

    job = Job()
    job.steps(12)
    file = str(folder / "model.py")
    return [
        replace(event, file=file, stack=()) if isinstance(event, ev.GraphBroke) and event.file.endswith("model.py") else event
        for event in job.script.events
    ]


def test_m_accepts_a_boundary_with_a_note_and_takes_it_back(project: Path) -> None:
    async def body(on: Driven) -> None:
        await on.press("m")
        assert " note:" in on.text
        await on.press(*"fine", "enter")
        await on.tick(0.3)  # the line of the keys is back with the next picture
        assert f"accepted; written to {project / NAME}"[:60] in on.text
        assert on.line("accepted: ")
        assert [entry.note for entry in load(project / NAME)[0]] == ["fine"]
        await on.press("enter")
        assert "fine (m in the table: no longer)" in on.text
        await on.press("escape", "m")
        assert "no longer accepted" in on.text and load(project / NAME)[0] == []

    drive(job_in(project), WIDE, body)


def test_a_note_can_be_left_empty_or_given_up(project: Path) -> None:
    async def body(on: Driven) -> None:
        await on.press("m", *"ab", "escape")
        assert not (project / NAME).exists() and " note:" not in on.text and "filter" not in on.line("2 boundaries")
        await on.press("m", "enter")
        assert load(project / NAME)[0][0].note == ""
        await on.press("slash", *"item", "enter")
        assert "filter 'item'" in on.text  # the line is for filters as before
        await on.press("escape", "3", "m")
        assert "there is no row here yet" in on.text  # elsewhere m marks a row, with no note

    drive(job_in(project), WIDE, body)


def test_what_was_accepted_is_known_at_the_next_start(project: Path) -> None:
    (project / NAME).write_text(
        '[[boundary]]\nfile = "model.py"\nfunction = "forward"\nnote = "seen to"\n'
        'kind = "Unsupported Tensor.item() call with capture_scalar_outputs=False"\n'
    )

    async def body(on: Driven) -> None:
        await on.tick()
        assert "accepted: " in on.text and "Tensor.item()" in on.line("accepted: ")

    drive(job_in(project), WIDE, body)


def test_a_file_that_cannot_be_changed_is_said(project: Path) -> None:
    (project / NAME).write_text("x =")

    async def body(on: Driven) -> None:
        await on.press("m", "enter")
        await on.tick(0.3)
        assert "is not TOML" in on.text
        await on.press("7")
        assert "not TOML" in on.text

    drive(job_in(project), WIDE, body)


def test_a_file_that_broke_while_tuimon_ran_is_said_when_a_mark_is_taken_back(project: Path) -> None:
    async def body(on: Driven) -> None:
        await on.press("m", "enter")
        (project / NAME).write_text("x = [")
        await on.press("m")
        await on.tick(0.3)
        assert "is not TOML" in on.text and "in no file" not in on.text

    drive(job_in(project), WIDE, body)


# ------------------------------------------------------------------------------------------------- recompiles


def test_a_recompile_is_told_in_plain_words_and_dynamos_are_a_key_away() -> None:
    what = scene(busy())
    shown = panel("recompiles", what)
    assert "x.size(0) is 17, was 32" in shown and "mismatch" not in shown
    page = open_page("recompiles", what, "0:0/1")
    assert page is not None
    whole = text(page[1](what, 100).lines)
    for fact in (
        "x.size(0) is 17, was 32",
        "mark_dynamic(x, 0)",
        "tensor 'x' size mismatch at index 0. expected 32, actual 17",
    ):
        assert fact in whole


def test_a_late_compile_is_flagged_with_its_step_and_cost() -> None:
    what = scene(busy())
    assert what.model.recompiles[0].compilation.late
    assert "120 late" in panel("recompiles", what) and "1.90 s" in panel("recompiles", what)
    page = open_page("recompiles", what, "0:0/1")
    assert page is not None and "in step 120, late: 119 steps in a row had none before it" in text(page[1](what, 100).lines)


# ------------------------------------------------------------------------------------------------- compiling now


def test_is_it_compiling_or_hung() -> None:
    async def body(on: Driven) -> None:
        assert "compiling forward [0/1] model.py:12" in on.text and "optimising the graph" in on.text
        assert "3 earlier forward ones took 600 ms to 3.20 s" in on.text and "times the longest" not in on.text
        await on.tick(30)
        assert "over 3 times the longest of 3 earlier forward ones (3.20 s)" in on.text

    drive(compiling(), WIDE, body)
    drive(compiling(), (100, 24), body)


def test_attached_in_the_middle_of_a_compilation() -> None:
    script = Job().script
    del script.events[2:]
    script.add(
        ev.CompileStarted(script.t, "0/0", 0, "forward", "/w/model.py", 12, "main", before_attach=True, since_known=False)
    )
    script.add(ev.PhaseBegan(script.t, "0/0", "building kernels", "main"))
    what = scene(script.events, later_s=4.2)
    what.model.running["main"].since_known = False
    shown = panel("now", what, 80, 4)
    assert "compiling forward [0/0] model.py:12  building kernels  over 4.2 s" in shown
    assert "since before the attach; none earlier to compare with; 4.2 s in this phase" in shown


def test_the_backward_is_compared_with_backwards() -> None:
    script = Job().script
    for took in (3.1, 5.0):
        script.t += int(took * S)
        script.add(ev.CompileFinished(script.t, "0/0", "backward", None, None, None, "main", script.t - int(took * S), took))
    script.add(ev.CompileStarted(script.t, "1/0", 0, "", "", 0, "main", "backward"))
    assert "2 earlier backward ones took 3.10 s to 5.00 s" in panel("now", scene(script.events, later_s=1), 100, 4)


# ------------------------------------------------------------------------------------------------- what to look at


def test_what_to_look_at_is_on_the_first_screen_and_w_says_more() -> None:
    async def body(on: Driven) -> None:
        assert "forward is at its limit of 3 entries" in on.text.split("\n")[0]
        await on.press("w")
        assert "w what to look at" in on.text
        for fact in ("forward is at its limit", "next step", "the boundary in forward at model.py:57 takes 17%"):
            assert fact in on.text
        await on.press("G", "enter")
        assert "3/3" in on.text and "at its limit" in on.text
        await on.press("escape", "escape")
        assert "2 boundaries" in on.text

    drive(busy(), WIDE, body)
    drive(busy(), NARROW, lambda on: _first(on))


async def _first(on: Driven) -> None:
    assert "forward is at its limit" in on.text.split("\n")[0]


def test_a_clean_job_says_nothing_of_it() -> None:
    job = Job()
    job.script.events[:] = [event for event in job.script.events if not isinstance(event, ev.GraphBroke)]
    what = scene(job.script.events)
    assert "look at" not in panel("now", what)
    assert "nothing stands out" in panel("findings", what)


def test_the_page_is_sound_on_anything() -> None:
    for events in (busy(), ended(), []):
        what = scene(events)
        for width in (10, 40, 120):
            draw(BY_ID["findings"], what, width, 20)
            frames.all_lines(what, width)


def test_nothing_compiled_is_said_where_the_regions_would_be() -> None:
    script = Job().script
    del script.events[2:]
    script.compile("0/0", "norm", took_s=0.1)
    script.breaks("0/0", 7, "Observed exception", "Observed exception")
    optimizer = script.instrument("optimizer", None, "SGD.step")
    for _ in range(3):
        script.t += 10 * MS
        script.add(ev.Samples(script.t, ((optimizer, 1, 0, script.t - MS, script.t),)))
    what = scene(script.events)
    frame = what.model.frames["0:0"]
    frame.skipped, frame.eager_calls = True, 3
    frame.entries.clear()
    assert "nothing is compiled, the whole job runs in eager" in panel("regions", what)
