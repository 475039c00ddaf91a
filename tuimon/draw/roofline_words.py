"""What a roofline says in words: what the ceiling is, what the points are worth, and which of them cannot be seen."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Protocol

from tuimon.draw.format import si
from tuimon.draw.glyphs import GlyphSet
from tuimon.draw.roofline_view import narrow

_KEYS = "123456789abcdefghijklmnopqrstuvwxyz"


class CeilingLike(Protocol):
    """What is drawn of a ceiling."""

    @property
    def name(self) -> str: ...
    @property
    def peak_flops(self) -> float: ...
    @property
    def bandwidth_bytes_s(self) -> float: ...
    @property
    def boundary(self) -> str: ...
    @property
    def how(self) -> str: ...


class PointLike(Protocol):
    """What is drawn of a point: FLOP/byte, FLOP/s, share of the time 0 to 1, provenance and bound (see `legend`).

    `boundary` and `ceiling` are those that it belongs to ("": the ones that are drawn), `of_roof` and `of_peak` its shares of
    that ceiling, `over` the likely causes where it stands above it. `slowest` and `fastest` are rates of its single calls,
    `trail` its earlier places, the oldest first.
    """

    @property
    def name(self) -> str: ...
    @property
    def intensity(self) -> float | None: ...
    @property
    def rate(self) -> float | None: ...
    @property
    def time_share(self) -> float: ...
    @property
    def how(self) -> str: ...
    @property
    def bound(self) -> str: ...
    @property
    def boundary(self) -> str: ...
    @property
    def ceiling(self) -> str: ...
    @property
    def of_roof(self) -> float | None: ...
    @property
    def of_peak(self) -> float | None: ...
    @property
    def over(self) -> tuple[str, ...]: ...
    @property
    def slowest(self) -> float | None: ...
    @property
    def fastest(self) -> float | None: ...
    @property
    def trail(self) -> tuple[tuple[float, float], ...]: ...


def point_key(index: int) -> str:
    """The character that stands for the point at a place in the list, for tables beside the plot; "" beyond the last."""
    return _KEYS[index] if 0 <= index < len(_KEYS) else ""


def point_glyph(how: str, bound: str, glyphs: GlyphSet) -> str:
    """The shape that tells what a point's numbers are worth; a bound of the bytes weighs more than the provenance."""
    if how == "declared":
        return glyphs.point_declared
    if how == "counted":  # its bytes are measured: a bound is one of its operations
        return glyphs.point_counted
    by_bound = {"upper": glyphs.point_upper, "lower": glyphs.point_lower, "unknown": glyphs.point_unknown}
    by_how = {"measured": glyphs.point_measured, "counted": glyphs.point_counted, "modelled": glyphs.point_modelled}
    return by_bound.get(bound) or by_how.get(how, glyphs.point_unknown)


def legend(glyphs: GlyphSet) -> list[tuple[str, str]]:
    """The glyphs of points and their meanings, for a help screen."""
    return [
        (glyphs.point_measured, "operations and bytes measured"),
        (glyphs.point_counted, "operations by formula or pipe use, bytes measured"),
        (glyphs.point_modelled, "operations by formula, bytes by a model"),
        (glyphs.point_upper, "bytes are a lower bound: the true point is here or to the left"),
        (glyphs.point_lower, "bytes are an upper bound: the true point is here or to the right"),
        (glyphs.point_unknown, "bytes may be wrong either way"),
        (glyphs.point_declared, "declared, not measured"),
    ]


def tight_note(ceiling: CeilingLike) -> str:
    """Peak, bandwidth and boundary in as few cells as they can be told in."""
    peak, bandwidth = si(ceiling.peak_flops, "FLOP/s"), si(ceiling.bandwidth_bytes_s, "B/s")
    return f"{peak.replace(' ', '')} {bandwidth.replace(' ', '')} {ceiling.boundary}"


def ceiling_note(ceiling: CeilingLike, width: int, glyphs: GlyphSet) -> list[str]:
    """What the selected roof is: peak, bandwidth, the boundary and how it is known, in one line or two."""
    dot = f" {glyphs.separator} "
    name = f"{ceiling.name} ({ceiling.how})"
    peak, bandwidth = si(ceiling.peak_flops, "FLOP/s"), si(ceiling.bandwidth_bytes_s, "B/s")
    in_one = dot.join((f"{ceiling.boundary} boundary", name, peak, bandwidth))
    if len(in_one) <= width:
        return [narrow(in_one, glyphs, width)]
    numbers = dot.join((peak, f"{bandwidth} {ceiling.boundary}"))
    if len(numbers) > width:
        numbers = tight_note(ceiling)
    return [narrow(name, glyphs, width), narrow(numbers, glyphs, width)]


def points_state(points: Sequence[PointLike], over: int, outside: int, unnamed: int, boundary: str = "") -> str:
    """What a reader must know of the points that the plot does not show by itself; "" if nothing."""
    if not points:
        return "no operations known yet"
    elsewhere = Counter(point.boundary for point in points if is_elsewhere(point, boundary))
    away = elsewhere.total()
    placeless = sum(1 for point in points if place_of(point) is None and not is_elsewhere(point, boundary))
    if placeless == len(points):
        return f"operations or bytes unknown for all {placeless}"
    parts = (
        (over, "OVER the roof"),
        (away, f"at {'/'.join(sorted(elsewhere))} (b)"),
        (outside, "off scale"),
        (placeless, "without operations or bytes"),
        (unnamed, "without a label"),
    )
    return ", ".join(f"{count} {what}" for count, what in parts if count)


def is_elsewhere(point: PointLike, boundary: str) -> bool:
    """Whether its bytes are those across another boundary than the one that is drawn."""
    return bool(point.boundary and boundary) and point.boundary != boundary


def place_of(point: PointLike) -> tuple[float, float] | None:
    """log10 of intensity and rate, or None for what has no place on the plane."""
    return log_place(point.intensity, point.rate)


def log_place(intensity: float | None, rate: float | None) -> tuple[float, float] | None:
    """log10 of both, or None where one is not known or is no positive number."""
    if intensity is None or rate is None or not (0 < intensity < math.inf and 0 < rate < math.inf):
        return None
    return math.log10(intensity), math.log10(rate)


def is_over(point: PointLike, ceiling: CeilingLike | None) -> bool:
    """Whether the rate is more than its ceiling allows, whatever the true intensity within what is known of it.

    Its own ceiling, as far as it says which; else the one that is drawn.
    """
    if point.over or (point.of_roof or 0.0) > 1:
        return True
    if ceiling is None or point.ceiling or place_of(point) is None:
        return False
    intensity, rate = point.intensity or 0.0, point.rate or 0.0
    roof = ceiling.peak_flops
    if point.bound not in ("lower", "unknown"):
        roof = min(roof, intensity * ceiling.bandwidth_bytes_s)
    return rate > roof
