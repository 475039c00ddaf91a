"""Waiting for work: by which stacks it is told, in which jobs, and that no finding comes of it."""

from __future__ import annotations

import pytest

from tests.model.script import added, target
from tests.model.steps import MS, account
from tests.model.test_naming import SEEN, causes, explained
from tuimon import events as ev
from tuimon.model import Model
from tuimon.model.findings import findings
from tuimon.model.slow.idle import serves, where_idle
from tuimon.model.slow.naming import Told
from tuimon.model.slow.outside import Outside
from tuimon.model.slow.rule import Base
from tuimon.model.steps.parts import CATEGORIES, StepEvidence

LIB = "/usr/lib/python3.11"
SITE = f"{LIB}/site-packages"
USER = "/home/user/server.py"
GET = [(f"{LIB}/queue.py", "get"), (f"{LIB}/threading.py", "wait")]


@pytest.mark.parametrize(
    ("stack", "told"),
    [
        ([(USER, "serve"), *GET], "Queue.get"),
        ([(f"{SITE}/engine/core.py", "run_busy_loop"), *GET], "Queue.get"),
        (
            [(USER, "serve"), (f"{LIB}/multiprocessing/queues.py", "get"), (f"{LIB}/multiprocessing/connection.py", "poll")],
            "Queue.get",
        ),
        ([(USER, "main"), (f"{LIB}/asyncio/base_events.py", "_run_once"), (f"{LIB}/selectors.py", "select")], "asyncio"),
        ([(USER, "main"), (f"{LIB}/socketserver.py", "serve_forever"), (f"{LIB}/selectors.py", "select")], "socketserver"),
        ([(f"{LIB}/threading.py", "run"), (f"{LIB}/concurrent/futures/thread.py", "_worker")], "a pool of threads"),
        ([(USER, "main"), (f"{LIB}/socket.py", "accept")], "socket.accept"),
        ([(USER, "main"), (f"{SITE}/zmq/sugar/poll.py", "poll")], "zmq.Poller.poll"),
        # what helpers of one's own are waited for in
        ([(USER, "train"), (f"{SITE}/torch/utils/data/dataloader.py", "_try_get_data"), *GET], ""),
        ([(USER, "main"), (f"{LIB}/multiprocessing/pool.py", "next"), (f"{LIB}/threading.py", "wait")], ""),
        ([(USER, "main"), (f"{LIB}/subprocess.py", "communicate"), (f"{LIB}/selectors.py", "select")], ""),
        ([(USER, "main"), (f"{LIB}/threading.py", "join"), (f"{LIB}/threading.py", "wait")], ""),
        ([(USER, "main"), (f"{LIB}/selectors.py", "select")], ""),
        ([(USER, "main"), (f"{SITE}/other/poll.py", "poll")], ""),
        ([("/home/user/queue.py", "get")], ""),
        ([(USER, "serve"), *GET, (USER, "a_hook")], ""),
        ([], ""),
    ],
)
def test_which_stacks_wait_for_work(stack: list[tuple[str, str]], told: str) -> None:
    assert where_idle(stack) == told


def test_only_a_job_that_trains_nothing_serves() -> None:
    plain = Base(128, 20 * MS, MS, 30 * MS, (0,) * len(CATEGORIES))
    assert serves(account(1, 20, {"forward regions": 8}), None, plain)
    assert not serves(account(1, 20, {"backward regions": 8}), None, plain)
    assert not serves(account(1, 20, {"forward regions": 8}), StepEvidence(0, backwards=1), plain)
    training = tuple(MS if name == "optimizer" else 0 for name in CATEGORIES)
    assert not serves(account(1, 20, {"forward regions": 8}), None, Base(128, 20 * MS, MS, 30 * MS, training))


def idle(ms: float, **more: object) -> dict[str, Told]:
    return {"other python": Told(waits_ns=round(ms * MS), waits="serve server.py:9: inbox.get() (in Queue.get)", **more)}  # type: ignore[arg-type]


class TestTheCause:
    def test_a_wait_is_told_as_one(self) -> None:
        found = explained({"other python": 100}, told=idle(95))
        assert found.named and causes(found) == [("waits for work", 0.95)]
        assert found.causes[0].detail == "serve server.py:9: inbox.get() (in Queue.get)"

    def test_what_is_slow_beside_it_comes_first(self) -> None:
        assert causes(explained({"compile": 400, "other python": 1600}, told=idle(1600))) == [
            ("compile", 0.2),
            ("waits for work", 0.8),
        ]
        both = idle(900, detail="save server.py:40", covered_ns=95 * MS)
        assert causes(explained({"other python": 1000}, told=both)) == [("other python", 0.1), ("waits for work", 0.9)]

    def test_a_thread_that_ran_did_not_wait(self) -> None:
        assert causes(explained({"other python": 100}, Outside(off_ns=5 * MS), idle(95)))[0][0] == "unexplained"

    def test_nothing_changes_for_a_job_that_does_not_wait(self) -> None:
        assert causes(explained({"other python": 100}, told=SEEN)) == [("other python", 1.0)]


def served(model: Model, waits_ms: list[float], *, trains: bool = False) -> None:
    """A step for each of these: a forward call of 8 ms that begins when the wait for its request is over."""
    model.apply(
        [
            target(),
            ev.ThreadSeen(0, 0, "MainThread", 77),
            ev.CodeSeen(0, 1, "serve", "serve", USER, 1),
            ev.CodeSeen(0, 2, "get", "Queue.get", GET[0][0], 1),
            ev.CodeSeen(0, 3, "wait", "Condition.wait", GET[1][0], 1),
            ev.SourceSeen(0, USER, 9, "request = inbox.get()"),
            added(1, "mark", None, name="server:answer", function="answer", file=USER, line=8),
            added(2, "forward", "0/0", file=USER),
            added(3, "optimizer", None, function="step", name="AdamW"),
        ]
    )
    t = 1000 * MS
    for wait in waits_ms:
        begin, quiet = t, t + 8 * MS
        rows = [(1, 0, 0, begin, begin), (2, 0, 0, begin, quiet)]
        until = quiet + round(wait * MS)
        rows += [(3, 0, 0, quiet, quiet + 2 * MS)] if trains else []
        model.apply([ev.Samples(quiet, tuple(rows))])
        for at in range(quiet + 20 * MS, until, 20 * MS):
            model.apply([ev.StackSeen(at, 0, quiet, ((1, 9, 0, 0), (2, 171, 0, 0), (3, 320, 0, 0)))])
        t = until
    model.apply([ev.TargetEnded(t, "exited", "exited with status 0", 0)])


def test_a_server_without_requests_gives_no_finding() -> None:
    model = Model()
    served(model, [2.0] * 40 + [4000.0] + [2.0] * 40 + [3000.0] + [2.0] * 40)
    assert [one.causes[0].cause for one in model.steps.slow] == ["waits for work"] * 2
    assert model.steps.slow[0].causes[0].detail.startswith("serve server.py:9: request = inbox.get() (in Queue.get), in ")
    assert findings(model) == []


def test_a_training_loop_that_waits_at_a_queue_is_slow_by_it() -> None:
    model = Model()
    served(model, [2.0] * 40 + [4000.0] + [2.0] * 40 + [3000.0] + [2.0] * 40, trains=True)
    assert [one.causes[0].cause for one in model.steps.slow] == ["other python"] * 2
    assert [one.kind for one in findings(model)] == ["slow_step"]


@pytest.mark.parametrize("trains", [False, True])
def test_a_server_with_ever_fewer_requests_has_not_become_slower(trains: bool) -> None:
    model = Model()
    served(model, [50.0 + at / 4 for at in range(1024)], trains=trains)
    assert [one.kind for one in findings(model)] == (["slower"] if trains else [])
