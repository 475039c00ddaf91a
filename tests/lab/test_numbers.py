"""Numbers as they are typed and written: exact, or refused with a sentence."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tuimon.lab.numbers import BANDWIDTH, CEILING, INTENSITY, PEAK, NumberError, Quantity, digits, parse, write


@pytest.mark.parametrize(
    ("text", "quantity", "value"),
    [
        ("8", INTENSITY, 8.0),
        (" 8 ", INTENSITY, 8.0),
        ("8e0", INTENSITY, 8.0),
        ("0.25", INTENSITY, 0.25),
        (".5", INTENSITY, 0.5),
        ("1/12", INTENSITY, 1 / 12),
        ("3 / 16", INTENSITY, 0.1875),
        ("8 FLOP/byte", INTENSITY, 8.0),
        ("1k", INTENSITY, 1000.0),
        ("80", BANDWIDTH, 80e9),
        ("80G", BANDWIDTH, 80e9),
        ("80 GB/s", BANDWIDTH, 80e9),
        ("80 gb/s".replace("g", "G"), BANDWIDTH, 80e9),
        ("3.35T", BANDWIDTH, 3.35e12),
        ("80 B/s", BANDWIDTH, 80.0),
        ("1,000", PEAK, 1000e9),
        ("1,234,567.5", PEAK, 1234567.5e9),
        ("989T", PEAK, 989e12),
        ("640", CEILING, 640e9),
        ("640G", CEILING, 640e9),
        ("0.64T", CEILING, 640e9),
        ("640 GFLOP/s", CEILING, 640e9),
    ],
)
def test_what_is_typed_is_taken_exactly(text: str, quantity: Quantity, value: float) -> None:
    assert parse(text, quantity) == value


@pytest.mark.parametrize("quantity", [INTENSITY, BANDWIDTH, PEAK, CEILING], ids=lambda quantity: quantity.name)
@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "no {} was typed"),
        ("   ", "no {} was typed"),
        ("0", "above zero"),
        ("-0.0", "above zero"),
        ("-8", "above zero"),
        ("nan", "must be a number"),
        ("inf", "must be a number"),
        ("-Infinity", "must be a number"),
        ("1e400", "beyond what makes sense"),
        ("1e31", "beyond what makes sense"),
        ("1e999999999999", "beyond what makes sense"),
        ("1e-400", "beyond what makes sense"),
        ("9" * 41, "too long"),
        ("1/0", "divides by zero"),
        ("eight", "no number"),
        ("8 8", "no number"),
        ("1,5", "no number"),
        ("0x10", "no number"),
        ("1_000", "no number"),
        ("٨", "no number"),
        ("8\x1b[2J", "no number"),
        ("8 apples", "not in apples"),
        ("80 W", "not in W"),
    ],
)
def test_what_cannot_be_used_is_refused_with_a_sentence(quantity: Quantity, text: str, said: str) -> None:
    with pytest.raises(NumberError) as refused:
        parse(text, quantity)
    assert said.format(quantity.name) in str(refused.value)


def test_a_number_of_something_else_is_no_number_of_this() -> None:
    with pytest.raises(NumberError, match="an intensity is in FLOP/byte, not in GB/s"):
        parse("80 GB/s", INTENSITY)
    with pytest.raises(NumberError, match="a bandwidth is in GB/s, not in FLOP/byte"):
        parse("8 FLOP/byte", BANDWIDTH)


@given(st.text(max_size=60))
def test_no_text_does_anything_else(text: str) -> None:
    for quantity in (INTENSITY, BANDWIDTH, PEAK, CEILING):
        try:
            value = parse(text, quantity)
        except NumberError as error:
            assert str(error)
        else:
            assert quantity.least <= value <= quantity.most and math.isfinite(value)


@pytest.mark.parametrize(
    ("value", "quantity", "text"),
    [
        (8.0, INTENSITY, "8 FLOP/byte"),
        (1 / 12, INTENSITY, "0.08333 FLOP/byte"),
        (1e-9, INTENSITY, "1e-09 FLOP/byte"),
        (80e9, BANDWIDTH, "80 GB/s"),
        (3.35e12, BANDWIDTH, "3,350 GB/s"),
        (640e9, PEAK, "640 GFLOP/s"),
        (1000e9, PEAK, "1,000 GFLOP/s"),
        (9999.9e9, PEAK, "10 TFLOP/s"),
        (989e12, PEAK, "989 TFLOP/s"),
        (80e9 / 12, PEAK, "6.667 GFLOP/s"),
        (80.0, PEAK, "80 FLOP/s"),
        (5e-9, PEAK, "5e-09 FLOP/s"),
        (1e24, PEAK, "1,000,000 EFLOP/s"),
    ],
)
def test_how_numbers_are_written(value: float, quantity: Quantity, text: str) -> None:
    assert write(value, quantity) == text


@given(st.floats(min_value=1e-30, max_value=1e30))
def test_what_is_written_is_the_number(value: float) -> None:
    assert float(digits(value, 6).replace(",", "")) == pytest.approx(value, rel=1e-5)
    assert len(write(value, PEAK)) <= 24
