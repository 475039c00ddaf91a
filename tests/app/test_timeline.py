"""The timeline of steps, the way to slow ones, the page of a step, and its sentence on the clipboard."""

from __future__ import annotations

import base64
import random

import pytest

from tests.app.steps_scene import SlowJob, slow_job
from tests.app.test_panels import draw, scene, sound, text
from tests.support.fake_feed import LONG, WIDE, FakeFeed, FakeFleet, Job, S, busy
from tests.support.monitor import Driven, drive, settings
from tuimon import events as ev
from tuimon.app.details import step as page
from tuimon.app.panels.all import BY_ID
from tuimon.app.panels.now import step_chart
from tuimon.app.panels.timeline import (
    CAUSES,
    beside,
    known_step,
    move,
    none_beside,
    select,
    selected,
    steps_of_a_cell,
    timeline,
)
from tuimon.app.scene import PanelView, Scene
from tuimon.app.tty import terminal
from tuimon.draw.glyphs import ASCII, BRAILLE, GLYPH_SETS
from tuimon.model import Model
from tuimon.model.parts import Steps
from tuimon.model.slow.naming import sentence
from tuimon.model.steps.parts import CATEGORIES

NOW = BY_ID["now"]
WIDE_SCREEN, NARROW = (120, 40), (80, 24)


def line_of(what: Scene, wide: int = 60, view: PanelView | None = None) -> str:
    made = timeline(what, view or PanelView(), wide)
    return "".join(char or what.glyphs.grid_horizontal for char, _ in made.cells)


# ------------------------------------------------------------------------------------------------- the line


def test_one_cell_a_step_newest_at_the_right_and_a_letter_for_each_cause() -> None:
    what = scene(slow_job())
    assert {one.account.index: one.causes[0].cause for one in what.model.steps.slow} == {
        9: "data wait", 29: "data wait", 30: "gc", 49: "data wait", 69: "data wait", 77: "unexplained", 89: "data wait",
        90: "gc", 109: "data wait",
    }  # fmt: skip
    line = line_of(what, 160)
    assert line == " " * 41 + "".join(
        {9: "D", 29: "D", 30: "G", 49: "D", 69: "D", 77: "?", 89: "D", 90: "G", 109: "D"}.get(at, "·") for at in range(1, 120)
    )


def test_every_cause_has_a_letter_of_its_own() -> None:
    assert set(CATEGORIES) <= set(CAUSES)
    letters = [letter for letter, _ in CAUSES.values()]
    assert len(set(letters)) == len(letters) and all(letter.isascii() and len(letter) == 1 for letter in letters)


@pytest.mark.parametrize("glyphs", sorted(GLYPH_SETS))
@pytest.mark.parametrize("count", [0, 1, 2, 3, 7, 8, 16, 17, 61])
def test_any_number_of_steps_at_any_size(count: int, glyphs: str) -> None:
    job = SlowJob()
    job.steps(count)
    job.rest()
    what = scene(job.script.events, glyphs)
    sizes = random.Random(count)
    for width, height in [(1, 1), (9, 2), (80, 3), (80, 4), *((sizes.randint(1, 200), sizes.randint(1, 9)) for _ in range(20))]:
        view = PanelView()
        sound(draw(NOW, what, width, height, True, view), width, height, glyphs)
        for account in list(what.model.steps.accounts)[:: max(1, count // 3)]:
            select(view, account)
            sound(draw(NOW, what, width, height, True, view), width, height, glyphs)


def test_the_meaning_of_the_letters_in_view_alone() -> None:
    what = scene(slow_job())
    title = text(draw(NOW, what, 120, 4)).split("\n")[0]
    assert "D data wait" in title and "G gc" in title and "? unexplained" in title and "compile" not in title
    view = PanelView()
    select(view, known_step(what.model, 60))
    assert text(draw(NOW, what, 40, 4, view=view)).split("\n")[-1].startswith("    at 60")


def test_where_the_line_is_alone_it_has_the_bars_in_it() -> None:
    what = scene(slow_job(), "ascii")
    rows, _ = step_chart(what, PanelView(), 80, 1)
    line = "".join(part for part, _ in rows[0])
    assert "D" in line and "G" in line and "." not in line.split("steps")[1].strip()
    assert set(line.split("steps")[1]) <= set(ASCII.spark + " DG?")


def test_lines_stay_where_they_are_when_the_first_slow_step_comes() -> None:
    job = SlowJob()
    job.steps(60)
    job.rest()
    before = draw(NOW, scene(list(job.script.events)), 80, 4)
    assert "none of 60 steps was slow" in text(before)
    job.steps(1, gc=300.0)
    job.steps(4)
    job.rest()
    after = draw(NOW, scene(job.script.events), 80, 4)
    assert [line[0][0][:10] for line in before[2:]] == [line[0][0][:10] for line in after[2:]]
    assert "? step 60: " in text(after)


def test_a_cell_stands_for_several_short_steps_and_shows_the_worst() -> None:
    job = SlowJob()
    job.fast(10_000)
    job.steps(1, gc=150.0)
    job.steps(1, data=90.0)
    job.fast(10_000)
    job.rest()
    what, view = scene(job.script.events), PanelView()
    made = timeline(what, view, 60)
    assert made.per == 200
    assert "/cell" in text(draw(NOW, what, 71, 7, view=view))
    assert [char for char, _ in made.cells if char.strip()] == ["G"]
    select(view, beside(what.model, None, 0).account)  # type: ignore[union-attr]
    assert timeline(what, view, 60).per == 1


def test_a_cell_keeps_its_bar_when_its_steps_have_fallen_out_of_the_ring() -> None:
    job, model, view = SlowJob(), Model(), PanelView()
    for _ in range(16):
        job.fast(1000)
        model.apply(job.script.events)
        job.script.events.clear()
        made = timeline(Scene(model, BRAILLE, model.now_ns), view, 60)
    assert made.per == 200 and len(model.steps.accounts) == 2048
    assert [took for took in made.took_s if took is None] == []


def test_the_scale_of_the_line_does_not_go_to_and_fro() -> None:
    def steps(took_ms: float) -> Steps:
        made = Steps(n=1000)
        made.recent.extend((at, int(took_ms * 1e6), False) for at in range(512))
        return made

    assert steps_of_a_cell(steps(50.0), 60, 1) == 1
    assert steps_of_a_cell(steps(10.0), 60, 1) == 2
    assert steps_of_a_cell(steps(20.0), 60, 2) == 2
    assert steps_of_a_cell(steps(20.0), 60, 5) == 1
    assert steps_of_a_cell(steps(0.1), 60, 1) == 200
    assert steps_of_a_cell(steps(0.0), 60, 1) > 0
    assert steps_of_a_cell(Steps(n=3), 60, 50) == 1


def test_nothing_is_drawn_anew_when_no_step_ended() -> None:
    async def body(on: Driven) -> None:
        drawn = []
        widget = on.app.main.panels["now"]
        panel = widget.panel
        object.__setattr__(widget, "panel", _Counting(panel, drawn))
        await on.tick(0.25)
        await on.tick(0.25)
        assert drawn == []
        job.script.events.clear()
        job.steps(2)
        on.feed.give(*job.script.events)
        await on.tick(0.25)
        assert len(drawn) == 1

    job = SlowJob()
    job.steps(40)
    drive(list(job.script.events), WIDE_SCREEN, body)


class _Counting:
    """A panel that notes each time it is drawn."""

    def __init__(self, panel: object, drawn: list[int]) -> None:
        self._panel, self._drawn = panel, drawn

    def __getattr__(self, name: str) -> object:
        found = getattr(self._panel, name)
        if name != "draw":
            return found

        def draw(*args: object) -> object:
            self._drawn.append(1)
            return found(*args)

        return draw


# ------------------------------------------------------------------------------------------------- n, N, enter


def test_n_selects_the_latest_and_goes_from_one_to_the_next() -> None:
    async def body(on: Driven) -> None:
        view = on.app.main.panels["now"].view
        await on.press("n")
        assert on.app.main.focus_id == "now" and "at 109" in on.text and "step 109: " in on.text
        await on.press("n")
        assert "no later step was slow so far" in on.text
        for index in (90, 89, 77):
            await on.press("N")
            assert f"at {index} " in on.text
        await on.press("n")
        assert "at 89 " in on.text and "D step 89: 141 ms, 6.9 times the usual: data w" in on.text
        await on.press("j", "j", "k")
        assert "at 90 " in on.text
        await on.press("k", "k", "k")
        assert "step 87 took" in on.text and "not among the slow ones" in on.text
        for _ in range(20):
            await on.press("pageup")
        assert "at 1 " in on.text  # 0 ran at the attach: it has no time
        await on.press("N")
        assert "no earlier step was slow" in on.text
        await on.press("escape")
        assert view.cursor is None and "2 boundaries" in on.text

    drive(slow_job(), WIDE_SCREEN, body)


def test_n_from_another_panel_on_the_full_screen_and_from_a_tiny_one() -> None:
    async def body(on: Driven) -> None:
        await on.press("3", "n")
        assert on.app.main.zoomed == "now" and "at 109" in on.text
        await on.press("escape", "escape")
        assert on.app.main.zoomed is None
        await on.resize(40, 10)
        await on.press("N")
        assert "step 109: data w" in on.text and "step 109 took 140.6 ms, 6.9 times the" in on.text
        await on.press("escape")

    drive(slow_job(), WIDE_SCREEN, body)


def test_the_account_of_a_step_beside_the_usual_one() -> None:
    async def body(on: Driven) -> None:
        await on.press("n", "N", "enter")
        for fact in (
            "step 90: gc",
            "step 90 took 200.0 ms, 9.8 times the usual 20.4 ms: gc, 100% of the excess",
            "still in the ring of the last 119 steps",
            "180.0 ms in 1 collection (gc.callbacks)",
            "/home/user/project/train.py:15",
            "gc.collect()  # now and then",
            "generation 2 (gc.callbacks)",
            "slow before it (N)    step 89, 1 earlier: 141 ms, data wait",
            "slow after it (n)     step 109, 19 later: 141 ms, data wait",
            "of the same cause     2 steps",
            "slow: longer than m + max(8 d, 0.5 m, 10 ms)",
            "here m = 20.4 ms and d = ",
            "more than 30.6 ms was slow, and it took 200 ms",
            "A cause is named where it explains at least 50%",
            "steps: the ends of an optimizer's step()",
        ):
            assert fact in on.text, fact
        row = on.line("  gc  ")
        assert row.split() == ["gc", "180", "ms", "0", "us", "+180", "ms", "100%", "█" * 20]
        assert on.line("  data wait ").split()[-2:] == ["-40.0", "us"]
        assert "n N slow step" in on.text and "y copy" in on.text
        await on.press("N")
        assert "step 89: data wait" in on.text and "enumerate(DataLoader)" in on.text
        await on.press("N", "N")
        assert "step 69: data wait" in on.text
        await on.press("escape")
        assert "at 69 " in on.text  # the line went along

    drive(slow_job(), (110, 64), body)


def test_a_step_that_was_not_slow_has_an_account_too() -> None:
    async def body(on: Driven) -> None:
        await on.press("1", "j", "k", "enter")
        assert "step 118 took 20." in on.text and "not among the slow ones" in on.text and "forward regions" in on.text

    drive(slow_job(), (100, 50), body)


def test_without_a_selected_step_enter_tells_of_all_and_of_the_rule() -> None:
    async def body(on: Driven) -> None:
        await on.press("1", "enter")
        assert "slow steps (9; n and N select them" in on.text
        assert "G step 90 took" in on.text.replace("  ", " ") and "slow: longer than m" in on.text

    drive(slow_job(), (100, 60), body)


def test_inferred_steps_are_called_so() -> None:
    job = SlowJob(optimizer=False)
    job.steps(60)
    job.steps(1, gc=400.0)
    job.steps(20)
    job.script.add(ev.TargetEnded(job.script.t + S, "exited", "exit status 0", 0))

    async def body(on: Driven) -> None:
        assert "inferred steps" in on.text
        await on.press("n", "enter")
        await on.press("G")
        assert "steps: inferred" in on.text and "--step MODULE:FUNCTION" in on.text

    drive(job.script.events, NARROW, body)


def test_where_no_steps_are_told_it_says_why_and_what_to_do() -> None:
    job = Job()
    what = scene(job.script.events)
    assert what.model.steps.source is None and "--step" not in text(draw(NOW, what, 120, 7))
    script = job.script
    script.add(ev.Samples(script.t, tuple((job.forward, 7 + at, 0, script.t, script.t + 1) for at in range(9))))
    what = scene(job.script.events)
    assert what.model.steps.source is None
    assert "--step MODULE:FUNCTION" in text(draw(NOW, what, 120, 7))

    async def body(on: Driven) -> None:
        await on.press("n")
        assert "no step has been told so far" in on.text
        await on.press("1", "y")
        assert "no step has been told so far" in on.text

    drive(job.script.events, NARROW, body)


# ------------------------------------------------------------------------------------------------- what falls out, and changes


def test_a_page_outlives_its_step_and_says_that_it_fell_out() -> None:
    job = SlowJob()
    job.steps(60)
    job.steps(1, gc=300.0)
    job.steps(3)
    job.rest()

    async def body(on: Driven) -> None:
        await on.press("n", "enter")
        assert "step 60: gc" in on.text
        job.script.events.clear()
        job.fast(2500, 20_000.0)
        on.feed.give(*job.script.events)
        await on.tick()
        assert "it has fallen out of the ring of the last 2048 steps" in on.text and "kept with the slow ones" in on.text
        assert "+300 ms" in on.text
        await on.press("escape")
        assert "at 60" in on.text

    drive(list(job.script.events), (110, 60), body)


def test_a_selection_does_not_move_to_another_step_when_steps_are_counted_anew() -> None:
    job = SlowJob(optimizer=False)
    for at in range(120):
        job.steps(1, gc=300.0 if at in (40, 80) else 0.0)
    job.rest()

    async def body(on: Driven) -> None:
        await on.press("n")
        view = on.app.main.panels["now"].view
        assert selected(on.feed.model, view) is not None
        await on.press("enter")
        assert "+300 ms" in on.text
        script = job.script
        script.events.clear()
        job.optimizer = script.instrument("optimizer", None, "SGD.step")
        job.steps(90)
        on.feed.give(*script.events)
        await on.tick()
        assert on.feed.model.steps.source == "optimizer"
        assert "counted anew since" in on.text and "+300 ms" in on.text
        await on.press("escape")
        assert selected(on.feed.model, view) is None and "esc follows" not in on.text

    drive(list(job.script.events), (110, 60), body)


def test_another_rank_shows_its_own_step_of_that_number() -> None:
    other = SlowJob()
    other.steps(200, 30.0)
    few = SlowJob()
    few.steps(20)
    fleet = FakeFleet(
        [FakeFeed(slow_job(), rank=0), FakeFeed(other.script.events, rank=1), FakeFeed(few.script.events, rank=2)]
    )

    async def body(on: Driven) -> None:
        await on.press("n", "N")
        assert "step 90: 200 ms" in on.text
        await on.press("right_square_bracket")
        assert "step 90 took 30.3 ms: not among the slow ones" in on.text or "step 90 took" in on.text
        await on.press("right_square_bracket")
        assert "step 90" not in on.text and "esc follows" not in on.text

    drive(fleet, WIDE_SCREEN, body)


def test_more_slow_steps_than_are_kept() -> None:
    job = SlowJob()
    job.steps(30)
    for _ in range(560):
        job.steps(1, gc=100.0)
        job.steps(9)
    job.rest()
    what = scene(job.script.events)
    steps = what.model.steps
    assert steps.slow_n == 560 and len(steps.slow) == 512
    view = PanelView()
    first = min(steps.slow, key=lambda one: one.account.index)
    assert "48 earlier slow steps are no longer kept" in none_beside(what.model, -1)
    select(view, first.account)  # long out of the ring of accounts
    assert line_of(what, 60, view).strip() == "G·········G·····"
    opened = page.opened(what, first.account.index)
    assert opened is not None and "fallen out of the ring of the last 2048" in text(page.lines(what, opened, 100))
    assert page.opened(what, 30) is None
    assert "slow steps (560, the last 512 kept" in text(_overview(what))


def _overview(what: Scene) -> list[list[tuple[str, str]]]:
    from tuimon.app.details import overview

    return overview.now(what, 120)


def test_steps_that_a_line_did_not_carry_leave_gaps() -> None:
    what = scene(slow_job())
    steps = what.model.steps
    kept = [one for one in steps.accounts if one.index % 3]
    steps.accounts.clear()
    steps.accounts.extend(kept)
    for one in kept:
        assert known_step(what.model, one.index) is one
    assert known_step(what.model, 60) is None and known_step(what.model, 9) is not None  # a slow one
    assert line_of(what, 119)[8] == "D" and len(line_of(what, 119)) == 119
    view = PanelView()
    select(view, known_step(what.model, 59))
    move(what.model, view, 1)
    assert selected(what.model, view) is known_step(what.model, 61)
    move(what.model, view, -1)
    assert selected(what.model, view) is known_step(what.model, 59)


@pytest.mark.parametrize("names", [LONG, WIDE, "\x1b]0;evil\x07\u202e", "[bold]x[/]", "e\u0301\u200d\U0001f468"])
@pytest.mark.parametrize("glyphs", ["braille", "ascii"])
def test_names_that_are_not_meant_for_a_terminal(names: str, glyphs: str) -> None:
    job = SlowJob(names=names)
    job.steps(40)
    job.steps(1, gc=200.0)
    job.steps(1, data=200.0)
    job.steps(1, other=200.0)
    job.steps(10)
    job.rest()
    what = scene(job.script.events, glyphs)
    assert len(what.model.steps.slow) == 3
    for one in what.model.steps.slow:
        opened = page.opened(what, one.account.index)
        assert opened is not None and opened.sentence.isprintable()
        for width in (10, 40, 80, 200):
            lines = page.lines(what, opened, width)
            from tuimon.app.panels.frame import fitted

            sound(fitted(lines, width, len(lines), what.glyphs), width, len(lines), glyphs)
        view = PanelView()
        select(view, one.account)
        sound(draw(NOW, what, 80, 4, True, view), 80, 4, glyphs)


def test_a_frozen_screen_keeps_its_steps() -> None:
    job = SlowJob()
    job.steps(40)
    job.steps(1, gc=200.0)
    job.steps(5)
    job.rest()

    async def body(on: Driven) -> None:
        await on.press("space", "n", "enter")
        job.script.events.clear()
        job.fast(3000, 20_000.0)
        on.feed.give(*job.script.events)
        await on.tick()
        assert "still in the ring of the last 45 steps" in on.text and "FROZEN" in on.text

    drive(list(job.script.events), (100, 50), body)


@pytest.mark.parametrize("theme", ["dark", "light", "high-contrast", "ansi16", "mono"])
def test_the_marks_stand_out_in_every_theme(theme: str) -> None:
    async def body(on: Driven) -> None:
        await on.press("n")
        widget = on.app.main.panels["now"]
        row = next(y for y, line in enumerate(widget.lines) if any("at 109" in part for part, _ in line))
        styles = {segment.text: segment.style for segment in widget.render_line(row)}
        assert styles["D"] != next(style for part, style in styles.items() if "····" in part)
        assert "at 109" in "".join(styles)

    drive(slow_job(), WIDE_SCREEN, body, settings(theme=theme, colour_off=theme == "mono"))


# ------------------------------------------------------------------------------------------------- the clipboard


def osc52(written: str) -> str:
    begin = written.index("\x1b]52;c;") + len("\x1b]52;c;")
    return base64.b64decode(written[begin : written.index("\x07", begin)]).decode()


def test_y_copies_the_sentence_and_logs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("TMUX", "STY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")

    async def body(on: Driven) -> None:
        written: list[str] = []
        on.app._driver.write = written.append  # type: ignore[union-attr, method-assign]
        await on.press("1", "y")
        latest = on.feed.model.steps.slow[-1]
        copied = [osc52(one) for one in written if "]52;" in one]
        assert copied == [sentence(latest)]
        assert "copied, if the terminal takes it (OSC 52)" in on.text and "it is in the log (7)" in on.text
        assert on.feed.model.log[-1].text == f"copied: {sentence(latest)}"
        await on.press("N", "N", "enter", "y")
        assert osc52([one for one in written if "]52;" in one][-1]).startswith("step 90 took 200.0 ms")

    drive(slow_job(), WIDE_SCREEN, body)


def test_the_clipboard_through_what_runs_in_between() -> None:
    plain = terminal.clipboard_sequence("step 14", {"TERM": "xterm-256color", "SSH_CONNECTION": "x"})
    assert plain == "\x1b]52;c;" + base64.b64encode(b"step 14").decode() + "\x07"
    in_tmux = terminal.clipboard_sequence("step 14", {"TMUX": "/tmp/x", "TERM": "screen-256color"})
    assert in_tmux == plain + "\x1bPtmux;" + plain.replace("\x1b", "\x1b\x1b") + "\x1b\\"
    assert terminal.clipboard_sequence("step 14", {"TERM": "tmux-256color"}) == in_tmux
    in_screen = terminal.clipboard_sequence("x" * 3000, {"STY": "1.x", "TERM": "screen"})
    parts = in_screen.split("\x1b\\")[:-1]
    assert all(part.startswith("\x1bP") and len(part) < 768 for part in parts)
    assert osc52("".join(part[2:] for part in parts)) == "x" * 3000


def test_a_terminal_without_a_clipboard_is_told_where_the_sentence_stands(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "linux")

    async def body(on: Driven) -> None:
        await on.press("n", "enter", "y")
        assert "this terminal has no clipboard" in on.text and "it is in the log" in on.text
        assert "step 109 took 140.6 ms" in on.text

    drive(slow_job(), WIDE_SCREEN, body)


def test_a_busy_job_draws_in_little_time() -> None:
    model = Model()
    model.apply(busy())
    made = timeline(Scene(model, BRAILLE, model.now_ns), PanelView(), 100)
    assert len(made.cells) == len(made.took_s) == 100
