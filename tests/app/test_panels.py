"""Every panel on every kind of data, at every size: the right size, harmless characters, known roles, honest words."""

from __future__ import annotations

import functools
import random

import pytest

from tests.model.dump import dump
from tests.support.fake_feed import ATTACHED, MS, SCENES, Job, S, Script, busy, gpus, many
from tuimon import events as ev
from tuimon.app.details.opening import open_page
from tuimon.app.keymap.foot import foot
from tuimon.app.look.roles import ROLES
from tuimon.app.panels import overview, target, tiny
from tuimon.app.panels.all import BY_ID, PANELS
from tuimon.app.panels.frame import fitted, sentence
from tuimon.app.panels.log import row_text
from tuimon.app.scene import Panel, PanelView, Scene
from tuimon.draw.glyphs import GLYPH_SETS
from tuimon.draw.text import Line, line_cells
from tuimon.model import Model
from tuimon.model.parts import LogLine
from tuimon.roofline.ceilings import load_ceilings

CEILINGS = load_ceilings()


def scene(events: list[ev.Event], glyphs: str = "braille", later_s: float = 0.0, **more: object) -> Scene:
    model = Model()
    model.apply(events)
    return Scene(model, GLYPH_SETS[glyphs], model.now_ns + int(later_s * S), CEILINGS, **more)  # type: ignore[arg-type]


@functools.cache
def folded(name: str) -> Model:
    """The model of a scene, folded once for all that only look at it."""
    model = Model()
    model.apply(SCENES[name]())
    return model


def known(name: str, glyphs: str = "braille") -> Scene:
    """A scene by its name."""
    model = folded(name)
    return Scene(model, GLYPH_SETS[glyphs], model.now_ns, CEILINGS)


def text(lines: list[Line]) -> str:
    return "\n".join("".join(part for part, _ in line).rstrip() for line in lines)


def draw(
    panel: Panel, what: Scene, width: int, height: int, focused: bool = False, view: PanelView | None = None
) -> list[Line]:
    lines = panel.draw(what, view or PanelView(), width, height, focused)
    return fitted(lines, width, height, what.glyphs)


def top(what: Scene, width: int = 120) -> str:
    """The lines at the top of the overview."""
    return text(target.draw(what, target.Status(), overview.answer(what), width, 2))


def sound(lines: list[Line], width: int, height: int, glyphs: str) -> None:
    assert len(lines) == height
    for line in lines:
        assert line_cells(line) == width
        for part, role in line:
            assert role in ROLES, role
            assert part.isprintable()
            if glyphs == "ascii":
                assert part.isascii(), part


@pytest.mark.parametrize("glyphs", sorted(GLYPH_SETS))
@pytest.mark.parametrize("name", sorted(SCENES))
@pytest.mark.parametrize("panel", PANELS, ids=lambda panel: panel.id)
def test_any_data_at_any_size(panel: Panel, name: str, glyphs: str) -> None:
    what = known(name, glyphs)
    sizes = random.Random(f"{panel.id} {name}")
    for width, height in [
        (1, 1),
        (2, 2),
        (80, 21),
        (120, 37),
        *((sizes.randint(1, 200), sizes.randint(1, 60)) for _ in range(25)),
    ]:
        for focused in (False, True):
            sound(draw(panel, what, width, height, focused), width, height, glyphs)


@pytest.mark.parametrize("glyphs", sorted(GLYPH_SETS))
@pytest.mark.parametrize("name", sorted(SCENES))
def test_the_lines_around_the_panels(name: str, glyphs: str) -> None:
    what = known(name, glyphs)
    status = target.Status(frozen=37, hertz=1.0, slow_link=True)
    for width in range(1, 201, 7):
        for height in (1, 2, 5):
            lines = target.draw(what, status, overview.answer(what), width, height)
            sound(fitted(lines, width, height, what.glyphs), width, height, glyphs)
            sound(fitted(tiny.draw(what, width, height), width, height, what.glyphs), width, height, glyphs)
        keys = foot("main", width, what.glyphs, hidden=[(6, "roofline")])
        sound(fitted([keys.line], width, 1, what.glyphs), width, 1, glyphs)


@pytest.mark.parametrize("name", sorted(SCENES))
@pytest.mark.parametrize("panel", PANELS, ids=lambda panel: panel.id)
def test_details_of_everything(panel: Panel, name: str) -> None:
    what = known(name)
    keys = panel.keys(what, PanelView()) or [None]  # type: ignore[list-item]
    for key in keys[:20]:
        page = open_page(panel.id, what, key)
        if page is None:
            assert key is None
            continue
        for width in (10, 40, 80, 200):
            lines = page[1](what, width).lines
            sound(fitted(lines, width, len(lines), what.glyphs), width, len(lines), "braille")


@pytest.mark.parametrize("name", sorted(SCENES))
def test_what_draws_changes_nothing(name: str) -> None:
    what = scene(SCENES[name]())
    before = dump(what.model)
    for panel in PANELS:
        draw(panel, what, 120, 37, focused=True)
        for key in panel.keys(what, PanelView())[:3]:
            page = open_page(panel.id, what, key)
            assert page is not None
            page[1](what, 80)
    top(what)
    assert dump(what.model) == before


def test_an_empty_panel_says_what_would_fill_it() -> None:
    job = Script()
    job.attach()
    job.compile("0/0", "forward")
    job.compile("1/0", "loss")
    what = scene(job.events)
    assert "no graph break so far: Dynamo has traced 2 frames whole" in text(draw(BY_ID["boundaries"], what, 100, 5))
    assert "the guards of 2 compiled frames have held" in text(draw(BY_ID["recompiles"], what, 100, 5))
    assert "2 frames known, none timed" in text(draw(BY_ID["regions"], what, 100, 5))
    assert "no operations known yet" in text(draw(BY_ID["roofline"], what, 60, 12))


def test_what_this_torch_cannot_tell_is_said() -> None:
    job = Script()
    job.attach()
    job.add(ev.NotAvailable(job.t, "recompiles", "torch 2.3 has no structured trace"))
    assert "not available: torch 2.3 has no structured trace" in text(draw(BY_ID["recompiles"], scene(job.events), 80, 5))


def test_boundaries_by_what_they_cost() -> None:
    lines = text(draw(BY_ID["boundaries"], scene(busy()), 140, 8)).split("\n")
    assert [line.split()[0] for line in lines[2:5]] == ["17.0%", "9.0%", "0.1%"]
    assert "model.py:57" in lines[2] and "[3.67-4.49 ms]" in lines[2]
    assert "asked for" in lines[4]


def test_nothing_known_is_a_dash_not_a_zero() -> None:
    job = Script()
    job.attach()
    job.breaks("0/0", 41, "a reason", "a kind")
    row = text(draw(BY_ID["boundaries"], scene(job.events), 140, 4)).split("\n")[2]
    assert row.split()[:6] == ["-"] * 5 + ["model.py:41"]


def test_the_rule_stands_beside_the_numbers() -> None:
    from tuimon.model.statistics import RULE

    assert RULE in text(draw(BY_ID["regions"], scene(busy()), 120, 8))
    narrow = text(draw(BY_ID["regions"], scene(busy()), 80, 8))
    assert RULE.split(";")[0].replace(" [p10-p90]", "") in narrow and "p10-p90" not in narrow, "it tells what columns are there"


def test_a_refused_recompile_is_said_in_words() -> None:
    lines = text(draw(BY_ID["recompiles"], scene(busy()), 100, 6))
    assert "refused" in lines and "3 of 3" in lines and "1 refused at the limit" in lines


def test_now_says_what_compiles_where_and_since_when() -> None:
    what = scene(SCENES["compiling"](), later_s=0.5)
    assert "compiling forward [0/1] model.py:12  optimising the graph  3.7 s" in text(draw(BY_ID["now"], what, 100, 7))


def test_a_step_that_does_not_end_is_seen() -> None:
    job = Job()
    job.steps(20)
    what = scene(job.script.events, later_s=12)
    assert "for 12 s" in text(draw(BY_ID["now"], what, 100, 7))
    assert "no step for 12 s" in top(what)


def test_compile_steps_are_marked_below_their_bars() -> None:
    for name, mark in (("braille", "▴"), ("ascii", "^")):
        job = Job()
        job.steps(12)
        job.ragged(1, 7)
        job.steps(4)
        rows = text(draw(BY_ID["now"], scene(job.script.events, name), 40, 7)).split("\n")
        assert rows[-1].count(mark) == 1 and f"{mark} compiled" in rows[0]


@pytest.mark.parametrize(
    ("how", "word"), [("exited", "ENDED exited with status 0"), ("lost", "LOST connection closed"), ("detached", "DETACHED")]
)
def test_how_a_job_ended_is_in_the_first_lines(how: ev.EndKind, word: str) -> None:
    detail = word.partition(" ")[2] or "detached"
    events = [*busy(), ev.TargetEnded(ATTACHED + 99 * S, how, detail, 0)]
    first, second = top(scene(events)).split("\n")
    assert (
        detail in first
        and "in step 260" in first
        and first.startswith((" ended: ", " not heard of since", " no longer attached since"))
    )
    assert word in second


def test_one_honest_line_where_there_is_no_gpu_and_its_room_goes_to_the_host() -> None:
    lines = text(draw(BY_ID["surroundings"], scene(busy()), 80, 7)).split("\n")
    assert sum("GPU:" in line for line in lines) == 1
    assert any("1.08 cores" in line for line in lines)
    assert "core" in lines[-3] or "core" in lines[-2] or "core" in lines[-4]


def test_gpus_are_a_line_each_and_a_hanging_driver_is_said() -> None:
    lines = text(draw(BY_ID["surroundings"], scene(gpus(8)), 100, 5)).split("\n")
    assert lines[1].split() == ["gpu", *map(str, range(8))]
    assert [lines[2].split()[0], len(lines[2].split())] == ["util%", 9] and lines[3].startswith(" mem% ")
    assert lines[4].startswith(" job ")
    lines = text(draw(BY_ID["surroundings"], scene(gpus(2), nvml_waiting_s=12.0), 100, 8)).split("\n")
    assert any(line.startswith(" ! NVML not answering for 12 s") for line in lines)
    assert sum("611/700 W" in line for line in lines) == 2


def test_where_there_is_one_line_the_gpus_share_it() -> None:
    lines = text(draw(BY_ID["surroundings"], scene(gpus(2)), 80, 2)).split("\n")
    assert "job 1.08 cores, rss 1.20 GiB" in lines[0]
    assert lines[1].startswith(" 0   89%") and " 1   19%" in lines[1] and lines[1].count("/80.0 GiB") == 2
    lines = text(draw(BY_ID["surroundings"], scene(gpus(40)), 80, 2)).split("\n")
    assert lines[1].startswith(" 40 GPUs  util ")
    lines = text(draw(BY_ID["surroundings"], scene(gpus(1)), 80, 2)).split("\n")
    assert lines[1].startswith(" 0 ") and "60.0/80.0 GiB  611/700 W" in lines[1]


def test_the_hooks_cost_and_what_was_dropped_are_on_top() -> None:
    job = Job()
    job.steps(50)
    job.script.status(1000, dropped=12, hook_s=0.01)
    lines = top(scene(job.script.events))
    assert "dropped 12" in lines and "% of the job" in lines


def test_thousands_of_rows_cost_only_what_is_seen() -> None:
    what = scene(many(3000))
    for name in ("boundaries", "recompiles", "regions"):
        lines = draw(BY_ID[name], what, 120, 12, focused=True)
        assert "1-10 of 3000" in text(lines)


def test_a_tiny_terminal_says_the_most_important_things() -> None:
    assert text(tiny.draw(scene(busy()), 20, 5)).split("\n") == [
        "25.8/s  24.0 ms",
        "step 260",
        "17.0% model.py:57 U…",
        "3 recompiles",
        "7.20 ms bwd forward",
    ]
    what = scene(SCENES["compiling"]())
    assert text(tiny.draw(what, 30, 5)).split("\n")[0] == "compile forward:12 3.2 s"
    ended = scene(SCENES["ended"]())
    assert text(tiny.draw(ended, 60, 1)) == "ended: killed by signal 9 (out of memory?)"


def test_steps_before_the_attach_are_not_mixed_in() -> None:
    job = Job()
    job.script.add(ev.HistoryCounted(job.script.t, 12, 4, 6, steps=3000))
    job.steps(5)
    assert "running step 5 (+3000 before the attach)" in text(draw(BY_ID["now"], scene(job.script.events), 100, 7))


def test_the_log_names_functions_as_their_author_does() -> None:
    assert row_text(LogLine(0, "compile", "torch_dynamo_resume_in_f_at_8 [1/0] compiled")) == "f resumed [1/0] compiled"
    nested = "torch_dynamo_resume_in_torch_dynamo_resume_in_f_x_at_8_at_10 [1/0] compiled"
    assert row_text(LogLine(0, "compile", nested)) == "f_x resumed [1/0] compiled"
    said_by_the_job = "torch_dynamo_resume_in_f_at_8"
    assert row_text(LogLine(0, "job", said_by_the_job)) == said_by_the_job


def test_a_sentence_without_room_says_that_it_goes_on() -> None:
    words = "one two three four five six"
    assert ["".join(run for run, _ in line).strip() for line in sentence(words, 16, 1)] == ["one two three…"]
    assert len(sentence(words, 16, 5)) == 2 and "…" not in str(sentence(words, 16, 5))


def test_a_cut_is_no_question_in_ascii() -> None:
    line = fitted([[("one two…", "text")]], 10, 1, GLYPH_SETS["ascii"])[0]
    assert "".join(run for run, _ in line).startswith("one two~")


def test_a_log_line_has_its_time_of_day() -> None:
    script = Script()
    script.attach()
    script.t += 3 * S + 250 * MS
    script.add(ev.Line(script.t, "loss 2.3", "job"))
    what = scene(script.events, utc_offset_s=3600)
    assert "14:13:23 job" not in text(draw(BY_ID["log"], what, 80, 4))
    assert "15:13:23 job       loss 2.3" in text(draw(BY_ID["log"], what, 80, 4))
