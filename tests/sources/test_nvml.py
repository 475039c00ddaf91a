"""NVML, through the real binding and a scripted library: what a person sees when parts of it fail."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import types
from collections.abc import Callable
from pathlib import Path

import pytest

from tuimon.events import Event, GpuSampled, GpuUnavailable
from tuimon.sources.nvml import source as nvml
from tuimon.sources.nvml import words as nvml_words
from tuimon.sources.nvml.shared import SharedGpus
from tuimon.sources.nvml.source import NvmlSource

Play = Callable[[str], None]
Until = Callable[[Callable[[], bool]], None]

H200 = """
0 name NVIDIA_H200
0 utilization 10 50 97
0 memory.total 150754820096
0 memory.used 21474836480
0 temperature.v 41
0 power.mw 92000 410000 691500
0 power.limit.mw 700000
0 clock.sm 1980 1980 1545
0 clock.sm.max 1980
0 clock.memory 3201
0 clock.memory.max 3201
0 bus.bits 6144
0 cores 16896
0 capability 90
0 gpm.support 1
0 uuid GPU-5a
0 minor 3
0 pci 00000000:3B:00.0
0 mig.mode 0
0 fan 30
0 ecc.corrected 2
0 ecc.uncorrected 0
0 pcie.tx 5
0 pcie.rx 7
0 use 0
0 virtual 0
0 energy.mj 1000000 1500000 1600000 40
0 reasons 0x1 0x0 0x44
0 processes 3
0 process.0.pid 4242
0 process.0.memory 20000000000
0 process.1.pid 99
0 process.1.memory 5
0 process.2.pid 4242
0 process.2.memory 1000000000
"""


def sampled(until: Until, rounds: int, pid: int | None = None, gpus: int = 1) -> list[GpuSampled]:
    """What a source put in its first rounds."""
    got: list[Event] = []
    source = NvmlSource(got.append, pid=pid, period=0.01)
    source.start()
    until(lambda: len(got) >= rounds * gpus or not source.alive)
    assert source.stop(20)
    assert all(isinstance(event, GpuSampled) for event in got), got
    return [event for event in got if isinstance(event, GpuSampled)][: rounds * gpus]


LINKS = ("pcie_rx_bytes_s", "pcie_tx_bytes_s", "nvlink_rx_bytes_s", "nvlink_tx_bytes_s")
UNTOLD = ("power_mean_w", *LINKS, "job_here", "job_sm_percent")
"""What even a healthy GPU does not tell at once, unasked, or of an idle process; each has a test of its own."""


def apart_from_gpm(missing: tuple[tuple[str, str], ...]) -> tuple[tuple[str, str], ...]:
    """What is missing of the values that one reading gives: those of GPM take two, a tenth of a second apart."""
    return tuple(entry for entry in missing if not entry[0].endswith(("activity", "occupancy")) and entry[0] not in UNTOLD)


def unavailable(until: Until) -> str:
    got: list[Event] = []
    source = NvmlSource(got.append, period=0.01)
    source.start()
    until(lambda: not source.alive)
    assert len(got) == 1
    assert isinstance(got[0], GpuUnavailable)
    return got[0].why


def test_one_reading_serves_several_processes(play: Play, until: Until) -> None:
    play(H200)
    of: dict[int, list[Event]] = {4242: [], 99: [], 7: []}
    shared = SharedGpus()
    shared._source = NvmlSource(shared._spread, period=0.01, everybody=True)
    for pid, got in of.items():
        shared.join(pid, got.append)
    until(lambda: all(of.values()))
    last = {pid: got[-1] for pid, got in of.items()}
    for pid in of:
        shared.leave(pid)
    until(lambda: not shared._source.alive)
    assert [last[pid].process_memory_bytes for pid in of] == [21_000_000_000, 5, None]  # type: ignore[attr-defined]
    assert apart_from_gpm(last[4242].missing) == ()  # type: ignore[attr-defined]
    assert "process 7 is not in the GPU's list" in dict(last[7].missing)["process_memory_bytes"]  # type: ignore[attr-defined]


def test_why_there_is_no_gpu_is_told_to_one_who_joins_late_too(play: Play, until: Until) -> None:
    play("* init !12")
    shared = SharedGpus()
    early: list[Event] = []
    late: list[Event] = []
    shared.join(1, early.append)
    until(lambda: bool(early))
    shared.join(2, late.append)
    assert isinstance(late[0], GpuUnavailable) and late == early


def test_a_healthy_gpu(play: Play, until: Until) -> None:
    play(H200)
    first, second, third = sampled(until, 3, pid=4242)
    assert first.name == "NVIDIA H200"
    assert [apart_from_gpm(s.missing) for s in (first, second, third)] == [()] * 3
    assert (first.memory_clock_max_mhz, first.memory_bus_bits, first.cores) == (3201.0, 6144, 16896)
    assert first.compute_capability == "9.0"
    assert [s.utilization for s in (first, second, third)] == [10.0, 50.0, 97.0]
    assert (first.memory_used_bytes, first.memory_total_bytes) == (21474836480, 150754820096)  # without the reserved part
    assert [s.power_w for s in (first, second, third)] == [92.0, 410.0, 691.5]
    assert first.power_limit_w == 700.0
    assert first.temperature_c == 41.0
    assert (third.sm_clock_mhz, third.sm_clock_max_mhz, third.memory_clock_mhz) == (1545.0, 1980.0, 3201.0)
    assert [s.throttle for s in (first, second, third)] == [("idle",), (), ("power cap", "thermal (hardware)")]
    assert first.process_memory_bytes == 21000000000
    assert first.t_ns < second.t_ns < third.t_ns


def test_what_a_gpu_does_not_have_is_none_with_its_reason(play: Play, until: Until) -> None:
    play(
        """
        0 utilization 3
        0 memory.total 100
        0 memory.used 7
        0 temperature.v !13
        0 temperature 55
        0 reasons !13
        0 reasons.old 4
        """
    )
    (sample,) = sampled(until, 1, pid=1)
    assert (sample.utilization, sample.memory_used_bytes, sample.temperature_c) == (3.0, 7, 55.0)
    assert sample.throttle == ("power cap",)
    reasons = dict(sample.missing)
    assert reasons["power_w"] == reasons["sm_clock_max_mhz"] == "not supported on this GPU"
    assert reasons["process_memory_bytes"] == "not supported on this GPU"
    assert reasons.pop("activity") == "not supported on this GPU (Hopper and newer have it)"  # all that GPM tells
    for field in reasons:
        assert getattr(sample, field) in (None, ())


def test_the_drivers_ways_of_saying_nothing_are_no_numbers(play: Play, until: Until) -> None:
    play(
        "0 utilization 4294967295\n0 memory.total 9223372036854775807\n0 memory.used 0\n0 power.mw 0xFFFFFFFF\n"
        "0 clock.sm 0xFFFFFFFF\n0 processes 1\n0 process.0.pid 5"
    )
    (sample,) = sampled(until, 1, pid=5)
    assert sample.utilization is sample.memory_used_bytes is sample.memory_total_bytes is sample.power_w is None
    assert sample.sm_clock_mhz is sample.process_memory_bytes is None
    assert dict(sample.missing)["process_memory_bytes"] == "the driver does not tell the memory of a process"


def test_a_zero_is_a_value(play: Play, until: Until) -> None:
    play("0 utilization 0\n0 memory.total 100\n0 memory.used 0\n0 power.mw 0")
    (sample,) = sampled(until, 1)
    assert (sample.utilization, sample.memory_used_bytes, sample.power_w) == (0.0, 0, 0.0)


def test_a_lost_gpu_is_said_to_be_lost_never_touched_again_and_hides_no_other(play: Play, until: Until) -> None:
    # the scripted library aborts this process if a handle is used after it was lost
    play(f"{H200}\n* count 3\n1 utilization 7 !15\n1 name B\n2 utilization 9")
    got = sampled(until, 4, gpus=3)
    by_gpu = {index: [s for s in got if s.index == index] for index in range(3)}
    assert [s.utilization for s in by_gpu[1]] == [7.0, None, None, None]
    assert by_gpu[1][1].missing == (("gpu", "GPU lost: it fell off the bus (see dmesg for its XID)"),)
    assert by_gpu[1][1].name == "B"
    assert by_gpu[1][3].memory_used_bytes is None
    assert [s.utilization for s in by_gpu[0]] == [10.0, 50.0, 97.0, 97.0]
    assert [s.utilization for s in by_gpu[2]] == [9.0] * 4


def test_a_gpu_that_cannot_be_opened_hides_no_other(play: Play, until: Until) -> None:
    play("* count 2\n0 handle !15\n1 utilization 9")
    zero, one = sampled(until, 1, gpus=2)
    assert (zero.name, zero.missing[0][0], one.utilization) == ("GPU 0", "gpu", 9.0)


def test_gpus_that_are_all_lost_are_rows_that_say_so(play: Play, until: Until) -> None:
    play("* count 2\n* handle !15")
    got = sampled(until, 2, gpus=2)
    assert {(s.index, s.name) for s in got} == {(0, "GPU 0"), (1, "GPU 1")}
    assert {s.lost for s in got} == {"GPU lost: it fell off the bus (see dmesg for its XID)"}


def test_unknown_errors_all_over_mean_lost_but_one_alone_rests(play: Play, until: Until) -> None:
    play("* count 2\n0 utilization !999\n0 memory.total !999\n1 utilization !999 50\n1 power.mw 1000")
    got = sampled(until, 3, gpus=2)
    zero = [s for s in got if s.index == 0]
    one = [s for s in got if s.index == 1]
    assert {s.missing for s in zero} == {(("gpu", "unknown driver error"),)}
    assert [s.power_w for s in one] == [1.0, 1.0, 1.0]
    assert [s.utilization for s in one] == [None] * 3  # not asked again at once
    assert dict(one[2].missing)["utilization"] == "unknown driver error"


def test_no_support_is_asked_for_once(play: Play, until: Until) -> None:
    play("0 utilization 1\n0 power.mw !3 500")
    assert [s.power_w for s in sampled(until, 3)] == [None] * 3


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("processes 1\n0 process.0.pid 99\n0 process.0.memory 1", "not in the GPU's list"),
        ("processes 0", "not in the GPU's list"),
        ("processes 1\n0 process.0.pid 4294967295", "cannot be read"),
        ("processes !4", "no permission"),
    ],
)
def test_a_process_that_is_not_seen_holds_an_unknown_amount(play: Play, until: Until, script: str, words: str) -> None:
    play(f"0 utilization 1\n0 {script}")
    (sample,) = sampled(until, 1, pid=7)
    assert sample.process_memory_bytes is None
    assert words in dict(sample.missing)["process_memory_bytes"]


def test_an_older_driver_lists_processes_by_the_older_call(play: Play, until: Until) -> None:
    play("0 utilization 1\n0 processes !13\n0 processes.old 1\n0 process.0.pid 7\n0 process.0.memory 11")
    (sample,) = sampled(until, 1, pid=7)
    assert sample.process_memory_bytes == 11


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("* init !9", "not loaded"),
        ("* init !18", "reboot"),
        ("* init !4", "no permission"),
        ("* init !12", "no NVIDIA driver here"),
        ("* init !999", "(999)"),
        ("* count 0", "shows no GPU"),
        ("* count !18", "reboot"),
    ],
)
def test_no_gpu_is_one_honest_sentence(play: Play, until: Until, script: str, words: str) -> None:
    play(script)
    why = unavailable(until)
    assert words in why
    assert "\n" not in why


def test_a_driver_that_hangs_is_seen_from_outside_and_left_behind(play: Play, until: Until) -> None:
    play("0 utilization ~1000,5")
    got: list[Event] = []
    source = NvmlSource(got.append, period=0.01)
    assert source.waiting_since() is None
    source.start()
    until(lambda: (source.waiting_since() or 0) > 0.2)
    assert not source.stop(0.05)
    assert got == []
    until(lambda: not source.alive)
    assert got == []  # what a late answer says is of no interest any more
    assert source.waiting_since() is None


def test_a_shadowing_package_is_named_with_its_cure(monkeypatch: pytest.MonkeyPatch, until: Until) -> None:
    shadow = types.ModuleType("pynvml")
    shadow.__path__ = ["/somewhere/pynvml"]
    shadow.__file__ = "/somewhere/pynvml/__init__.py"
    monkeypatch.setitem(sys.modules, "pynvml", shadow)
    why = unavailable(until)
    assert "/somewhere/pynvml" in why
    assert "pip uninstall pynvml" in why


def test_a_missing_binding_is_named(monkeypatch: pytest.MonkeyPatch, until: Until) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", None)
    assert "pip install nvidia-ml-py" in unavailable(until)


def test_the_installed_binding_has_what_is_called() -> None:
    module = nvml.binding()
    assert module.__name__ == "pynvml"


def test_reasons_that_are_newer_than_these_words_are_shown_raw() -> None:
    assert nvml_words.clock_reasons(0) == ()
    assert nvml_words.clock_reasons(0x4 | 0x1000) == ("power cap", "reason 0x1000")


def test_the_library_is_found_the_way_a_drivers_is(fake_library: Path, tmp_path: Path) -> None:
    """End to end in a process of its own: the loader finds libnvidia-ml.so.1, and stopping ends everything."""
    script = tmp_path / "script"
    script.write_text(H200)
    program = (
        "import json, threading, dataclasses\n"
        "from tuimon.sources.nvml.source import NvmlSource\n"
        "came = threading.Event(); got = []\n"
        "def put(event): got.append(event); came.set()\n"
        "source = NvmlSource(put, pid=4242, period=60); source.start(); came.wait(30)\n"
        "print(json.dumps([source.stop(30), type(got[0]).__name__, dataclasses.asdict(got[0])]))\n"
    )
    environment = {**os.environ, "LD_LIBRARY_PATH": str(fake_library.parent), "FAKE_NVML_SCRIPT": str(script)}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    stopped, kind, fields = json.loads(done.stdout)
    assert (stopped, kind, fields["name"], fields["power_w"]) == (True, "GpuSampled", "NVIDIA H200", 92.0)
