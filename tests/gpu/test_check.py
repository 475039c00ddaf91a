"""The check on a real device: what it decides by, tested here, and the whole of it where there is a device."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.gpu import agree, check, parts
from tests.gpu.agree import FIELDS, Row
from tuimon import events as ev
from tuimon.model import Model

MIB = 2**20
LINE = "GPU-5c2a-01, 00000000:3B:00.0, 143771, 511, 613, 700.00, 121.37, 34, 12, 1980, 345, 3201, [N/A], 0\n"
"""As nvidia-smi prints it, with nounits."""
SAMPLE = ev.GpuSampled(
    1, 0, "NVIDIA H200", 12.0, 613 * MIB + 400_000, 143771 * MIB, power_w=121.372, power_limit_w=700.0, temperature_c=34.0,
    sm_clock_mhz=345.0, sm_clock_max_mhz=1980.0, memory_clock_mhz=3201.0, uuid="GPU-5c2a-01", pci_bus_id="00000000:3b:00.0",
    memory_reserved_bytes=511 * MIB, ecc_uncorrected=0,
)  # fmt: skip


def states(rows: list[Row]) -> dict[str, str]:
    return {row.name: row.state for row in rows}


def test_what_nvidia_smi_prints_is_read() -> None:
    (row,) = agree.smi(LINE)
    assert row["uuid"] == "GPU-5c2a-01" and row["power.draw"] == 121.37 and row["fan.speed"] is None
    with pytest.raises(ValueError):
        agree.smi("1, 2\n")


def test_readings_agree_within_the_rounding() -> None:
    (row,) = agree.smi(LINE)
    found = states(agree.agreements([(row, SAMPLE, row)] * 3))
    assert found.pop("fan.speed") == "skipped"  # neither tells it
    assert set(found.values()) == {"ok"} and len(found) == len(FIELDS) - 1


@pytest.mark.parametrize(
    ("name", "more"),
    [
        ("power.draw", {"power_w": 121.40}),
        ("memory.used", {"memory_used_bytes": 615 * MIB}),
        ("memory.total", {"memory_total_bytes": None}),
        ("uuid", {"uuid": "GPU-5c2a-02"}),
        ("fan.speed", {"fan_percent": 0.0}),
        ("ecc.errors.uncorrected.volatile.total", {"ecc_uncorrected": 1}),
    ],
)
def test_a_value_that_does_not_agree_is_named(name: str, more: dict[str, Any]) -> None:
    (row,) = agree.smi(LINE)
    found = states(agree.agreements([(row, replace(SAMPLE, **more), row)] * 3))
    assert [one for one, state in found.items() if state == "failed"] == [name]


def test_a_value_that_changes_has_to_agree_often_and_a_steady_one_always() -> None:
    (row,) = agree.smi(LINE)
    jumped, other = replace(SAMPLE, power_w=300.0), replace(SAMPLE, sm_clock_max_mhz=1970.0)
    found = states(agree.agreements([(row, SAMPLE, row)] * 4 + [(row, jumped, row), (row, other, row)]))
    assert found["power.draw"] == "ok" and found["clocks.max.sm"] == "failed"
    rose = {**row, "power.draw": 320.0}
    assert states(agree.agreements([(row, jumped, rose)]))["power.draw"] == "ok"  # between the two


def test_what_gpm_has_to_tell() -> None:
    rest = [replace(SAMPLE, sm_activity=0.2, tensor_activity=0.0, dram_activity=0.1)]
    work = [replace(SAMPLE, sm_activity=97.0, tensor_activity=71.0, dram_activity=30.0)]
    assert set(states(agree.activity(rest, work)).values()) == {"ok"}
    assert states(agree.activity(rest, rest))["sm_activity"] == "failed"
    assert states(agree.activity(work, work))["sm_activity"] == "failed"
    (row,) = agree.activity([SAMPLE], [replace(SAMPLE, missing=(("activity", "needs Hopper"),))])
    assert (row.state, row.what) == ("skipped", "needs Hopper")


def test_what_the_hook_may_cost() -> None:
    assert agree.overhead("a step", [1.0, 1.01, 1.3], 1.02).state == "ok"
    assert agree.overhead("a step", [1.0, 1.03, 1.03], 1.02).state == "failed"


def test_the_end_of_it() -> None:
    good, bad = Row("a", "b", "ok", "c"), Row("a", "d", "failed", "e")
    assert (agree.status([good]), agree.status([good, bad]), agree.status([])) == (0, 1, 1)
    assert agree.table([good])[-1] == "| a | b | ok | c |"


STATS = {
    "allocated_bytes.all.current": 8, "reserved_bytes.all.current": 10, "active_bytes.all.current": 9,
    "inactive_split_bytes.all.current": 1, "allocated_bytes.all.peak": 9, "num_alloc_retries": 0, "num_ooms": 0,
}  # fmt: skip
POOL = ev.PoolSampled(1, 0, "5C2A-01", None, 8, 10, 9, 1, 9, 0, 0, "native")


def laid_beside(pool: ev.PoolSampled | None, *readings: ev.GpuSampled, **truth: Any) -> dict[str, str]:
    model = Model()
    model.apply([pool] if pool is not None else [])
    model.regions["0"] = SimpleNamespace(device=SimpleNamespace(n=2, total_ns=1_800_000))  # type: ignore[assignment, index]
    closed = [ev.WindowChanged(1, 1, "closed", steps=5, job_s=0.001), ev.KernelsSeen(1, 1, (), 0, 1)]
    job = {"pid": 7, "step_ms": 1.0, "stats": STATS, "uuid": "5c2a-01", **truth}
    return states(list(parts.told(job, model, list(closed), list(readings))))


def test_what_torch_says_of_a_training_step_is_laid_beside() -> None:
    listed = replace(SAMPLE, processes=(ev.GpuProcess(7, 9),))
    assert set(laid_beside(POOL, listed).values()) == {"ok"}
    assert laid_beside(POOL, SAMPLE)["listed"] == "skipped"  # a container
    assert laid_beside(replace(POOL, reserved_bytes=11), listed)["pool: reserved_bytes.all.current"] == "failed"
    assert laid_beside(POOL, replace(listed, uuid="GPU-9"))["uuid"] == "failed"
    assert laid_beside(POOL, listed, step_ms=9.0)["device clock: regions of a step"] == "failed"
    assert laid_beside(None, listed)["pool"] == "failed"


def test_a_part_that_does_not_end_or_breaks_is_told_with_what_it_had(monkeypatch: pytest.MonkeyPatch) -> None:
    row = check.run("values", "no such device", 60.0)[-1]
    assert row.state == "failed" and "no such device" in row.what
    (row,) = check.run("xid", "cpu", 0.01)
    assert (row.state, row.what) == ("failed", "not over after 0.01 s")


def test_all_of_it_is_over_in_five_minutes() -> None:
    assert sum(limit for _, limit in parts.PARTS.values()) < 300


@pytest.mark.live
def test_without_a_device_it_goes_dry(capsys: pytest.CaptureFixture[str]) -> None:
    """What the job tells is read, and what needs a device is skipped with its reason."""
    status = check.main(["--dry", "xid", "training"])
    out = capsys.readouterr().out
    assert status == 0, out
    assert "| training | window | ok |" in out and "| training | pool | skipped | the job ran on the CPU |" in out


@pytest.mark.gpu
@pytest.mark.skipif(not Path("/dev/nvidia0").exists(), reason="there is no NVIDIA GPU here (/dev/nvidia0)")
def test_on_a_device(capsys: pytest.CaptureFixture[str]) -> None:
    """All but what it costs, which only means something on a quiet machine: python -m tests.gpu.check."""
    status = check.main(["values", "activity", "xid", "training"])
    assert status == 0, capsys.readouterr().out
