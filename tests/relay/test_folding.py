"""What a node folds of a job: the same steps as one has who is sent every call."""

from __future__ import annotations

import json

import pytest

from tests.support.cluster import Job, Rank
from tuimon import events as ev
from tuimon.hook import wire
from tuimon.model import Model
from tuimon.relay.attachment import Attachment
from tuimon.relay.folding import Folding
from tuimon.sources import carried
from tuimon.sources.live import LiveDecoder

OFFSET = 5_000_000_000_000


def reading(t_ns: int) -> ev.HostSampled:
    """A reading of the host that tells nothing but its time."""
    return ev.HostSampled(t_ns, None, None, None, None, None, None)


class Both:
    """One rank, taken in as it is and by way of its node."""

    def __init__(self, over_ns: int | None = None) -> None:
        self.job = Job(2, 10.0, 1)
        self.job.end = 1_000_000_000
        self.rank = Rank(0, OFFSET, 1.79e9, self.job, 2)
        self.folding = Folding(100_000, "injected", over_ns)
        self.near, self.far = LiveDecoder(100_000, "train", "injected"), LiveDecoder(100_000, "train", "injected")
        self.plain, self.folded = Model(), Model()
        self.raw_bytes = self.folded_bytes = 0
        for frame in self.rank.prelude(self.job.end):
            self.give(frame)

    def give(self, frame: bytes) -> bool:
        """A frame of the hook's; gives whether the node passes it on."""
        kind, body = frame[0], frame[wire.HEADER.size :]
        self.raw_bytes += len(frame)
        self.plain.apply(self.near.frame(kind, body))
        passes = self.folding.frame(kind, body)
        if passes:
            self.folded_bytes += len(frame)
            self.folded.apply(self.far.frame(kind, body))
        return passes

    def step(self, times: float = 1.0) -> None:
        """One step, so many times as long as usual."""
        usual, self.job.period = self.job.period, self.job.period * times
        _, by_rank = self.job.next()
        self.job.period = usual
        main = self.job.stream.main
        self.give(wire.samples_frame([(n, main, f, b + OFFSET, e + OFFSET) for n, f, b, e in by_rank[0]]))

    def tell(self) -> ev.StepsFolded | None:
        """What the node has folded goes over the line."""
        told = self.folding.told()
        if told is not None:
            frame = wire.json_frame(carried.encode(told))
            self.folded_bytes += len(frame)
            self.folded.apply(self.far.frame(frame[0], frame[wire.HEADER.size :]))
        return told


def test_the_steps_are_those_that_the_calls_give() -> None:
    both = Both()
    for at in range(100):
        both.step(5.0 if at == 60 else 1.0)
        if at % 5 == 4:
            assert both.tell() is not None
    both.give(both.rank.status(both.job.end + 2_000_000_000))
    later = reading(both.job.end + OFFSET + 3_000_000_000)  # by then all that will be known of the slow one is known
    both.folding.event(later)
    both.plain.apply([later])
    both.tell()
    plain, folded = both.plain.steps, both.folded.steps
    assert (folded.n + 1, folded.source, folded.how) == (plain.n, plain.source, plain.how) and plain.n == 100  # the last waits
    for one, other in zip(list(plain.accounts)[:-1], folded.accounts, strict=True):
        assert one.index == other.index and one.begin_ns == other.begin_ns and abs(one.end_ns - other.end_ns) < 1000
        assert all(abs(a - b) < 1000 for a, b in zip(one.parts, other.parts, strict=True))
    assert [one.account.index for one in folded.slow] == [one.account.index for one in plain.slow] != []
    assert folded.slow[0].causes[0].cause == plain.slow[0].causes[0].cause
    assert both.folded.now_ns >= folded.last_end_ns
    assert both.folded.regions.keys() == both.plain.regions.keys()
    assert both.folded_bytes < both.raw_bytes


def test_what_is_slow_is_told_to_the_node() -> None:
    slow = {}
    for over_ns in (None, 1_000_000, 1_000_000_000):
        both = Both(over_ns)
        for at in range(100):
            both.step(5.0 if at == 60 else 1.0)
        both.folding.event(reading(both.job.end + OFFSET + 3_000_000_000))
        both.tell()
        slow[over_ns] = [one.account.index for one in both.folded.steps.slow]
    assert slow[None] == slow[1_000_000] != [] == slow[1_000_000_000]


@pytest.mark.parametrize("over", ["5", 5.0, -1, True])
def test_an_attach_that_says_it_wrongly_is_refused(over: object) -> None:
    request = {"pid": 1, "options": {}, "fold": True, "over": over}
    with pytest.raises(ValueError, match="over is a number of ns"):
        Attachment(1, None, request)  # type: ignore[arg-type]


def test_calls_that_are_passed_on_all_the_same_count_no_step_twice() -> None:
    both = Both()
    for _ in range(10):
        both.step()
    both.tell()
    before = list(both.folded.steps.accounts)
    main = both.job.stream.main
    for _ in range(12):
        rows = both.job.next()[1][0]
        both.folded.apply([ev.Samples(0, tuple((n, main, f, b + OFFSET, e + OFFSET) for n, f, b, e in rows))])
    both.folded.apply([ev.StackSeen(both.folded.now_ns, main, both.folded.now_ns - 1, ((1, 10, 0, 0),))])
    assert list(both.folded.steps.accounts) == before and both.folded.steps.n == both.plain.steps.n - 1  # the last waits
    assert both.folded.steps.source == "optimizer"
    assert sum(region.calls for region in both.folded.regions.values()) == 12


def test_what_is_said_seldom_passes_and_what_is_said_often_does_not() -> None:
    both = Both()
    status = both.rank.status(both.job.end)
    assert both.give(status) and not both.give(both.rank.status(both.job.end + 1))
    assert both.folding.event(ev.GpuUnavailable(1, "none"))
    assert both.folding.event(reading(1)) and not both.folding.event(reading(2))
    assert not both.folding.event(ev.ThreadSampled(1, 7, 0, 0))
    assert both.tell() is None


def test_rows_that_are_none_are_counted_and_said() -> None:
    model = Model()
    model.apply([ev.StepsFolded(1, "optimizer", "", ("[1, 2", "[]"))])
    model.apply([ev.StepsFolded(1, "optimizer", "", ("[]", json.dumps([0, 3, 10**9, 5, 0, [0] * 9 + [5], []])))])
    assert model.steps.n == 4 and "2 of its node's messages" in model.coverage.not_available["some steps"]


def test_a_reading_of_each_thing_passes_by_itself_and_a_gpu_that_is_lost_at_once() -> None:
    folding = Folding(100_000, "injected")
    well = [ev.GpuSampled(1, index, "H200", 1.0, 2, 3) for index in (0, 1)]
    parts = [ev.MigSampled(1, 0, number, "", "", None, None, None, None, None) for number in (0, 1)]
    for event in [*well, *parts, ev.ProcessTreeSampled(1, ()), ev.PoolSampled(1, 0, None, None, 1, 2)]:
        assert folding.event(event)
        assert not folding.event(event)
    assert folding.event(ev.GpuSampled(2, 0, "H200", None, None, None, lost="GPU is lost"))
    for event in (ev.XidSeen(3, 0, 79), ev.GpuSilent(3, 1, 3.0, "nvmlDeviceGetPowerUsage")):
        assert folding.event(event) and folding.event(event)
