"""MIG through the real binding and the scripted library: the parts of a GPU, holes, parts that go, and what each tells."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.sources.conftest import Clock
from tuimon.events import Event, GpuSampled, MigSampled
from tuimon.sources import carried
from tuimon.sources.nvml import words as nvml_words
from tuimon.sources.nvml.device import Device
from tuimon.sources.nvml.mig import GONE
from tuimon.sources.nvml.processes import Job
from tuimon.sources.nvml.readers import RARE_S, Calls
from tuimon.sources.nvml.shared import SharedGpus
from tuimon.sources.nvml.source import NvmlSource, binding

Play = Callable[[str], None]
Until = Callable[[Callable[[], bool]], None]

PARENT = """
0 name NVIDIA_H200
0 mig.mode 1
0 mig.count 7
0 gpm.support 1
0 gpm.2.3 61
0 gpm.5.3 22
0 gpm.10.3 40
0 gpm.2.5 9
0 gpm.5.5 !3
0 gpm.10.5 1
"""
FIRST = """
0.0 handle 0
0.0 name NVIDIA_H200_MIG_1g.18gb
0.0 uuid MIG-1
0.0 gi 3
0.0 ci 0
0.0 sms 16
0.0 memory.total 18000000000
0.0 memory.used 5000000000
0.0 processes 2
0.0 process.0.pid 7
0.0 process.0.memory 4000
0.0 process.1.pid 9
0.0 process.1.memory 500
"""
THIRD = """
0.2 handle 0
0.2 name NVIDIA_H200_MIG_1c.2g.35gb
0.2 uuid MIG-2
0.2 gi 5
0.2 ci 1
0.2 sms 32
0.2 memory.total 35000000000
0.2 memory.used 70000000
0.2 processes 0
"""


@pytest.fixture(autouse=True)
def nothing_is_left(fake_library: Path) -> Iterator[Callable[[], int]]:
    """Every sample of GPM is given back, unless the GPU was lost: then the driver is not touched again."""
    count = ctypes.CDLL(str(fake_library)).fakeSamples
    before = count()
    yield lambda: count() - before
    assert count() == before


@pytest.fixture
def device(play: Play) -> Iterator[Callable[..., Device]]:
    opened: list[Device] = []

    def start(script: str, job: Job | None = None, *, everybody: bool = False) -> Device:
        play(script)
        module = binding()
        module.nvmlInit()
        opened.append(Device(module, Calls(), 0, job, everybody=everybody))
        return opened[-1]

    yield start
    for one in opened:
        if one.lost is None:
            one.close()


def look(gpu: Device) -> dict[int, MigSampled]:
    gpu.sample()
    return {part.number: part for part in gpu.parts()}


def test_the_parts_with_a_hole_between_them(device: Callable[..., Device], clock: Clock) -> None:
    gpu = device(PARENT + FIRST + THIRD, Job(7, lambda: frozenset({7, 9})))
    look(gpu)
    clock.now += 1
    whole = gpu.sample()
    first, third = gpu.parts()
    assert (whole.mig_mode, whole.utilization, dict(whole.missing)["utilization"]) == (True, None, nvml_words.MIG)
    assert (first.gpu, first.number, first.name, first.profile, first.uuid) == (
        0,
        0,
        "NVIDIA H200 MIG 1g.18gb",
        "1g.18gb",
        "MIG-1",
    )
    assert (first.gpu_instance, first.compute_instance, first.sms) == (3, 0, 16)
    assert (first.memory_used_bytes, first.memory_total_bytes) == (5_000_000_000, 18_000_000_000)
    assert (first.process_memory_bytes, first.held, first.missing) == (4500, (), ())
    assert (first.sm_activity, first.tensor_activity, first.dram_activity) == (61.0, 22.0, 40.0)
    assert (third.number, third.profile, third.sms) == (2, "1c.2g.35gb", 32)
    assert (third.sm_activity, third.tensor_activity, third.dram_activity) == (9.0, None, 1.0)
    reasons = dict(third.missing)
    assert reasons.keys() == {"tensor_activity", "process_memory_bytes"}
    assert "process 7 is not in the GPU's list" in reasons["process_memory_bytes"]
    assert [carried.decode(carried.encode(part)) for part in (first, third)] == [[first], [third]]


def test_activity_takes_two_readings(device: Callable[..., Device]) -> None:
    first = look(device(PARENT + FIRST))[0]
    assert first.sm_activity is None
    assert first.missing == (("activity", "not yet: it takes two readings"),)


def test_two_parts_of_one_instance_share_its_activity(device: Callable[..., Device], clock: Clock) -> None:
    other = FIRST.replace("0.0 ", "0.1 ").replace("ci 0", "ci 1").replace("MIG-1", "MIG-7")
    gpu = device(PARENT + FIRST + other)
    look(gpu)
    clock.now += 1
    parts = look(gpu)
    assert [parts[number].sm_activity for number in (0, 1)] == [61.0, 61.0]


def test_a_value_that_is_refused_costs_only_itself(device: Callable[..., Device], clock: Clock) -> None:
    denied = FIRST.replace("0.0 memory.total 18000000000", "0.0 memory.total !4 18000000000").replace(
        "0.0 sms 16", "0.0 sms !3"
    )
    gpu = device(PARENT + denied.replace("0.0 processes 2", "0.0 processes !4") + "0 gpm.mig.get !4", Job(7))
    first = look(gpu)[0]
    assert (first.memory_used_bytes, first.sms, first.process_memory_bytes, first.uuid) == (None, None, None, "MIG-1")
    assert dict(first.missing) == {
        "sms": "not supported on this GPU",
        "memory_used_bytes": "no permission",
        "memory_total_bytes": "no permission",
        "process_memory_bytes": "no permission",
        "activity": "no permission",
    }
    clock.now += 31
    assert look(gpu)[0].memory_total_bytes == 18_000_000_000


@pytest.mark.parametrize("blank", ["0xFFFFFFFF", "0x7FFFFFFF", "0xFFFFFFFFFFFFFFFF", "0x7FFFFFFFFFFFFFFF"])
def test_no_way_of_saying_nothing_becomes_a_number(device: Callable[..., Device], blank: str) -> None:
    keys = ("memory.total", "memory.used", "gi", "ci", "sms")
    script = (
        "\n".join(f"0.0 {key} {blank}" for key in keys)
        + f"\n0.0 processes 1\n0.0 process.0.pid 7\n0.0 process.0.memory {blank}"
    )
    part = look(device(f"{PARENT}0.0 handle 0\n{script}", Job(7)))[0]
    told = {field: getattr(part, field) for field in part.__dataclass_fields__}
    numbers = {field for field, value in told.items() if isinstance(value, (int, float))}
    assert numbers == {"t_ns", "gpu", "number"}, told
    assert {"memory_used_bytes", "gpu_instance", "compute_instance", "sms", "process_memory_bytes", "activity"} <= set(
        dict(part.missing)
    )


def test_a_part_that_is_removed_is_told_once_and_one_that_comes_is_found(
    device: Callable[..., Device], change: Play, clock: Clock
) -> None:
    gpu = device(PARENT + FIRST + THIRD)
    assert look(gpu).keys() == {0, 2}
    change(PARENT + THIRD)
    clock.now += RARE_S + 1
    gone = look(gpu)
    assert dict(gone[0].missing) == {GONE: "this part has been removed"}
    assert (gone[0].memory_used_bytes, gone[0].uuid) == (None, "MIG-1")
    assert look(gpu).keys() == {2}
    change(PARENT + FIRST + THIRD)
    clock.now += RARE_S + 1
    assert look(gpu)[0].memory_used_bytes == 5_000_000_000


@pytest.mark.parametrize("code", [2, 6])
def test_a_handle_that_is_stale_is_looked_for_again_at_once(
    device: Callable[..., Device], change: Play, clock: Clock, code: int
) -> None:
    gpu = device(PARENT + FIRST + THIRD)
    look(gpu)
    change(
        PARENT
        + FIRST.replace("0.0 memory.total 18000000000", f"0.0 memory.total !{code} 20000000000").replace("MIG-1", "MIG-9")
    )
    clock.now += 1
    assert look(gpu)[0].missing == ((GONE, "this part has been removed"),)
    clock.now += 1
    again = look(gpu)
    assert (again[0].uuid, again[0].memory_total_bytes) == ("MIG-9", 20_000_000_000)
    assert dict(again[2].missing).keys() == {GONE}  # the other one had gone meanwhile


@pytest.mark.parametrize("code", [2, 6])
def test_a_part_that_never_tells_its_memory_has_not_been_removed(
    device: Callable[..., Device], clock: Clock, code: int
) -> None:
    gpu = device(PARENT + FIRST.replace("0.0 memory.total 18000000000", f"0.0 memory.total !{code}") + THIRD)
    for _ in range(3):
        parts = look(gpu)
        assert parts.keys() == {0, 2} and parts[2].memory_total_bytes is not None
        assert dict(parts[0].missing)["memory_used_bytes"] == nvml_words.no_value(code)
        clock.now += 40


def test_a_number_that_another_part_has_got_is_another_part(device: Callable[..., Device], change: Play, clock: Clock) -> None:
    gpu = device(PARENT + FIRST)
    look(gpu)
    change(PARENT + THIRD.replace("0.2 ", "0.0 "))
    clock.now += RARE_S + 1
    gpu.sample()
    new, gone = gpu.parts()
    assert (new.uuid, new.missing[0][0]) == ("MIG-2", "activity")
    assert (gone.uuid, gone.missing[0][0]) == ("MIG-1", GONE)


def test_when_the_mode_is_left_the_parts_go(
    device: Callable[..., Device], change: Play, clock: Clock, nothing_is_left: Callable[[], int]
) -> None:
    gpu = device(PARENT + FIRST + "0 gpm.get !3")
    look(gpu)
    assert dict(gpu.sample().missing)["activity"] == nvml_words.MIG
    assert nothing_is_left() > 0
    change("0 name NVIDIA_H200\n0 mig.mode 0\n0 utilization 8\n0 gpm.support 1\n0 gpm.2 50")
    clock.now += RARE_S + 1
    whole = gpu.sample()
    assert [part.missing[0][0] for part in gpu.parts()] == [GONE]
    assert whole.mig_mode is False
    clock.now += 1
    assert gpu.sample().utilization == 8.0  # it had been asked for once, and refused for good, in the other mode
    clock.now += 1
    assert gpu.sample().sm_activity == 50.0  # as this
    assert gpu.parts() == []


@pytest.mark.parametrize(
    ("script", "why"),
    [
        ("0 mig.count 7", "in MIG mode, but with no part that this user or container may see"),
        ("0 mig.count !4", "no permission"),
    ],
)
def test_why_there_are_no_parts(device: Callable[..., Device], script: str, why: str) -> None:
    gpu = device(f"0 mig.mode 1\n{script}")
    assert dict(gpu.sample().missing)["mig"] == why
    assert gpu.parts() == []


@pytest.mark.parametrize("key", ["0.0 memory.total", "0.0 processes", "0 gpm.mig.get", "0.0 uuid", "0 mig.count"])
def test_a_gpu_that_is_lost_takes_its_parts_along(
    device: Callable[..., Device], clock: Clock, change: Play, key: str, nothing_is_left: Callable[[], int], fake_library: Path
) -> None:
    # the scripted library aborts this process if any of their handles is used after that
    gpu = device(PARENT + FIRST, Job(7))
    look(gpu)
    lines = [line for line in (PARENT + FIRST).splitlines() if not line.startswith(f"{key} ")]
    change("\n".join([*lines, f"{key} !15"]))
    for _ in range(3):
        clock.now += RARE_S + 1
        got = gpu.sample()
        assert got.lost == "GPU lost: it fell off the bus (see dmesg for its XID)"
        assert all(dict(part.missing).keys() == {GONE} for part in gpu.parts())
    assert gpu.parts() == []
    ctypes.CDLL(str(fake_library)).fakeForgetSamples(nothing_is_left())


def test_parts_follow_their_gpu_and_are_told_to_those_who_share(play: Play, until: Until) -> None:
    play(PARENT + FIRST + THIRD)
    shared = SharedGpus()
    of: dict[int, list[Event]] = {7: [], 9: [], 8: []}
    for pid, got in of.items():
        shared.join(pid, got.append)
    until(lambda: all(sum(isinstance(event, MigSampled) for event in list(got)) >= 2 for got in of.values()))
    source = shared._source
    for pid in of:
        shared.leave(pid)
    assert source.stop(20)
    memory = {}
    for pid, got in of.items():
        kinds = [type(event) for event in got]
        at = kinds.index(MigSampled)
        assert kinds[at - 1 : at + 2] == [GpuSampled, MigSampled, MigSampled]
        part = got[at]
        assert isinstance(part, MigSampled) and part.held == ()
        memory[pid] = part.process_memory_bytes
        assert ("process_memory_bytes" in dict(part.missing)) == (pid == 8)
    assert memory == {7: 4000, 9: 500, 8: None}


def test_a_source_ends_with_nothing_left(play: Play, until: Until) -> None:
    play(PARENT + FIRST)
    got: list[Event] = []
    source = NvmlSource(got.append, period=0.12)
    source.start()
    until(lambda: any(isinstance(event, MigSampled) and event.sm_activity == 61.0 for event in list(got)))
    assert source.stop(20)
