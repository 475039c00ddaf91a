"""The makers' figures: found by the names that drivers tell, checked by the arithmetic of units, extended by a user."""

from __future__ import annotations

import contextlib
import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tuimon.events import GpuSampled
from tuimon.roofline import derived
from tuimon.roofline.calibration import Calibration, Figure, Way
from tuimon.roofline.ceilings import ORDER, Ceiling, CeilingError, ceilings_of, load_ceilings, now
from tuimon.roofline.inforce import Known, known, thread_note
from tuimon.roofline.machines import Machine, dtype_of, find, machines, parse_machines

GIB = 1 << 30
MACHINES = {machine.name: machine for machine in machines()}

ENTRY = """
[[machine]]
name = "mine"
match = 'My GPU'
source = "its sheet"
matrix = { bf16 = 2e14 }
vector = { f32 = 2e13 }
bandwidth = { HBM = 2e12 }
"""

# SMs (or CUs) and operations a clock of each, by unit and dtype; what is left out has no such arithmetic here
UNITS = {
    "H100 SXM": (132, {"bf16": 4096, "tf32": 2048, "f8": 8192, "f64": 256}, {"f32": 256, "f64": 128}),
    "H100 PCIe": (114, {"bf16": 4096, "tf32": 2048, "f8": 8192, "f64": 256}, {"f32": 256, "f64": 128}),
    "H200 SXM": (132, {"bf16": 4096, "f8": 8192}, {"f32": 256}),
    "A100 40GB": (108, {"bf16": 2048, "tf32": 1024, "f64": 128, "i8": 4096}, {"f32": 128, "f64": 64}),
    "A100 80GB SXM": (108, {"bf16": 2048, "tf32": 1024}, {"f32": 128}),
    "A100 80GB PCIe": (108, {"bf16": 2048}, {"f32": 128}),
    "A40": (84, {"bf16": 1024, "tf32": 512}, {"f32": 256}),
    "A10": (72, {"bf16": 1024, "tf32": 512}, {"f32": 256}),
    "A10G": (80, {"bf16": 512, "tf32": 256}, {"f32": 256}),
    "L40S": (142, {"bf16": 1024, "tf32": 512, "f8": 2048}, {"f32": 256}),
    "L40": (142, {"bf16": 512, "f8": 1024}, {"f32": 256}),
    "L4": (58, {"bf16": 1024, "f8": 2048}, {"f32": 256}),
    "T4": (40, {"f16": 1024}, {"f32": 128}),
    "V100 SXM2": (80, {"f16": 1024}, {"f32": 128, "f64": 64}),
    "V100 PCIe": (80, {"f16": 1024}, {"f32": 128, "f64": 64}),
    "GeForce RTX 4090": (128, {"bf16": 512, "f8": 1024, "tf32": 256}, {"f32": 256}),
    "GeForce RTX 3090": (82, {"bf16": 512, "tf32": 256}, {"f32": 256}),
    "MI300X": (304, {"bf16": 2048, "f8": 4096, "tf32": 1024, "f64": 256}, {"f32": 256, "f64": 128}),
    "MI250X (one die)": (110, {"bf16": 1024, "f64": 256}, {"f32": 128, "f64": 128}),
    "MI250 (one die)": (104, {"bf16": 1024, "f64": 256}, {"f32": 128, "f64": 128}),
}


@pytest.mark.parametrize("name", sorted(UNITS))
def test_a_dense_peak_is_units_times_operations_times_clock(name: str) -> None:
    count, matrix, vector = UNITS[name]
    for unit, rates in (("matrix", matrix), ("vector", vector)):
        for dtype, rate in rates.items():
            peak = MACHINES[name].peak(unit, dtype)  # type: ignore[arg-type]
            assert peak is not None and peak.clock_mhz is not None
            assert count * rate * peak.clock_mhz * 1e6 == pytest.approx(peak.flops, rel=0.012), (unit, dtype)


def test_every_machine_has_what_a_ceiling_needs() -> None:
    for machine in MACHINES.values():
        memory = machine.bandwidth(machine.memory)
        assert memory is not None and 1e11 < memory.bytes_s < 1e13 and memory.how == "datasheet"
        assert machine.bandwidth("PCIe") is not None
        assert machine.peak("vector", "f32") is not None
        for peaks in machine.peaks.values():
            assert all(peak.source and peak.how == "datasheet" for peak in peaks)
        sparse = {dtype for _, dtype, sparsity in machine.peaks if sparsity == "2:4"}
        for dtype in sparse:
            dense, half = machine.peak("matrix", dtype), machine.peak("matrix", dtype, "2:4")
            assert dense is not None and half is not None and half.flops == 2 * dense.flops


def test_the_packaged_pairs_say_the_same() -> None:
    for ceiling in load_ceilings()[1:]:
        name, _, dtype = ceiling.name.rpartition(" ")
        machine = next(m for m in MACHINES.values() if m.name in (name, name.replace("40GB SXM", "40GB")))
        peak = machine.peak("vector" if dtype == "fp32" else "matrix", {"fp32": "f32"}.get(dtype, dtype))
        bandwidth = machine.bandwidth(machine.memory)
        assert peak is not None and bandwidth is not None
        assert (peak.flops, bandwidth.bytes_s) == pytest.approx((ceiling.peak_flops, ceiling.bandwidth_bytes_s), rel=2e-3)


@pytest.mark.parametrize(
    ("name", "gib", "found"),
    [
        ("NVIDIA H100 80GB HBM3", 79.6, "H100 SXM"),
        ("NVIDIA H100 PCIe", 79.6, "H100 PCIe"),
        ("NVIDIA H200", 140.4, "H200 SXM"),
        ("NVIDIA H200", None, "H200 SXM"),
        ("NVIDIA GH200 480GB", 95, None),
        ("NVIDIA B200", 179, "B200 HGX"),
        ("NVIDIA GB200", 186, None),
        ("NVIDIA A100-SXM4-40GB", 39.6, "A100 40GB"),
        ("A100-SXM4-40GB", 39.6, "A100 40GB"),
        ("NVIDIA A100-SXM4-80GB", 80, "A100 80GB SXM"),
        ("NVIDIA A100-SXM4-80GB", None, "A100 80GB SXM"),
        ("NVIDIA A100 80GB PCIe", 80, "A100 80GB PCIe"),
        ("NVIDIA A100-PG509-200", 39.6, "A100 40GB"),
        ("NVIDIA A100-SXM4-40GB MIG 1g.5gb", 4.8, None),
        ("NVIDIA A10G", 22.5, "A10G"),
        ("NVIDIA A10", 22.5, "A10"),
        ("NVIDIA L40S", 45, "L40S"),
        ("NVIDIA L40", 45, "L40"),
        ("NVIDIA L4", 22.5, "L4"),
        ("Tesla T4", 15, "T4"),
        ("Tesla V100-SXM2-32GB", 32, "V100 SXM2"),
        ("Tesla V100-SXM2-16GB", None, "V100 SXM2"),
        ("Tesla V100-DGXS-32GB", 32, None),
        ("Tesla V100-PCIE-16GB", 16, "V100 PCIe"),
        ("NVIDIA GeForce RTX 4090", 24, "GeForce RTX 4090"),
        ("NVIDIA GeForce RTX 4090 Laptop GPU", 16, None),
        ("NVIDIA GeForce RTX 3090 Ti", 24, None),
        ("AMD Instinct MI300X", 191, "MI300X"),
        ("AMD Instinct MI300X VF", 191, "MI300X"),
        ("AMD Instinct MI250X", 64, "MI250X (one die)"),
        ("AMD Radeon Graphics", 64, None),
        ("", None, None),
    ],
)
def test_devices_are_found_by_the_names_that_drivers_tell(name: str, gib: float | None, found: str | None) -> None:
    machine = find(name, None if gib is None else int(gib * GIB))
    assert (machine.name if machine is not None else None) == found


@pytest.mark.parametrize(
    ("told", "dtype"),
    [("c10::BFloat16", "bf16"), ("bfloat16", "bf16"), ("float", "f32"), ("torch.float16", "f16"), ("double", "f64"),
     ("f8e4m3fn", "f8"), ("c10::Float8_e5m2", "f8"), ("signed char", "i8"), ("tf32", "tf32"), ("b8", "b8")],
)  # fmt: skip
def test_dtypes_go_by_one_name(told: str, dtype: str) -> None:
    assert dtype_of(told) == dtype


# ------------------------------------------------------------------------------------------------- of the driver

H200 = GpuSampled(
    0, 0, "NVIDIA H200", 50.0, 0, 150754820096, sm_clock_mhz=1545.0, sm_clock_max_mhz=1980.0, memory_clock_max_mhz=3201.0,
    memory_bus_bits=6144, cores=16896, compute_capability="9.0",
)  # fmt: skip


def test_what_the_driver_tells_gives_figures() -> None:
    told = derived.bandwidth(H200)
    assert told is not None and told.bytes_s == pytest.approx(4916.7e9, rel=1e-4) and told.how == "derived"
    peaks = dict(derived.peaks(H200))
    assert peaks["vector", "f32", "dense"].flops == pytest.approx(66.9e12, rel=1e-3)
    # the sheet's 989 TFLOP/s are at 1,830 MHz; this device may run at 1,980
    assert peaks["matrix", "bf16", "dense"].flops == pytest.approx(989.4e12 * 1980 / 1830, rel=1e-3)
    machine = Known(machines=machines()).of_gpu(H200)
    assert machine is not None
    assert [bandwidth.how for bandwidth in machine.bandwidths["HBM"]] == ["derived", "datasheet"]
    roofs = ceilings_of(machine, dtype="c10::BFloat16", unit="matrix", boundary="HBM")
    assert [(roof.how, roof.name) for roof in roofs] == [("derived", "H200 SXM bf16"), ("datasheet", "H200 SXM bf16 sheet")]


def test_a_gpu_that_no_table_knows_has_what_its_driver_tells() -> None:
    strange = GpuSampled(0, 0, "NVIDIA X9", None, None, None, sm_clock_max_mhz=2000.0, memory_clock_max_mhz=1000.0,
                         memory_bus_bits=512, cores=1000, compute_capability="12.0")  # fmt: skip
    machine = Known(machines=machines()).of_gpu(strange)
    assert machine is not None and machine.memory == "DRAM"
    (roof,) = ceilings_of(machine, dtype="f32", unit="vector", boundary="DRAM")
    assert (roof.peak_flops, roof.bandwidth_bytes_s, roof.how) == (4e12, 1.28e11, "derived")
    assert ceilings_of(machine, dtype="bf16", unit="matrix", boundary="DRAM") == ()  # not known, so not invented
    nothing = GpuSampled(0, 0, "NVIDIA X9", None, None, None)
    assert Known(machines=machines()).of_gpu(nothing) is None


def test_the_present_clock_lowers_the_peak_and_says_why() -> None:
    (roof,) = ceilings_of(MACHINES["H200 SXM"], dtype="bf16", unit="matrix", boundary="HBM")
    slower = now(roof, 1545.0, ("power cap",))
    assert slower is not None
    assert slower.peak_flops == pytest.approx(989.4e12 * 1545 / 1830)
    assert slower.bandwidth_bytes_s == roof.bandwidth_bytes_s
    assert "1,545 MHz" in slower.name and "power cap" in slower.name and "1,830 MHz" in slower.source
    assert now(roof, 345.0, ("idle",)) is None  # the clock of an idle device says nothing of what it could do
    assert now(roof, None, ()) is None
    assert now(Ceiling("x", 1e12, 1e11, "HBM", "declared"), 1545.0, ()) is None


# ------------------------------------------------------------------------------------------------- which one holds


def way(best: float = 9e10) -> Way:
    return Way("NT", "512", best, best * 0.98, 0.02, 8, 10)


def calibrated(key: str = "cpu-x", kind: str = "cpu", name: str = "X", *figures: Figure) -> Calibration:
    own = figures or tuple(
        Figure(what, of, value * threads, (way(value * threads),), "2026-11-30T04:00:00Z", "2.13.0", threads=threads)  # type: ignore[arg-type]
        for threads in (1, 2)
        for what, of, value in (("peak", "f32", 9e10), ("bandwidth", "DRAM", 3e10), ("bandwidth", "LLC", 8e10))
    )
    return Calibration(key, kind, name, None, 32 << 20, own)  # type: ignore[arg-type]


def test_of_a_cpu_those_of_the_jobs_threads_are_taken() -> None:
    machine = calibrated().machine()
    assert machine.threads == (1, 2) and machine.cache == "LLC" and machine.memory == "DRAM"
    for threads, expected in ((1, 9e10), (2, 1.8e11), (7, 1.8e11), (None, 1.8e11)):
        roofs = ceilings_of(machine, dtype="f32", unit="vector", boundary="LLC", threads=threads)
        assert [roof.peak_flops for roof in roofs] == [expected]
        assert roofs[0].how == "calibrated" and "tuimon calibrate 2026-11-30" in roofs[0].source
    assert thread_note(machine, 2) == thread_note(machine, None) == ""
    assert thread_note(machine, 7).startswith("calibrated with 1 and 2 threads, the job has 7")
    assert machine.peak("matrix", "bf16") is None  # never from another dtype


def test_measured_comes_before_told_before_printed() -> None:
    peak = Figure("peak", "bf16", 7.9e14, (way(7.9e14),), "2026-11-30T04:00:00Z", "2.13.0")
    kept = Calibration("gpu-h200", "gpu", "NVIDIA H200", 150754820096, None, (peak,), "580.82")
    machine = Known(machines=machines(), calibrations=(kept,)).of_gpu(H200)
    assert machine is not None
    assert [one.how for one in machine.peaks["matrix", "bf16", "dense"]] == ["calibrated", "derived", "datasheet"]
    best, *others = ceilings_of(machine, dtype="bf16", unit="matrix", boundary="HBM")
    assert best.peak_flops == 7.9e14 and best.how == "derived"  # the weaker of its two figures
    assert "peak (calibrated)" in best.source and "bandwidth (derived)" in best.source
    assert [roof.how for roof in others] == ["derived", "datasheet"]
    assert [roof.name for roof in (best, *others)] == ["H200 SXM bf16", "H200 SXM bf16 driver", "H200 SXM bf16 sheet"]
    other_memory = Known(machines=machines(), calibrations=(kept,)).of_name("NVIDIA H200", 80 * GIB)
    assert other_memory is not None and other_memory.peak("matrix", "bf16", how="calibrated") is None


# ------------------------------------------------------------------------------------------------- a user's file


def test_a_users_machine_is_found_first(tmp_path: Path) -> None:
    path = tmp_path / "own.toml"
    path.write_text(ENTRY + ENTRY.replace('"mine"', '"H200 SXM"').replace("My GPU", "H200"))
    own = machines(path)
    assert [machine.name for machine in own[:2]] == ["mine", "H200 SXM"]
    assert len(own) == len(MACHINES) + 1
    machine = find("NVIDIA My GPU", None, own)
    assert machine is not None and machine.name == "mine"
    peak = machine.peak("matrix", "bf16")
    assert peak is not None and (peak.flops, peak.how) == (2e14, "declared")


def test_what_is_known_is_read_once_and_a_bad_file_of_the_folder_is_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    folder = tmp_path / "config" / "tuimon"
    folder.mkdir(parents=True)
    ceiling = '[[ceiling]]\nname = "roof"\npeak_flops = 2e12\nbandwidth_bytes_s = 1e11\nboundary = "DRAM"\nhow = "declared"\n'
    (folder / "ceilings.toml").write_text(ceiling + ENTRY)
    extra = tmp_path / "extra.toml"
    extra.write_text(ceiling.replace("2e12", "3e12") + ceiling.replace('"roof"', '"second"'))
    found = known(extra)
    assert [(one.name, one.peak_flops) for one in found.own] == [("roof", 3e12), ("second", 2e12)]
    assert next(one for one in found.ceilings if one.name == "roof").peak_flops == 3e12
    assert found.of_name("My GPU") is not None and found.problems == () and found.host is None
    (folder / "ceilings.toml").write_text(ceiling.replace("2e12", "nan"))
    found = known()
    assert found.own == () and len(found.problems) == 1 and "peak_flops" in found.problems[0]
    assert found.of_name("NVIDIA H200") is not None
    extra.write_text(ENTRY.replace("2e12", "-2e12"))
    with pytest.raises(CeilingError, match=r"machine 1 \('mine'\): bandwidth.HBM must be a number"):
        known(extra)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("name = ", "not TOML"),
        ("machine = 1", "two brackets"),
        (ENTRY.replace("match = 'My GPU'", ""), "match missing"),
        (ENTRY.replace("bandwidth = { HBM = 2e12 }", ""), "bandwidth missing"),
        (ENTRY.replace("matrix = { bf16 = 2e14 }", "").replace("vector = { f32 = 2e13 }", ""), "matrix or vector missing"),
        (ENTRY.replace("HBM", "PCIe"), "HBM or DRAM"),
        (ENTRY.replace("HBM", "L7"), "bandwidth: unknown 'L7'"),
        (ENTRY.replace("bf16", "bf17"), "matrix: unknown 'bf17'"),
        (ENTRY.replace("'My GPU'", "'My (GPU'"), "no regular expression"),
        (ENTRY.replace('"mine"', '"a\\u001b[31m"'), "control characters"),
        (ENTRY + 'sparse = ["f8"]', "sparse names 'f8'"),
        (ENTRY + "sparse = 3", "sparse must be a list"),
        (ENTRY + "memory_gib = [40]", "two numbers"),
        (ENTRY + "memory_gib = [80, 40]", "upwards"),
        (ENTRY + "speed = 3", "unknown 'speed'"),
        (ENTRY + ENTRY, "machine 2 ('mine'): there is one of this name"),
        *(
            (ENTRY.replace("2e14", value), "matrix.bf16 must be a number")
            for value in ("0", "-1.0", "nan", "inf", "true", "'1'")
        ),
    ],
)
def test_what_is_wrong_is_named(text: str, says: str) -> None:
    with pytest.raises(CeilingError) as caught:
        parse_machines(text.encode(), "here.toml", how="declared")
    assert str(caught.value).startswith("here.toml: ")
    assert says in str(caught.value)


@given(st.binary(max_size=200))
def test_any_bytes_are_machines_or_a_ceiling_error(data: bytes) -> None:
    with contextlib.suppress(CeilingError):
        parse_machines(data, "x", how="declared")


@given(st.sampled_from(sorted(MACHINES)), st.sampled_from(["bf16", "f32", "f16", "i8", "b8"]), st.floats(1, 1e6))
def test_any_ceiling_of_a_machine_is_one(name: str, dtype: str, clock: float) -> None:
    machine: Machine = MACHINES[name]
    for unit in ("matrix", "vector"):
        for boundary in machine.bandwidths:
            for roof in ceilings_of(machine, dtype=dtype, unit=unit, boundary=boundary):  # type: ignore[arg-type]
                assert math.isfinite(roof.ridge) and roof.how in ORDER and roof.unit == unit and roof.boundary == boundary
                scaled = now(roof, clock, ())
                assert scaled is None or scaled.peak_flops > 0
