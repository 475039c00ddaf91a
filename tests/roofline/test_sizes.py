"""Expressions of sizes: read as arithmetic, never executed; what is no such thing is unknown."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tuimon.roofline.counts.sizes import LARGEST, size, sizes, tensor_bytes

SYMBOLS = {"s0": 7, "s77": 20}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("64", 64), ("0", 0), ("s77", 20), ("2*s77", 40), ("(s77//3)", 6), ("s77 % s0", 6), ("s0**2", 49), ("s0 + s77 - 1", 26),
        ("Max(1, s0)", 7), ("Min(3200, 32*s0, 40*s77)", 224), ("FloorDiv(s77, 3)", 6), ("CleanDiv(s77, 5)", 4),
        ("Mod(s77, 6)", 2), ("s77/4", 5), ("-s0 + 10", 3),
    ],
)  # fmt: skip
def test_arithmetic(text: str, value: int) -> None:
    assert size(text, SYMBOLS) == value


@pytest.mark.parametrize(
    "text",
    [
        "u0", "s77/3", "s0//0", "s0 % 0", "-1", "-s0", "", "  ", "s0 s1", "__import__('os')", "s0.real", "s0[0]", "'64'",
        "True", "1.5", "9**9**9", "s0**17", "10**30", "9" * 400, "(" * 5000, "lambda: 1", "Max()", "Max(1, *s0)", "f(3)",
        "\u0664", "2s0", "s0 if s0 else 1", "\0", "1_000_000_000_000_000_000_000",
    ],
)  # fmt: skip
def test_anything_else_is_unknown(text: str) -> None:
    assert size(text, SYMBOLS) is None


@settings(max_examples=200, deadline=None)
@given(st.text(alphabet="s0123456789+-*/%() MaxMin,.", max_size=30))
def test_no_text_does_harm(text: str) -> None:
    found = size(text, SYMBOLS)
    assert found is None or 0 <= found <= LARGEST


def test_tensors() -> None:
    assert sizes(("s0", "3"), SYMBOLS) == (7, 3)
    assert sizes(("s0", "u1"), SYMBOLS) is None
    assert tensor_bytes("bf16", (7, 3)) == 42
    assert tensor_bytes("c10::BFloat16", ()) == 2
    assert tensor_bytes("b8", (5,)) == 5
    assert tensor_bytes("mystery", (5,)) is None
