"""What is put off until somebody asks is what it would have been at once."""

from __future__ import annotations

import copy
import pickle
import random

from tuimon import events as ev
from tuimon.model.statistics import WINDOW, Durations
from tuimon.model.steps.account import EAGER, ENGINE, FORWARD, GC
from tuimon.model.steps.long import Long, Seen
from tuimon.model.steps.parts import LongRow
from tuimon.model.steps.timing import Timed, long_row


def long(role: ev.Role = "gc", flags: int = 0x200) -> Long:
    event = ev.InstrumentAdded(0, 7, role, "0/0", "collect", "f", "/w/a.py", 3)
    made = Long()
    made.timed, made.told, made.own_ns = Timed.of(event, "", "", is_optimizer=False), (7, 1, flags, 1_000, 3_001_000), 0
    return made


def test_a_long_row_is_made_once_and_knows_what_was_learnt_of_it_later() -> None:
    one = long()
    seen = Seen(1, [one, LongRow("look", 5, 0, "f", "f", "a.py", 1, 9, 99, 1)], [], [], 0, 0)
    row = seen.rows[1]  # by begin
    assert row == long_row(one.timed, 1, 0x200, 1_000, 3_001_000) and row.generation == 2
    one.own_ns, one.site = 5, ev.SiteSeen(3_001_000, 7, 1, 4, 2)
    assert seen.rows[1] is row and row.own_ns == 5 and row.site is one.site


def test_a_step_that_went_on_keeps_its_order_and_what_was_seen_first() -> None:
    first, rest = long(), long("forward")
    rest.told = (7, 1, 0, 500, 4_000_000)
    seen = Seen(1, [first], [], [(4, 5)], 1, 0, bytes((FORWARD, GC, EAGER, ENGINE)))
    seen.go_on(Seen(1, [rest], [], [(4, 5), (6, 7)], 5, 5))
    assert [row.begin_ns for row in seen.rows] == [1_000, 500] and seen.cpu == [(4, 5), (6, 7)]
    assert (seen.forwards, seen.backwards) == (3, 1)
    assert pickle.loads(pickle.dumps(seen)).rows == seen.rows


def test_what_was_seen_of_a_step_can_be_kept_and_copied() -> None:
    seen = Seen(1, [long("forward", 1)], [], [(4, 5)], 2, 1)
    for other in (pickle.loads(pickle.dumps(seen)), copy.deepcopy(seen), copy.copy(seen)):
        assert other.rows == seen.rows and other.rows[0].raised
        assert (other.thread, other.cpu, other.forwards, other.backwards) == (1, [(4, 5)], 2, 1)


def test_durations_may_come_together() -> None:
    rng, one, other = random.Random(8), Durations(), Durations()
    for _ in range(40):
        some = [rng.randrange(1000) for _ in range(rng.randrange(1, WINDOW))]
        for each in some:
            one.add(each)
        other.extend(some)
        assert one.summary == other.summary and one.latest(WINDOW) == other.latest(WINDOW)
