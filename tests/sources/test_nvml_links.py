"""What goes over PCIe and NVLink, through the real binding and the scripted library: by GPM, else by counters, else why not."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tuimon.events import GpuSampled
from tuimon.sources.nvml import device as nvml_device
from tuimon.sources.nvml.device import Device
from tuimon.sources.nvml.gpm import NOT_YET
from tuimon.sources.nvml.readers import Calls
from tuimon.sources.nvml.source import binding

Play = Callable[[str], None]

FIELDS = ("pcie_rx_bytes_s", "pcie_tx_bytes_s", "nvlink_rx_bytes_s", "nvlink_tx_bytes_s")
MIB = 1024 * 1024
UNASKED = "not asked for: it blocks the driver for 20 ms each time (--pcie)"


@pytest.fixture
def readings(play: Play, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., list[GpuSampled]]]:
    """What is read of GPU 0, every three seconds."""
    now = [1000.0]
    monkeypatch.setattr(nvml_device.time, "monotonic", lambda: now[0])
    opened: list[Device] = []

    def read(script: str, rounds: int, *, pcie: bool = False) -> list[GpuSampled]:
        play(script)
        module = binding()
        module.nvmlInit()
        gpu = Device(module, Calls(), 0, pcie=pcie)
        opened.append(gpu)
        got = []
        for _ in range(rounds):
            got.append(gpu.sample())
            now[0] += 3
        return got

    yield read
    for gpu in opened:
        gpu.close()


def of(sample: GpuSampled) -> list[float | None]:
    return [getattr(sample, field) for field in FIELDS]


def why(sample: GpuSampled) -> list[str | None]:
    return [dict(sample.missing).get(field) for field in FIELDS]


def test_gpm_tells_them_at_no_cost(readings: Callable[..., list[GpuSampled]]) -> None:
    # "pcie.rx" and the fields would answer otherwise: where GPM tells it, they are not asked for
    first, second = readings(
        "0 gpm.support 1\n0 gpm.20 10\n0 gpm.21 2000\n0 gpm.60 150000\n0 gpm.61 0\n0 pcie.rx 1\n0 field.138 5\n0 field.139 5",
        2,
        pcie=True,
    )
    assert of(second) == [2000 * MIB, 10 * MIB, 150000 * MIB, 0.0]
    assert why(second) == [None] * 4
    assert of(first)[2:] == [None, None] and why(first)[2:] == [NOT_YET] * 2


def test_the_first_reading_promises_what_gpm_may_tell(readings: Callable[..., list[GpuSampled]]) -> None:
    first, second = readings("0 gpm.support 1\n0 gpm.60 !3\n0 gpm.21 nan\n0 gpm.20 5", 2)
    assert why(first) == [NOT_YET] * 4
    assert of(second) == [None, 5 * MIB, None, None]
    assert why(second) == [UNASKED, None, "not supported on this GPU", "not supported on this GPU"]


def test_counters_of_nvlink_tell_it_elsewhere(readings: Callable[..., list[GpuSampled]]) -> None:
    first, second, third, fourth = readings("0 field.139 1000 4000 4000 10\n0 field.138 500 500 3500 4000", 4)
    assert of(first)[2:] == [None, None] and why(first)[2:] == [NOT_YET] * 2
    assert of(second)[2:] == [1000 * 1024.0, 0.0]
    assert of(third)[2:] == [0.0, 1000 * 1024.0]
    assert of(fourth)[2] is None and of(fourth)[3] == pytest.approx(500 / 3 * 1024)
    assert why(fourth)[2:] == ["the counter of NVLink has started again", None]


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ("0 field.139 5", "not supported on this GPU"),
        ("0 field.139 !4\n0 field.138 1", "no permission"),
        ("0 field.139 0xFFFFFFFFFFFFFFFF\n0 field.138 1", "the driver gave no value"),
        ("0 fields !13", "needs a newer driver"),
        ("0 utilization 1", "not supported on this GPU"),
    ],
)
def test_why_nvlink_is_not_told(readings: Callable[..., list[GpuSampled]], script: str, reason: str) -> None:
    for sample in readings(script, 3):
        assert of(sample) == [None] * 4
        assert why(sample) == [UNASKED, UNASKED, reason, reason]


def test_each_field_that_is_none_has_a_reason(readings: Callable[..., list[GpuSampled]]) -> None:
    """Of a GPU that tells nothing."""
    (sample,) = readings("0 name A", 1)
    of_job = {"process_memory_bytes", "job_sm_percent", "job_here"}  # no job is looked for
    by_one = {"lost"} | {field for field in sample.__dataclass_fields__ if field.endswith(("_activity", "sm_occupancy"))}
    none = {field for field in sample.__dataclass_fields__ if getattr(sample, field) is None} - of_job - by_one
    assert none <= set(dict(sample.missing)) | {"mig_mode"}
    assert "activity" in dict(sample.missing)
