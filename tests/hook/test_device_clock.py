"""The device's clock, against a device that is played: there is none on the machines where the tests run."""

from __future__ import annotations

import ctypes  # noqa: F401 - torch has it loaded
import sys
import types
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tuimon.hook import device_clock
from tuimon.hook.device_clock import EVERY, MOST, DeviceClock


class Device:
    """A stream of work: an event that is recorded is done once the device has come so far."""

    def __init__(self) -> None:
        self.queued = 0
        self.done = 0
        self.capturing = False
        self.index = 0
        self.synchronised = 0
        self.recorded = 0
        self.made = 0
        self.broken = False


class Hook:
    """What the clock sees of the session."""

    def __init__(self) -> None:
        self.here = [True]
        self.instruments: dict[str, str] = {}
        self.messages: list[dict[str, Any]] = []
        self.outbox = types.SimpleNamespace(put=self.messages.append, queue=deque(), dropped=[0], limit=1000)

    def instrument(self, name: str, state: str) -> None:
        """Note a state."""
        self.instruments[name] = state

    def guarded(self, name: str, function: Callable[..., Any], otherwise: Any, *args: Any) -> Any:
        """Here nothing is held back."""
        return function(*args)

    def rows(self, kind: str) -> list[list[int]]:
        """The rows of all messages of a kind."""
        return [row for message in self.messages if message["k"] == kind for row in message["rows"]]


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch) -> Iterator[Device]:
    """A device behind `torch.cuda`."""
    here = Device()

    class Event:
        def __init__(self, enable_timing: bool = False) -> None:
            assert enable_timing
            here.made += 1
            self.at: int | None = None

        def record(self) -> None:
            if here.broken:
                raise RuntimeError("CUDA error")
            assert not here.capturing
            here.recorded += 1
            self.at = here.queued

        def query(self) -> bool:
            assert not here.capturing and self.at is not None
            return here.done >= self.at

        def elapsed_time(self, other: Event) -> float:
            assert self.at is not None and other.at is not None
            return float(other.at - self.at)  # ms

        def synchronize(self) -> None:
            here.synchronised += 1

    cuda = types.ModuleType("torch.cuda")
    cuda.Event = Event  # type: ignore[attr-defined]
    cuda._initialized = True  # type: ignore[attr-defined]
    cuda.is_current_stream_capturing = lambda: here.capturing  # type: ignore[attr-defined]
    cuda.current_device = lambda: here.index  # type: ignore[attr-defined]

    def synchronize() -> None:
        here.synchronised += 1

    cuda.synchronize = synchronize  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "torch.cuda", cuda)
    monkeypatch.setattr(device_clock, "hide_from_dynamo", lambda code: (lambda: None, lambda: None))
    monkeypatch.setattr(device_clock, "_capture_mode", lambda: lambda pointer: 0)
    yield here
    assert here.synchronised == 0


def region(device: Device, hook: Hook, clock: DeviceClock, number: int = 1, work: int = 5) -> Callable[[], None]:
    """A compiled graph that queues so much work, with the clock's timer around it."""

    def graph() -> None:
        device.queued += work

    timed: Callable[[], None] = clock.call_timer(graph, number, hook.outbox)
    return timed


def test_without_cuda_there_is_no_such_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "torch.cuda", raising=False)
    clock = DeviceClock(Hook())
    clock.poll()
    assert not clock.is_there()
    cuda = types.ModuleType("torch.cuda")
    cuda._initialized = False  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "torch.cuda", cuda)
    assert not clock.is_there()


def test_one_call_in_so_many_is_timed_on_the_device(device: Device) -> None:
    hook = Hook()
    clock = DeviceClock(hook)
    assert clock.is_there()
    run = region(device, hook, clock)
    for _ in range(2 * EVERY):
        run()
    clock.poll()
    assert hook.rows("device") == []  # the device has not come so far
    device.done = device.queued
    clock.poll()
    assert [(row[0], row[2]) for row in hook.rows("device")] == [(1, 5_000_000)] * 2
    assert [row[1] for row in hook.rows("device")] == [hook.outbox.queue[at][3] for at in (0, EVERY)]
    assert len(hook.outbox.queue) == 2 * EVERY and device.recorded == 4


def test_events_are_used_again_and_bounded(device: Device) -> None:
    hook = Hook()
    clock = DeviceClock(hook)
    assert clock.is_there()
    run = region(device, hook, clock)
    for _ in range((MOST + 5) * EVERY):
        run()
    assert device.made == 2 * MOST
    device.done = device.queued
    clock.poll()
    clock.poll()
    run()
    assert device.made == 2 * MOST and len(hook.rows("device")) >= MOST - 1


def test_nothing_is_recorded_while_a_stream_is_captured(device: Device) -> None:
    hook = Hook()
    clock = DeviceClock(hook)
    assert clock.is_there()
    run = region(device, hook, clock)
    device.capturing = True
    run()
    assert device.recorded == 0 and len(hook.outbox.queue) == 1

    def captured() -> None:
        device.capturing = True

    device.capturing = False
    clock.call_timer(captured, 2, hook.outbox)()
    assert device.recorded == 1
    device.capturing = False
    clock.poll()
    assert hook.rows("device") == []


@pytest.mark.parametrize(
    ("waits", "busy", "expected"), [(True, True, [9, 1, 1]), (False, True, [9, 1, 0]), (True, False, None)]
)
def test_a_wait_is_seen_where_the_device_was_busy_before(
    device: Device, waits: bool, busy: bool, expected: list[int] | None
) -> None:
    hook = Hook()
    clock = DeviceClock(hook)
    assert clock.is_there()
    resume = clock.resume_timer(lambda: None, 9, hook.outbox)
    run = region(device, hook, clock, work=5 if busy else 0)
    run()
    if waits:
        device.done = device.queued
    resume()
    resume()  # no region in between: nothing to look at
    run()  # not timed on the device: what was seen before says nothing of this one
    resume()
    clock.poll()
    assert hook.rows("sync") == ([] if expected is None else [expected])
    assert [row[0] for row in hook.outbox.queue] == [1, 9, 9, 1, 9]


def test_a_graph_that_raises_raises(device: Device) -> None:
    hook = Hook()
    clock = DeviceClock(hook)
    assert clock.is_there()

    def fails() -> None:
        raise ValueError("the job's own")

    with pytest.raises(ValueError, match="own"):
        clock.call_timer(fails, 1, hook.outbox)()
    assert [row[2] for row in hook.outbox.queue] == [1]


def test_a_device_that_fails_switches_the_clock_off(device: Device) -> None:
    hook = Hook()
    clock = DeviceClock(hook)
    assert clock.is_there()
    run = region(device, hook, clock)
    device.broken = True
    for _ in range(3 * EVERY):
        run()
    assert len(hook.outbox.queue) == 3 * EVERY and not clock.is_there()
    assert hook.instruments["device clock"].startswith("failed: RuntimeError")
    clock.poll()


def test_another_device_is_not_mixed_in(device: Device) -> None:
    hook = Hook()
    clock = DeviceClock(hook)
    assert clock.is_there()

    def moves() -> None:
        device.index = 1

    clock.call_timer(moves, 1, hook.outbox)()
    clock.poll()
    assert hook.rows("device") == [] and device.recorded == 1


@pytest.mark.parametrize("lacks", ["capture mode", "hiding", "Event"])
def test_where_it_cannot_be_done_without_harm_it_is_not_done(
    device: Device, lacks: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if lacks == "capture mode":
        monkeypatch.setattr(device_clock, "_capture_mode", lambda: None)
    elif lacks == "hiding":
        monkeypatch.setattr(device_clock, "hide_from_dynamo", lambda code: None)
    else:
        monkeypatch.delattr(sys.modules["torch.cuda"], "Event")
    hook = Hook()
    assert not DeviceClock(hook).is_there()
    assert hook.instruments["device clock"] not in ("", "on")


def test_a_session_that_is_over_is_silent(device: Device) -> None:
    hook = Hook()
    clock = DeviceClock(hook)
    assert clock.is_there()
    run = region(device, hook, clock)
    resume = clock.resume_timer(lambda: None, 9, hook.outbox)
    hook.here[0] = False
    run()
    resume()
    assert device.recorded == 0 and not hook.outbox.queue
