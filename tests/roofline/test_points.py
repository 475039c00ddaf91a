from __future__ import annotations

from typing import Any

import pytest

from tuimon.roofline.ceilings import Ceiling
from tuimon.roofline.points import Point, of_roof, point_of_sums

LAB = Ceiling("lab", 1000e9, 80e9, "hypothetical", "declared")


def point(**changes: Any) -> Point:
    arguments: dict[str, Any] = {
        "operations": 8e9,
        "bytes_moved": 1e9,
        "seconds": 0.02,
        "window_s": 0.1,
        "how": "modelled",
        "bound": "exact",
        "ceiling": LAB,
    }
    return point_of_sums("mm", "kernel", **(arguments | changes))


def test_sums_are_divided_not_ratios_averaged() -> None:
    made = point()
    assert (made.intensity, made.rate, made.time_share) == (8.0, 4e11, pytest.approx(0.2))
    assert made.of_roof == pytest.approx(400 / 640)


@pytest.mark.parametrize("unknown", [{"operations": None}, {"bytes_moved": None}, {"operations": 0}, {"bytes_moved": 0}])
def test_what_is_not_known_stays_unknown(unknown: dict[str, Any]) -> None:
    made = point(**unknown)
    assert made.intensity is None
    assert made.of_roof is None
    assert made.rate == (4e11 if "bytes_moved" in unknown else None)


@pytest.mark.parametrize("times", [{"seconds": 0}, {"seconds": -1}, {"window_s": 0}, {"seconds": float("nan")}])
def test_a_rate_needs_a_time(times: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="positive"):
        point(**times)


def test_the_share_of_the_roof_is_told_only_where_it_can_be() -> None:
    assert of_roof(8, 320e9, "exact", LAB) == 0.5
    assert of_roof(8, 320e9, "upper", LAB) == 0.5  # or more: the true roof is lower
    assert of_roof(8, 320e9, "lower", LAB) is None  # the true roof may be anything up to the peak
    assert of_roof(16, 500e9, "lower", LAB) == 0.5  # and here it is the peak
    assert of_roof(16, 500e9, "unknown", LAB) is None
    assert of_roof(8, 1280e9, "exact", LAB) == 2.0  # never cut at 1: it is evidence of a wrong assumption
