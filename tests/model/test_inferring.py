"""Steps inferred from the order of calls: on recorded jobs whose truth is known, and on made-up ones."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

import pytest

from tuimon import events as ev
from tuimon.model import Model
from tuimon.model.steps.inferring import IN_FORWARD, MOST_WAITING, NO_ORDER, Inference
from tuimon.model.steps.parts import CATEGORIES
from tuimon.model.steps.turning import Cut, Item, Loops, turn
from tuimon.sources import carried

RECORDED = sorted((Path(__file__).parent / "steps").glob("*.json"))
CAUSES = {"59": "other python", "65": "gc", "66": "data wait", "69": "profiler"}
"""What the slow steps of a recorded job are slow by, but for the first; elsewhere they compile."""
DOUBTFUL = {"66": [29, 39]}
"""Slow steps that may be the ones beside them: nobody looked while their loader stalled."""


def read(path: Path) -> tuple[dict[str, Any], list[ev.Event]]:
    first, *lines = path.read_text(encoding="utf-8").splitlines()
    return json.loads(first), [event for line in lines for event in carried.decode(json.loads(line))]


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.stem)
def test_recorded_jobs_have_their_slow_steps_at_the_right_place(path: Path) -> None:
    truth, events = read(path)
    model = Model()
    model.apply(events)
    accounts = list(model.steps.accounts)
    assert model.steps.source == "inferred" and model.steps.n == len(accounts) == len(truth["ms"])
    assert [account.index for account in accounts] == list(range(len(accounts)))
    assert all(sum(account.parts) == account.took_ns and min(account.parts) >= 0 for account in accounts)
    usual = [median(account.parts[at] for account in accounts) for at in range(len(CATEGORIES))]
    longest = sorted(accounts, key=lambda account: -account.took_ns)[: len(truth["slow"])]
    assert sorted(account.index for account in longest) == truth["slow"]
    assert sorted(account.index for account in longest if not account.index_certain) == DOUBTFUL.get(path.name[:2], [])
    for account in longest:
        if account.index:  # the job's own clock begins later in the first
            assert account.took_ns / 1e6 == pytest.approx(truth["ms"][account.index], rel=0.05)
        excess = [part - usually for part, usually in zip(account.parts, usual, strict=True)]
        cause = CATEGORIES[excess.index(max(excess))]
        first = path.name[:2] not in ("59",) and account.index == 0
        assert cause == ("compile" if first else CAUSES.get(path.name[:2], "compile"))
    assert all(compilation.step in truth["slow"] for compilation in model.compilations)


@pytest.mark.parametrize("path", [path for path in RECORDED if path.name[:2] != "46"], ids=lambda path: path.stem)
def test_an_attach_in_the_middle_tells_whole_steps(path: Path) -> None:
    """Without the first third of its rows, and as a job that was attached to. (Of twelve calls alike, as 46 makes them, nothing
    but the loop's head tells which is the first.)
    """
    _, events = read(path)
    rows = sum(len(event.rows) for event in events if isinstance(event, ev.Samples))
    model, seen = Model(), 0
    for event in events:
        if isinstance(event, ev.TargetSeen):
            event = ev.TargetSeen(event.t_ns, 1, "case", "3.11.7", "2.13.0", "injected", 1.7e9)
        elif isinstance(event, ev.Samples):
            kept = tuple(row for at, row in enumerate(event.rows, seen) if at * 3 >= rows)
            seen += len(event.rows)
            event = ev.Samples(event.t_ns, kept)
        elif isinstance(event, (ev.CompileStarted, ev.CompileFinished)) and seen * 3 < rows:
            continue
        model.apply([event])
    whole = Model()
    whole.apply(events)
    ends = {account.end_ns: account for account in whole.steps.accounts}
    accounts = list(model.steps.accounts)
    assert len(accounts) > 5 and accounts[0].index == 0
    # every step but the last begins and ends with one of those that are told of the whole
    assert sum(account.end_ns in ends and account.begin_ns in ends for account in accounts) >= len(accounts) - 2


# ------------------------------------------------------------------------------------------ made-up jobs


class Job:
    """Items one after the other; a call takes 10, a gap 1, unless said."""

    def __init__(self, *, whole: bool = True) -> None:
        self.of = Inference(Loops(), whole=whole)
        self.cuts: list[Cut] = []
        self.t = 0

    def __call__(self, kind: str, entry: str = "", *, gap: int = 1, took: int = 10, **more: Any) -> Job:
        self.t += gap
        item = Item(kind, self.t, self.t + took, entry, entry.split("/")[0] if entry != "e" else "", **more)
        self.t += took
        self.cuts += self.of.add(item)
        return self

    def calls(self, names: str) -> Job:
        for name in names.split():
            self("engine") if name == "B" else self("call", name)
        return self

    def finish(self) -> list[int]:
        self.cuts += self.of.finish()
        return [cut.at_ns for cut in self.cuts if not cut.anew]


def test_one_call_is_a_step() -> None:
    job = Job().calls("0/0 " * 20)
    assert len(job.cuts) == 19
    assert len(job.finish()) == 20 and "one call" in job.of.how


def test_a_period_of_twelve() -> None:
    names = " ".join(f"0/{at}" for at in range(8)) + " e e e e "
    job = Job().calls(names * 6)
    assert job.finish() == [132 * at for at in range(1, 7)]
    assert "every 12" in job.of.how


def test_other_entries_of_one_frame_are_the_same_call() -> None:
    assert len(Job().calls("0/0 " * 18 + "0/1 " * 10 + "0/2 " * 10).finish()) == 38


def test_an_unordered_job_tells_no_steps_and_says_so() -> None:
    names = [f"{(at * at * 7919 + at * 31) % 97}/0" for at in range(60)]
    job = Job().calls(" ".join(names))
    assert job.finish() == [] and job.of.why_not == NO_ORDER


def test_calls_without_a_backward_belong_to_the_step_whose_backward_follows() -> None:
    job = Job().calls("0/0 B 0/0 B 0/0 0/0 0/0 0/0 B 0/0 B")
    assert job.finish() == [22, 44, 99, 121]


def test_forward_steps_before_the_first_backward_are_steps() -> None:
    assert len(Job().calls("0/0 " * 13 + "B " + "0/0 B " * 5).finish()) == 18
    assert len(Job().calls("0/0 " * 30 + "B " + "0/0 B " * 5).finish()) == 35


def test_many_calls_before_each_backward_are_one_step() -> None:
    step = "0/0 " * 5 + "B "
    assert len(Job().calls(step * 4).finish()) == 4
    job = Job().calls(("0/0 " * 24 + "B ") * 4)  # steps of one call each, as it seemed
    job.finish()
    anew = max(at for at, cut in enumerate(job.cuts) if cut.anew)
    assert len(job.cuts) - anew - 1 == 3  # and all before the second backward is the first


def test_a_run_of_the_engine_within_a_compilation_is_no_backward() -> None:
    job = Job()
    job("engine", gap=5, took=10)
    job.cuts += job.of.add(Item("next", 0, 30))
    job.t = 40
    assert len(job.calls("0/0 B " * 6).finish()) == 6


def test_calls_within_a_backward_are_part_of_it() -> None:
    job = Job()
    for _ in range(5):
        job("call", "0/0")("call", "0/0", gap=3)
        job.cuts += job.of.add(Item("engine", job.t - 12, job.t + 5))
        job.t += 5
    assert len(job.finish()) == 5


def test_a_job_in_no_order_is_bounded() -> None:
    job = Job()
    for at in range(3 * MOST_WAITING):
        job("call", f"{(at * at * 7919 + at * 31) % 9973}/0")
    assert len(job.of._waiting) <= MOST_WAITING


def test_a_step_that_was_joined_in_the_middle_begins_behind_the_longest_gap() -> None:
    job = Job(whole=False)
    for at in range(2, 60):
        job("call", f"{at % 3}/0", gap=50 if at % 3 == 0 else 1)
    begins = [cut.at_ns for cut in job.cuts]
    assert {(b - a) for a, b in pairwise(begins[1:])} == {82}
    assert job.of.add(Item("call", job.t + 50, job.t + 60, "0/0", "0"))


def blocks(
    around: tuple[tuple[int, bool], ...], steps: int = 30, heads: tuple[int, ...] = (), lengths: tuple[int, ...] = (6,)
) -> Job:
    """Steps of some calls that look alike; `heads` of the outer loop are passed before each, of the inner before each call."""
    job = Job()
    job.of.loops.learn(0, ((7, 40),), around)
    for step in range(30):
        if heads:
            job("loop", instrument=heads[0], took=0)
        for _ in range(lengths[step % len(lengths)]):
            if len(heads) > 1:
                job("loop", instrument=heads[1], took=0)
            job("call", "0/0")
    return job


def test_calls_in_a_loop_of_a_module_make_a_step_where_the_loop_around_it_turns() -> None:
    job = blocks(((5, False), (0, True)), heads=(5,))
    assert len(job.finish()) == 30 and "every 6" in job.of.how and job.of.certain


def test_where_that_loop_cannot_be_seen_no_steps_are_told() -> None:
    job = blocks(((0, False), (0, True)))
    assert job.finish() == [] and job.of.why_not == IN_FORWARD


def test_of_two_loops_the_inner_one_is_taken_and_said_to_be_doubtful_where_its_turns_are_always_as_many() -> None:
    job = blocks(((5, False), (6, False)), heads=(5, 6))
    assert len(job.finish()) == 180 and not job.of.certain and "mark the steps" in job.of.how
    assert blocks(((5, False), (6, False)), heads=(5, 6), lengths=(6, 4, 7)).of.certain
    assert not blocks(((0, False), (0, False))).of.certain
    assert blocks(((0, False),)).of.certain


def test_a_call_behind_the_backward_in_the_loops_body_is_of_its_step() -> None:
    job = Job()
    for instrument, offset in ((1, 10), (2, 20), (3, 30)):
        job.of.loops.learn(instrument, ((7, offset),))
    for _ in range(6):
        job("call", "0/0", instrument=1)("engine", instrument=2)("call", "1/0", instrument=3)("call", "1/0", instrument=3)
    assert job.finish() == [44 * at for at in range(1, 7)]


# ------------------------------------------------------------------------------------------ where the loop turned


LAST, FIRST = Item("call", 0, 10, "0/0", "0", 1), Item("call", 110, 120, "0/0", "0", 1)


def loops(offset: int = 100) -> Loops:
    found = Loops()
    found.learn(1, ((7, offset),), body=(7, 20, 200))
    return found


def between(*items: Item) -> int:
    return turn(loops(), LAST, FIRST, items).at_ns


def test_a_gap_in_which_nothing_tells_belongs_to_the_next_step_and_that_is_said() -> None:
    assert turn(Loops(), LAST, FIRST, ()) == Cut(10, 100)


def test_what_belongs_to_a_side_by_its_kind() -> None:
    assert turn(Loops(), LAST, FIRST, [Item("former", 20, 30), Item("next", 40, 90)]) == Cut(30, 10)
    assert between(Item("next", 40, 90), Item("former", 91, 92)) == 10  # behind the loader: the next step's own


def test_places_in_the_loops_body() -> None:
    behind = Item("look", 10, 50, path=((3, 5), (7, 120), (9, 4)))
    before = Item("look", 60, 80, path=((3, 5), (7, 60)))
    assert between(behind) == 110  # the whole gap is the former step's
    assert between(before) == 10
    assert between(behind, before) == 50
    assert turn(loops(), LAST, FIRST, [behind]).doubt_ns == 0
    assert between(Item("look", 10, 50, path=((7, 100),))) == 10  # at the call itself: tells nothing
    assert between(Item("gc", 30, 60, path=((7, 130),))) == 110
    assert between(Item("gc", 30, 60, path=((7, 60), (9, 4)))) == 10


def test_where_nobody_looked_for_most_of_a_gap_that_is_said() -> None:
    ms = 1_000_000
    first = Item("call", 60 * ms, 61 * ms, "0/0", "0", 1)
    for late, doubt in ((20, 0), (50, 50 * ms - 10)):
        before = Item("look", 10, late * ms, path=((7, 60),))
        assert turn(loops(), LAST, first, [before]) == Cut(10, doubt)
    for early, doubt in ((40, 0), (5, 55 * ms)):
        behind = Item("look", 10, early * ms, path=((7, 120),))
        assert turn(loops(), LAST, first, [behind]) == Cut(60 * ms, doubt)
    again = [Item("look", 10, at * ms, path=((7, 120),)) for at in (5, 25, 45)]
    assert turn(loops(), LAST, first, again) == Cut(60 * ms, 0)
    row = Item("gc", 15 * ms, 55 * ms, path=((7, 60),))  # it began there
    assert turn(loops(), LAST, first, [row]) == Cut(10, 0)


def test_a_place_in_the_loops_body_says_more_than_the_kind() -> None:
    window = Item("former", 70, 90, path=((7, 60), (9, 4)))  # a profiler that is started at the loop's head
    assert between(Item("gc", 30, 60, path=((7, 50),)), window) == 10
    assert between(Item("gc", 30, 60), window) == 10
    assert between(Item("former", 30, 60, path=((7, 130),)), window) == 60
    assert between(Item("next", 30, 60, path=((7, 130),))) == 60


def test_the_passage_of_the_loops_head_is_the_cut() -> None:
    head = Item("loop", 70, 70, instrument=5)
    assert turn(loops(), LAST, FIRST, [head, Item("former", 80, 90)]) == Cut(70)


def test_of_nested_loops_the_one_that_turns_once_a_step() -> None:
    known = loops()
    for _ in range(5):
        inner = [Item("loop", at, at, instrument=6) for at in (20, 90)]
        cut = turn(known, LAST, FIRST, [inner[0], Item("loop", 50, 50, instrument=5), inner[1]])
    assert cut.at_ns == 50


def test_the_end_of_the_job_ends_the_last_step() -> None:
    assert turn(loops(), LAST, None, [Item("gc", 30, 60, path=((7, 130),))]).at_ns == 60
    within = Item("former", 20, 40, path=((7, 130),))
    assert turn(loops(), LAST, None, [within, Item("next", 50, 60)]).at_ns == 40
    assert turn(loops(), LAST, None, [Item("former", 20, 20), Item("gc", 30, 60)]).at_ns == 20  # a resume function; who knows
    assert turn(loops(), LAST, None, []).at_ns == 10


def test_what_the_job_does_when_it_has_left_its_loop_is_of_no_step() -> None:
    clean_up = Item("look", 30, 600, path=((3, 90), (9, 4)))  # the loop's function has returned
    behind = Item("gc", 30, 600, path=((3, 5), (7, 230)))
    stopped = Item("former", 30, 600)
    for one in (clean_up, behind, stopped):
        assert turn(loops(), LAST, None, [one]).at_ns == 10
        assert turn(loops(), LAST, None, [Item("look", 10, 25, path=((3, 5), (7, 130))), one]).at_ns == 25
    assert turn(Loops(), LAST, None, [clean_up]).at_ns == 10
