"""What is told of a GPU beyond the plain numbers, and of those that hang, are lost, or are shared with others."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable

import pytest

from tests.sources.conftest import Clock
from tuimon.commands import idle_gpus
from tuimon.events import Event, GpuProcess, GpuSampled, GpuSilent, GpuUnavailable
from tuimon.sources.nvml import device as nvml_device
from tuimon.sources.nvml import processes as nvml_processes
from tuimon.sources.nvml import source as nvml
from tuimon.sources.nvml import words as nvml_words
from tuimon.sources.nvml.device import Device
from tuimon.sources.nvml.processes import Job
from tuimon.sources.nvml.readers import Calls
from tuimon.sources.nvml.shared import SharedGpus
from tuimon.sources.nvml.source import NvmlSource, binding

Play = Callable[[str], None]
Until = Callable[[Callable[[], bool]], None]

NOT_HERE = 4_194_304
"""Above the largest pid of Linux."""


def device(play: Play, script: str, job: Job | None = None, *, pcie: bool = False) -> Device:
    play(script)
    module = binding()
    module.nvmlInit()
    return Device(module, Calls(), 0, job, pcie=pcie)


def test_who_it_is_and_what_it_counts(play: Play) -> None:
    got = device(
        play, "0 uuid GPU-1\n0 minor 3\n0 pci 00000000:3B:00.0\n0 mig.mode 0\n0 fan 104\n0 ecc.corrected 2\n0 ecc.uncorrected 1"
    ).sample()
    assert (got.uuid, got.minor, got.pci_bus_id, got.mig_mode) == ("GPU-1", 3, "00000000:3B:00.0", False)
    assert (got.fan_percent, got.ecc_corrected, got.ecc_uncorrected) == (104.0, 2, 1)
    assert got.took_s is not None and got.took_s > 0


def test_energy_gives_the_mean_power_and_a_counter_that_runs_back_gives_none(play: Play, clock: Clock) -> None:
    gpu = device(play, "0 energy.mj 1000000 1500000 40")
    first = gpu.sample()
    assert (first.energy_j, first.power_mean_w) == (1000.0, None)
    assert "two readings" in dict(first.missing)["power_mean_w"]
    clock.now += 2
    assert gpu.sample().power_mean_w == 250.0
    clock.now += 2
    back = gpu.sample()
    assert (back.energy_j, back.power_mean_w) == (0.04, None)
    assert "started again" in dict(back.missing)["power_mean_w"]


def test_a_counter_of_errors_that_is_switched_off_is_not_zero(play: Play) -> None:
    got = device(play, "0 ecc.corrected !3\n0 ecc.uncorrected !3").sample()
    assert got.ecc_corrected is got.ecc_uncorrected is None
    assert dict(got.missing)["ecc_uncorrected"] == "not supported on this GPU"


@pytest.mark.parametrize("blank", ["0xFFFFFFFF", "0x7FFFFFFF", "0xFFFFFFFFFFFFFFFF", "0x7FFFFFFFFFFFFFFF"])
def test_no_way_of_saying_nothing_becomes_a_number(play: Play, blank: str) -> None:
    keys = [
        "utilization",
        "memory.total",
        "memory.used",
        "power.mw",
        "power.limit.mw",
        "temperature.v",
        "clock.sm",
        "clock.sm.max",
        "clock.memory",
        "clock.memory.max",
        "bus.bits",
        "cores",
        "reasons",
        "fan",
        "ecc.corrected",
        "ecc.uncorrected",
        "energy.mj",
        "minor",
        "pcie.rx",
        "pcie.tx",
    ]
    got = device(play, "\n".join(f"0 {key} {blank}" for key in keys), pcie=True).sample()
    numbers = {f: getattr(got, f) for f in got.__dataclass_fields__ if isinstance(getattr(got, f), (int, float))}
    assert set(numbers) <= {"t_ns", "index", "took_s"}, numbers
    assert got.throttle == () and "throttle" in dict(got.missing)


def test_pcie_is_read_only_if_asked_for(play: Play) -> None:
    # the scripted library would answer; the driver is not even asked
    script = "0 pcie.tx 5\n0 pcie.rx 7"
    left = device(play, script).sample()
    assert left.pcie_rx_bytes_s is left.pcie_tx_bytes_s is None
    assert "--pcie" in dict(left.missing)["pcie_rx_bytes_s"]
    asked = device(play, script, pcie=True).sample()
    assert (asked.pcie_rx_bytes_s, asked.pcie_tx_bytes_s) == (7000.0, 5000.0)


@pytest.mark.parametrize("code", [15, 16, 28])
def test_a_lost_gpu_keeps_its_name_and_nothing_else(play: Play, code: int) -> None:
    # the scripted library aborts this process if a handle is used after it was lost
    gpu = device(play, f"0 name A\n0 uuid GPU-1\n0 minor 2\n0 utilization 5\n0 power.mw 1000 !{code}")
    assert gpu.sample().lost is None
    for _ in range(3):
        got = gpu.sample()
        assert (got.name, got.uuid, got.minor, got.utilization, got.power_w) == ("A", "GPU-1", 2, None, None)
        assert got.lost == nvml_words.no_value(code) and got.missing == (("gpu", got.lost),)
        assert gpu.handle is None


def test_a_permission_that_is_lost_comes_back(play: Play, clock: Clock) -> None:
    gpu = device(play, "0 power.mw 1000 !4 3000\n0 utilization 5")
    assert gpu.sample().power_w == 1.0
    for _ in range(3):
        got = gpu.sample()
        assert (got.power_w, got.utilization, dict(got.missing)["power_w"]) == (None, 5.0, "no permission")
    clock.now += nvml_device.REST_S + 1
    assert gpu.sample().power_w == 3.0


def test_a_gpu_that_may_not_be_opened_yet_is_opened_later(play: Play, clock: Clock) -> None:
    gpu = device(play, "0 handle !4 0\n0 utilization 5")
    got = gpu.sample()
    assert (got.lost, got.missing) == (None, (("gpu", "no permission"),))
    clock.now += nvml_device.REST_S + 1
    assert gpu.sample().utilization == 5.0


def test_an_exception_outside_the_bindings_family_costs_one_value(play: Play, monkeypatch: pytest.MonkeyPatch) -> None:
    gpu = device(play, "0 power.mw 1000\n0 utilization 5")

    def odd(handle: object) -> int:
        raise RuntimeError("odd")

    monkeypatch.setattr(binding(), "nvmlDeviceGetPowerUsage", odd)
    got = gpu.sample()
    assert (got.utilization, got.power_w) == (5.0, None)
    assert "RuntimeError" in dict(got.missing)["power_w"]


def test_a_call_that_takes_5_s_silences_its_gpu_alone(play: Play, until: Until, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nvml, "SILENT_S", 0.2)
    monkeypatch.setattr(nvml, "WATCH_S", 0.05)
    play("* count 8\n* utilization 5\n3 power.mw 1000 ~5000,2000 2000")
    got: list[Event] = []
    source = NvmlSource(got.append, period=0.02)
    source._watch._period = 0.05
    source.start()
    until(lambda: any(isinstance(event, GpuSilent) for event in got))
    silent = next(event for event in got if isinstance(event, GpuSilent))
    assert (silent.index, silent.call) == (3, "nvmlDeviceGetPowerUsage")
    assert silent.since_s is not None and silent.since_s >= 0.2
    there = len(got)
    others = set(range(8)) - {3}
    until(lambda: {event.index for event in got[there:] if isinstance(event, GpuSampled)} >= others)
    assert 3 not in {event.index for event in got[there:] if isinstance(event, GpuSampled)}
    until(lambda: any(isinstance(event, GpuSilent) and event.since_s is None for event in got))
    until(lambda: any(isinstance(event, GpuSampled) and event.index == 3 and event.power_w == 2.0 for event in got))
    assert {event.index for event in got if isinstance(event, GpuSilent)} == {3}
    assert source.stop(20)


def test_a_gpu_that_hangs_when_it_is_opened_holds_up_no_other(
    play: Play, until: Until, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nvml, "SILENT_S", 0.1)
    monkeypatch.setattr(nvml, "WATCH_S", 0.05)
    play("* count 3\n* utilization 5\n0 handle ~1500,0 0")
    got: list[Event] = []
    source = NvmlSource(got.append, period=0.02)
    source.start()
    until(lambda: {event.index for event in list(got) if isinstance(event, GpuSampled)} >= {1, 2})
    until(lambda: any(isinstance(event, GpuSilent) for event in list(got)))
    silent = next(event for event in got if isinstance(event, GpuSilent))
    assert (silent.index, silent.call) == (0, "nvmlDeviceGetHandleByIndex")
    until(lambda: any(isinstance(event, GpuSampled) and event.index == 0 for event in list(got)))
    assert source.stop(20)
    assert list(dict.fromkeys(event.index for event in got if isinstance(event, GpuSampled)))[-1] == 0


@pytest.mark.parametrize("script", ["* init ~1000,0\n0 utilization 5", "* init ~1000,!9", "* init 0\n* count ~1000,0"])
def test_a_start_that_hangs_is_told_of_and_so_is_its_end(
    play: Play, until: Until, monkeypatch: pytest.MonkeyPatch, script: str
) -> None:
    monkeypatch.setattr(nvml, "SILENT_S", 0.1)
    monkeypatch.setattr(nvml, "WATCH_S", 0.05)
    play(script)
    got: list[Event] = []
    source = NvmlSource(got.append, period=0.02)
    source.start()
    until(lambda: any(isinstance(event, GpuSilent) and event.since_s is None for event in list(got)))
    until(lambda: any(isinstance(event, (GpuSampled, GpuUnavailable)) for event in list(got)))
    assert source.stop(20)
    silent = [event for event in got if isinstance(event, GpuSilent)]
    assert {event.index for event in silent} == {None}
    assert [event.since_s is None for event in silent] == [False] * (len(silent) - 1) + [True]
    assert silent[0].call == ("nvmlDeviceGetCount" if "count" in script else "nvmlInit")


def test_what_changes_with_time_is_read_as_it_is_then(play: Play, until: Until) -> None:
    play("0 utilization 5 @0.2 80 @0.4 !4")
    got: list[Event] = []
    source = NvmlSource(got.append, period=0.02)
    source.start()
    until(lambda: any(isinstance(event, GpuSampled) and event.utilization is None for event in list(got)))
    assert source.stop(20)
    seen = [event.utilization for event in got if isinstance(event, GpuSampled)]
    order = [5.0, 80.0, None]
    assert [order.index(value) for value in seen] == sorted(order.index(value) for value in seen)


@pytest.mark.parametrize(
    ("script", "says"),
    [
        ("0 utilization 0\n0 processes 0", None),
        ("0 utilization 5\n0 processes 0", None),
        ("0 utilization 6\n0 processes 0", "it is 6 % busy"),
        ("0 utilization 0\n0 processes 1\n0 process.0.pid 40", "1 process use it (pid 40)"),
        (
            "0 utilization 0\n0 processes !13\n0 processes.old 2\n0 process.0.pid 4\n0 process.1.pid 5",
            "2 processes use it (pid 4, 5)",
        ),
        ("0 utilization 0\n0 processes 1\n0 process.0.pid 0", "cannot be told: this driver's process list cannot be read"),
        ("0 utilization 0xFFFFFFFF\n0 processes 0", "cannot be told: the driver gave no value"),
        ("0 utilization !15\n0 processes 0", "cannot be told: GPU lost"),
    ],
)
def test_a_gpu_may_be_calibrated_only_if_nobody_uses_it(play: Play, script: str, says: str | None) -> None:
    play(f"{script}\n0 name A_B\n0 memory.total 100\n0 memory.used 1")
    (gpu,), why = idle_gpus.gpus()
    assert (gpu.name, gpu.memory_bytes, gpu.driver, why) == ("A B", 100, "580.00", "")
    busy = gpu.busy()
    assert busy is None if says is None else says in str(busy)


def test_the_period_has_a_floor() -> None:
    assert NvmlSource(lambda event: None, period=0.01)._period == 0.25
    assert NvmlSource(lambda event: None, period=3)._period == 3


def of_job(play: Play, script: str, job: Job) -> GpuSampled:
    return device(play, f"0 minor 2\n0 use 0\n{script}", job).sample()


LISTED = "0 processes 2\n0 process.0.pid {}\n0 process.0.memory 100\n0 process.1.pid {}\n0 process.1.memory 20"


def test_the_family_of_the_job_counts_as_the_job(play: Play) -> None:
    got = of_job(play, LISTED.format(7, 9), Job(7, lambda: frozenset({7, 9})))
    assert (got.job, got.process_memory_bytes, got.job_how, got.job_here) == ((7, 9), 120, "pid", True)
    assert got.processes == (GpuProcess(7, 100), GpuProcess(9, 20))


def test_a_single_unknown_pid_on_a_gpu_that_the_job_has_open_is_taken_for_it_and_said_so(
    play: Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nvml_processes, "_sees_all", lambda: False)  # as in a container
    one = f"0 processes 1\n0 process.0.pid {NOT_HERE}\n0 process.0.memory 100"
    got = of_job(play, one, Job(7, None, lambda: frozenset({2})))
    assert (got.job, got.process_memory_bytes, got.job_how, got.job_here) == ((), 100, "only", True)
    closed = of_job(play, one, Job(7, None, lambda: frozenset({0})))
    assert (closed.process_memory_bytes, closed.job_how, closed.job_here) == (None, "", False)
    unseen = of_job(play, one, Job(7, None, lambda: None))
    assert (unseen.process_memory_bytes, unseen.job_here) == (None, None)
    assert "job_here" in dict(unseen.missing)


def test_pids_that_do_not_exist_are_listed_and_never_the_jobs(play: Play) -> None:
    got = of_job(play, LISTED.format(NOT_HERE, NOT_HERE + 1), Job(7, None, lambda: frozenset({2})))
    assert (got.job, got.process_memory_bytes, got.job_how) == ((), None, "")
    assert [process.pid for process in got.processes] == [NOT_HERE, NOT_HERE + 1]


def test_a_process_that_lives_here_is_not_taken_for_the_job(play: Play) -> None:
    mine = f"0 processes 1\n0 process.0.pid {os.getppid()}\n0 process.0.memory 100"
    got = of_job(play, mine, Job(NOT_HERE, None, lambda: frozenset({2})))
    assert (got.process_memory_bytes, got.job_how) == (None, "")


def test_the_use_of_each_process_is_the_newest_and_only_what_can_be(play: Play, clock: Clock) -> None:
    samples = [(7, 10, 40), (7, 20, 60), (9, 20, 30), (8, 20, 300), (0, 20, 5)]
    lines = itertools.chain.from_iterable(
        (f"0 use.{i}.pid {pid}", f"0 use.{i}.stamp {stamp}", f"0 use.{i}.sm {sm}") for i, (pid, stamp, sm) in enumerate(samples)
    )
    gpu = device(play, "\n".join((LISTED.format(7, 9), f"0 use {len(samples)}", *lines)), Job(7, lambda: frozenset({7, 9})))
    got = gpu.sample()
    assert [process.sm_percent for process in got.processes] == [60.0, 30.0]
    assert got.job_sm_percent == 90.0
    clock.now += 3
    stale = gpu.sample()  # the same samples once more say nothing new
    assert [process.sm_percent for process in stale.processes] == [None, None]
    assert stale.job_sm_percent is None and "job_sm_percent" in dict(stale.missing)


@pytest.mark.parametrize("answer", ["0", "!6"])
def test_no_sample_of_use_is_no_failure(play: Play, answer: str) -> None:
    got = device(play, f"0 use {answer}\n{LISTED.format(7, 9)}", Job(7)).sample()
    assert (got.process_memory_bytes, dict(got.missing)["job_sm_percent"]) == (100, "the driver has told no use of it")


@pytest.mark.parametrize(
    ("script", "field", "says"),
    [
        ("0 virtual 2", "ecc_corrected", nvml_words.VGPU),
        ("0 mig.mode 1", "utilization", nvml_words.MIG),
    ],
)
def test_why_a_shared_gpu_does_not_tell_it(play: Play, script: str, field: str, says: str) -> None:
    got = device(play, script).sample()
    assert dict(got.missing)[field] == says
    assert got.virtual == ("vgpu" if "virtual" in script else "")


def test_under_wsl_it_says_where_to_read(play: Play, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nvml_words, "is_wsl", lambda: True)
    got = device(play, "0 utilization 5").sample()
    assert (got.virtual, dict(got.missing)["processes"]) == ("wsl", nvml_words.WSL)


@pytest.mark.parametrize(
    ("code", "kind"), [(4, "no permission"), (9, "not loaded"), (12, "no driver"), (18, "mismatch"), (15, "lost"), (999, "")]
)
def test_the_kind_of_what_is_the_matter(play: Play, until: Until, code: int, kind: str) -> None:
    play(f"* init !{code}")
    got: list[Event] = []
    source = NvmlSource(got.append)
    source.start()
    until(lambda: bool(got) and not source.alive)
    assert isinstance(got[0], GpuUnavailable) and got[0].kind == kind


def test_one_who_joins_after_the_last_has_left_is_served(play: Play, until: Until) -> None:
    play("0 utilization 5\n0 processes 1\n0 process.0.pid 7\n0 process.0.memory 11")
    shared = SharedGpus()
    for _ in range(2):
        got: list[Event] = []
        shared.join(7, got.append)
        until(lambda got=got: bool(got))  # type: ignore[misc]
        assert isinstance(got[0], GpuSampled) and got[0].process_memory_bytes == 11
        shared.leave(7)
