"""Steps and their accounts, through the model: sources, threads, evidence, what is lost, and what is kept."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.model.dump import dump
from tests.model.script import US, added, broke, compiled, model_of, samples, target
from tuimon import events as ev
from tuimon.model import Model
from tuimon.model.steps.account import BACKWARD, BOUNDARY, COMPILE, DATA, FORWARD, GC, OPTIMIZER, OTHER, PROFILER
from tuimon.model.steps.lanes import MOST_OF_A_STEP, MOST_SPANS
from tuimon.model.steps.parts import StepAccount

ROLES: list[ev.Role] = [
    "forward", "backward", "resume", "optimizer", "eager", "data", "engine", "gc", "profiler", "communication", "loop", "mark",
    "cpu",
]  # fmt: skip


def row(number: int, begin: int, end: int, *, thread: int = 0, flags: int = 0) -> ev.Samples:
    """One call, in us."""
    return ev.Samples(end * US, ((number, thread, flags, begin * US, end * US),))


def sound(model: Model) -> None:
    steps = model.steps
    accounts = list(steps.accounts)
    assert all(sum(one.parts) == one.took_ns and min(one.parts) >= 0 and one.took_ns >= 0 for one in accounts)
    assert all(a.index + 1 == b.index for a, b in pairwise(accounts))
    assert not accounts or accounts[-1].index == steps.n - 1
    assert [(one.index, one.took_ns) for one in accounts[-512:]] == [at[:2] for at in steps.recent][-len(accounts) :]
    if steps.durations.n == len(accounts):
        assert steps.durations.total_ns == sum(one.took_ns for one in accounts)
        assert steps.durations.latest(512) == [one.took_ns for one in accounts[-512:]]
        if steps.steady_n == sum(not one.compiled for one in accounts):
            assert steps.steady_ns == sum(one.took_ns for one in accounts if not one.compiled)


class Training:
    """A loop with a loader, a region, its backward, an optimizer: 100 us a step."""

    def __init__(self, *roles: ev.Role, how: str = "run") -> None:
        self.model = Model()
        self.model.apply([target(how), ev.ThreadSeen(0, 0, "main", 77)])
        self.numbers: dict[str, int] = {}
        self.t = 1000
        for number, role in enumerate(roles, 1):
            self.numbers[role] = number
            compile_id = "0/0" if role in ("forward", "backward") else None
            self.model.apply([added(number, role, compile_id)])

    def step(self, *, stall: int = 0) -> None:
        """One step; `stall` us are added to the wait for the loader."""
        at = self.t
        plan = {"mark": (0, 0), "data": (1, 20 + stall), "forward": (30, 40), "backward": (52, 60), "engine": (50, 70)}
        plan |= {"gc": (72, 75), "optimizer": (80, 95)}
        for role, (begin, end) in plan.items():
            if role in self.numbers:
                late = 0 if role in ("mark", "data") else stall
                begin, end = at + begin + late, at + end + (stall if role == "data" else late)
                self.model.apply([row(self.numbers[role], begin, end - (stall if role == "data" else 0))])
        self.t += 100 + stall

    def steps(self, count: int) -> Model:
        for _ in range(count):
            self.step()
        return self.model


def parts(account: StepAccount) -> dict[int, int]:
    return {at: ns // US for at, ns in enumerate(account.parts) if ns}


def test_the_account_of_a_training_step() -> None:
    model = Training("data", "forward", "backward", "engine", "gc", "optimizer").steps(20)
    assert (model.steps.source, model.steps.n) == ("optimizer", 20)
    sound(model)
    assert parts(model.steps.accounts[-1]) == {DATA: 19, FORWARD: 10, BACKWARD: 8, GC: 3, OPTIMIZER: 15, OTHER: 45}
    assert model.native(0) == 77 and model.step_thread == 0


def test_without_an_optimizer_the_backward_tells_the_steps() -> None:
    model = Training("data", "forward", "backward", "engine", "gc").steps(20)
    assert (model.steps.source, model.steps.n) == ("inferred", 19)
    sound(model)
    last = model.steps.accounts[-1]
    assert last.begin_ns % (100 * US) == 70 * US and last.took_ns == 100 * US and last.index_certain
    model.apply([ev.TargetEnded(model.now_ns, "exited", "exited with status 0", 0)])
    assert model.steps.n == 20 and model.steps.why_not == ""


def test_where_no_engine_is_watched_the_backward_regions_do() -> None:
    model = Training("forward", "backward").steps(20)
    assert (model.steps.source, model.steps.n) == ("inferred", 19)


def test_marks_are_before_optimizers_and_optimizers_before_what_is_inferred() -> None:
    job = Training("data", "forward", "backward", "engine", "optimizer", "mark")
    mark, optimizer = job.numbers.pop("mark"), job.numbers.pop("optimizer")
    told: list[str] = []

    class Told:
        def closed(self, account: StepAccount) -> None:
            told.append(f"closed {account.index}")

        def anew(self) -> None:
            told.append("anew")

        def ended(self) -> None:
            told.append("ended")

    job.model.each_step(Told())
    assert job.steps(4).steps.source == "inferred" and job.model.steps.n == 3
    job.numbers["optimizer"] = optimizer
    assert job.steps(2).steps.source == "optimizer"
    # under `run` all before the first optimizer step is one step: micro-batches, for all that is known
    assert [one.took_ns for one in job.model.steps.accounts] == [494 * US, 100 * US]
    sound(job.model)
    assert job.model.steps.n == 2 and "anew" in job.model.steps.how
    job.numbers["mark"] = mark
    job.numbers = {"mark": mark} | job.numbers
    assert job.steps(5).steps.source == "marked" and job.model.steps.n == 4
    sound(job.model)
    assert job.model.steps.accounts[0].begin_ns % (100 * US) == 0
    job.model.apply([ev.TargetEnded(job.model.now_ns, "exited", "", 0), ev.TargetEnded(job.model.now_ns, "exited", "", 0)])
    assert told == [
        "closed 0", "closed 1", "closed 2", "closed 3", "anew", "closed 0", "closed 1", "anew", "closed 0", "closed 1",
        "closed 2", "closed 3", "ended",
    ]  # fmt: skip


def stepping(*ends: tuple[int, int], how: str = "run", turns: tuple[int, ...] = ()) -> Model:
    """(optimizer, end) of steps that take 10 us each; the loop waits for data, 2 us, behind these times."""
    model = Model()
    model.apply([target(how), ev.ThreadSeen(0, 0, "main"), added(7, "data", None), added(8, "loop", None)])
    model.apply([added(number, "optimizer", None, name=f"O{number}") for number in sorted({who for who, _ in ends})])
    rows = [(7, 1, 2)] + [(who, end - 10, end) for who, end in ends] + [(7, at + 1, at + 3) for at in turns]
    for who, begin, end in sorted(rows, key=lambda row: row[2]):
        model.apply([row(who, begin, end)])
    return model


def test_a_round_of_two_optimizers_is_a_step_that_ends_with_the_second() -> None:
    ends = [(1 + at % 2, 100 * at + 50) for at in range(12)]
    model = stepping(*ends)
    assert model.steps.n == 6 and [one.end_ns // US for one in model.steps.accounts][1:] == [350, 550, 750, 950, 1150]
    assert "one optimizer's step() (O2), of 2" in model.steps.how
    sound(model)


def test_joined_within_a_round_the_wait_for_data_tells_where_it_begins() -> None:
    ends = [(1 + at % 2, 100 * at + 50) for at in range(1, 13)]  # the second one first
    model = stepping(*ends, how="injected", turns=tuple(200 * at + 160 for at in range(6)))
    assert [one.end_ns // US % 200 for one in model.steps.accounts] == [150] * 5 and model.steps.first == 1
    assert model.steps_since == "the attach"


def test_of_two_optimizers_the_one_that_steps_more_often_counts() -> None:
    ends = [(2 if at % 4 == 3 else 1, 100 * at + 50) for at in range(24)]
    assert stepping(*ends).steps.n == 18
    assert {one.end_ns // US % 400 for one in stepping(*ends[3:], how="injected").steps.accounts} == {50, 150, 250}


def behind_the_optimizer(*looks: int) -> Model:
    """Behind the third step of an optimizer something takes 5 ms, and looks show the job at these offsets; calls are at 100."""
    model = Model()
    model.apply([target(), ev.ThreadSeen(0, 0, "main"), added(1, "forward", "0/0"), added(2, "optimizer", None)])
    model.apply([added(3, "loop", None), ev.LoopsSeen(0, 0, 1, (), ((7, 100),))])
    at = 0
    for step in range(6):
        model.apply([row(1, at + 10, at + 20), row(2, at + 30, at + 40)])
        if step == 2:
            for number, offset in enumerate(looks, 1):
                at += 5000
                model.apply([ev.StackSeen((at + 20) * US, 0, (at - 4900) * US, ((7, number, offset, 0),))])
        at += 50
    return model


def test_what_is_behind_the_optimizer_in_the_loops_body_is_of_its_step() -> None:
    model = behind_the_optimizer(140)
    assert [one.took_ns // US for one in model.steps.accounts] == [30, 50, 5070, 30, 50, 50]
    assert all(one.index_certain for one in model.steps.accounts) and model.steps.durations.n == 6
    sound(model)
    assert [one.took_ns // US for one in behind_the_optimizer(60).steps.accounts] == [30, 50, 50, 5050, 50, 50]
    unknown = list(behind_the_optimizer(100).steps.accounts)
    assert [one.index for one in unknown if not one.index_certain] == [3]
    told = behind_the_optimizer(140, 60).steps.accounts
    assert [one.index for one in told if not one.index_certain] == [3] and told[2].took_ns > 4900 * US < told[3].took_ns


def sleeping(*looked: int, longer: int = -1) -> Model:
    """Behind each of 30 steps of an optimizer, in the loop's body, the job sleeps for 30 ms; in these it is looked at."""
    model = Model()
    model.apply([target(), ev.ThreadSeen(0, 0, "main"), added(1, "forward", "0/0"), added(2, "optimizer", None)])
    model.apply([added(3, "loop", None), ev.LoopsSeen(0, 0, 1, (), ((7, 100),))])
    at = 0
    for step in range(30):
        model.apply([row(1, at, at + 500), row(2, at + 500, at + 1000)])
        sleeps = 90_000 if step == longer else 30_000
        if step in looked:
            model.apply([ev.StackSeen((at + 20_000) * US, 0, (at + 1000) * US, ((7, 3, 140, 0),))])
        at += 1000 + sleeps
    return model


@pytest.mark.parametrize("looked", [(), (11,), (7, 15, 16, 22), tuple(range(3, 30)), tuple(range(30)), (0, 1, 2)])
def test_what_lies_between_steps_is_on_one_side_whether_or_not_it_is_looked_at(looked: tuple[int, ...]) -> None:
    model = sleeping(*looked)
    took = [one.took_ns // (1000 * US) for one in model.steps.accounts]
    assert set(took[1:-1]) == {31} and took[0] in (1, 31) and took[-1] in (1, 31), took
    assert not model.steps.slow
    sound(model)


def test_what_is_longer_than_usual_is_where_it_was_seen() -> None:
    took = [one.took_ns // (1000 * US) for one in sleeping(5, 20, longer=20).steps.accounts]
    assert took[1:20] == [31] * 19 and took[20:23] == [121, 1, 31]


def collected(offset: int) -> Model:
    """Before the loader of the third step a collection of 5 ms, in a function that the loop calls at this offset."""
    model = Model()
    model.apply(
        [target(), ev.ThreadSeen(0, 0, "main"), added(1, "data", None), added(2, "forward", "0/0"), added(3, "gc", None)]
    )
    model.apply([added(4, "optimizer", None), ev.LoopsSeen(0, 0, 2, ((0, 7, 20, 200),), ((6, 5), (7, 100)))])
    at = 0
    for step in range(6):
        if step == 2:
            model.apply([row(3, at + 10, at + 5010)])
            model.apply([ev.SiteSeen((at + 5010) * US, 3, 9, 3, 8, (), 0, ((6, 5), (7, offset), (9, 8)))])
            at += 5010
        model.apply([row(1, at + 10, at + 20), row(2, at + 20, at + 30), row(4, at + 30, at + 40)])
        at += 50
    return model


def test_a_collection_is_in_the_step_in_whose_turn_of_the_loop_it_was_made() -> None:
    head, behind = collected(60), collected(150)
    assert [parts(one).get(GC) for one in head.steps.accounts][:4] == [None, None, 5000, None]
    assert [parts(one).get(GC) for one in behind.steps.accounts][:4] == [None, 5000, None, None]
    assert all(one.index_certain for one in [*head.steps.accounts, *behind.steps.accounts])


def test_the_last_step_ends_where_the_job_leaves_its_loop() -> None:
    for place, took in (((7, 150), 5050), ((7, 230), 50), ((6, 9), 50)):  # in its body; behind it; its function has returned
        model = collected(60)
        end = model.steps.accounts[-1].end_ns
        model.apply([ev.StackSeen(end + 5000 * US, 0, end, ((6, 1, 5, 0), (*place[:1], 1, place[1], 0), (8, 2, 4, 0)))])
        model.apply([row(3, end // US + 6000, end // US + 9000), ev.TargetEnded(end + 9000 * US, "exited", "", 0)])
        assert model.steps.accounts[-1].took_ns // US == took
        sound(model)


def test_a_mark_with_a_length_is_a_step_and_what_lies_between_is_none() -> None:
    model = Model()
    model.apply([target(), added(1, "mark", None), added(2, "forward", "0/0")])
    for at in range(0, 1000, 100):
        model.apply([row(2, at + 5, at + 15), row(1, at, at + 20), row(2, at + 50, at + 60)])
    sound(model)
    assert {parts(one)[FORWARD] for one in model.steps.accounts} == {10}
    assert {one.took_ns for one in model.steps.accounts} == {20 * US} and model.steps.n == 10


def test_joined_in_the_middle_the_first_cut_opens_the_first_step() -> None:
    job = Training("forward", "engine", how="injected")
    assert job.steps(10).steps.n == 8
    sound(job.model)
    assert job.model.steps.accounts[0].took_ns == 100 * US


def test_a_compilation_is_in_the_step_that_it_holds_up() -> None:
    job = Training("forward", "engine", how="run")
    job.steps(5)
    job.model.apply(compiled("0/1", job.t + 1, job.t + 29))
    job.steps(5)
    accounts = list(job.model.steps.accounts)
    assert [one.index for one in accounts if one.compiled] == [5]
    assert parts(accounts[5])[COMPILE] == 28 and job.model.compilations[0].step == 5
    evidence = job.model.steps.evidence(5)
    assert evidence is not None and (evidence.forwards, evidence.backwards) == (1, 1)
    assert [(one.role, one.compile_id, one.own_ns) for one in evidence.rows] == [("compile", "0/1", 28 * US)]


def test_a_compilation_on_a_thread_that_is_named_later() -> None:
    model = Model()
    model.apply([target(), *compiled("0/0", 100, 900, thread="Worker (1)"), added(1, "optimizer", None)])
    model.apply([ev.ThreadSeen(0, 5, "Worker (1)"), added(2, "forward", "0/0"), row(2, 905, 910, thread=5)])
    model.apply([row(1, 950, 990, thread=5), row(1, 1050, 1090, thread=5)])
    sound(model)
    assert [parts(one).get(COMPILE) for one in model.steps.accounts] == [800, None]


def test_what_the_autograd_threads_run_within_the_engines_call_is_the_steps() -> None:
    model = Model()
    model.apply([target(), ev.ThreadSeen(0, 0, "main"), ev.ThreadSeen(0, 9, "thread (9)"), ev.ThreadSeen(0, 8, "Loader-1")])
    model.apply([added(1, "engine", None), added(2, "backward", "0/0"), added(3, "optimizer", None), added(4, "gc", None)])
    for at in range(0, 500, 100):
        model.apply([row(2, at + 10, at + 40, thread=9), row(4, at + 12, at + 20, thread=8), row(1, at + 5, at + 50)])
        model.apply([row(2, at + 60, at + 70, thread=9), row(3, at + 80, at + 90)])
    sound(model)
    assert parts(model.steps.accounts[-1]) == {BACKWARD: 30, OPTIMIZER: 10, OTHER: 60}


def test_a_boundary_has_what_nothing_within_it_has() -> None:
    model = model_of(compiled("0/0", 0, 10), broke("0/0", 13), added(1, "forward", "0/0"), added(2, "resume", "0/0", line=13))
    model.apply([added(3, "gc", None), added(4, "optimizer", None)])
    for at in range(100, 500, 100):
        model.apply([samples((1, at, at + 10), (3, at + 20, at + 25), (2, at + 50, at + 50), (4, at + 60, at + 70))])
    sound(model)
    assert parts(model.steps.accounts[-1]) == {FORWARD: 10, BOUNDARY: 35, GC: 5, OPTIMIZER: 10, OTHER: 40}


def test_evidence_of_a_step() -> None:
    model = Model()
    model.apply([target(), ev.ThreadSeen(0, 0, "main"), added(1, "gc", None, name="gc"), added(2, "optimizer", None)])
    model.apply([added(3, "cpu", None), row(2, 10, 20), row(3, 25, 7), row(1, 1000, 4000, flags=2 << 8)])
    model.apply([ev.SiteSeen(4000 * US, 1, 7, 15, 40, (("/w/a.py", 15, "<module>"),), 0)])
    model.apply(
        [ev.StackSeen(5000 * US, 0, 4000 * US, ((7, 16, 50, 0),)), ev.StackSeen(5500 * US, 0, 4000 * US, ((7, 16, 50, 0),))]
    )
    model.apply([row(3, 5600, 2000), row(2, 6000, 6100), row(2, 6200, 6300)])
    evidence = model.steps.evidence(1)
    assert evidence is not None and evidence.thread == 0
    (collection,) = evidence.rows
    assert (collection.role, collection.generation, collection.own_ns) == ("gc", 2, 3_000_000)
    assert collection.site is not None and collection.site.line == 15
    assert [look.rows for look in evidence.looks] == [((7, 16, 50, 0),)] * 2
    assert evidence.cpu == [(25_000, 7_000), (5_600_000, 2_000_000)]
    later = model.steps.evidence(2)
    assert later is not None and later.rows == [] and later.cpu == [(5_600_000, 2_000_000)]
    assert model.steps.evidence(99) is None


def test_a_generator_that_only_looks_have_seen_is_a_wait_for_data() -> None:
    model = Model()
    model.apply([target(), ev.ThreadSeen(0, 0, "main"), ev.CodeSeen(0, 8, "loader", "loader", "/w/a.py", 6)])
    model.apply([added(1, "forward", "0/0"), ev.LoopsSeen(0, 0, 1, (), ((7, 100),))])
    for at in range(20):
        begin = at * 200_000
        model.apply([row(1, begin, begin + 100)])
        for look in (20_000, 40_000):
            rows = ((7, 15, 60, 0), (8, 8, 12, 1))
            model.apply([ev.StackSeen((begin + look) * US, 0, (begin + 100) * US, rows)])
    sound(model)
    assert parts(model.steps.accounts[-1]) == {FORWARD: 100, DATA: 199_900}
    evidence = model.steps.evidence(10)
    assert evidence is not None and [(one.role, one.name) for one in evidence.rows] == [("look", "loader")]


def test_steps_are_on_the_thread_that_runs_most_calls() -> None:
    model = Model()
    model.apply([target(), ev.ThreadSeen(0, 0, "main"), ev.ThreadSeen(0, 5, "Server"), added(1, "forward", "0/0")])
    model.apply([row(1, at * 10, at * 10 + 5) for at in range(20)])
    assert model.step_thread == 0
    model.apply([row(1, 1000 + at * 10, 1000 + at * 10 + 5, thread=5) for at in range(200)])
    assert model.step_thread == 5 and model.steps.source == "inferred"
    sound(model)
    assert {one.took_ns for one in model.steps.accounts} == {10 * US}


def test_steps_in_which_something_was_dropped_are_incomplete() -> None:
    job = Training("forward", "optimizer")
    job.steps(3)
    job.model.apply([ev.HookStatus(job.t * US, 6, 0, 0.0)])
    job.steps(2)
    job.model.apply([ev.HookStatus(job.t * US, 10, 4, 0.0)])
    job.steps(3)
    assert [one.complete for one in job.model.steps.accounts] == [True] * 3 + [False] * 3 + [True] * 2


@pytest.mark.parametrize("optimizer", [False, True])
def test_a_step_with_very_many_rows_is_bounded_and_adds_up(optimizer: bool) -> None:
    model = Model()
    model.apply([target(), added(1, "forward", "0/0"), added(2, "engine", None), added(4, "profiler", None)])
    if optimizer:
        model.apply([added(3, "optimizer", None)])
    at = 0
    for _ in range(3):
        rows = [(1, 0, 0, (at + 10 * k) * US, (at + 10 * k + 5) * US) for k in range(2 * MOST_SPANS)]
        at += 20 * MOST_SPANS
        model.apply([ev.Samples(0, tuple(rows))])
        model.apply([row(4, at, at + 9), row(2, at + 10, at + 20)] + ([row(3, at + 30, at + 40)] if optimizer else []))
        lane = model._calls.steps.lanes.held[0]
        assert len(lane.spans) <= MOST_SPANS + 1
        at += 100
    model.apply([ev.TargetEnded(at * US, "exited", "", 0)])
    sound(model)
    assert model.steps.n == 3
    assert parts(model.steps.accounts[-1])[FORWARD] == 10 * MOST_SPANS
    assert parts(model.steps.accounts[-1])[PROFILER] == 9
    assert all(len(one.rows) <= MOST_OF_A_STEP for one in model.steps.evidences.values())


def test_ten_thousand_steps_add_up() -> None:
    rng = random.Random(3)
    job = Training("data", "forward", "backward", "engine", "gc", "optimizer")
    for _ in range(10_000):
        job.step(stall=rng.randrange(0, 50))
    model = job.model
    assert model.steps.n == 10_000 and len(model.steps.accounts) == 2048 and len(model.steps.evidences) <= 512
    sound(model)
    assert model.steps.durations.total_ns == model.steps.last_end_ns - 1001 * US


# ------------------------------------------------------------------------------------------ random streams

TIMES = st.integers(0, 10**6)


def stream(rng: random.Random, roles: list[ev.Role]) -> list[ev.Event]:
    """Rows in order of end, of all kinds, on three threads; nested as it comes."""
    events: list[ev.Event] = [
        target(rng.choice(("run", "injected"))),
        ev.ThreadSeen(0, 0, "main"),
        ev.ThreadSeen(0, 1, "thread (1)"),
    ]
    events += [
        added(n, role, f"{n % 3}/0" if role in ("forward", "backward", "resume", "eager") else None)
        for n, role in enumerate(roles)
    ]
    t = 0
    for _ in range(rng.randrange(200)):
        t += rng.randrange(1, 400)
        number = rng.randrange(len(roles))
        instant = roles[number] in ("resume", "eager", "loop")
        begin = t if instant else max(0, t - rng.randrange(0, 1500))
        if rng.random() < 0.03:
            events += compiled(f"{rng.randrange(3)}/{rng.randrange(4)}", max(0, t - 900), t)
        elif rng.random() < 0.05:
            look = ((7, 1, rng.randrange(100), 0), (8, 2, rng.randrange(100), rng.randrange(2)))
            events.append(ev.StackSeen(t * US, 0, begin * US, look))
        elif rng.random() < 0.03:
            events.append(ev.LoopsSeen(t * US, 0, number, (), ((7, rng.randrange(100)),)))
        elif rng.random() < 0.03:
            events.append(ev.HookStatus(t * US, t, t // 3000, 0.0))
        else:
            events.append(row(number, begin, t, thread=rng.choice((0, 0, 0, 0, 1, 2))))
    events.append(ev.TargetEnded(t * US, "exited", "", 0))
    return events


@settings(max_examples=60, deadline=None)
@given(
    st.randoms(use_true_random=False), st.lists(st.sampled_from(ROLES), min_size=1, max_size=7), st.sampled_from((0, 0.1, 0.5))
)
def test_any_stream_adds_up_and_is_folded_alike_however_it_is_split(
    rng: random.Random, roles: list[ev.Role], lost: float
) -> None:
    events = [event for event in stream(rng, roles) if rng.random() >= lost]
    whole = Model()
    whole.apply(events)
    sound(whole)
    joined: list[ev.Event] = []
    for event in events:  # the same rows in as few batches as their order allows
        if isinstance(event, ev.Samples) and joined and isinstance(joined[-1], ev.Samples):
            joined[-1] = ev.Samples(event.t_ns, joined[-1].rows + event.rows)
        else:
            joined.append(event)
    other = Model()
    for event in joined:
        other.apply([event])
    assert dump(other) == dump(whole)


class Evaluating:
    """An optimizer's step of 100 us, and behind some of them an evaluation: 20 ms, in two calls."""

    BODY = 30, 2, 100
    """(code, head, jump) of the loop of the steps."""

    def __init__(self, *, heads: bool, sites: bool = True) -> None:
        self.model, self.t, self.heads = Model(), 1000, heads
        self.model.apply([target("run"), ev.ThreadSeen(0, 0, "main"), added(1, "forward", "0/0"), added(2, "forward", "1/0")])
        self.model.apply([added(3, "optimizer", None), added(4, "loop", None), added(5, "loop", None)])
        code, head, jump = self.BODY
        for call, offset in ((1, 10), (2, 60)):
            if sites:
                around = ((4 if heads else 0, code, head, jump),)
                self.model.apply([ev.LoopsSeen(0, 0, call, around, ((code, offset),))])

    def step(self, *, evaluates: bool = False) -> None:
        t = self.t
        self.model.apply([row(1, t, t + 50), row(3, t + 60, t + 95)])
        if evaluates:
            for call in (1000, 11000):
                self.model.apply([row(2, t + call, t + call + 9000)])
                self.model.apply([row(5, t + call + 9001, t + call + 9001)] if self.heads else [])
            t += 20000
        self.model.apply([row(4, t + 99, t + 99)] if self.heads else [])
        self.t = t + 100

    def took(self) -> list[int]:
        return [one.took_ns // US for one in self.model.steps.accounts]


def test_an_evaluation_behind_the_optimizer_is_of_the_iteration_whose_loop_has_not_turned() -> None:
    job = Evaluating(heads=True)
    for number in range(20):
        job.step(evaluates=number % 5 == 4)
    sound(job.model)
    accounts = list(job.model.steps.accounts)
    assert len(accounts) == 20 and all(one.index_certain for one in accounts)
    long = [number for number, took in enumerate(job.took()) if took > 10000]
    assert long == [4, 9, 14, 19]
    assert [parts(accounts[at])[FORWARD] for at in long] == [18050] * 4


def test_where_no_turn_is_seen_an_evaluation_goes_to_the_next_step_and_that_is_said() -> None:
    job = Evaluating(heads=False)
    for number in range(20):
        job.step(evaluates=number % 5 == 4)
    sound(job.model)
    accounts = list(job.model.steps.accounts)
    assert [number for number, took in enumerate(job.took()) if took > 10000] == [5, 10, 15]
    assert [one.index for one in accounts if not one.index_certain] == [5, 10, 15]


def test_a_loop_that_turns_no_more_is_not_waited_for() -> None:
    job = Evaluating(heads=True)
    for _ in range(20):
        job.step()
    job.heads = False
    for _ in range(20):
        job.step()
    sound(job.model)
    assert job.model.steps.n == 40 and max(job.took()) < 1000
    told: list[int] = []

    class Told:
        def closed(self, account: StepAccount) -> None:
            told.append(account.index)

        def anew(self) -> None: ...

        def ended(self) -> None: ...

    job.model.each_step(Told())
    job.step()
    assert told == [39]  # when the first call of step 40 has come, not with its optimizer


def test_an_evaluation_of_very_many_calls_is_not_held_for_ever() -> None:
    job = Evaluating(heads=True)
    for _ in range(10):
        job.step()
    job.model.apply([row(1, job.t, job.t + 50), row(3, job.t + 60, job.t + 95)])
    begin = job.t + 100
    for at in range(MOST_SPANS + 10):
        job.model.apply([row(2, begin + 10 * at, begin + 10 * at + 8)])
    job.t = begin + 10 * (MOST_SPANS + 20)
    job.step()
    job.step()
    sound(job.model)
    accounts = list(job.model.steps.accounts)
    assert [one.index for one in accounts if one.took_ns > 10000 * US] == [11]
    assert not accounts[11].index_certain and accounts[12].index_certain


def compiled_optimizers(*, sites: bool) -> Model:
    """Two compiled optimizers of one class, both stepped in each of 20 turns of a loop."""
    model = Model()
    model.apply([target("run"), ev.ThreadSeen(0, 0, "main")])
    for number, (compile_id, offset) in enumerate((("0/0", 10), ("0/1", 60)), 1):
        model.apply([added(number, "optimizer", compile_id, name="step")])
        if sites:
            model.apply([ev.LoopsSeen(0, 0, number, ((0, 30, 2, 100),), ((30, offset),))])
    for turn in range(20):
        model.apply([row(1, 1000 + 100 * turn, 1010 + 100 * turn), row(2, 1050 + 100 * turn, 1060 + 100 * turn)])
    return model


def test_two_compiled_optimizers_of_one_class_are_told_apart_by_their_places_in_the_loop() -> None:
    model = compiled_optimizers(sites=True)
    assert model.steps.n == 20 and "of 2 that step" in model.steps.how
    sound(model)


def test_where_they_cannot_be_told_apart_it_is_said_that_they_may_be_two() -> None:
    model = compiled_optimizers(sites=False)
    assert model.steps.n == 40 and "mark the steps" in model.steps.how
