"""XID errors through the real binding and the scripted library: who has them, who does not tell them, and how the wait ends."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tuimon.events import Event, GpuSampled, NotAvailable, XidSeen
from tuimon.sources.nvml import source as nvml
from tuimon.sources.nvml import xid as nvml_xid
from tuimon.sources.nvml.shared import SharedGpus
from tuimon.sources.nvml.source import NvmlSource

Play = Callable[[str], None]
Until = Callable[[Callable[[], bool]], None]


@pytest.fixture(autouse=True)
def nothing_is_left(fake_library: Path) -> Iterator[Callable[[], int]]:
    """Every set of events is given back, unless a GPU was lost: then the driver is not touched again."""
    count = ctypes.CDLL(str(fake_library)).fakeSets
    count.restype = ctypes.c_int
    before = count()
    yield lambda: count() - before
    assert count() == before


def watched(play: Play, script: str) -> tuple[list[Event], NvmlSource]:
    play(script)
    got: list[Event] = []
    source = NvmlSource(got.append, period=0.02)
    source.start()
    return got, source


def of(got: list[Event], kind: type[Event]) -> list[Event]:
    return [event for event in list(got) if type(event) is kind]


def test_an_error_is_told_once_with_its_gpu(play: Play, until: Until) -> None:
    got, source = watched(play, "* count 3\n* utilization 5\n1 xid !10 31 79 !10\n2 xid 43 !10")
    until(lambda: len(of(got, XidSeen)) == 3)
    assert source.stop(20)
    seen = {(event.index, event.xid, event.gpu_instance) for event in of(got, XidSeen)}  # type: ignore[attr-defined]
    assert seen == {(1, 31, None), (1, 79, None), (2, 43, None)}
    assert not of(got, NotAvailable)


def test_the_gpu_instance_is_told_where_there_is_one(play: Play, until: Until) -> None:
    got, source = watched(play, "* utilization 5\n0 xid 94 !10\n* xid.gi 3")
    until(lambda: bool(of(got, XidSeen)))
    assert source.stop(20)
    (seen,) = of(got, XidSeen)
    assert (seen.index, seen.xid, seen.gpu_instance) == (0, 94, 3)  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("script", "why"),
    [
        ("* events 0", "XID errors are not told of any GPU (GPU 0, 1: not supported on this GPU)"),
        ("* events !13", "XID errors are not told of any GPU (GPU 0, 1: needs a newer driver)"),
        ("1 events.register !4\n1 xid 79", "XID errors are not told (GPU 1: no permission)"),
        ("* events.create !17", "blocked by the operating system"),
    ],
)
def test_who_does_not_tell_them(play: Play, until: Until, script: str, why: str) -> None:
    got, source = watched(play, f"* count 2\n* utilization 5\n0 xid !10 48 !10\n{script}")
    until(lambda: bool(of(got, NotAvailable)))
    if "1 events" in script:
        until(lambda: bool(of(got, XidSeen)))  # the other one does
    assert source.stop(20)
    (event,) = of(got, NotAvailable)
    assert (event.what, event.why) == ("gpu xid", why)  # type: ignore[attr-defined]
    assert {event.index for event in of(got, XidSeen)} <= {0}  # type: ignore[attr-defined]


def test_a_wait_that_fails_at_once_does_not_spin_and_is_given_up(
    play: Play, until: Until, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nvml_xid, "REST_S", 0.02)
    waits: list[float] = []
    calls = nvml_xid.Calls.__call__

    def counted(self: nvml_xid.Calls, function: Callable[..., object], *arguments: object, **options: object) -> object:
        if getattr(function, "__name__", "") == "nvmlEventSetWait_v2":
            waits.append(0.0)
        return calls(self, function, *arguments, **options)

    monkeypatch.setattr(nvml_xid.Calls, "__call__", counted)
    got, source = watched(play, "* utilization 5\n* wait !999")
    until(lambda: bool(of(got, NotAvailable)))
    until(lambda: not any(thread.name == "tuimon-nvml-xid" for thread in threading.enumerate()))
    there = len(got)
    until(lambda: bool(of(got[there:], GpuSampled)))  # the values are read on
    assert source.stop(20)
    assert len(waits) == nvml_xid.MOST_FAILURES
    (event,) = of(got, NotAvailable)
    assert event.why == "the wait for them fails: unknown driver error"  # type: ignore[attr-defined]


def test_a_call_that_hangs_is_told_of_once_and_holds_up_nothing(
    play: Play, until: Until, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nvml, "SILENT_S", 0.1)
    monkeypatch.setattr(nvml, "WATCH_S", 0.02)
    got, source = watched(play, "* utilization 5\n0 events.register ~1000,0\n0 xid 79 !10")
    until(lambda: bool(of(got, NotAvailable)))
    there = len(got)
    until(lambda: bool(of(got[there:], GpuSampled)))
    until(lambda: bool(of(got, XidSeen)))
    assert source.stop(20)
    (event,) = of(got, NotAvailable)
    assert "(nvmlDeviceRegisterEvents)" in event.why  # type: ignore[attr-defined]


def test_some_failures_between_two_waits_are_nothing(play: Play, until: Until, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nvml_xid, "REST_S", 0.01)
    failures = " ".join(["!999"] * (nvml_xid.MOST_FAILURES - 1))
    got, source = watched(play, f"* utilization 5\n* wait 0 {failures} 0 {failures} 0\n0 xid !10 !10 79 !10")
    until(lambda: bool(of(got, XidSeen)))
    assert source.stop(20)
    assert not of(got, NotAvailable)


def test_a_gpu_that_is_lost_has_told_why_and_its_set_is_left_alone(
    play: Play, change: Play, until: Until, nothing_is_left: Callable[[], int], fake_library: Path
) -> None:
    # the scripted library aborts this process if a handle is used after it was lost
    got, source = watched(play, "* count 2\n* utilization 5\n0 xid !10 79 !10")
    until(lambda: bool(of(got, XidSeen)))
    change("* count 2\n1 utilization 5\n0 utilization !15")
    until(lambda: any(event.lost for event in of(got, GpuSampled)))  # type: ignore[attr-defined]
    there = len(got)
    until(lambda: {event.index for event in of(got[there:], GpuSampled)} == {0, 1})  # type: ignore[attr-defined]
    assert source.stop(20)
    assert nothing_is_left() == 1
    ctypes.CDLL(str(fake_library)).fakeForgetSets(1)


def test_a_gpu_that_is_lost_when_it_is_opened_is_not_asked_for(play: Play, until: Until, fake_library: Path) -> None:
    got, source = watched(play, "* count 2\n0 handle !15\n1 utilization 5\n1 xid !10 63 !10")
    until(lambda: bool(of(got, XidSeen)))
    assert source.stop(20)
    ctypes.CDLL(str(fake_library)).fakeForgetSets(1)


def test_a_gpu_that_is_opened_later_is_asked_for_then(play: Play, until: Until, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tuimon.sources.nvml.device.REST_S", 0.05)
    got, source = watched(play, "0 handle !4 0\n0 utilization 5\n0 xid 79 !10")
    until(lambda: bool(of(got, XidSeen)))
    assert source.stop(20)


def test_nvml_is_ended_after_the_last_thread(play: Play, until: Until, fake_library: Path) -> None:
    started = ctypes.CDLL(str(fake_library)).fakeStarted
    got, source = watched(play, "* count 2\n* utilization 5")
    until(lambda: len(got) > 4)
    assert started() == 1
    assert source.stop(20)
    until(lambda: started() == 0)


def test_who_shares_the_gpus_shares_their_errors(play: Play, until: Until) -> None:
    play("0 utilization 5\n0 xid !10 !10 79 !10")
    shared = SharedGpus()
    takers: dict[int, list[Event]] = {7: [], 8: []}
    for pid, got in takers.items():
        shared.join(pid, got.append)
    until(lambda: all(of(got, XidSeen) for got in takers.values()))
    over = shared._source
    for pid in takers:
        shared.leave(pid)
    assert over.stop(20)
