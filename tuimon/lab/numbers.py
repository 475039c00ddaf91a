"""The lab's three quantities as they are typed and as they are written: FLOP/byte, bytes/s, FLOP/s."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from decimal import Decimal

LONGEST = 40
"""Characters of a number that are looked at."""

_PREFIXES = {"": 0, "k": 3, "K": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_NUMBER = r"[+-]?(?:\d{1,3}(?:,\d{3})+(?:\.\d*)?|\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?"
_TYPED = re.compile(rf"({_NUMBER})(?:\s*/\s*({_NUMBER}))?\s*([kKMGTPE]?)\s*([A-Za-z/]*)", re.ASCII)
_WORDS = re.compile(r"[+-]?(nan|inf|infinity)", re.IGNORECASE)


class NumberError(ValueError):
    """What was typed cannot be used; the text says why, as a sentence."""


@dataclass(frozen=True, slots=True)
class Quantity:
    """What a number is of."""

    name: str
    units: tuple[str, ...]
    """As it may be typed, the one to write first; a number without a prefix and unit is in `plain` of them."""
    least: float
    most: float
    plain: int = 0
    """The power of ten that a number without a prefix is in: 9 for a bandwidth in GB/s."""
    range_words: str = ""

    @property
    def unit(self) -> str:
        """The unit as it is written."""
        return self.units[0]


INTENSITY = Quantity("intensity", ("FLOP/byte", "FLOP/B", "F/B", "FLOPs/byte"), 1e-9, 1e9, 0, "1e-9 to 1e9 FLOP/byte")
BANDWIDTH = Quantity("bandwidth", ("B/s", "Bps", "bytes/s"), 1.0, 1e24, 9, "1 B/s to 1e15 GB/s")
PEAK = Quantity("peak", ("FLOP/s", "FLOPS", "FLOPs/s", "F/s"), 1.0, 1e24, 9, "1 FLOP/s to 1e15 GFLOP/s")
CEILING = Quantity("prediction", PEAK.units, 1e-9, 1e30, 9, "up to 1e21 GFLOP/s")


def parse(text: str, quantity: Quantity) -> float:
    """The value in FLOP/byte, bytes/s or FLOP/s of what a person typed: `80`, `80 GB/s`, `0.64T`, `1,000`, `1/12`.

    Without a prefix a bandwidth is in GB/s and a rate in GFLOP/s; with its unit spelled out, as that says. Raises NumberError.
    """
    typed = text.strip()
    what = quantity.name
    article = "an" if what[0] in "aeiou" else "a"
    if not typed:
        raise NumberError(f"no {what} was typed")
    shown = typed if len(typed) <= LONGEST else typed[:LONGEST] + ".."
    if _WORDS.fullmatch(typed):
        raise NumberError(f"{shown} is no {what}: it must be a number ({quantity.range_words})")
    if len(typed) > LONGEST:
        raise NumberError(f"{shown} is too long for {article} {what}")
    found = _TYPED.fullmatch(typed)
    if found is None:
        raise NumberError(f"{shown!r} is no number; {article} {what} is typed like {_example(quantity)}")
    number, divisor, prefix, unit = found.groups()
    if unit and unit.lower() not in {known.lower() for known in quantity.units}:
        named = f"{'G' if quantity.plain else ''}{quantity.unit}"
        raise NumberError(f"{shown!r}: {article} {what} is in {named}, not in {prefix}{unit}")
    value = Decimal(number.replace(",", ""))
    if divisor is not None:
        below = Decimal(divisor.replace(",", ""))
        if not below:
            raise NumberError(f"{shown} divides by zero")
        value /= below
    power = _PREFIXES[prefix] if prefix or unit else quantity.plain
    if value <= 0:
        raise NumberError(f"{shown} is no {what}: it must be above zero ({quantity.range_words})")
    # a decimal may have an exponent that scaling cannot take
    result = float(value.scaleb(power)) if -400 < value.adjusted() < 400 else math.inf
    if not quantity.least <= result <= quantity.most:
        raise NumberError(f"{shown} is beyond what makes sense for {article} {what} ({quantity.range_words})")
    return result


def _example(quantity: Quantity) -> str:
    if quantity is INTENSITY:
        return "8 or 0.25"
    if quantity is BANDWIDTH:
        return "80 (GB/s) or 3.35T"
    return "640 (GFLOP/s) or 0.64T"


def digits(value: float, significant: int = 4) -> str:
    """A number in at most so many digits that count, thousands with commas: `640`, `1,000`, `12.5`, `0.08333`, `2.5e-07`."""
    if value == 0 or not math.isfinite(value):
        return f"{value:g}"
    exponent = math.floor(math.log10(abs(value)))
    if not -4 <= exponent < 7:
        return f"{value:.{significant}g}"
    decimals = max(0, significant - 1 - exponent)
    text = f"{value:,.{decimals}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def write(value: float, quantity: Quantity, significant: int = 4) -> str:
    """The value with its unit. Rates stay in G, as they are typed, while that is short: `1,000 GFLOP/s`, `989 TFLOP/s`."""
    if quantity is INTENSITY:
        return f"{digits(value, significant)} {quantity.unit}"
    scale, prefix = 1e9, "G"
    if not 0.0005 <= value / 1e9 < 9999.5:
        steps = ((1e18, "E"), (1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""))
        scale, prefix = next((step for step in steps if value >= step[0]), steps[-1])
    return f"{digits(value / scale, significant)} {prefix}{quantity.unit}"
