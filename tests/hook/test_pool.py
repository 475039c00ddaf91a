"""The pool of device memory, of an allocator that is played: there is no device on the machines where the tests run."""

from __future__ import annotations

import sys
import types
from collections.abc import Callable
from typing import Any

import pytest

from tuimon.events import PoolSampled
from tuimon.hook import pool as pool_module
from tuimon.hook import wire
from tuimon.hook.pool import MOST_SLOW, REST, SLOW_NS, UNUSED_ROUNDS
from tuimon.sources.live import LiveDecoder

SECOND = 1_000_000_000
Pool: Any = pool_module.Pool


class Hook:
    """What the pool sees of the session."""

    def __init__(self) -> None:
        self.instruments: dict[str, str] = {}
        self.messages: list[dict[str, Any]] = []
        self.outbox = types.SimpleNamespace(put=self.messages.append)

    def instrument(self, name: str, state: str) -> None:
        """Note a state."""
        self.instruments[name] = state


class Allocator:
    """torch's allocator on two devices, of which the job uses the first."""

    def __init__(self) -> None:
        self.reserved = [4096, 0]
        self.allocated = 1000
        self.takes_ns = 1000
        self.now_ns = 0
        self.asked: list[int] = []
        self.backend = "native"
        self.more: dict[str, Any] = {"num_alloc_retries": 1, "num_ooms": 0}

    def clock(self) -> int:
        """The time, which passes only in here."""
        return self.now_ns

    def stats(self, device: int) -> dict[str, Any]:
        """As torch gives them, nested."""
        self.asked.append(device)
        self.now_ns += self.takes_ns

        def of(current: int, peak: int) -> dict[str, Any]:
            return {pool: {"current": current, "peak": peak, "allocated": 9, "freed": 9} for pool in ("all", "small_pool")}

        return {
            "allocated_bytes": of(self.allocated, 3000),
            "reserved_bytes": of(self.reserved[device], 4096),
            "active_bytes": of(1200, 3200),
            "inactive_split_bytes": of(500, 600),
            **self.more,
        }


@pytest.fixture
def allocator(monkeypatch: pytest.MonkeyPatch) -> Allocator:
    """Behind `torch.cuda` and `torch._C`. Whatever else is asked of CUDA is an error."""
    here = Allocator()
    properties = types.SimpleNamespace(uuid="00ab-cd", pci_domain_id=0, pci_bus_id=0x3B, pci_device_id=0)
    cuda = types.SimpleNamespace(_initialized=True, get_device_properties=lambda device: properties)
    torch_c = types.SimpleNamespace(
        _cuda_memoryStats=here.stats, _cuda_getDeviceCount=lambda: 2, _cuda_getAllocatorBackend=lambda: here.backend
    )
    monkeypatch.setitem(sys.modules, "torch.cuda", cuda)
    monkeypatch.setitem(sys.modules, "torch._C", torch_c)
    return here


@pytest.fixture
def hook() -> Hook:
    """A session that is played."""
    return Hook()


@pytest.fixture
def second(allocator: Allocator, hook: Hook) -> Callable[[], None]:
    """A second passes, and the hook's thread comes by."""
    pool = Pool(hook, allocator.clock)

    def pass_() -> None:
        allocator.now_ns += SECOND
        pool.second()

    return pass_


def events(hook: Hook) -> list[PoolSampled]:
    """What tuimon makes of the messages, through the frames."""
    decoder, found = LiveDecoder(1, "train.py", "run"), []
    for message in hook.messages:
        found += decoder.frame(wire.JSON_FRAME, wire.json_frame(message)[wire.HEADER.size :])
    assert all(isinstance(event, PoolSampled) for event in found)
    return found  # type: ignore[return-value]


def test_what_the_pool_holds_reaches_tuimon(second: Callable[[], None], hook: Hook) -> None:
    second()
    (event,) = events(hook)
    assert event == PoolSampled(
        t_ns=event.t_ns, device=0, uuid="GPU-00ab-cd", pci_bus_id="00000000:3B:00.0", allocated_bytes=1000, reserved_bytes=4096,
        active_bytes=1200, inactive_split_bytes=500, allocated_peak_bytes=3000, retries=1, ooms=0, backend="native",
    )  # fmt: skip
    assert hook.instruments == {"memory pool": "on"}


def test_only_what_has_changed_is_sent(second: Callable[[], None], allocator: Allocator, hook: Hook) -> None:
    second()
    second()
    assert len(hook.messages) == 1
    allocator.allocated = 2000
    second()
    allocator.reserved[0] = 0  # it has given all back: that is told too
    second()
    assert [(event.allocated_bytes, event.reserved_bytes) for event in events(hook)] == [(1000, 4096), (2000, 4096), (2000, 0)]


def test_a_device_that_is_not_used_is_seldom_asked_and_never_told(
    second: Callable[[], None], allocator: Allocator, hook: Hook
) -> None:
    for _ in range(UNUSED_ROUNDS):
        second()
    assert allocator.asked.count(0) == UNUSED_ROUNDS and allocator.asked.count(1) == 1
    allocator.reserved[1] = 64
    second()
    assert [event.device for event in events(hook)] == [0, 1]
    second()
    assert allocator.asked.count(1) == 3


def test_nothing_is_asked_before_the_job_has_initialised_cuda(
    second: Callable[[], None], allocator: Allocator, hook: Hook
) -> None:
    cuda: Any = sys.modules["torch.cuda"]
    for state in (False, None, 1, object()):
        cuda._initialized = state
        second()
    assert allocator.asked == [] and hook.instruments == {} and hook.messages == []
    cuda._initialized = True
    second()
    assert allocator.asked == [0, 1]


def test_a_job_without_torch_is_left_alone(hook: Hook, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("torch", "torch.cuda", "torch._C"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    Pool(hook).second()
    assert hook.instruments == {} and hook.messages == [] and "torch" not in sys.modules


@pytest.mark.parametrize("backend", ["cudaMallocAsync", "pluggable"])
def test_an_allocator_that_would_ask_the_driver_is_not_read(
    second: Callable[[], None], allocator: Allocator, hook: Hook, backend: str
) -> None:
    allocator.backend = backend
    second()
    second()
    assert allocator.asked == [] and backend in hook.instruments["memory pool"]


def test_a_torch_without_the_function_is_said_by_its_name(second: Callable[[], None], hook: Hook) -> None:
    del sys.modules["torch._C"]._cuda_memoryStats
    second()
    assert hook.instruments == {"memory pool": "this torch has no torch._C._cuda_memoryStats"}


def test_figures_that_this_torch_does_not_have_are_none(second: Callable[[], None], allocator: Allocator, hook: Hook) -> None:
    allocator.more = {"inactive_split_bytes": {}, "active_bytes": None}
    second()
    (event,) = events(hook)
    assert event.inactive_split_bytes is event.active_bytes is event.retries is event.ooms is None
    assert event.allocated_bytes == 1000


@pytest.mark.parametrize("name", ["allocated_bytes", "reserved_bytes"])
def test_an_allocator_that_does_not_tell_what_it_holds_is_not_said_to_hold_nothing(
    second: Callable[[], None], allocator: Allocator, hook: Hook, name: str
) -> None:
    allocator.more = {name: {}}
    second()
    second()
    assert hook.messages == [] and name in hook.instruments["memory pool"] and allocator.asked == [0]


def test_a_device_without_a_name_is_told_all_the_same(second: Callable[[], None], hook: Hook) -> None:
    def angry(device: int) -> None:
        raise RuntimeError("driver")

    sys.modules["torch.cuda"].get_device_properties = angry  # type: ignore[attr-defined]
    second()
    (event,) = events(hook)
    assert event.uuid is None and event.pci_bus_id is None and event.reserved_bytes == 4096


def test_after_a_long_wait_for_the_allocator_it_rests(second: Callable[[], None], allocator: Allocator, hook: Hook) -> None:
    second()
    allocator.takes_ns = SLOW_NS - 1
    second()
    asked = len(allocator.asked)
    seconds = 0
    while len(allocator.asked) == asked:
        second()
        seconds += 1
    assert seconds >= REST * (SLOW_NS - 1) // SECOND
    assert hook.instruments["memory pool"] == "on"


def test_an_allocator_that_is_slow_again_and_again_is_left_alone(
    second: Callable[[], None], allocator: Allocator, hook: Hook
) -> None:
    second()
    allocator.takes_ns = SLOW_NS + 1
    for _ in range(100):
        second()
    assert "3 times in a row" in hook.instruments["memory pool"]
    assert allocator.asked.count(0) == 1 + MOST_SLOW
