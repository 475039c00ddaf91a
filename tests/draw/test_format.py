"""Numbers as people read them."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tuimon.draw import format as fmt


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (None, "-"),
        (0, "0 us"),
        (8.5e-7, "0.85 us"),
        (1.23e-5, "12.3 us"),
        (0.000312, "312 us"),
        (0.0009996, "1.00 ms"),
        (0.0123, "12.3 ms"),
        (0.9996, "1.00 s"),
        (1.84, "1.84 s"),
        (99.96, "1m40s"),
        (125, "2m05s"),
        (11220, "3h07m"),
        (187200, "2d04h"),
        (-0.5, "-500 ms"),
    ],
)
def test_durations(seconds: float | None, text: str) -> None:
    assert fmt.duration(seconds) == text


@given(st.floats(1e-9, 1e7))
def test_a_duration_says_what_it_was_within_three_digits(seconds: float) -> None:
    text = fmt.duration(seconds)
    assert len(text) <= 8
    number, _, unit = text.partition(" ")
    scale = {"us": 1e-6, "ms": 1e-3, "s": 1.0}.get(unit)
    if scale is not None and seconds > 1e-7:
        assert math.isclose(float(number) * scale, seconds, rel_tol=0.051)


@pytest.mark.parametrize(
    ("low", "high", "text"),
    [
        (None, 1.0, "-"),
        (0.000118, 0.000412, "[118-412 us]"),
        (0.00098, 0.0013, "[0.98-1.30 ms]"),
        (0.0000001, 0.5, "[<0.01-500 ms]"),
        (0.0, 0.5, "[0.00-500 ms]"),
        (120.0, 240.0, "[2m00s-4m00s]"),
    ],
)
def test_spreads_have_one_unit(low: float | None, high: float | None, text: str) -> None:
    assert fmt.spread(low, high) == text


@pytest.mark.parametrize(
    ("number", "text"), [(None, "-"), (0, "0"), (99_999, "99999"), (123_456, "123k"), (1_234_567, "1.23M"), (5e12, "5.00e+12")]
)
def test_counts(number: float | None, text: str) -> None:
    assert fmt.count(number) == text


def test_unknown_is_never_zero() -> None:
    for one in (fmt.duration, fmt.count, fmt.percent, fmt.size, fmt.rate, fmt.per_step, fmt.age):
        assert one(None) == "-"


def test_something_is_never_shown_as_nothing() -> None:
    assert fmt.percent(0.00001) == "<0.1%"
    assert fmt.percent(0) == "0.0%"


@pytest.mark.parametrize(("number", "text"), [(1, "1"), (8.0, "8"), (0.125, "0.12"), (2.5, "2.50"), (1200.5, "1200")])
def test_per_step(number: float, text: str) -> None:
    assert fmt.per_step(number) == text


@pytest.mark.parametrize(
    ("number", "text"), [(512, "512 B"), (1024, "1.00 KiB"), (65_712_619_520, "61.2 GiB"), (1023 * 1024, "1.00 MiB")]
)
def test_sizes(number: int, text: str) -> None:
    assert fmt.size(number) == text


@pytest.mark.parametrize(
    ("used", "total", "text"),
    [
        (64 << 30, 80 << 30, "64.0/80.0 GiB"),
        (100 << 20, 80 << 30, "0.10/80.0 GiB"),
        (None, 80 << 30, "-/80.0 GiB"),
        (512, None, "512 B/-"),
        (None, None, "-/-"),
        (0, 0, "0.00/0 B"),
    ],
)
def test_parts_of_a_whole_have_its_unit(used: int | None, total: int | None, text: str) -> None:
    assert fmt.part_of(used, total) == text


def test_rates_of_slow_jobs_are_times() -> None:
    assert fmt.rate(3.214) == "3.21/s"
    assert fmt.rate(0.02) == "one in 50.0 s"


def test_clock() -> None:
    assert fmt.clock(3 * 3600 + 12 * 60, 0) == "03:12:00"
    assert fmt.clock(3 * 3600, -4 * 3600) == "23:00:00"
    assert fmt.clock(None, 0) == "-"
