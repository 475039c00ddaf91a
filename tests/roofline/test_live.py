"""The roofline of a job: sums over laps, what is under which ceiling, and above all what is said not to be known."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.roofline.jobs import (
    CPU,
    HOST,
    MIB,
    added,
    calls,
    cpu_target,
    gpu,
    graph,
    mm,
    model_of,
    product,
    row,
)
from tuimon import events as ev
from tuimon.draw.glyphs import ASCII
from tuimon.draw.roofline_table import of_roof_text
from tuimon.draw.roofline_words import point_glyph
from tuimon.report.roofline import _point, cells
from tuimon.roofline.ceilings import Ceiling
from tuimon.roofline.inforce import Known
from tuimon.roofline.live import roofline
from tuimon.roofline.machines import Bandwidth, Machine, Peak
from tuimon.roofline.over import UNKNOWN
from tuimon.roofline.points import Point


def only(found: tuple[Point, ...]) -> Point:
    (point,) = found
    return point


# ------------------------------------------------------------------------------------------------- regions


def test_a_region_is_its_graph_over_its_time() -> None:
    # 2 GFLOP in 40 ms: 50 GFLOP/s of 100; 12 MB are read and written: 166.7 FLOP/byte at most
    found = roofline(model_of(product(), added(1), calls(1, 40, 11)), HOST)
    point = only(found.points)
    assert point.calls == 10  # the first call is the initial one, and in no rate
    assert point.rate == pytest.approx(50e9)
    assert point.operations == pytest.approx(10 * 2e9)
    assert point.intensity == pytest.approx(2e9 / 12e6)
    assert point.of_peak == pytest.approx(0.5)
    assert (point.key, point.kind, point.bytes_how, point.operations_how) == (
        "region 0:0/0:forward",
        "region",
        "compulsory",
        "formula",
    )
    assert found.flop_known_for == 1.0
    assert found.unknown == ()


def test_every_point_has_its_provenance() -> None:
    found = roofline(model_of(product(), added(1), calls(1, 40, 11)), HOST)
    for point in (*found.points, found.process):
        assert point is not None
        assert point.how and point.bound and point.bytes_how and point.operations_how and point.boundary and point.ceiling
        assert point.ceiling in {one.name for one in found.ceilings}


def test_small_data_is_held_against_the_cache_and_not_against_memory() -> None:
    point = only(roofline(model_of(product(), added(1), calls(1, 40, 3)), HOST).points)
    assert (point.boundary, point.bound) == ("LLC", "upper")  # 12 MB are less than 2 x 32 MiB
    assert point.of_roof == pytest.approx(0.5)
    at_memory = only(roofline(model_of(product(), added(1), calls(1, 40, 3)), HOST, boundary="DRAM").points)
    assert (at_memory.boundary, at_memory.bound, at_memory.of_roof) == ("DRAM", "unknown", None)
    assert at_memory.of_peak == pytest.approx(0.5)  # true whatever the bytes are


def test_large_data_is_held_against_memory() -> None:
    size = 20 * MIB  # elements: 80 MiB an array
    told = graph(rows=[row("add", [(size,), (size,)], [(size,)])], reads=[(size,), (size,)], writes=[(size,)])
    point = only(roofline(model_of(told, added(1), calls(1, 30, 3)), HOST).points)
    assert (point.boundary, point.bound) == ("DRAM", "upper")
    # one operation for each 12 bytes: the roof at 20 GB/s is 1.67 GFLOP/s
    assert point.intensity == pytest.approx(1 / 12)
    assert point.of_roof == pytest.approx(size / 0.03 / (20e9 / 12))
    assert roofline(model_of(told, added(1), calls(1, 30, 3)), HOST, boundary="LLC").points[0].bound == "upper"


def test_a_triad_on_small_arrays_is_no_300_percent_of_the_memory_roof() -> None:
    """Three arrays of 0.25 MiB stay in the cache: 60 GB/s of them are no evidence against a memory that moves 20."""
    size = MIB // 16
    told = graph(
        rows=[row("mul", [(size,)], [(size,)]), row("add", [(size,), (size,)], [(size,)])],
        reads=[(size,), (size,)],
        writes=[(size,)],
    )
    took_ms = 3 * MIB / 4 / 60e9 * 1e3
    model = model_of(told, added(1), calls(1, took_ms, 200))
    for boundary in (None, "DRAM"):
        point = only(roofline(model, HOST, boundary=boundary).points)
        assert point.over == ()
        assert point.of_roof is None or (point.boundary == "LLC" and point.of_roof == pytest.approx(0.75, rel=0.01))
    assert only(roofline(model, HOST, boundary="DRAM").points).of_roof is None
    naive = (2 * size / (took_ms / 1e3)) / (20e9 * 2 * size / (3 * size * 4))
    assert naive == pytest.approx(3.0, rel=0.01)  # what it is kept from showing


def test_data_that_the_cores_own_caches_hold_has_no_share_of_the_last_caches_roof() -> None:
    """What is said of the last cache and the memory holds of the caches in front of the last one as well."""
    own = Known(host=replace(CPU, core_cache_bytes=MIB))
    size = MIB // 16  # three arrays of 0.25 MiB: less than 2 x 1 MiB
    told = graph(rows=[row("add", [(size,), (size,)], [(size,)])], reads=[(size,), (size,)], writes=[(size,)])
    found = roofline(model_of(told, added(1), calls(1, 1, 3)), own)
    point = only(found.points)
    assert (point.boundary, point.bound, point.of_roof) == ("LLC", "unknown", None)
    assert point.of_peak is not None
    assert any("cores' own caches" in note for note in found.notes)
    large = only(roofline(model_of(product(), added(1), calls(1, 40, 3)), own).points)  # 12 MB
    assert (large.boundary, large.bound) == ("LLC", "upper")
    eight = model_of(cpu_target(8), product(), added(1), calls(1, 40, 3))
    assert only(roofline(eight, own).points).bound == "unknown"  # eight cores hold 8 MiB of it


def test_what_a_cpu_does_in_sixteen_bits_beside_products_is_held_against_f32() -> None:
    slow = Peak(2e9, "calibrated", "by hand", threads=1)  # products of f16 without a kernel of their own
    machine = replace(CPU, peaks={**CPU.peaks, ("matrix", "f16", "dense"): (slow,)})
    size = 20 * MIB
    told = graph(
        rows=[row("add", [("f16", size), ("f16", size)], [("f16", size)])], reads=[("f16", size)], writes=[("f16", size)]
    )
    point = only(roofline(model_of(told, added(1), calls(1, 8, 3)), Known(host=machine)).points)
    assert point.rate == pytest.approx(size / 8e-3)  # 2.6 GFLOP/s
    assert point.of_peak == pytest.approx(size / 8e-3 / 100e9)
    assert point.over == ()


def test_the_peak_of_a_mixture_is_that_of_doing_one_after_the_other() -> None:
    rows = [mm(1000, 1000, 1000), row("mm", [("f64", 1000, 1000), ("f64", 1000, 1000)], [("f64", 1000, 1000)])]
    point = only(roofline(model_of(graph(rows=rows, reads=[(1000, 1000)]), added(1), calls(1, 100, 3)), HOST).points)
    # 2 GFLOP at 100 and 2 at 50 GFLOP/s take 60 ms at least; they took 100
    assert point.of_peak == pytest.approx(0.6)


def test_a_missing_formula_is_unknown_and_never_zero() -> None:
    told = graph(rows=[mm(10, 10, 10), row("mylib.foobar", [(10, 10)], [(10, 10)])], reads=[(10, 10)], writes=[(10, 10)])
    other = graph("1/0", [mm(1000, 1000, 1000)], [(1000, 1000)], [(1000, 1000)])
    found = roofline(model_of(told, other, added(1), added(2, "1/0"), calls(1, 10, 4), calls(2, 10, 10, 2.0)), HOST)
    point = next(one for one in found.points if "0:0/0" in one.key)
    assert (point.rate, point.intensity, point.operations, point.of_peak) == (None, None, None, None)
    assert "mylib.foobar" in point.why_not
    assert found.flop_known_for == pytest.approx(9 / 12)
    assert found.unknown == (("mylib.foobar", pytest.approx(3 / 12)),)
    assert found.process is not None and found.process.rate == pytest.approx(2e9 / 0.01)
    assert "without 1 of 2 regions" in found.process.why_not


def test_a_lost_graph_leaves_its_region_unknown() -> None:
    found = roofline(model_of(added(1), calls(1, 10, 4)), HOST)
    assert only(found.points).rate is None
    assert only(found.points).why_not
    assert found.flop_known_for == 0.0
    assert found.process is None


def test_a_graph_that_was_cut_is_unknown() -> None:
    told = replace(product(), cut=True, why="a subgraph")
    point = only(roofline(model_of(told, added(1), calls(1, 10, 4)), HOST).points)
    assert point.rate is None
    assert "a subgraph" in point.why_not


def test_the_window_is_of_the_last_seconds_and_the_trail_of_those_before() -> None:
    model = model_of(product(), added(1), calls(1, 80, 1), calls(1, 80, 100, 10.0), calls(1, 40, 100, 25.0))
    point = only(roofline(model, HOST, window_s=5.0).points)
    assert point.rate == pytest.approx(50e9)
    assert [rate for _, rate in point.trail] == [pytest.approx(25e9), pytest.approx(25e9)]
    whole = only(roofline(model, HOST, window_s=None).points)
    assert whole.calls == 200
    assert whole.rate == pytest.approx(200 * 2e9 / 12)
    assert whole.trail == ()


def test_inductors_model_of_traffic_counts_at_the_cache() -> None:
    told = replace(product(), model_bytes=48_000_000)
    point = only(roofline(model_of(told, added(1), calls(1, 40, 3)), HOST).points)
    assert (point.bytes_how, point.boundary, point.bound) == ("inductor model", "LLC", "upper")
    assert point.intensity == pytest.approx(2e9 / 48e6)
    # what is between two kernels may never have left the cache: at memory only what must cross counts
    at_memory = only(roofline(model_of(told, added(1), calls(1, 40, 3)), HOST, boundary="DRAM").points)
    assert at_memory.bytes_how == "compulsory"


# ------------------------------------------------------------------------------------------------- symbols


def dynamic() -> ev.GraphSeen:
    return graph(rows=[mm("s0", 1000, 1000)], reads=[("s0", 1000), (1000, 1000)], writes=[("s0", 1000)], symbols=(("s0", 500),))


def test_each_call_of_a_dynamic_graph_is_counted_at_its_own_size() -> None:
    model = model_of(
        dynamic(),
        added(1),
        calls(1, 50, 1),
        added(2, variant_of=1, sizes=(("s0", 1000),)),
        added(3, variant_of=1, sizes=(("s0", 500),)),
        calls(2, 40, 10, 2.0),
        calls(3, 10, 10, 4.0),
    )
    assert list(model.regions) == ["0:0/0:forward"]
    point = only(roofline(model, HOST).points)
    assert point.operations == pytest.approx(10 * 2e9 + 10 * 1e9)
    assert point.rate == pytest.approx(30e9 / 0.5)
    assert point.bytes == pytest.approx(10 * 12e6 + 10 * 8e6)


def test_the_smallest_calls_tell_whether_data_may_stay_in_a_cache() -> None:
    """Large calls and small ones together are more than the cache on the average, and the small ones may not leave it."""
    large, small = (("s0", 64_000),), (("s0", 500),)  # 516 MB and 8 MB
    model = model_of(
        dynamic(), added(1), added(2, variant_of=1, sizes=large), calls(2, 2600, 3, 2.0),
        added(3, variant_of=1, sizes=small), calls(3, 20, 3, 10.0),
    )  # fmt: skip
    point = only(roofline(model, HOST).points)
    assert (point.boundary, point.bound) == ("LLC", "upper")
    assert only(roofline(model, HOST, boundary="DRAM").points).of_roof is None


def test_calls_whose_size_is_not_known_are_left_out_and_that_is_said() -> None:
    model = model_of(dynamic(), added(1), calls(1, 50, 5), added(2, variant_of=1, sizes=(("s0", 1000),)), calls(2, 40, 10, 2.0))
    found = roofline(model, HOST)
    point = only(found.points)
    assert (point.calls, point.rate) == (10, pytest.approx(50e9))
    assert "4 are left out" in point.why_not
    assert found.flop_known_for == pytest.approx(0.4 / 0.6)


def test_a_backward_has_the_sizes_of_the_forward_before_it() -> None:
    back = graph(rows=[mm(1000, "s0", 1000)], reads=[(1000, 1000)], writes=[(1000, 1000)], direction="backward")
    events: list[ev.Event] = [
        dynamic(), back, added(1), added(4, role="backward"),
        added(2, variant_of=1, sizes=(("s0", 1000),)), added(3, variant_of=1, sizes=(("s0", 500),)),
        calls(1, 1, 1, 0.1), calls(4, 1, 1, 0.2),
    ]  # fmt: skip
    for at, number in enumerate((2, 3, 2, 3)):
        events += [calls(number, 20, 1, 1.0 + at), calls(4, 40, 1, 1.5 + at)]
    found = roofline(model_of(*events), HOST)
    point = next(one for one in found.points if one.key.endswith("backward"))
    assert (point.calls, point.operations) == (4, pytest.approx(2 * 2e9 + 2 * 1e9))
    # two sizes since the last backward: which of them a backward has is nobody's to say
    events += [calls(2, 20, 1, 9.0), calls(3, 20, 1, 9.1), calls(4, 40, 1, 9.5), calls(4, 40, 1, 9.6)]
    point = next(one for one in roofline(model_of(*events), HOST).points if one.key.endswith("backward"))
    assert point.calls == 4
    assert "2 are left out" in point.why_not


# ------------------------------------------------------------------------------------------------- over


def over(took_ms: float, machine: Machine = CPU, told: ev.GraphSeen | None = None, threads: int = 1) -> tuple[str, ...]:
    model = model_of(cpu_target(threads), told or product(), added(1), calls(1, took_ms, 4))
    return only(roofline(model, Known(host=machine)).points).over


def test_what_is_above_its_roof_is_flagged_with_a_cause() -> None:
    assert over(40) == ()
    assert "spread of the calibration" in over(19.5)[0]
    assert "calibrate" in over(10)[0]
    assert "the job has 4" in over(10, threads=4)[0]
    declared = replace(CPU, peaks={("matrix", "f32", "dense"): (Peak(100e9, "declared", "me"),)})
    assert "declared" in over(10, declared)[0]
    datasheet = replace(CPU, peaks={("matrix", "f32", "dense"): (Peak(100e9, "datasheet", "sheet"),)})
    assert over(10, datasheet) == (UNKNOWN,)
    clocked = replace(CPU, peaks={("matrix", "f32", "dense"): (Peak(100e9, "datasheet", "sheet", 2000.0),)})
    assert "2,000 MHz" in over(10, clocked)[0]


def test_attention_with_a_mask_is_a_cause() -> None:
    shape = (4, 8, 512, 64)
    rows = [row("_scaled_dot_product_flash_attention_for_cpu", [shape] * 3, [shape, (4, 8, 512)], mask=True)]
    told = graph(rows=rows, reads=[shape] * 3, writes=[shape])
    assert any("mask" in cause for cause in over(5, told=told))


def test_that_a_mask_is_counted_in_full_is_said_also_of_what_is_not_over() -> None:
    shape = (4, 8, 512, 64)
    rows = [row("_scaled_dot_product_flash_attention_for_cpu", [shape] * 3, [shape, (4, 8, 512)], mask=True)]
    found = roofline(model_of(graph(rows=rows, reads=[shape] * 3, writes=[shape]), added(1), calls(1, 4000, 3)), HOST)
    assert only(found.points).over == ()
    assert any("mask tensor" in note for note in found.notes)
    assert not any("mask tensor" in note for note in roofline(model_of(product(), added(1), calls(1, 40, 3)), HOST).notes)


def test_a_share_of_the_cache_roof_above_one_names_a_nearer_cache() -> None:
    slow = replace(CPU, bandwidths={**CPU.bandwidths, "LLC": (Bandwidth(1e9, "calibrated", "by hand"),)})
    told = graph(rows=[row("add", [(1000,)], [(1000,)])], reads=[(1000,)], writes=[(1000,)])
    found = over(0.001, slow, told)
    assert "core's own cache" in found[0]


@settings(max_examples=60, deadline=None)
@given(st.floats(0.001, 100), st.sampled_from((1, 2, 8)), st.integers(1, 4000))
def test_nothing_is_over_without_a_cause(took_ms: float, threads: int, size: int) -> None:
    model = model_of(cpu_target(threads), product(size, size, 16), added(1), calls(1, took_ms, 3))
    for boundary in (None, "DRAM", "LLC"):
        for point in roofline(model, HOST, boundary=boundary).points:
            above = max(point.of_peak or 0, point.of_roof or 0) > 1
            assert bool(point.over) == above


# ------------------------------------------------------------------------------------------------- machines and ceilings


def test_without_figures_nothing_is_claimed_and_the_next_step_is_told() -> None:
    model = model_of(product(), added(1), calls(1, 40, 4))
    for known in (None, Known()):
        found = roofline(model, known)
        point = only(found.points)
        assert point.rate == pytest.approx(50e9)
        assert (point.of_peak, point.of_roof, point.ceiling, point.over) == (None, None, "", ())
        assert any("tuimon calibrate" in note for note in found.notes)


def test_the_host_of_the_monitor_is_not_that_of_a_job_elsewhere() -> None:
    found = roofline(model_of(product(), added(1), calls(1, 40, 4)), HOST, here=False)
    assert only(found.points).of_peak is None
    assert any("the job's own host" in note for note in found.notes)


def test_a_declared_ceiling_is_used_where_there_is_no_machine() -> None:
    mine = Ceiling("mine", 200e9, 40e9, "DRAM", "declared")
    found = roofline(model_of(product(), added(1), calls(1, 40, 4)), Known(own=(mine,), ceilings=(mine,)))
    point = only(found.points)
    assert (point.ceiling, point.of_peak, point.bound, point.of_roof) == ("mine", pytest.approx(0.25), "unknown", None)


def test_the_ceilings_are_those_of_the_points_at_every_boundary_and_can_be_chosen() -> None:
    model = model_of(product(), added(1), calls(1, 40, 4))
    found = roofline(model, HOST)
    assert {one.boundary for one in found.ceilings} == {"DRAM", "LLC"}
    assert found.ceilings[found.selected].boundary == "LLC"
    other = next(one.name for one in found.ceilings if one.boundary == "DRAM")
    chosen = roofline(model, HOST, ceiling=other)
    assert chosen.ceilings[chosen.selected].name == other
    assert roofline(model, HOST, ceiling="nonsense").selected == found.selected
    looked = roofline(model, HOST, boundary="DRAM")
    assert looked.ceilings[looked.selected].boundary == "DRAM"


def test_other_threads_than_calibrated_are_said() -> None:
    notes = roofline(model_of(cpu_target(8), product(), added(1), calls(1, 40, 4)), HOST).notes
    assert any("8" in note and "calibrate" in note for note in notes)


# ------------------------------------------------------------------------------------------------- GPUs

GPU_JOB = cpu_target(devices=("Test GPU",))


def bf16(m: int = 4096) -> ev.GraphSeen:
    a = ("bf16", m, m)
    return graph(rows=[row("mm", [a, a], [a])], reads=[a, a], writes=[a])


def test_on_a_gpu_the_hosts_time_is_no_rate() -> None:
    found = roofline(model_of(GPU_JOB, bf16(), added(1), calls(1, 1, 10)), Known(machines=(gpu(),)))
    point = only(found.points)
    assert point.rate is None
    assert "dispatch" in point.why_not
    assert found.flop_known_for == 0.0


def test_on_a_gpu_the_devices_time_is() -> None:
    took = round(2 * 4096**3 / 500e12 * 1e9)
    timed = ev.DeviceSamples(2_000_000_000, ((1, 1_500_000_000, took), (1, 1_600_000_000, took)))
    found = roofline(model_of(GPU_JOB, bf16(), added(1), calls(1, 1, 10), timed), Known(machines=(gpu(),)))
    point = only(found.points)
    assert point.of_peak == pytest.approx(0.5, rel=1e-3)
    assert point.calls == 2  # those that were timed there
    assert found.flop_known_for == 1.0


def test_f32_products_of_a_gpu_belong_to_the_units_that_take_f32() -> None:
    took = round(2e9 / 100e12 * 1e9)
    timed = ev.DeviceSamples(2_000_000_000, ((1, 1_500_000_000, took),))
    found = roofline(model_of(GPU_JOB, product(), added(1), calls(1, 1, 3), timed), Known(machines=(gpu(),)))
    point = only(found.points)
    assert point.of_peak == pytest.approx(100 / 60, rel=1e-3)
    assert "tf32" in point.over[0]


def test_the_device_by_its_counters_is_a_point_of_all_that_runs_on_it() -> None:
    sample = ev.GpuSampled(
        5, 0, "Test GPU", 90.0, None, None, sm_clock_mhz=1800.0, sm_activity=80.0, tensor_activity=40.0, dram_activity=50.0,
        held=((1, 5), (2, 6)),
    )  # fmt: skip
    found = roofline(model_of(GPU_JOB, sample), Known(machines=(gpu(),)))
    point = only(found.points)
    assert (point.kind, point.operations_how, point.bytes_how, point.bound) == ("device", "pipe use", "measured", "upper")
    assert (point.rate, point.intensity) == (pytest.approx(400e12), pytest.approx(400 / 1.5))
    assert point.of_peak == pytest.approx(0.4)
    assert any("all that runs on it" in note for note in found.notes)
    assert any("other processes" in note for note in found.notes)


def test_what_pipes_were_used_for_is_at_most_that_and_is_said_so() -> None:
    sample = ev.GpuSampled(
        5, 0, "Test GPU", 90.0, None, None, sm_clock_mhz=1800.0, sm_activity=80.0, tensor_activity=40.0, dram_activity=50.0
    )
    point = only(roofline(model_of(GPU_JOB, sample), Known(machines=(gpu(),))).points)
    assert of_roof_text(point, ASCII) == "<=50%"  # fewer operations give a lower rate under the same use of the memory
    assert point_glyph(point.how, point.bound, ASCII) == ASCII.point_counted  # its bytes are measured, no lower bound
    assert "<=50.0%" in cells(_point(point))


def test_the_matrix_units_of_a_gpu_take_f32_as_tf32() -> None:
    took = round(2e9 / 40e12 * 1e9)
    sample = ev.GpuSampled(5, 0, "Test GPU", 90.0, None, None, tensor_activity=40.0, dram_activity=50.0)
    timed = ev.DeviceSamples(2_000_000_000, ((1, 1_500_000_000, took),))
    found = roofline(model_of(GPU_JOB, sample, product(), added(1), calls(1, 1, 3), timed), Known(machines=(gpu(),)))
    device = next(point for point in found.points if point.kind == "device")
    assert device.rate == pytest.approx(0.4 * 500e12)


def test_of_several_gpus_alike_the_clock_is_that_of_the_one_the_job_is_on() -> None:
    first = ev.GpuSampled(5, 0, "Test GPU", 0.0, None, None, sm_clock_mhz=300.0, throttle=("power cap",))
    second = ev.GpuSampled(5, 1, "Test GPU", 90.0, None, None, sm_clock_mhz=1700.0, process_memory_bytes=1 << 30)
    took = round(2 * 4096**3 / 500e12 * 1e9)
    timed = ev.DeviceSamples(2_000_000_000, ((1, 1_500_000_000, took),))
    found = roofline(model_of(GPU_JOB, first, second, bf16(), added(1), calls(1, 1, 3), timed), Known(machines=(gpu(),)))
    assert found.now_roof is not None and found.now_why == ""
    assert found.now_roof.clock_mhz == 1700.0


def test_a_device_without_such_counters_is_no_point() -> None:
    found = roofline(model_of(GPU_JOB, ev.GpuSampled(5, 0, "Test GPU", 90.0, None, None)), Known(machines=(gpu(),)))
    assert found.points == ()


# ------------------------------------------------------------------------------------------------- windows


def kernel(
    operator: str, operands: Any, ns: int, n: int = 1, *, name: str = "", inside: str | None = "0/0", **told: Any
) -> Any:
    return name, operator, operands, json.dumps(told) if told else "", inside, -1 if not name else 0, n, ns, ns // n, ns // n


def test_operators_of_a_window_are_points_and_the_rest_of_a_region_is_one_too() -> None:
    square = (("float", (1000, 1000)), ("float", (1000, 1000)))
    told = graph(
        rows=[mm(1000, 1000, 1000), row("add", [(1000, 1000)], [(1000, 1000)])], reads=[(1000, 1000)], writes=[(1000, 1000)]
    )
    seen = ev.KernelsSeen(9, 1, (kernel("aten::mm", square, 100_000_000, 4),), 0, 10**9, regions=(("0/0", 4, 120_000_000),))
    found = roofline(model_of(told, added(1), calls(1, 30, 5), seen), HOST)
    by_name = {point.name: point for point in found.points}
    product_ = by_name["mm 1000x1000 1000x1000"]
    assert (product_.rate, product_.of_peak) == (pytest.approx(80e9), pytest.approx(0.8))
    assert product_.intensity == pytest.approx(2e9 / 12e6)
    assert product_.time_share == pytest.approx(100 / 120)
    assert any("not to be added up" in note for note in found.notes)  # the region is all of its time, its operators again
    rest = by_name["fused kernels of 0/0 forward"]
    assert (rest.operations, rest.seconds, rest.intensity) == (4 * 1e6, pytest.approx(0.02), None)
    assert rest.why_not


def test_shares_of_a_window_are_of_the_eager_operators_too() -> None:
    square = (("float", (1000, 1000)), ("float", (1000, 1000)))
    rows = (
        kernel("aten::mm", square, 10_000_000),
        kernel("aten::addmm", (("float", (1000,)), *square), 960_000_000, inside=None),
    )
    seen = ev.KernelsSeen(9, 1, rows, 0, 10**9, regions=(("0/0", 4, 40_000_000),))
    shares = [point.time_share for point in roofline(model_of(seen), HOST).points]
    assert sum(shares) == pytest.approx(1.0)
    assert max(shares) == pytest.approx(0.96)


def test_a_second_window_gives_the_first_a_trail() -> None:
    square = (("float", (1000, 1000)), ("float", (1000, 1000)))
    first, second = (
        ev.KernelsSeen(at, at, (kernel("aten::mm", square, ns),), 0, 10**9) for at, ns in ((1, 40_000_000), (2, 25_000_000))
    )
    point = only(roofline(model_of(first, second), HOST).points)
    assert point.rate == pytest.approx(80e9)
    assert point.trail == ((pytest.approx(2e9 / 12e6), pytest.approx(50e9)),)


def test_kernels_of_a_gpu_trace_are_held_against_what_they_ran_on() -> None:
    square = (("float", (4096, 4096)), ("float", (4096, 4096)))
    ns = round(2 * 4096**3 / 250e12 * 1e9)
    seen = ev.KernelsSeen(
        9, 0,
        (
            kernel("aten::mm", square, ns, name="sm90_xmma_gemm_f32f32_tf32f32_f32_tn_n"),
            kernel("", (), ns, name="void cuda_graph_kernel"),
        ),
        0, 10**9, device="Test GPU", linked=0.5,
    )  # fmt: skip
    target = ev.TargetSeen(0, None, "trace.json", None, None, "file", 0.0, ())
    found = roofline(model_of(target, seen), Known(machines=(gpu(),)))
    named = {point.name: point for point in found.points}
    assert named["mm 4096x4096 4096x4096"].of_peak == pytest.approx(0.5, rel=1e-3)
    assert "no operator" in named["void cuda_graph_kernel"].why_not
    assert found.flop_known_for == pytest.approx(0.5)
    assert any("no operator" in note for note in found.notes)


def test_what_is_written_only_is_not_counted_as_read() -> None:
    """`mul(x, 2, out=y)` moves x and y; `copy_` its source and its target; in place the target is read and written."""
    size = 1 << 20
    array, number = ("float", (size,)), ("double", ())
    rows = (
        kernel("aten::mul", (array, number, array), 40_000, name="out"),
        kernel("aten::mul", (array, number), 30_000, name="new"),
        kernel("aten::copy_", (array, array), 20_000, name="copy"),
        kernel("aten::fill_", (array, number), 10_000, name="fill"),
        kernel("aten::mul_", (array, array), 5_000, name="in place"),
        kernel("aten::add", (array, array, array), 4_000, name="sum out"),
    )
    seen = ev.KernelsSeen(9, 1, rows, 0, 10**9, device="Test GPU")
    points = roofline(model_of(GPU_JOB, seen), Known(machines=(gpu(),))).points
    by_size = sorted(round((point.bytes or 0) / (4 * size), 3) for point in points)
    assert by_size == [1.0, 2.0, 2.0, 2.0, 3.0, 3.0]


def test_counters_of_hardware_are_exact() -> None:
    seen = ev.CountersSeen(5, "Nsight Compute", (("gemm", 2, 2_000_000, 4e11, 4e8, None, "matrix", "bf16"),), "Test GPU")
    found = roofline(model_of(seen), Known(machines=(gpu(),)))
    assert "counted by Nsight Compute" in found.notes
    point = only(found.points)
    assert (point.bound, point.how, point.bytes_how, point.operations_how) == ("exact", "measured", "measured", "counter")
    assert (point.intensity, point.rate) == (1000.0, pytest.approx(2e14))


# ------------------------------------------------------------------------------------------------- properties

STREAM: list[ev.Event] = [
    product(), graph("1/0", [row("mylib.foobar", [(3,)], [(3,)])], [(3,)], [(3,)]),
    graph("0/0", [mm(64, 64, 64)], [(64, 64)], [(64, 64)], direction="backward"), added(1), added(2, "1/0"),
    added(3, role="backward"),
]  # fmt: skip
ROWS = [
    (number, 1, 0, at * 10_000_000 + number * 1_000_000, at * 10_000_000 + number * 1_000_000 + 900_000 + at * 100)
    for at in range(400)
    for number in (1, 2, 3)
]


def plain(model_events: list[ev.Event]) -> Any:
    found = roofline(model_of(*model_events), HOST, window_s=None)
    return sorted((point.key, point.operations, point.bytes, round(point.seconds, 9), point.calls) for point in found.points)


WHOLE = plain([*STREAM, ev.Samples(ROWS[-1][4], tuple(ROWS))])


@settings(max_examples=25, deadline=None)
@given(st.lists(st.integers(0, len(ROWS)), max_size=12))
def test_any_split_of_the_samples_gives_the_same_sums(cuts: list[int]) -> None:
    edges = [0, *sorted(cuts), len(ROWS)]
    parts = [ROWS[begin:end] for begin, end in pairwise(edges) if begin < end]
    assert plain([*STREAM, *(ev.Samples(rows[-1][4], tuple(rows)) for rows in parts)]) == WHOLE


@settings(max_examples=25, deadline=None)
@given(st.permutations(range(3)), st.integers(0, 3), st.booleans())
def test_when_a_graph_is_told_does_not_matter(order: list[int], late: int, twice: bool) -> None:
    graphs = [STREAM[at] for at in order]
    before, behind = graphs[: 3 - late], graphs[3 - late :]
    samples = ev.Samples(ROWS[-1][4], tuple(ROWS))
    again = graphs if twice else []
    assert plain([*before, *STREAM[3:], samples, *behind, *again]) == WHOLE


@settings(max_examples=25, deadline=None)
@given(st.sets(st.integers(0, 2)))
def test_lost_graphs_give_unknown_and_leave_the_others_alone(lost: set[int]) -> None:
    kept = [event for at, event in enumerate(STREAM) if at not in lost]
    found = {row[0]: row for row in plain([*kept, ev.Samples(ROWS[-1][4], tuple(ROWS))])}
    keys = ["region 0:0/0:forward", "region 0:1/0:forward", "region 0:0/0:backward"]
    for at, key in enumerate(keys):
        whole = next(row for row in WHOLE if row[0] == key)
        assert found[key] == whole or (at in lost and found[key][1] is None)
