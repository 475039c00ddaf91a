"""Who is late among ranks: found whatever is missing, and never made up."""

from __future__ import annotations

from tests.model.ranks import MS, Job, compared
from tuimon.model import Model
from tuimon.model.findings.ranks import find, who_is_late
from tuimon.model.ranks.digest import Met, SlowNote, StepDigest, Told
from tuimon.model.ranks.jobs import Jobs, job_of
from tuimon.model.ranks.lateness import Lateness
from tuimon.model.ranks.rounds import MOST_HELD, Rounds
from tuimon.model.ranks.standing import late_words, waits_words


def tenth(rank: int, step: int) -> float:
    """Rank 1 sleeps in every tenth step."""
    return 100.0 if rank == 1 and step % 10 == 7 else 0.0


def kinds(lateness: Lateness) -> list[tuple[str, int]]:
    return [(one.kind, one.key) for one in lateness.verdicts()]


# ------------------------------------------------------------------------------------------------- late in slow steps


def test_who_is_late_in_slow_steps_is_named_with_its_own_cause_and_what_the_others_waited() -> None:
    lateness = compared(Job(2, sleeps=tenth), 40)
    (verdict,) = lateness.verdicts()
    assert (verdict.kind, verdict.key) == ("late_rank", 1)
    assert verdict.sentence.startswith(
        "rank 1 is late in 4 of 4 slow steps by other python: main train.py:17: time.sleep(0.1); rank 0 waited "
    )
    assert verdict.sentence.endswith(" ms (median) in all_reduce for it")
    first, second = lateness.of(0), lateness.of(1)
    assert (first.late_in, second.late_in, first.slow_n, second.slow_n) == (0, 4, 4, 4)
    assert first.waits_for == 1 and first.waited_ns > 390 * MS
    assert second.p90_ns is not None and second.p90_ns > 90 * MS
    assert abs(verdict.cost_s - 0.4) < 0.02
    (finding,) = find(lateness)
    assert (finding.kind, finding.title) == ("late_rank", verdict.sentence)


def test_of_many_ranks_the_one_is_named_and_how_many_wait() -> None:
    lateness = compared(Job(32, sleeps=tenth), 60, lost=0.02)
    assert kinds(lateness) == [("late_rank", 1)]
    assert "31 ranks waited" in lateness.verdicts()[0].sentence or "30 ranks waited" in lateness.verdicts()[0].sentence


def test_indices_may_differ_and_digests_may_be_lost() -> None:
    lateness = compared(Job(4, sleeps=tenth, joined=lambda rank: 3 * rank), 80, lost=0.1)
    assert kinds(lateness) == [("late_rank", 1)]
    assert lateness.of(1).late_in >= 5


def test_a_rank_that_is_not_watched_is_not_blamed_nor_anybody_for_it() -> None:
    lateness = Lateness()
    for rank in (0, 2, 3):
        lateness.join(rank, f"rank {rank}", rank=rank)
    for rank, told in Job(4, sleeps=tenth).steps(80):
        if rank != 1:
            lateness.take(rank, told)
    lateness.settle()
    assert lateness.verdicts() == []
    assert lateness.of(0).slow_n == 8 and lateness.of(0).late_in == 0  # all waited, for whom is not known


def test_a_rank_that_ends_is_not_waited_for() -> None:
    job = Job(3, sleeps=tenth, leaves=lambda rank: 20 if rank == 2 else 10**9)
    lateness = Lateness()
    for rank in range(3):
        lateness.join(rank, f"rank {rank}", rank=rank)
    for rank, told in job.steps(400):
        lateness.take(rank, told)
        if rank == 2 and isinstance(told[0], StepDigest) and told[0].index == 19:
            lateness.leave(2)
    assert lateness.of(0).n >= 395  # at once, and not when patience is over
    assert kinds(lateness) == [("late_rank", 1)]


def test_a_sleep_behind_the_collective_is_the_reason_for_the_next_meeting() -> None:
    """Rank 1's slow step is over when the others' begins to be slow."""
    lateness = Lateness()
    for rank in (0, 1):
        lateness.join(rank, f"rank {rank}", rank=rank)
    parts = (0, 20 * MS, 0, 0, 0, 0, 0, 0, 0, 0)
    at = 10**12
    for step in range(60):
        slept = 100 * MS if step % 10 == 7 else 0
        waits = 100 * MS if step % 10 == 8 else 0
        begin, late = at, at + waits
        met = at + waits + 20 * MS
        number = step + 5
        one = (*parts[:6], met - (begin + 20 * MS), *parts[7:])
        first = StepDigest(0, step, begin, met, one, collectives=(Met("0", number, "all_reduce", begin + 20 * MS, met),))
        two = (*parts[:9], slept)
        second = StepDigest(0, step, late, met + slept, two, collectives=(Met("0", number, "all_reduce", met, met),))
        lateness.take(0, [first])
        lateness.take(1, [second])
        if slept:
            lateness.take(1, [SlowNote(0, step, "other python", "main train.py:20: sleep", True, 120 * MS, 20 * MS)])
        if waits:
            lateness.take(0, [SlowNote(0, step, "communication", "wait", True, 120 * MS, 20 * MS)])
        at = met
    lateness.settle()
    (verdict,) = lateness.verdicts()
    assert verdict.sentence.startswith("rank 1 is late in 6 of 6 slow steps by other python: main train.py:20: sleep; rank 0 w")


def test_what_comes_in_large_pieces_tells_the_same() -> None:
    """Whoever reads the ranks was held up for some seconds: each has told all of its steps, and then why some were slow."""
    lateness = Lateness()
    told: dict[int, list[Told]] = {0: [], 1: [], 2: []}
    for rank in told:
        lateness.join(rank, f"rank {rank}", rank=rank)
    for rank, items in Job(3, sleeps=tenth).steps(500):
        told[rank] += items
    for rank, items in told.items():
        lateness.take(rank, sorted(items, key=lambda one: isinstance(one, SlowNote)))
    lateness.settle()
    assert kinds(lateness) == [("late_rank", 1)] and lateness.of(1).late_in == 50


def test_steps_that_are_slow_for_all_name_nobody() -> None:
    lateness = compared(Job(8, sleeps=lambda _rank, step: 100.0 if step % 10 == 7 else 0.0), 80)
    assert lateness.verdicts() == []
    assert lateness.of(0).slow_n == 8 and lateness.of(3).late_in == 0


def rank(number: int | None, world: int | None = 2) -> Model:
    model = Model()
    model.target.rank, model.target.world_size = number, world
    return model


def test_who_waits_is_sent_to_what_is_watched_already() -> None:
    late, alike = compared(Job(2, sleeps=tenth), 40), compared(Job(2), 40)
    alone = "find the rank that comes late: tuimon attach --all compares them; where none is, look at the network"
    assert who_is_late(rank(0), [late]) == "look at rank 1: what it does in these steps the others wait for"
    assert who_is_late(rank(0), [alike]) == "none of the other ranks is late often: look at the network"
    assert who_is_late(rank(1), [late]) == "none of the other ranks is late often: look at the network"
    fewer = "none of the other ranks that are watched is late often: watch the 6 that are not, too"
    assert who_is_late(rank(0, 8), [alike]) == fewer
    assert {who_is_late(rank(*one), them) for one, them in (((0,), []), ((None,), [late]), ((5,), [late]))} == {alone}
    unknown = "none of the other ranks that are watched is late often: watch any that are not, else look at the network"
    assert who_is_late(rank(0, None), [alike]) == unknown  # nobody has told how many there are
    few, apart = compared(Job(2), 5), Lateness()
    assert who_is_late(rank(0), [few]) == "who is late is not known yet: 5 steps compared, where 16 are the least"
    for key in (0, 1):
        apart.join(key, f"rank {key}", rank=key)
    assert who_is_late(rank(0), [apart]).startswith("where the ranks meet was not seen, so who is late is not known")
    assert who_is_late(rank(0), [late, alike]) == alone  # of two jobs, which is this one's is not known


# ------------------------------------------------------------------------------------------------- late in all steps


def test_a_rank_that_is_always_slower_is_named_without_a_slow_step() -> None:
    lateness = compared(Job(8, works=lambda rank, _step: 4.0 * (rank == 5), jitter=2.0), 100, lost=0.05)
    (verdict,) = lateness.verdicts()
    assert (verdict.kind, verdict.key) == ("slow_rank", 5)
    assert verdict.sentence.startswith("rank 5 is late in most steps: it comes ")
    assert "longer than the middle one of the others in forward regions" in verdict.sentence
    assert lateness.slow_n == 0


def test_jitter_alone_names_nobody() -> None:
    for ranks in (2, 3, 16):
        for seed in range(2):
            assert compared(Job(ranks, jitter=8.0, seed=seed), 150).verdicts() == []


def test_one_rank_that_has_less_to_do_makes_no_stragglers_of_the_others() -> None:
    assert compared(Job(8, works=lambda rank, _step: -10.0 * (rank == 0)), 100).verdicts() == []


# ------------------------------------------------------------------------------------------------- compile skew


def test_a_rank_that_compiles_while_others_wait_is_named() -> None:
    lateness = compared(Job(3, compiles=lambda rank, step: 1200.0 if rank == 1 and step in (30, 45) else 0.0), 80)
    verdicts = {one.kind: one for one in lateness.verdicts()}
    sentence = verdicts["compile_skew"].sentence
    assert sentence.startswith("rank 1 compiled for 1.20 s in its step ")
    assert "while 2 other ranks waited 1.20 s in all_reduce" in sentence
    assert sentence.endswith("recompile of f [0/1]: size of x at 0 was 8, is 6 (1.20 s)")
    assert set(verdicts) == {"compile_skew"}  # and not once more as a straggler
    skew = lateness.of(1).skew
    assert skew is not None and skew.n == 2 and lateness.of(0).skew is None


def test_ranks_that_compile_together_are_no_skew() -> None:
    assert compared(Job(3, compiles=lambda _rank, step: 1200.0 if step == 30 else 0.0), 60).verdicts() == []


# ------------------------------------------------------------------------------------------------- where they meet


def test_where_they_meet_in_the_backward_it_is_said_so() -> None:
    lateness = compared(Job(4, sleeps=tenth, ddp=True, joined=lambda rank: rank), 80)
    (verdict,) = [one for one in lateness.verdicts() if one.kind == "late_rank"]
    assert verdict.key == 1 and "waited" in verdict.sentence and "in the backward for it" in verdict.sentence
    assert any("DistributedDataParallel" in line for line in verdict.evidence)
    assert lateness.by_backward > 70


def test_processes_that_do_not_meet_are_not_compared() -> None:
    lateness = Lateness()
    for rank in (0, 1):
        lateness.join(rank, f"rank {rank}", rank=rank)
    for step in range(100):
        for rank, took in ((0, 20 * MS), (1, 33 * MS)):
            begin = 10**12 + step * took
            lateness.take(rank, [StepDigest(0, step, begin, begin + took, (0,) * 9 + (took,))])
    lateness.settle()
    assert lateness.of(0).median_ns is None and lateness.judged == 0 and lateness.verdicts() == []
    assert late_words(lateness.of(0)) == "" and waits_words(lateness.of(0), {}) == ""


def test_clocks_of_hosts_are_put_right_by_the_ends_of_collectives() -> None:
    def ahead(rank: int) -> int:
        return 40 * MS if rank >= 4 else 0

    lateness = compared(Job(8, clocks=ahead, jitter=4.0), 200, hosts=2)
    assert lateness.verdicts() == [] and lateness.clocks == ""
    late = compared(Job(8, clocks=ahead, sleeps=tenth), 200, hosts=2)
    assert kinds(late) == [("late_rank", 1)]


# ------------------------------------------------------------------------------------------------- what it keeps


def test_what_is_kept_is_bounded_whatever_comes() -> None:
    seen: list[int] = []
    lateness = Lateness()
    rounds: Rounds = lateness._rounds
    for rank in (0, 1):
        lateness.join(rank, f"rank {rank}", rank=rank)
    at = 10**12
    for step in range(MOST_HELD + 5000):  # one rank alone, and time stands still
        lateness.take(0, [StepDigest(0, step, at, at, (0,) * 10, collectives=(Met("0", step + 1, "barrier", at, at),))])
        if step % 1000 == 0:
            seen.append(len(rounds._open) + len(rounds._met) + len(rounds.ranks[0].steps))
    assert max(seen) <= 3 * (MOST_HELD + 2)
    lateness.settle()
    assert not rounds._open and not rounds._met and not lateness._arrivals


def test_steps_counted_anew_are_put_together_anew() -> None:
    job = Job(2, sleeps=tenth)
    lateness = Lateness()
    for rank in (0, 1):
        lateness.join(rank, f"rank {rank}", rank=rank)
    for rank, told in job.steps(120):
        for one in told:
            if rank == 0 and one.index >= 50:
                fields = {name: getattr(one, name) for name in type(one).__slots__}
                one = type(one)(**{**fields, "anew": 1, "index": one.index - 50})
            lateness.take(rank, [one])
    lateness.settle()
    assert kinds(lateness) == [("late_rank", 1)] and lateness.of(1).late_in == 12


def test_only_ranks_of_one_job_are_compared() -> None:
    assert job_of(None, "python train.py", None, None) is None
    assert job_of(None, "python train.py", 0, 1) is None
    assert job_of("a", "python train.py --local-rank=0", 0, 2) == job_of("a", "python train.py --local-rank=1", 1, 2)
    assert job_of("a", "python train.py", 0, 2) != job_of("b", "python train.py", 1, 2)
    jobs = Jobs()
    names = [("a", 0), ("a", 1), ("b", 0), ("c", 0), ("c", 1), ("c", 0)]
    for key, (name, rank) in enumerate(names):
        jobs.join(key, name, rank, None, None)
    assert jobs.of(0) is jobs.of(1) is not None
    assert jobs.of(2) is None  # alone
    assert jobs.of(3) is None  # two jobs under one name, as it seems
    assert jobs.of(99) is None


def test_words_for_a_table() -> None:
    lateness = compared(Job(2, sleeps=tenth), 40)
    assert late_words(lateness.of(1)).endswith(" 4/4")
    assert waits_words(lateness.of(0), {1: "rank 1"}).startswith("rank 1, 4")
