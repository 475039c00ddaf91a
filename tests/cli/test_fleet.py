"""Attaching as a state of a feed, and several feeds at once: refusals, cancelling, ends, one detach for all."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.cli.test_feed import FakeSession, ended
from tests.support.command import until
from tests.support.fake_feed import Job, empty
from tuimon import events as ev
from tuimon.app.feed import LET_GO_S
from tuimon.attach.connection import GOODBYE_S
from tuimon.attach.refusal import Refused
from tuimon.commands import watch as watch_module
from tuimon.commands.options import Options
from tuimon.commands.watch import report, watch
from tuimon.feed import LiveFeed
from tuimon.fleet import DETACH_S, Fleet
from tuimon.hook import wire
from tuimon.ways import Contact, Way


class Gate:
    """A way in that the test opens, or shuts."""

    def __init__(self, rank: int | None = None, pid: int | None = None) -> None:
        self.pid = pid or os.getpid()
        self.session = FakeSession(self.pid, {"detached": True, "left": []})
        self.contact: Contact | None = None
        self.answer = threading.Event()
        self.refusal: Refused | None = None
        self.deaf = False
        label = f"rank {rank}" if rank is not None else str(self.pid)
        self.way = Way(label, "python train.py", rank, None, self._open, self.pid)

    def _open(self, contact: Contact) -> Any:
        self.contact = contact
        while not self.answer.wait(0.01):
            if contact.cancelled.is_set() and not self.deaf:
                raise Refused("cancelled", "cancelled")
        if self.refusal is not None:
            raise self.refusal
        return self.session

    def refuse(self, code: str = "ptrace-scope", sentence: str = "the kernel does not allow it; use tuimon run") -> None:
        self.refusal = Refused(code, sentence)
        self.answer.set()

    def facts(self, world: int = 2) -> None:
        facts = {
            "k": "facts",
            "t": time.monotonic_ns(),
            "wall": time.time(),
            "pid": self.pid,
            "python": "3.12",
            "torch": "2.13",
        }
        self.session.sink(wire.JSON_FRAME, wire.json_frame(facts)[wire.HEADER.size :])


@pytest.fixture
def opened() -> Iterator[Callable[[LiveFeed | Fleet], Any]]:
    started: list[LiveFeed | Fleet] = []

    def start(feed: LiveFeed | Fleet) -> Any:
        started.append(feed)
        feed.start()
        return feed

    yield start
    for feed in started:
        feed.detach()


def attaching(feed: LiveFeed) -> str | None:
    feed.pump()
    return feed.model.target.attaching


def test_a_feed_says_how_the_attach_goes_and_then_what_the_hook_sends(opened) -> None:  # type: ignore[no-untyped-def]
    gate = Gate()
    feed = opened(LiveFeed(gate.way))
    assert attaching(feed) == f"attaching to {os.getpid()}"
    assert feed.silence() is None
    until(lambda: gate.contact is not None, "the attach")
    gate.contact.waiting("the main thread waits in futex", 2.5)  # type: ignore[union-attr]
    until(lambda: attaching(feed) == "the main thread waits in futex", "the sentence")
    assert feed.model.target.attaching_since_s == 2.5
    gate.answer.set()
    until(lambda: feed.silence() is not None, "the session")
    gate.facts()
    until(lambda: attaching(feed) is None, "the first word")
    assert feed.model.target.python == "3.12" and feed.model.target.command == "python train.py"
    feed.detach()
    assert ended(feed) and feed.model.target.ended == "detached"
    assert gate.session.detached == 1


def test_a_refusal_is_an_end_with_its_sentence(opened) -> None:  # type: ignore[no-untyped-def]
    gate = Gate()
    feed = opened(LiveFeed(gate.way))
    gate.refuse()
    until(lambda: ended(feed), "the refusal")
    assert feed.model.target.ended == "refused"
    assert feed.model.target.ended_detail == "the kernel does not allow it; use tuimon run"
    assert feed.refused is gate.refusal


def test_a_fault_of_ours_is_a_refusal_too_and_not_a_thread_that_is_lost(opened) -> None:  # type: ignore[no-untyped-def]
    def broken(contact: Contact) -> Any:
        raise ValueError("oh")

    feed = opened(LiveFeed(Way("1", "x", None, None, broken)))
    until(lambda: ended(feed), "the end")
    assert feed.refused is not None and feed.refused.code == "failed" and "ValueError: oh" in feed.refused.sentence


def test_a_hook_whose_session_cannot_begin_is_taken_out_again(opened) -> None:  # type: ignore[no-untyped-def]
    gate = Gate()

    def broken(sink: Any, on_end: Any) -> None:
        raise ValueError("oh")

    gate.session.start = broken  # type: ignore[method-assign]
    feed = opened(LiveFeed(gate.way))
    gate.answer.set()
    until(lambda: ended(feed), "the end")
    assert feed.model.target.ended == "refused" and not feed.attached
    assert feed.refused is not None and "ValueError: oh" in feed.refused.sentence
    assert gate.session.detached == 1


def test_a_line_that_stalls_at_the_start_holds_nobody_up(opened, monkeypatch: pytest.MonkeyPatch) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setattr("tuimon.feed.CANCEL_S", 0.05)
    gate = Gate()
    stalled, goes_on = threading.Event(), threading.Event()

    def slow(sink: Any, on_end: Any) -> None:
        stalled.set()
        assert goes_on.wait(60)

    gate.session.start = slow  # type: ignore[method-assign]
    feed = opened(LiveFeed(gate.way))
    gate.answer.set()
    assert stalled.wait(60)
    feed.detach()  # would wait for the line for ever
    assert gate.session.detached == 1 and feed.model.target.ended is None
    goes_on.set()
    feed._opener.join(60)
    assert ended(feed) and feed.model.target.ended == "detached"
    assert feed._around is not None and not feed._around.host.alive  # it was begun after the leaving, and ended


def test_leaving_cancels_an_attach_that_waits(opened) -> None:  # type: ignore[no-untyped-def]
    gate = Gate()
    feed = opened(LiveFeed(gate.way))
    until(lambda: gate.contact is not None, "the attach")
    feed.detach()
    assert ended(feed) and feed.model.target.ended == "detached" and "cancelled" in feed.model.target.ended_detail
    assert feed.refused is None and gate.session.detached == 0


def test_a_session_that_comes_too_late_is_let_go(opened, monkeypatch: pytest.MonkeyPatch) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setattr("tuimon.feed.CANCEL_S", 0.05)
    gate = Gate()
    gate.deaf = True
    feed = opened(LiveFeed(gate.way))
    until(lambda: gate.contact is not None, "the attach")
    feed.detach()
    gate.answer.set()
    until(lambda: gate.session.detached, "the late session to be let go")
    assert feed.silence() is None


def test_a_clock_of_another_host_counts_from_its_first_word(opened) -> None:  # type: ignore[no-untyped-def]
    gate = Gate()
    gate.session.brings_sources = True
    gate.session.clock = lambda: 77  # type: ignore[method-assign, assignment]
    feed = opened(LiveFeed(gate.way))
    until(lambda: attaching(feed), "the attach")
    gate.answer.set()
    until(lambda: feed.silence() is not None, "the session")
    facts = {"k": "facts", "t": 50, "wall": 1.0, "pid": 1, "python": "3.12", "torch": None}
    gate.session.sink(wire.JSON_FRAME, wire.json_frame(facts)[wire.HEADER.size :])
    until(lambda: attaching(feed) is None, "the first word")
    assert feed.model.now_ns == 50
    gate.session.on_end("the line was cut")
    until(lambda: ended(feed), "the end")
    assert (feed.model.target.ended, feed.model.target.ended_detail, feed.model.target.ended_ns) == (
        "lost",
        "the line was cut",
        77,
    )


def test_one_is_refused_and_the_others_go_on(opened) -> None:  # type: ignore[no-untyped-def]
    gates = [Gate(0), Gate(1), Gate(2)]
    fleet = opened(Fleet([LiveFeed(gate.way) for gate in gates]))
    assert fleet.title == "3 ranks of python train.py"
    gates[0].refuse()
    gates[2].answer.set()
    until(lambda: (fleet.pump(), fleet.refusals)[1], "the refusal")
    assert fleet.refused is None
    assert [(label, refusal.code) for label, refusal in fleet.refusals] == [("rank 0", "ptrace-scope")]
    until(lambda: fleet.members[2].silence() is not None, "the session of rank 2")
    gates[2].facts()
    until(lambda: (fleet.pump(), fleet.first is fleet.members[2])[1], "the first one that is attached")
    gates[1].refuse("dead", "process 7 has ended")
    fleet.detach()
    assert gates[2].session.detached == 1


def test_all_are_let_go_at_the_same_time(opened) -> None:  # type: ignore[no-untyped-def]
    gates = [Gate(rank) for rank in range(4)]
    together = threading.Barrier(4)

    def goodbye() -> dict[str, Any]:
        together.wait(20)  # breaks, and fails the test, if they come one after the other
        return {"detached": True, "left": ["a thread"]}

    for gate in gates:
        gate.session.detach = goodbye  # type: ignore[method-assign]
        gate.answer.set()
    fleet = opened(Fleet([LiveFeed(gate.way) for gate in gates]))
    until(lambda: all(feed.silence() is not None for feed in fleet.members), "the sessions")
    fleet.detach()
    assert fleet.left == [f"a thread (in rank {rank})" for rank in range(4)]


def test_labels_tell_apart_what_has_the_same_one() -> None:
    def labels(*members: tuple[str, int, str | None]) -> list[str]:
        feeds = [LiveFeed(Way(label, "x", None, host, lambda contact: None, pid)) for label, pid, host in members]  # type: ignore[arg-type, return-value]
        return [feed.label for feed in Fleet(feeds).members]

    assert labels(("397", 397, None), ("397", 397, "gpu7"), ("8", 8, None)) == ["397", "397@gpu7", "8"]
    assert labels(("rank 0", 11, None), ("rank 0", 12, None), ("rank 1", 13, None)) == ["11", "12", "rank 1"]


def test_a_hook_that_does_not_answer_is_said_to_be_still_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tuimon.feed.GOODBYE_S", 0.0)
    program = subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE)
    try:
        os.kill(program.pid, signal.SIGSTOP)
        os.waitid(os.P_PID, program.pid, os.WSTOPPED | os.WNOWAIT)
        feed = LiveFeed(FakeSession(program.pid), "train.py")  # type: ignore[arg-type]
        fleet = Fleet([feed])
        fleet.start()
        fleet.pump()
        fleet.detach()
        fleet.pump()
        (sentence,) = fleet.silent_goodbyes
        assert f"the hook is still in {program.pid}" in sentence and f"kill -CONT {program.pid}" in sentence
        assert (feed.model.target.ended, feed.model.target.ended_detail) == ("detached", sentence)
    finally:
        program.kill()
        program.wait()


def test_while_the_last_word_is_waited_for_the_silence_is_still_told(monkeypatch: pytest.MonkeyPatch) -> None:
    session = FakeSession(os.getpid(), {"detached": True, "left": []})
    feed = LiveFeed(session, "train.py")  # type: ignore[arg-type]
    seen: list[Any] = []

    def goodbye() -> dict[str, Any]:
        seen.append(feed.silence())
        return {"detached": True, "left": []}

    session.detach = goodbye  # type: ignore[method-assign]
    feed.start()
    feed.detach()
    assert seen[0] is not None and feed.silent_goodbye is None


def test_who_waits_for_a_goodbye_waits_longer_than_who_is_inside() -> None:
    assert GOODBYE_S < DETACH_S < LET_GO_S


def test_gpus_are_read_once_for_all(opened, monkeypatch: pytest.MonkeyPatch) -> None:  # type: ignore[no-untyped-def]
    made: list[Any] = []

    class Source:
        def __init__(self, put: Callable[[ev.Event], None], *, everybody: bool, pcie: bool) -> None:
            self.put, self.everybody, self.pcie, self.started, self.stopped = put, everybody, pcie, 0, 0
            made.append(self)

        def start(self) -> None:
            self.started += 1

        def stop(self, timeout: float = 2.0) -> bool:
            self.stopped += 1
            return True

        def waiting_since(self) -> float | None:
            return 2.5

    monkeypatch.setattr("tuimon.sources.nvml.shared.NvmlSource", Source)
    monkeypatch.setattr("tuimon.around.NvmlSource", Source)
    programs = [subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE) for _ in "ab"]
    gates = [Gate(rank, program.pid) for rank, program in enumerate(programs)]
    try:
        fleet = opened(Fleet([LiveFeed(gate.way, pcie=True) for gate in gates]))
        for gate in gates:
            gate.answer.set()
        until(lambda: all(feed.silence() is not None for feed in fleet.members), "the sessions")
        (source,) = made
        assert source.everybody and source.pcie and source.started == 1 and fleet.members[1].nvml_waiting() == 2.5
        held = ((gates[0].pid, 5 << 30), (1, 1 << 30))
        listed = (ev.GpuProcess(gates[0].pid, 5 << 30, 40.0), ev.GpuProcess(1, 1 << 30))
        until(lambda: len(fleet.members[1]._shared._takers) == 2, "both to have joined")
        source.put(ev.GpuSampled(1, 0, "GPU", 50.0, 6 << 30, 80 << 30, held=held, processes=listed))
        fleet.pump()
        first, second = (feed.model.surroundings.gpus[0] for feed in fleet.members)
        assert first.process_memory_bytes == 5 << 30 and first.held == () and first.missing == ()
        assert (
            second.process_memory_bytes is None and "is not in the GPU's list" in dict(second.missing)["process_memory_bytes"]
        )
        source.put(ev.GpuUnavailable(2, "none"))
        fleet.detach()
        assert source.stopped == 1
    finally:
        for program in programs:
            program.kill()
            program.wait()


# ------------------------------------------------------------------------------------------------------ without a screen


@pytest.fixture
def said(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    lines: list[str] = []
    monkeypatch.setattr(watch_module, "say", lines.append)
    return lines


def test_watching_ends_where_all_are_refused_and_says_what_is_waited_for(opened, said: list[str]) -> None:  # type: ignore[no-untyped-def]
    gate = Gate()
    feed = opened(LiveFeed(gate.way))
    until(lambda: gate.contact is not None, "the attach")
    gate.contact.waiting("the main thread waits in futex", 12.0)  # type: ignore[union-attr]
    why: list[str] = []
    watcher = threading.Thread(target=lambda: why.append(watch(feed, Options(), threading.Event())))
    watcher.start()
    until(lambda: said, "the sentence")
    gate.refuse()
    watcher.join(60)
    assert why == ["refused"]
    assert "the main thread waits in futex, for 12 s; waiting, Ctrl-C cancels" in said


def test_a_fleet_is_watched_until_all_have_ended(opened, said: list[str]) -> None:  # type: ignore[no-untyped-def]
    gates = [Gate(0), Gate(1)]
    fleet = opened(Fleet([LiveFeed(gate.way) for gate in gates]))
    gates[0].answer.set()
    gates[1].refuse()
    until(lambda: fleet.members[0].silence() is not None, "the session")
    gates[0].facts()
    fleet.members[0]._inbox.put(ev.TargetEnded(time.monotonic_ns(), "exited", "it is over", 0))
    assert watch(fleet, Options(), threading.Event()) == "ended"
    assert "rank 1: not attached: the kernel does not allow it; use tuimon run" in said


def test_a_duration_ends_though_the_hook_says_nothing_that_can_be_read(opened, said: list[str]) -> None:  # type: ignore[no-untyped-def]
    gate = Gate()
    feed = opened(LiveFeed(gate.way))
    gate.answer.set()
    until(lambda: feed.silence() is not None, "the session")
    gate.session.sink(wire.JSON_FRAME, b'{"k": "facts", "t": null}')
    assert watch(feed, Options(duration=0.0), threading.Event()) == "duration"
    assert "some events" in feed.model.coverage.not_available


def test_steps_are_those_of_the_first_rank(opened, said: list[str]) -> None:  # type: ignore[no-untyped-def]
    gates = [Gate(0), Gate(1)]
    fleet = opened(Fleet([LiveFeed(gate.way) for gate in gates]))
    for gate in gates:
        gate.answer.set()
    until(lambda: all(feed.silence() is not None for feed in fleet.members), "the sessions")
    job = Job()
    job.steps(5)
    fleet.members[1]._inbox.put_many(empty())
    fleet.members[0]._inbox.put_many(job.script.events)
    assert watch(fleet, Options(steps=5), threading.Event()) == "steps"
    assert watch(fleet, Options(steps=6, duration=0.05), threading.Event()) == "duration"


@pytest.mark.parametrize("form", ["text", "md", "json"])
def test_the_report_has_a_row_for_each(form: str, opened, said: list[str], capsys: pytest.CaptureFixture[str]) -> None:  # type: ignore[no-untyped-def]
    gates = [Gate(0), Gate(1)]
    fleet = opened(Fleet([LiveFeed(gate.way) for gate in gates]))
    gates[1].answer.set()
    gates[0].refuse()
    until(lambda: fleet.members[1].silence() is not None, "the session")
    job = Job()
    job.steps(5)
    fleet.members[1]._inbox.put_many(job.script.events)
    until(lambda: (fleet.pump(), fleet.refusals)[1], "the refusal")
    assert report(fleet, Options(format=form)) == 0
    written = capsys.readouterr().out
    if form == "json":
        import json

        made = json.loads(written)
        refused, attached = made["ranks"]
        assert (refused["rank"], refused["state"], refused["step"]) == (0, "refused", None)
        assert "tuimon run" in refused["why"]
        assert (attached["rank"], attached["state"], attached["step"]["n"], attached["lateness"]) == (1, "attached", 5, None)
        gaps = {gap["what"]: gap["why"] for gap in made["coverage"]["not_available"]}
        assert gaps["ranks[rank 0].step"] == "tuimon was not attached to it" and "ranks[].lateness" in gaps
        assert made["steps"]["n"] == 5
    else:
        row = next(
            line for line in written.splitlines() if "attached" in line and "4242" not in line and "1" in line.split()[:2]
        )
        assert "24." in row or "ms" in row
        assert "rank 0: the kernel does not allow it; use tuimon run" in written
