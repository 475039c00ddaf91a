"""GPM through the real binding and the scripted library: values between two samples, and what is said where there are none."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tuimon.events import Event, GpuSampled
from tuimon.sources.nvml import gpm as nvml_gpm
from tuimon.sources.nvml.device import Device
from tuimon.sources.nvml.gpm import ALL, METRICS, Gpm
from tuimon.sources.nvml.readers import Calls
from tuimon.sources.nvml.source import NvmlSource, binding

Play = Callable[[str], None]
Until = Callable[[Callable[[], bool]], None]

HOPPER = """
0 gpm.support 1
0 gpm.2 93.5
0 gpm.3 41
0 gpm.5 71.5 12.5
0 gpm.10 38
0 gpm.11 0
0 gpm.12 !3
0 gpm.13 101.7
"""


@pytest.fixture
def time_passes(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[float], None]]:
    """A clock of its own for GPM."""
    now = [1000.0]
    monkeypatch.setattr(nvml_gpm.time, "monotonic", lambda: now[0])
    yield lambda seconds: now.__setitem__(0, now[0] + seconds)


@pytest.fixture(autouse=True)
def nothing_is_left(fake_library: Path) -> Iterator[None]:
    """Every sample that a test has had is given back, unless its GPU was lost: then the driver is not touched again."""
    count = ctypes.CDLL(str(fake_library)).fakeSamples
    before = count()
    yield
    assert count() == before


def opened(play: Play, script: str) -> tuple[Any, Any]:
    play(script)
    nvml = binding()
    nvml.nvmlInit()
    return nvml, nvml.nvmlDeviceGetHandleByIndex(0)


def test_values_are_those_between_two_samples(play: Play, time_passes: Callable[[float], None]) -> None:
    nvml, handle = opened(play, HOPPER)
    gpm = Gpm(nvml, Calls())
    assert gpm.read(handle) == ({}, [(ALL, "not yet: it takes two readings")])
    time_passes(1)
    values, missing = gpm.read(handle)
    assert values == {
        "sm_activity": 93.5,
        "sm_occupancy": 41.0,
        "tensor_activity": 71.5,
        "dram_activity": 38.0,
        "fp64_activity": 0.0,
    }
    assert missing == [
        ("fp32_activity", "not supported on this GPU"),
        ("fp16_activity", "the driver gave 101.7, which cannot be"),
    ]
    time_passes(1)
    assert gpm.read(handle)[0]["tensor_activity"] == 12.5
    gpm.close()


def test_two_readings_within_a_tenth_of_a_second_take_one_sample(play: Play, time_passes: Callable[[float], None]) -> None:
    nvml, handle = opened(play, HOPPER)
    gpm = Gpm(nvml, Calls())
    gpm.read(handle)
    time_passes(0.09)
    assert gpm.read(handle) == ({}, [(ALL, "not yet: it takes two readings")])
    time_passes(0.02)
    values, _ = gpm.read(handle)
    time_passes(0.05)
    assert gpm.read(handle)[0] == values and values["tensor_activity"] == 71.5
    gpm.close()


@pytest.mark.parametrize(
    ("script", "says"),
    [
        ("0 utilization 1", "not supported on this GPU (Hopper and newer have it)"),
        ("0 gpm.support !3", "not supported"),
        ("0 gpm.support !13", "needs a newer driver"),
        ("0 gpm.support 1\n0 gpm.get !4", "no permission"),
    ],
)
def test_why_there_is_none(play: Play, time_passes: Callable[[float], None], script: str, says: str) -> None:
    nvml, handle = opened(play, script)
    gpm = Gpm(nvml, Calls())
    for _ in range(3):
        values, missing = gpm.read(handle)
        assert values == {}
        ((what, why),) = missing
        assert what == ALL and says in why
        time_passes(1)
    gpm.close()


def test_a_permission_that_goes_and_comes_back_is_a_state(play: Play, time_passes: Callable[[float], None]) -> None:
    nvml, handle = opened(play, HOPPER + "0 gpm.get 0 0 !4 0")
    gpm = Gpm(nvml, Calls())
    gpm.read(handle)
    time_passes(1)
    assert gpm.read(handle)[0]
    time_passes(1)
    assert gpm.read(handle) == ({}, [(ALL, "no permission")])
    time_passes(nvml_gpm.REST_S - 1)
    assert gpm.read(handle) == ({}, [(ALL, "no permission")])
    time_passes(2)
    assert gpm.read(handle)[1] == [(ALL, "not yet: it takes two readings")]  # what lies before says nothing of now
    time_passes(1)
    assert gpm.read(handle)[0]["dram_activity"] == 38.0
    gpm.close()


def test_a_gpu_that_is_lost_at_a_sample_is_lost(play: Play) -> None:
    # the scripted library aborts this process if a handle is used after it was lost
    nvml, _ = opened(play, HOPPER + "0 gpm.get !15\n0 utilization 5")
    device = Device(nvml, Calls(), 0)
    for _ in range(3):
        sample = device.sample()
        assert sample.utilization is None
        assert "lost" in dict(sample.missing)["gpu"]
    device.close()


def test_an_older_binding_is_named(play: Play, monkeypatch: pytest.MonkeyPatch) -> None:
    nvml, handle = opened(play, HOPPER)
    monkeypatch.delattr(nvml, "nvmlGpmMetricsGet")
    assert Gpm(nvml, Calls()).read(handle) == ({}, [(ALL, "needs a newer nvidia-ml-py")])


def test_the_source_puts_them_into_its_events(play: Play, until: Until) -> None:
    play(HOPPER)
    got: list[Event] = []
    source = NvmlSource(got.append, period=0.12)
    source.start()
    until(lambda: any(isinstance(event, GpuSampled) and event.sm_activity is not None for event in got))
    assert source.stop(20)
    seen = next(event for event in got if isinstance(event, GpuSampled) and event.sm_activity is not None)
    assert seen.dram_activity == 38.0
    assert dict(seen.missing)["fp32_activity"] == "not supported on this GPU"
    for field in METRICS.values():
        assert (getattr(seen, field) is None) == (field in dict(seen.missing))
