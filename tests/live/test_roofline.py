"""The roofline of a real job: operations that are known by hand, from graphs that torch told while it ran."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.live.roofline_program import IN, OUT, ROWS, SIZES, TRIAD
from tests.roofline.jobs import HOST
from tests.support.watched import watch_run
from tuimon.model import Model
from tuimon.roofline.inforce import Known
from tuimon.roofline.live import roofline
from tuimon.roofline.machines import Bandwidth
from tuimon.roofline.points import Point

CALLS = 240


@pytest.fixture(scope="module")
def model() -> Model:
    return watch_run(Path(__file__).with_name("roofline_program.py"), str(CALLS)).model


def points(model: Model, known: Known = HOST, boundary: str | None = None) -> dict[tuple[str, str], Point]:
    """(function, direction) -> its point."""
    found = roofline(model, known, window_s=None, boundary=boundary)
    named = {f"region {key}": region for key, region in model.regions.items()}
    return {(named[point.key].function, named[point.key].direction): point for point in found.points}


def test_operations_are_those_counted_by_hand(model: Model) -> None:
    found = points(model)
    forward, backward = found["linear", "forward"], found["linear", "backward"]
    product = 2 * ROWS * IN * OUT
    assert (forward.operations, forward.calls) == (product * (CALLS - 1), CALLS - 1)
    assert backward.operations == 2 * product * backward.calls
    assert forward.bytes == 4 * (ROWS * IN + IN * OUT + ROWS * OUT) * forward.calls
    assert roofline(model, HOST, window_s=None).flop_known_for == 1.0


def test_a_dynamic_region_is_counted_at_the_size_of_each_call(model: Model) -> None:
    point = points(model)["dynamic", "forward"]
    by_hand = sum(2 * SIZES[at % len(SIZES)] * IN * OUT for at in range(1, CALLS))
    assert (point.operations, point.calls, point.why_not) == (by_hand, CALLS - 1, "")


def test_a_triad_on_small_arrays_has_no_share_of_the_memory_roof(model: Model) -> None:
    """Three arrays of 0.25 MiB are in the cache from the second call on: to a memory of 1 MB/s they owe nothing."""
    slow = replace(
        HOST.host, bandwidths={"DRAM": (Bandwidth(1e6, "calibrated", "by hand"),), "LLC": HOST.host.bandwidths["LLC"]}
    )
    for boundary in (None, "DRAM"):
        point = points(model, Known(host=slow), boundary)["triad", "forward"]
        assert (point.operations, point.bytes) == (2 * TRIAD * point.calls, 12 * TRIAD * point.calls)
        assert point.over == ()
        if boundary == "DRAM":
            assert (point.bound, point.of_roof) == ("unknown", None)
        else:
            assert (point.boundary, point.bound) == ("LLC", "upper")
            assert point.of_roof is not None
