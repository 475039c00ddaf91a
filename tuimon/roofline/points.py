"""Points on the roofline: what was done, per byte and per second, and how far each number can be trusted."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from tuimon.roofline.ceilings import Ceiling

RULE = "P = sum of operations / sum of time; I = sum of operations / sum of bytes at the stated boundary"
"""How a point is made of many launches: it stands on the screen next to the points."""

NOTHING_KNOWN = "no operations known yet"
"""What the panel says while no source has told operations: the job may well have done some."""

Kind = Literal["kernel", "region", "device"]

Provenance = Literal["measured", "counted", "modelled", "declared"]
"""How the weaker of operations and bytes was had: both by hardware counters; operations by formula or pipe use and bytes
measured; bytes from a model of what must be read and written; stated by a person."""

Bound = Literal["exact", "upper", "lower", "unknown"]
"""What the intensity is. Bytes that are a lower bound of the traffic make it an upper bound; "unknown" says that the error
may go either way."""

OperationsHow = Literal["formula", "counter", "pipe use"]
BytesHow = Literal["measured", "inductor model", "operands", "compulsory"]


@dataclass(frozen=True, slots=True)
class Point:
    """One kernel, region or device. Intensity and rate are None where operations or bytes are not known, never 0."""

    name: str
    kind: Kind
    intensity: float | None
    """FLOP/byte at the boundary of the ceiling it is drawn against."""
    rate: float | None
    """FLOP/s."""
    time_share: float
    """Part of the window's time, 0 to 1; those of kernels that overlap may add up to more than 1."""
    how: Provenance
    bound: Bound
    of_roof: float | None = None
    """Rate over roof, 1 = at the roof; above 1 something is wrong with an assumption. None: cannot be told. At least so much
    with an intensity that is an upper bound, at most so much with operations by pipe use, which are one themselves."""
    key: str = ""
    """The same across redraws: "region 0:0/0:forward", "kernel aten::mm 64x64 64x64", "device 0", "process"."""
    operations: float | None = None
    bytes: float | None = None
    seconds: float = 0.0
    """The time that both are over."""
    calls: int = 0
    operations_how: OperationsHow = "formula"
    bytes_how: BytesHow = "compulsory"
    boundary: str = ""
    """Across what the bytes are counted."""
    ceiling: str = ""
    """The name of the ceiling that it belongs to: that of its unit, dtype and boundary."""
    of_peak: float | None = None
    """Rate over peak: true whatever the bytes are."""
    over: tuple[str, ...] = ()
    """Why it may stand above its roof, the likeliest first; empty where it does not."""
    slowest: float | None = None
    """FLOP/s of its slow calls (p90 of their times), and of its fast ones (p10)."""
    fastest: float | None = None
    trail: tuple[tuple[float, float], ...] = ()
    """(intensity, rate) of the windows before, oldest first, at most 8."""
    why_not: str = ""
    """Why it has no place: "no formula for aten::_foobar, 12 % of its time"."""


@dataclass(frozen=True, slots=True)
class Roofline:
    """All that a chart, its table and a report show. Made by a pure function of the model and the machine's ceilings."""

    points: tuple[Point, ...]
    """By time share, the largest first."""
    process: Point | None
    """All regions together."""
    ceilings: tuple[Ceiling, ...]
    selected: int
    """Which of the ceilings is drawn full."""
    now_roof: Ceiling | None
    """The roof at the clock that the device runs at now."""
    now_why: str
    """Why that is lower: the driver's reasons."""
    flop_known_for: float | None
    """Share of the compiled time whose operations are all known; None where there is none."""
    unknown: tuple[tuple[str, float], ...]
    """(operator, share of the time of what has it) without a formula, the largest first."""
    notes: tuple[str, ...]
    """What has to be said with it: no figures for this machine, other threads than calibrated, a window would tell more."""


def point_of_sums(
    name: str,
    kind: Kind,
    *,
    operations: float | None,
    bytes_moved: float | None,
    seconds: float,
    window_s: float,
    how: Provenance,
    bound: Bound,
    ceiling: Ceiling,
) -> Point:
    """The point of many launches, by `RULE`: from their sums, not from a mean of their ratios.

    `seconds` is the time they took, `window_s` that of the whole window; both must be positive (ValueError). Operations or
    bytes that are None or 0 leave the intensity unknown: a kernel without arithmetic has no place on the plane.
    """
    if not (0 < seconds < math.inf and 0 < window_s < math.inf):
        raise ValueError(f"times must be positive and finite, not {seconds} and {window_s}")
    rate = operations / seconds if operations else None
    intensity = operations / bytes_moved if operations and bytes_moved else None
    return Point(
        name=name,
        kind=kind,
        intensity=intensity,
        rate=rate,
        time_share=seconds / window_s,
        how=how,
        bound=bound,
        of_roof=of_roof(intensity, rate, bound, ceiling),
    )


def of_roof(intensity: float | None, rate: float | None, bound: Bound, ceiling: Ceiling) -> float | None:
    """Rate over the roof at that intensity, or None where it cannot be told.

    Under the flat part the intensity does not matter as long as it can only be larger. An intensity of unknown direction
    says nothing about the roof. With an upper bound the roof is an upper bound too: the true share is this or more.
    """
    return of_roof_at(intensity, rate, bound, ceiling.peak_flops, ceiling.bandwidth_bytes_s)


def of_roof_at(intensity: float | None, rate: float | None, bound: Bound, peak: float, bandwidth: float) -> float | None:
    """`of_roof` under a roof of this peak (FLOP/s) and bandwidth (bytes/s)."""
    if intensity is None or rate is None or bound == "unknown":
        return None
    if bound == "lower" and intensity < peak / bandwidth:
        return None
    return rate / min(peak, intensity * bandwidth)
