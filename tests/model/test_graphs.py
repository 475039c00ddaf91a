"""Graphs find their regions, whichever of the two is told first; calls by the second; windows."""

from __future__ import annotations

from itertools import pairwise, permutations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.roofline.jobs import added, calls, graph, mm, model_of, product
from tuimon import events as ev
from tuimon.model import Model
from tuimon.model.laps import LAP_NS, MOST_LAPS, MOST_SIZES
from tuimon.model.windows import MOST_WINDOWS

SECOND = 1_000_000_000


def laps_of(model: Model, key: str = "0:0/0:forward") -> dict[object, tuple[int, int]]:
    """Sizes -> (calls, ns)."""
    laps = model.regions[key].laps
    return {sizes: (sum(lap.calls for lap in few), sum(lap.ns for lap in few)) for sizes, few in laps.items()}


def test_a_graph_may_be_told_before_or_after_its_region() -> None:
    for events in permutations([product(), added(1)]):
        model = model_of(*events)
        assert model.regions["0:0/0:forward"].graphs == [product()]
        assert model.graphs[0, "0/0", "forward"] == [product()]


def test_a_later_attempt_puts_the_graphs_of_the_earlier_out_of_force() -> None:
    first, back, second = product(), product(direction="backward"), graph(rows=[mm(2, 2, 2)], attempt=1)
    for events in permutations([first, second, added(1)]):
        model = model_of(back, *events)
        assert model.regions["0:0/0:forward"].graphs == [second]


def test_a_graph_that_is_told_again_keeps_what_both_know() -> None:
    plain = product()
    more = ev.GraphSeen(
        5, "0/0", "forward", 0, 0, "aten", plain.rows, plain.reads, plain.writes,
        symbols=(("s0", 5),), kernels=(("cpp_fused_add_0", (), 1),), model_bytes=99,
    )  # fmt: skip
    for events in permutations([plain, more]):
        (kept,) = model_of(*events).graphs[0, "0/0", "forward"]
        assert (kept.rows, kept.model_bytes, kept.symbols, kept.kernels) == (plain.rows, 99, more.symbols, more.kernels)
    torch_level = ev.GraphSeen(1, "0/0", "forward", 0, 0, "torch", (), (), ())
    for events in permutations([plain, torch_level]):
        assert model_of(*events).graphs[0, "0/0", "forward"][0].level == "aten"


def test_several_graphs_of_one_compilation() -> None:
    first, second = graph(rows=[mm(1, 1, 1)]), graph(rows=[mm(2, 2, 2)], place=1)
    # one forward region runs all of them
    assert model_of(second, first, added(1)).regions["0:0/0:forward"].graphs == [first, second]
    # of the backward each has its own
    backs = [graph(rows=[mm(at, at, at)], place=at, direction="backward") for at in (0, 1)]
    model = model_of(*reversed(backs), added(1, role="backward"), added(2, role="backward"))
    assert model.regions["0:0/0:backward"].graphs == [backs[0]]
    assert model.regions["0:0/0:backward#2"].graphs == [backs[1]]


def test_a_reset_of_dynamo_does_not_mix_graphs() -> None:
    began = [ev.CompileStarted(at, "0/0", 0, "f", "/w/model.py", 10, "main") for at in (1, 2)]
    one, other = graph(rows=[mm(1, 1, 1)]), graph(rows=[mm(2, 2, 2)])
    model = model_of(began[0], one, added(1), began[1], other, added(2))
    assert model.regions["0:0/0:forward"].graphs == [one]
    assert model.regions["1:0/0:forward"].graphs == [other]


# ------------------------------------------------------------------------------------------------- laps


def test_laps_hold_every_call_but_the_initial_ones() -> None:
    model = model_of(added(1), calls(1, 100, 51))
    region = model.regions["0:0/0:forward"]
    assert laps_of(model) == {(): (50, 50 * 100_000_000)}
    assert 5 <= len(region.laps[()]) <= 7
    assert all(lap.ns <= LAP_NS + 100_000_000 for lap in region.laps[()])


def test_calls_that_raised_are_in_no_lap() -> None:
    raised = ev.Samples(9 * SECOND, ((1, 1, 1, 8 * SECOND, 9 * SECOND),))
    assert laps_of(model_of(added(1), calls(1, 100, 3), raised)) == {(): (2, 200_000_000)}


def test_calls_with_a_compilation_in_them_are_in_no_lap() -> None:
    compiled = ev.CompileFinished(9 * SECOND, "1/0", "forward", "g", "/w/model.py", 1, "main", 8 * SECOND, 1.0)
    within = ev.Samples(10 * SECOND, ((1, 1, 0, 7 * SECOND, 10 * SECOND),))
    assert laps_of(model_of(added(1), calls(1, 100, 3), compiled, within)) == {(): (2, 200_000_000)}


def test_old_laps_become_one_and_no_call_is_lost() -> None:
    n = MOST_LAPS + 200
    model = model_of(added(1), calls(1, 10, 1), calls(1, 10, n, 10.0, every_ms=1000))
    assert laps_of(model) == {(): (n, n * 10_000_000)}
    assert len(model.regions["0:0/0:forward"].laps[()]) == MOST_LAPS


def test_laps_of_many_regions_take_no_more_room_than_those_of_some(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tuimon.model.laps.MOST_IN_ALL", 60)
    n = 400
    model = model_of(
        [added(at, compile_id=f"{at}/0") for at in range(3)], *(calls(at, 10, n, every_ms=1000) for at in range(3))
    )
    for region in model.regions.values():
        (laps,) = region.laps.values()
        assert 12 <= len(laps) <= 20
        assert sum(lap.calls for lap in laps) == n - 1
        ends = [lap.end_ns for lap in laps]
        assert ends == sorted(ends) and all(lap.calls == 1 for lap in list(laps)[-6:])
        assert all(later - one <= 2 * (ends[-1] - one) // 5 + LAP_NS for one, later in pairwise(ends))


def test_sizes_are_told_apart_up_to_a_number() -> None:
    n = MOST_SIZES + 10
    events: list[ev.Event] = [added(1000)]
    for at in range(n):
        events += [added(at, variant_of=1000, sizes=(("s0", at),)), calls(at, 10, 2, 1.0 + at)]
    model = model_of(*events)
    assert list(model.regions) == ["0:0/0:forward"]
    assert sum(number for number, _ in laps_of(model).values()) == 2 * n - 1
    assert len(model.regions["0:0/0:forward"].laps) <= MOST_SIZES + 1


def test_each_new_lap_and_each_graph_is_a_change_of_the_roofline() -> None:
    model = model_of(added(1))
    versions = [model.versions["roofline"]]
    for event in (
        product(),
        calls(1, 100, 5),
        calls(1, 100, 5, 20.0),
        ev.WindowChanged(1, 1, "open"),
        ev.KernelsSeen(1, 1, (), 0, 1),
    ):
        model.apply([event])
        versions.append(model.versions["roofline"])
    assert versions == sorted(set(versions))


def test_device_time_is_kept_apart() -> None:
    timed = ev.DeviceSamples(3 * SECOND, ((1, 2 * SECOND, 5_000_000), (9, 0, 1), (1, 2 * SECOND, -1)))
    region = model_of(added(1), calls(1, 1, 5), timed).regions["0:0/0:forward"]
    assert (region.device.n, region.device.total_ns) == (1, 5_000_000)
    assert [(lap.calls, lap.ns) for lap in region.device_laps[()]] == [(1, 5_000_000)]


@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(st.integers(1, 4), st.integers(0, 10**11), st.integers(0, 10**9)), max_size=60), st.integers(1, 60))
def test_whatever_the_order_and_the_batches_the_sums_are_the_same(told: list[tuple[int, int, int]], size: int) -> None:
    first = [added(1), added(2, variant_of=1, sizes=(("s0", 3),)), added(3, role="backward"), added(4, "1/0")]
    rows = [(number, 1, 0, begin, begin + took) for number, begin, took in told]

    def sums(batches: list[list[tuple[int, int, int, int, int]]]) -> object:
        model = model_of(*first, *(ev.Samples(batch[-1][4], tuple(batch)) for batch in batches if batch))
        return {key: laps_of(model, key) for key in model.regions}

    whole = sums([rows])
    assert sums([rows[at : at + size] for at in range(0, len(rows), size)]) == whole
    model = model_of(*first, ev.Samples(0, tuple(rows)))
    for region in model.regions.values():
        counted = sum(lap.calls for few in region.laps.values() for lap in few)
        assert counted == region.steady.n + region.after_guard_change.n


# ------------------------------------------------------------------------------------------------- windows


def test_a_window_goes_only_forward() -> None:
    told = [
        ev.WindowChanged(1, 3, "waiting", steps=5),
        ev.WindowChanged(2, 3, "open", begin_ns=2),
        ev.WindowChanged(3, 3, "closed", steps=5, job_s=0.25, slower=1.9, begin_ns=2, end_ns=3),
    ]
    for events in permutations(told):
        (window,) = model_of(*events).windows
        assert (window.number, window.state, window.steps, window.job_s, window.slower) == (3, "closed", 5, 0.25, 1.9)
        assert window.over
    model = model_of(ev.WindowChanged(1, 3, "refused", "the job profiles itself (step 36)"))
    assert model.windows[0].why == "the job profiles itself (step 36)"
    assert "the job profiles itself" in model.log[-1].text
    assert model.closed_windows == 0


def test_old_windows_fall_out() -> None:
    model = model_of(
        *(event for at in range(40) for event in (ev.WindowChanged(at, at, "closed"), ev.KernelsSeen(at, at, (), 0, 1)))
    )
    assert len(model.windows) == len(model.kernels) == MOST_WINDOWS
    assert model.closed_windows == 40
    assert list(model.kernels)[-1] == 39
