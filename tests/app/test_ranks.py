"""Several processes on one screen: the line in the header, the table of all, switching between them, attaching and refusals."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from tests.support.fake_feed import ATTACHED, REFUSAL, FakeFeed, FakeFleet, Job, S, attaching, blocked, busy, empty, fleet
from tests.support.monitor import Driven, drive
from tuimon import events as ev
from tuimon.app.panels.ranks import ranks_line
from tuimon.app.ranks import Standings, are_one_job, names
from tuimon.app.scene import Rank, Scene
from tuimon.draw.glyphs import BRAILLE
from tuimon.draw.text import line_cells
from tuimon.model import Model

WIDE, NARROW = (120, 40), (80, 24)


def pair() -> FakeFleet:
    """Two ranks that run alike."""
    return FakeFleet([FakeFeed(busy(), rank=rank) for rank in range(2)])


def test_while_attaching_the_screen_is_there_and_says_what_happens() -> None:
    async def body(on: Driven) -> None:
        assert "○ attaching" in on.text and "attaching to process 4242, Python 3.11" in on.text
        on.feed.give(*blocked())
        await on.tick()
        assert "waiting to attach, 12 s" in on.text.split("\n")[1]
        words = " ".join(on.text.split())
        assert "the main thread of process 4242 runs native code that holds the GIL, for 12 s; waiting, q cancels" in words
        assert "no recompile so far" not in on.text  # nothing is known of that yet
        on.feed.give(*(event for event in empty()))
        await on.tick()
        assert "● attached" in on.text and "waiting to attach" not in on.text

    drive(attaching(), NARROW, body)


def test_leaving_while_attaching_says_that_it_cancels() -> None:
    async def body(on: Driven) -> None:
        await on.pilot.press("q")
        await on.pilot.pause()

    app = drive(attaching(), NARROW, body)
    assert app.feed.detached == 1 and app.return_code == 0  # type: ignore[union-attr]


def test_a_refusal_of_the_only_one_ends_the_monitor_with_its_own_status() -> None:
    async def body(on: Driven) -> None:
        on.feed.give(ev.TargetEnded(ATTACHED + S, "refused", REFUSAL))
        on.clock.on(1)
        on.app.pump.tick()
        for _ in range(200):
            if not on.app.is_running:
                break
            await on.pilot.pause(0.01)

    assert drive(attaching(), NARROW, body).return_code == 3


def test_a_refusal_of_one_among_several_is_a_state_with_its_sentence() -> None:
    async def body(on: Driven) -> None:
        await on.press("right_square_bracket", "right_square_bracket", "right_square_bracket")
        assert on.app.is_running and "REFUSED" in on.text.split("\n")[1] and on.text.startswith(" cannot attach: ")
        assert "not attached: the kernel lets only a parent" in on.text
        await on.press("a")
        assert REFUSAL in " ".join(on.text.split())

    drive(fleet(), NARROW, body)


def test_keys_go_from_rank_to_rank_and_round() -> None:
    async def body(on: Driven) -> None:
        assert "[0]" in on.line("rank ") and "pid 4242" in on.text
        await on.press("left_square_bracket")
        assert "[7x]" in on.text and "ENDED" in on.text.split("\n")[1]
        await on.press("right_square_bracket", "right_square_bracket")
        assert "[1]" in on.text

    drive(fleet(), WIDE, body)


def test_sort_filter_and_selection_stay_when_the_rank_changes() -> None:
    async def body(on: Driven) -> None:
        await on.press("s", "j", "j")
        cursor = on.app.main.focused_panel.view.cursor
        await on.press("slash", *"model", "enter")
        await on.press("right_square_bracket")
        view = on.app.main.focused_panel.view
        assert (view.filter, view.sort, view.cursor) == ("model", 1, cursor)
        assert "filter 'model'" in on.text
        await on.press("escape", "7", "k", "k")
        assert not on.app.main.panels["log"].view.follow
        await on.press("left_square_bracket")
        assert on.app.main.panels["log"].view.follow  # the lines of another log

    drive(pair(), WIDE, body)


def test_the_table_of_all_ranks_selects_and_goes_back() -> None:
    async def body(on: Driven) -> None:
        await on.press("2", "a")
        assert "8 all ranks" in on.text and "show this rank" in on.text.split("\n")[-1]
        for row in ("attaching ~", "refused !", "slow ▾", "compiling *", "stopped ?", "ended x"):
            assert row in on.text
        await on.press("s", "s", "s", "j", "j", "j", "j", "enter")  # by rank
        assert "[4▾]" in on.text and "2 boundaries" in on.text and "3 recompiles" not in on.text  # still zoomed
        await on.press("a", "a")
        assert "2 boundaries" in on.text
        await on.press("a", "slash", *"stopped", "enter")
        assert "filter 'stopped': 1 of 8" in on.text
        await on.press("escape")
        assert "filter" not in on.text.split("\n")[3]
        await on.press("escape")
        assert "2 boundaries" in on.text

    drive(fleet(), NARROW, body)


def test_the_table_sorts() -> None:
    async def body(on: Driven) -> None:
        await on.press("a", "s")
        rows = [line.lstrip(" ▸").split() for line in on.text.split("\n")[5:13]]
        behind = [int(row[6] if row[1] == "running" else row[7]) for row in rows if row[1] in ("running", "slow", "compiling")]
        assert behind == sorted(behind, reverse=True) and behind[0] > 0
        await on.press("S")
        assert "behind▴" in on.text

    drive(fleet(), WIDE, body)


def test_one_process_has_no_ranks() -> None:
    async def body(on: Driven) -> None:
        for key in ("a", "right_square_bracket"):
            await on.press(key)
            assert "one process is watched" in on.text
        await on.tick(5)
        assert on.text.split("\n")[2].startswith("─ 1 now")
        assert "all ranks" not in on.text
        await on.press("question_mark")
        assert "keys: ranks" not in on.text

    drive(busy(), WIDE, body)


def test_help_and_palette_know_the_keys_of_ranks() -> None:
    async def body(on: Driven) -> None:
        can = {command.title for command in on.app.commands() if not command.why_not}
        assert {"all ranks", "next rank", "rank before"} <= can
        await on.press("a", "question_mark")
        assert "help: 8 all ranks" in on.text and "behind" in on.text

    drive(pair(), WIDE, body)


def test_all_are_drained_and_a_frozen_screen_stands_still_for_each_of_them() -> None:
    async def body(on: Driven) -> None:
        job = Job()
        job.steps(3)
        on.feeds[1].give(*job.script.events)
        await on.tick()
        assert on.feeds[1].model.steps.n == 3
        await on.press("space", "right_square_bracket")
        for feed in on.feeds:
            more = [event for event in busy() if isinstance(event, ev.Samples)]
            feed.give(*more)
        await on.tick()
        assert on.feeds[1].model.steps.n > 3 and "FROZEN" in on.text
        assert "running step 3" in on.text
        await on.press("a")
        assert on.line("    1").split()[2] == "3" or "▸    1  running           3" in on.text
        await on.press("space")
        assert "▸    1  running           3" not in on.text

    drive(FakeFleet([FakeFeed(empty(), rank=0), FakeFeed(empty(), rank=1)]), WIDE, body)


def test_all_are_let_go_together() -> None:
    async def body(on: Driven) -> None:
        await on.pilot.press("q")
        for _ in range(200):
            if not on.app.is_running:
                break
            await on.pilot.pause(0.01)

    assert drive(pair(), WIDE, body).feed.detached == 1  # type: ignore[union-attr]


def test_silence_is_said_in_the_header_and_goes_with_the_first_word() -> None:
    async def body(on: Driven) -> None:
        assert "attached" in on.text.split("\n")[1]
        on.feed.silent = (12.0, None)
        await on.tick()
        assert "nothing heard from the job for 12 s" in on.text.split("\n")[0]
        on.feed.silent = (40.0, "stopped")
        await on.tick()
        assert "stopped for 40 s" in on.text.split("\n")[0] and "○ stopped" in on.text.split("\n")[1]
        on.feed.silent = (0.1, None)
        await on.tick()
        assert "● attached" in on.text.split("\n")[1]
        on.feed.silent = (2.0, "stopped")  # what the system says needs no time to be believed
        await on.tick()
        assert "stopped for 2.0 s (kill -CONT 4242)" in on.text.split("\n")[0]
        assert "stopped for 2.0 s (kill -CONT 4242) in step" in on.line("1 now") and "running" not in on.line("1 now")
        on.feed.silent = (0.1, None)
        await on.tick()
        assert "running step" in on.line("1 now")

    drive(busy(), NARROW, body)


@pytest.mark.parametrize("size", [1, 2, 8, 64])
def test_the_line_of_ranks_fits_any_width_and_has_the_chosen_one(size: int) -> None:
    ranks = tuple(Rank(f"rank {at}", at, None, None, "", Model(), 0) for at in range(size))
    standings = Standings().look(ranks, 0, BRAILLE)
    for width in [*range(1, 130), 200]:
        for chosen in {0, size // 2, size - 1}:
            scene = Scene(Model(), BRAILLE, 0, ranks=ranks, standings=standings, rank=chosen)
            line = ranks_line(scene, width)
            assert line_cells(line) == width
            if width >= 20:
                assert f"[{chosen:>{len(str(size - 1))}}~]" in "".join(text for text, _ in line)


def rank_of(events: list[ev.Event], rank: int) -> Rank:
    model = Model()
    model.apply(events)
    return Rank(f"rank {rank}", rank, None, 1, "", model, model.now_ns)


def test_behind_counts_from_the_last_attach_to_one_and_the_same_moment() -> None:
    def job(steps: int, attached_s: float, at_s: float, every_s: float = 1.0) -> list[ev.Event]:
        wall = 1e9 + attached_s
        events: list[ev.Event] = [
            ev.TargetSeen(int(attached_s * S), 1, "x", "3.12", "2.13", "injected", wall),
            ev.InstrumentAdded(int(attached_s * S), 1, "optimizer", None, "o", "SGD.step", "", 0),
        ]
        for step in range(steps):
            end = int((at_s + step * every_s) * S)
            events.append(ev.Samples(end, ((1, 1, 0, end - 1, end),)))
        return events

    # attached at 10 s and at 20 s; both make a step a second, but the second one misses three
    first, second = rank_of(job(41, 10, 10), 0), rank_of(job(28, 20, 20.5), 1)
    second.model.apply([ev.HookStatus(50 * S, 0, 0, 0.0)])
    (a, b) = Standings().look((first, second), 0, BRAILLE)
    assert (a.behind, b.behind) == (0, 2)


def test_slow_is_said_of_the_one_whose_steps_take_longer() -> None:
    ranks = []
    for at, length in enumerate((24.0, 24.0, 24.0, 40.0)):
        job = Job()
        job.steps(12, length)
        ranks.append(rank_of(job.script.events, at))
    assert [one.condition for one in Standings().look(ranks, 0, BRAILLE)] == ["running", "running", "running", "slow"]


def unrelated() -> FakeFleet:
    """Two programs that have nothing to do with each other, one of them on another host, with the same pid."""
    job = Job()
    job.steps(12, 90.0)
    fast, slow = FakeFeed(busy(), "python train.py", 0), FakeFeed(job.script.events, "python other.py", 0)
    slow.host = "gpu7"
    for event in fast.pending:
        assert not isinstance(event, ev.TargetSeen) or event.command != "python other.py"
    slow.pending = [replace(one, command="python other.py") if isinstance(one, ev.TargetSeen) else one for one in slow.pending]
    return FakeFleet([fast, slow])


def test_programs_that_have_nothing_to_do_with_each_other_are_not_compared() -> None:
    async def body(on: Driven) -> None:
        assert "[" in on.line("process ") and "4242@gpu7" in on.line("process ")
        await on.press("a")
        assert "8 processes" in on.text and "slow ▾" not in on.text and "behind: " not in on.text
        rows = [line.lstrip(" ▸") for line in on.text.split("\n")[4:]]
        assert [row.split()[0] for row in rows if row.startswith("4242")] == ["4242", "4242@gpu7"]
        assert "a back" in on.text.split("\n")[-1] and "show this one" in on.text.split("\n")[-1]
        await on.press("a", "right_square_bracket")
        assert "on gpu7" in on.text.split("\n")[1]
        assert "no NVIDIA driver on gpu7" in on.text and "this machine" not in on.text

    drive(unrelated(), WIDE, body)


def test_ranks_of_two_jobs_are_compared_within_each() -> None:
    ranks = []
    for at, (job, length) in enumerate((("a", 24.0), ("a", 24.0), ("b", 90.0), ("b", 90.0), ("b", 200.0))):
        made = Job()
        made.steps(12, length)
        ranks.append(replace(rank_of(made.script.events, at), job=job))
    found = Standings().look(ranks, 0, BRAILLE)
    assert [one.condition for one in found] == ["running"] * 4 + ["slow"]
    assert names(ranks) == ["1", "1", "1", "1", "1"] and not are_one_job(ranks)
    assert found[0].behind == found[1].behind == 0  # the steps of another job do not count


def test_what_runs_no_more_is_counted() -> None:
    fleet = pair()

    async def body(on: Driven) -> None:
        assert "all 2 run" in on.line("rank ")
        on.feeds[0].give(ev.TargetEnded(ATTACHED + 900 * S, "detached", "tuimon has detached"))
        on.feeds[1].silent = (2.0, "stopped")
        await on.tick()
        assert "all 2 run" not in on.text and "1 detached x" in on.line("rank ") and "1 stopped ?" in on.line("rank ")

    drive(fleet, WIDE, body)


def test_a_member_that_ended_says_when() -> None:
    async def body(on: Driven) -> None:
        await on.press("a")
        assert "14:13:" in on.line("7  ended x").split("4249")[1]

    drive(fleet(), WIDE, body)


def test_leaving_several_that_attach_is_called_cancelling() -> None:
    async def body(on: Driven) -> None:
        assert "q cancel" in on.text.split("\n")[-1]
        on.feeds[1].give(*empty())
        await on.tick()
        assert "q quit" in on.text.split("\n")[-1]

    drive(FakeFleet([FakeFeed(attaching(), rank=rank) for rank in range(2)]), NARROW, body)


def test_tables_follow_the_attach_at_once() -> None:
    async def body(on: Driven) -> None:
        assert "not attached yet" in on.text
        on.app.main._tables_ns = on.clock()  # tables have just been drawn
        on.feed.give(*empty())
        on.app.pump.tick()
        await on.pilot.pause()
        assert "● attached" in on.text and "not attached yet" not in on.text

    drive(attaching(), NARROW, body)


def test_any_size_with_ranks() -> None:
    sizes = random.Random(3)

    async def body(on: Driven) -> None:
        shapes = [(1, 1), (20, 5), (59, 14), (60, 15), (200, 60), (40, 10), (3, 60)]
        for width, height in [*shapes, *((sizes.randint(1, 200), sizes.randint(1, 60)) for _ in range(6))]:
            await on.resize(width, height)
            await on.tick()
            assert len(on.text.split("\n")) == height
            await on.press("a", "right_square_bracket", "j", "a")

    drive(fleet(64), NARROW, body)


def test_a_rank_that_does_not_go_on_is_said_before_who_was_late() -> None:
    async def body(on: Driven) -> None:
        await on.press("a")
        assert on.text.startswith(" rank 6 stopped for 41 s (kill -CONT "), on.text
        await on.press("a")
        await on.tick(120)  # the others wait for it
        first = on.text.split("\n")[0]
        assert first.startswith(" no step for 2m00s") and "; rank 6 stopped for 41 s" in first, first
        for feed in on.feeds:
            feed.silent = None
            feed.give(ev.TargetEnded(ATTACHED + 900 * S, "exited", "killed by signal 9", -9))
        await on.tick()
        await on.press("a")
        assert on.text.startswith(" all 8 ranks are over"), on.text

    drive(fleet(), (120, 40), body)
