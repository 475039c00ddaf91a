"""The digest of a step: what a model's events make of it, and that it comes over a line as it was."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.model.script import added
from tests.model.slow_jobs import COMMUNICATION, FORWARD, MS, OPTIMIZER, Job
from tuimon import events as ev
from tuimon.model.ranks.digest import MOST_KEPT, MOST_MET, OPS, Met, SlowNote, StepDigest, pack, unpack
from tuimon.model.steps.parts import CATEGORIES

CALL, WAIT = 31, 32


def distributed() -> Job:
    """A job with a collective: its call, and the wait for it."""
    job = Job()
    job.apply(
        added(CALL, "communication", None, name="allreduce", function="ProcessGroup.allreduce", file="", line=0, group="0"),
        added(WAIT, "communication", None, name="wait for allreduce", function="Work.wait", file="", line=0, group="0"),
    )
    return job


def step(job: Job, *numbers: int, waits_ms: float = 1.0) -> None:
    """A step with these collectives, each with its wait behind it."""
    at = job.ns + 8 * MS
    rows = [(FORWARD, 0, 0, job.ns, at)]
    for number in numbers:
        wait = at + round(waits_ms * MS)
        rows += [(CALL, 0, number << 8, at, at + MS // 10), (WAIT, 0, number << 8, at + MS // 10, wait)]
        at = wait
    job.ns = at + 12 * MS
    rows.append((OPTIMIZER, 0, 0, job.ns - 2 * MS, job.ns))
    job.apply(ev.Samples(job.ns, tuple(rows)))


def digests(job: Job) -> list[StepDigest]:
    """Those of the steps that are over: a step can be told when the next one is there."""
    step(job)
    return [one for one in job.model.digester.take() if isinstance(one, StepDigest)]


def test_a_step_has_its_collectives_with_call_and_wait_as_one() -> None:
    job = distributed()
    for number in range(1, 5):
        step(job, 2 * number, 2 * number + 1)
    end = job.ns
    found = digests(job)[:4]
    assert [one.index for one in found] == [0, 1, 2, 3]
    assert [[met.sequence for met in one.collectives] for one in found] == [[2, 3], [4, 5], [6, 7], [8, 9]]
    last = found[-1]
    assert {(met.group, met.op) for met in last.collectives} == {("0", "all_reduce")}
    assert [met.end_ns - met.begin_ns for met in last.collectives] == [MS, MS]
    assert last.begin_ns < last.collectives[0].begin_ns < last.end_ns == end
    assert sum(last.parts) == last.took_ns
    assert not {one.index for one in digests(job)} & {0, 1, 2, 3}  # they are taken once


def test_of_many_collectives_every_rank_tells_the_same_ones() -> None:
    whole, short = distributed(), distributed()
    step(whole, *range(1, 101), waits_ms=1)
    step(short, *range(1, 101), waits_ms=0.2)
    one, other = digests(whole)[0], digests(short)[0]
    assert 0 < len(one.collectives) <= MOST_MET
    assert [met.sequence for met in one.collectives] == [met.sequence for met in other.collectives]


def test_collectives_without_a_number_are_left_out() -> None:
    job = distributed()
    job.step((COMMUNICATION, 3.0))
    one = digests(job)[0]
    assert one.collectives == () and one.parts[CATEGORIES.index("communication")] == 3 * MS


def test_a_slow_step_is_followed_by_its_reason() -> None:
    job = distributed()
    for number in range(1, 41):
        step(job, number, waits_ms=150 if number == 30 else 1)
    job.end()
    told = job.model.digester.take()
    (note,) = [one for one in told if isinstance(one, SlowNote)]
    assert (note.index, note.cause, note.named) == (29, "communication", True) and note.words.startswith("wait for all_reduce")
    assert (note.took_ns, note.usual_ns) == (170 * MS, 21 * MS)
    assert told.index(note) > [one.index for one in told].index(29)
    assert not any(isinstance(one, SlowNote) for one in job.model.digester.take())


def test_what_nobody_takes_is_bounded() -> None:
    job = distributed().steps(MOST_KEPT + 20)
    assert len(job.model.digester.take()) == MOST_KEPT


def test_steps_that_are_counted_anew_are_another_count() -> None:
    job = distributed()
    for number in range(1, 6):
        step(job, number)
    assert {one.anew for one in digests(job)} == {0}  # by the optimizer's steps
    mark = 40
    job.apply(added(mark, "mark", None, name="step", function="tuimon.step", file="", line=0))
    for _ in range(3):
        job.apply(ev.Samples(job.ns, ((mark, 0, 0, job.ns, job.ns),)))
        step(job, 9)
    found = digests(job)
    assert {one.anew for one in found} == {1} and found[0].index == 0


TIMES = st.integers(0, 10**9).map(lambda us: us * 1000)
MEETINGS = st.builds(
    lambda group, number, op, at, took: (group, number, op, at, took),
    st.text(max_size=8), st.integers(1, 2**24 - 1), st.sampled_from(OPS), TIMES, TIMES,
)  # fmt: skip


@given(
    begin=st.integers(1, 2**62), parts=st.lists(TIMES, min_size=len(CATEGORIES), max_size=len(CATEGORIES)),
    met=st.lists(MEETINGS, max_size=MOST_MET), flags=st.tuples(st.booleans(), st.booleans()), anew=st.integers(0, 9),
    backward=st.none() | st.tuples(TIMES, TIMES),
)  # fmt: skip
def test_what_goes_over_a_line_comes_back(  # type: ignore[no-untyped-def]
    begin, parts, met, flags, anew, backward
) -> None:
    collectives = tuple(Met(group, number, op, begin + at, begin + at + took) for group, number, op, at, took in met)
    run = None if backward is None else (begin + backward[0], begin + backward[0] + backward[1])
    digest = StepDigest(anew, 7, begin, begin + sum(parts), tuple(parts), *flags, collectives, run)
    assert unpack(json.loads(json.dumps(pack(digest)))) == digest
    note = SlowNote(anew, 7, "gc", "collection of generation 2", flags[0], 5000, 2000)
    assert unpack(json.loads(json.dumps(pack(note)))) == note


def test_a_digest_is_small() -> None:
    parts = (0, 8 * MS, 5 * MS, 0, 2 * MS, 10_000, 3 * MS, 0, 0, 1_234_000)
    met = Met("0", 123_456, "all_reduce", 10**15 + 12 * MS, 10**15 + 15 * MS)
    digest = StepDigest(0, 123_456, 10**15, 10**15 + 20 * MS, parts, collectives=(met,))
    assert len(json.dumps(pack(digest), separators=(",", ":"))) <= 120


NONE = (
    [], [1], [0, 1, 2], [0, 1, 2, 3, 0, [1] * 9, []], [0, 1, 2, -3, 0, [1] * 10, []], [0, 1, 2, 3, 0, [0] * 10, [[1]]],
    [0, 1, "gc"], ["x", 1, 2, 3, 0, [0] * 10, []], [0, 1, 2, 3, 0, [0] * 10, [["0", 1, 99, 0, 0]]], [0, 1, None, 3, 0, [], []],
)  # fmt: skip


@pytest.mark.parametrize("row", NONE)
def test_what_is_no_digest_is_refused(row: list[object]) -> None:
    with pytest.raises(ValueError, match="no digest"):
        unpack(row)
