"""Troubles that come together, come late, or come from the binding: each costs what it must, and is told as what it is."""

from __future__ import annotations

import ctypes
import importlib
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tuimon.events import Event, GpuSampled, GpuSilent, GpuUnavailable, NotAvailable, XidSeen
from tuimon.relay import attachment
from tuimon.sources.nvml import device as nvml_device
from tuimon.sources.nvml import gpm as nvml_gpm
from tuimon.sources.nvml import processes as nvml_processes
from tuimon.sources.nvml import source as nvml
from tuimon.sources.nvml import words as nvml_words
from tuimon.sources.nvml.device import Device
from tuimon.sources.nvml.processes import Job
from tuimon.sources.nvml.readers import Calls
from tuimon.sources.nvml.shared import SharedGpus, Taker
from tuimon.sources.nvml.source import NvmlSource, binding

Play = Callable[[str], None]
Until = Callable[[Callable[[], bool]], None]

NOT_HERE = 4_194_304
"""Above the largest pid of Linux."""
ONE = "0 minor 2\n0 processes 1\n0 process.0.pid {}\n0 process.0.memory 100"


def device(play: Play, script: str, job: Job | None = None) -> Device:
    play(script)
    module = binding()
    module.nvmlInit()
    return Device(module, Calls(), 0, job)


def of(got: list[Event], kind: type[Event]) -> list[Event]:
    return [event for event in list(got) if type(event) is kind]


def raises(*_: object) -> None:
    raise RuntimeError("odd")


def test_two_values_that_end_in_an_unknown_error_are_not_a_lost_gpu(play: Play) -> None:
    gpu = device(
        play, "0 utilization 5\n0 memory.total 100\n0 memory.used 5\n0 fan !999\n0 ecc.corrected !999\n0 power.mw !999"
    )
    for _ in range(2):
        got = gpu.sample()
        assert (got.lost, got.utilization, got.memory_used_bytes, got.fan_percent) == (None, 5.0, 5, None)
        assert dict(got.missing)["ecc_corrected"] == dict(got.missing)["power_w"] == "unknown driver error"


def test_a_gpu_that_may_not_tell_its_memory_answers_all_the_same(play: Play) -> None:
    got = device(play, "0 utilization 5\n0 memory.total !4\n0 fan !999\n0 ecc.corrected !999").sample()
    assert (got.lost, got.utilization) == (None, 5.0)


@pytest.mark.parametrize("code", [15, 999])
def test_one_that_has_no_other_answer_is_lost(play: Play, code: int) -> None:
    # the scripted library aborts this process if the handle is used after it has answered with 15
    gpu = device(play, f"0 utilization 5\n0 memory.total 100 !{code}\n0 memory.used 5\n0 fan !999\n0 ecc.corrected !999")
    for _ in range(2):
        assert gpu.sample().lost == nvml_words.no_value(code)
    assert gpu.handle is None


def test_a_name_that_is_no_text_costs_only_itself(play: Play) -> None:
    # more bytes than there is room for: the last letter is cut in two
    got = device(play, f"0 name {'é' * 40}\n0 utilization 5\n0 virtual 1").sample()
    assert (got.name, got.utilization, got.virtual) == ("GPU 0", 5.0, "passthrough")


@pytest.mark.parametrize(
    ("call", "field"), [("nvmlGpmQueryDeviceSupport", "activity"), ("nvmlDeviceGetVirtualizationMode", None)]
)
def test_an_exception_of_the_binding_costs_only_what_it_is_about(
    play: Play, monkeypatch: pytest.MonkeyPatch, call: str, field: str | None
) -> None:
    gpu = device(play, "0 name A\n0 utilization 5")
    monkeypatch.setattr(binding(), call, raises)
    got = gpu.sample()
    assert (got.name, got.utilization, got.lost) == ("A", 5.0, None)
    assert field is None or "RuntimeError" in dict(got.missing)[field]


def test_a_handle_that_the_binding_cannot_give_is_asked_for_again(play: Play, monkeypatch: pytest.MonkeyPatch) -> None:
    gpu = device(play, "0 utilization 5")
    with monkeypatch.context() as patch:
        patch.setattr(binding(), "nvmlDeviceGetHandleByIndex", raises)
        assert "RuntimeError" in dict(gpu.sample().missing)["gpu"]
    monkeypatch.setattr(nvml_device.time, "monotonic", lambda: 1e12)
    assert gpu.sample().utilization == 5.0


def test_wsl_without_a_driver_says_what_to_do_on_windows(play: Play, until: Until, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nvml_words, "is_wsl", lambda: True)
    play("* init !12")
    got: list[Event] = []
    source = NvmlSource(got.append)
    source.start()
    until(lambda: bool(of(got, GpuUnavailable)) and not source.alive)
    (event,) = of(got, GpuUnavailable)
    assert event.kind == "wsl" and "driver of Windows" in event.why  # type: ignore[attr-defined]


def test_nothing_sleeps_between_two_samples(play: Play, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "sleep", raises)
    monkeypatch.setattr(nvml_gpm, "LEAST_S", 0.0)
    gpu = device(play, "0 utilization 5\n0 gpm.support 1\n0 gpm.2 40\n0 energy.mj 1 2\n0 field.138 1 2\n0 field.139 1 2")
    assert [gpu.sample().sm_activity for _ in range(2)] == [None, 40.0]


def test_a_module_that_cannot_be_imported_for_whatever_reason_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(name: str) -> None:
        raise SyntaxError("invalid syntax")

    monkeypatch.setattr(importlib, "import_module", broken)
    with pytest.raises(nvml.NoBinding, match=r"invalid syntax.*pip install nvidia-ml-py"):
        binding()


def test_that_a_virtual_gpu_has_no_gpm_is_not_laid_on_its_age(play: Play) -> None:
    assert dict(device(play, "0 virtual 2\n0 gpm.support 0").sample().missing)["activity"] == nvml_words.VGPU
    assert "Hopper" in dict(device(play, "0 gpm.support 0").sample().missing)["activity"]


def test_many_slow_calls_make_a_reading_late_and_that_is_told(
    play: Play, until: Until, monkeypatch: pytest.MonkeyPatch
) -> None:
    """None of them takes long enough to be told of by itself."""
    monkeypatch.setattr(nvml, "SILENT_S", 0.4)
    monkeypatch.setattr(nvml, "WATCH_S", 0.02)
    keys = ("power.mw", "temperature.v", "clock.sm", "clock.memory", "reasons", "fan", "energy.mj", "ecc.corrected")
    play("\n".join(("* count 2\n* utilization 5", *(f"0 {key} ~150,1000 1000" for key in keys))))
    got: list[Event] = []
    source = NvmlSource(got.append, period=0.02)
    source.start()
    until(lambda: bool(of(got, GpuSilent)))
    assert not [event for event in of(got, GpuSampled) if event.index == 0]  # type: ignore[attr-defined]
    until(lambda: any(event.since_s is None for event in of(got, GpuSilent)))  # type: ignore[attr-defined]
    until(lambda: any(event.index == 0 for event in of(got, GpuSampled)))  # type: ignore[attr-defined]
    assert source.stop(20)
    assert {event.index for event in of(got, GpuSilent)} == {0}  # type: ignore[attr-defined]


def test_a_lost_gpu_does_not_take_the_errors_of_the_others_along(play: Play, until: Until, fake_library: Path) -> None:
    """A wait fails as long as it is for a GPU that is lost."""
    play("* count 3\n* utilization 5\n0 power.mw 1000 1000 !15\n0 wait.of 0 0 !15\n1 xid @0.3 31\n2 events 0")
    got: list[Event] = []
    source = NvmlSource(got.append, period=0.02)
    source.start()
    until(lambda: bool(of(got, XidSeen)))
    assert source.stop(20)
    assert {(event.index, event.xid) for event in of(got, XidSeen)} == {(1, 31)}  # type: ignore[attr-defined]
    assert any(event.index == 0 and event.lost for event in of(got, GpuSampled))  # type: ignore[attr-defined]
    # who does not tell them is told again of the new set, and in the same words
    assert {event.why for event in of(got, NotAvailable)} == {"XID errors are not told (GPU 2: not supported on this GPU)"}  # type: ignore[attr-defined]
    ctypes.CDLL(str(fake_library)).fakeForgetSets(2)


def test_who_joins_late_is_told_what_was_said_once(play: Play, until: Until) -> None:
    play("0 utilization 5\n0 events 0")
    first: list[Event] = []
    second: list[Event] = []
    shared = SharedGpus()
    shared.join(7, first.append)
    until(lambda: bool(of(first, NotAvailable)))
    shared.join(8, second.append)
    assert [event.why for event in of(second, NotAvailable)] == [event.why for event in of(first, NotAvailable)]  # type: ignore[attr-defined]
    shared.leave(7)
    shared.leave(8)
    play("0 utilization 5")
    third: list[Event] = []
    shared.join(9, third.append)  # it is another reading now, and nothing is said against it
    until(lambda: len(of(third, GpuSampled)) > 3)
    shared.leave(9)
    assert not of(third, NotAvailable)


def test_who_leaves_does_not_take_along_who_joined_for_the_same_process(play: Play, until: Until) -> None:
    play(f"0 utilization 5\n{ONE.format(7)}")
    first: list[Event] = []
    second: list[Event] = []
    shared = SharedGpus()
    old, new = Taker(shared, first.append, 7), Taker(shared, second.append, 7)
    old.start()
    new.start()
    until(lambda: bool(of(first, GpuSampled)) and bool(of(second, GpuSampled)))
    assert old.stop()
    there, seen = len(second), len(of(first, GpuSampled))
    until(lambda: len(of(second[there:], GpuSampled)) > 3)
    assert len(of(first, GpuSampled)) <= seen + 1  # one may have been on its way
    assert new.stop()


def test_the_jobs_of_another_host_share_one_reading_there() -> None:
    assert attachment._gpus(False) is attachment._gpus(False)
    assert attachment._gpus(True) is not attachment._gpus(False)  # that one blocks in the driver: not for who has not asked


@pytest.mark.parametrize("code", [3, 4])
def test_why_the_use_of_processes_is_not_told_is_known_of_each_and_to_those_who_share(
    play: Play, until: Until, code: int
) -> None:
    play(f"{ONE.format(7)}\n0 use !{code}")
    got: list[Event] = []
    shared = SharedGpus()
    shared.join(7, got.append)
    until(lambda: bool(of(got, GpuSampled)))
    shared.leave(7)
    alone = device(play, f"{ONE.format(7)}\n0 use !{code}", Job(7)).sample()
    for sample in (got[0], alone):
        assert isinstance(sample, GpuSampled) and sample.process_memory_bytes == 100
        assert dict(sample.missing)["job_sm_percent"] == dict(sample.missing)["processes_sm"] == nvml_words.no_value(code)


def test_a_time_that_is_none_does_not_hide_those_that_follow(play: Play, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nvml_device, "SLOW_S", 0.0)
    script = f"{ONE.format(7)}\n0 use 1\n0 use.0.pid 7\n0 use.0.stamp 0x7FFFFFFFFFFFFFFF 0xFFFFFFFFFFFFFFFF 50\n0 use.0.sm 5"
    gpu = device(play, script, Job(7))
    assert [gpu.sample().job_sm_percent for _ in range(3)] == [None, None, 5.0]


def test_where_the_pids_of_the_list_are_those_of_here_nobody_else_is_taken_for_the_job(
    play: Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    gpu = device(play, ONE.format(NOT_HERE), Job(7, None, lambda: frozenset({2})))
    monkeypatch.setattr(nvml_processes, "_sees_all", lambda: False)
    in_container = gpu.sample()
    assert (in_container.process_memory_bytes, in_container.job_how) == (100, "only")
    monkeypatch.setattr(nvml_processes, "_sees_all", lambda: True)  # the pid is of one that has died
    on_host = gpu.sample()
    assert (on_host.process_memory_bytes, on_host.job_how) == (None, "")
    assert replace(on_host, t_ns=0).processes == in_container.processes


def test_a_process_that_proc_hides_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    def denied(pid: int, signal: int) -> None:
        raise PermissionError

    monkeypatch.setattr(nvml_processes.os, "kill", denied)
    assert nvml_processes._is_here(NOT_HERE)
    monkeypatch.undo()
    assert not nvml_processes._is_here(NOT_HERE) and not nvml_processes._is_here(0xFFFFFFFE)
    assert nvml_processes._is_here(1)
