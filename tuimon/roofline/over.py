"""Why a point may stand above its roof. Nothing can: an assumption is wrong, and these say which, the likeliest first."""

from __future__ import annotations

from dataclasses import dataclass

from tuimon.roofline.ceilings import Ceiling
from tuimon.roofline.counts.counted import Class
from tuimon.roofline.machines import Peak
from tuimon.roofline.roofs import Roofs

UNKNOWN = "none of the known causes fits: please report it, with this report"
NOISE = 0.05
"""Repeats of one measurement on a quiet machine differ by as much."""


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known of a point that may bear on it."""

    of: Class | None
    of_peak: float | None
    of_roof: float | None
    rate: float
    bytes_how: str
    masked: bool = False


def causes(facts: Facts, roofs: Roofs, ceiling: Ceiling | None) -> tuple[str, ...]:
    """The likely causes; () for a point that is under its roof. Never empty for one that is above."""
    peak_share, roof_share = facts.of_peak or 0.0, facts.of_roof or 0.0
    if max(peak_share, roof_share) <= 1:
        return ()
    found: list[str] = []
    peak = None if facts.of is None else roofs.peak(facts.of)
    if peak_share > 1 and peak is not None:
        found += _other_unit(facts, roofs)
        found += _clock(peak_share, roofs, peak)
        found += _calibration(peak_share, roofs, peak)
    elif ceiling is not None:
        found += _bytes(facts, roofs, roof_share, ceiling)
    if facts.masked:
        found.append("attention was given a mask: pairs that it takes out are counted, and may not have been computed")
    return tuple(found) or (UNKNOWN,)


def _other_unit(facts: Facts, roofs: Roofs) -> list[str]:
    if facts.of is None or roofs.machine is None or facts.of[1] != "f32" or not roofs.on_gpu or roofs.tf32:
        return []
    other = roofs.machine.peak("matrix", "tf32")
    if other is None or facts.rate > other.flops:
        return []
    return ["its f32 products may have run on the matrix units as tf32, which has a higher peak"]


def _clock(share: float, roofs: Roofs, peak: Peak) -> list[str]:
    sample = roofs.sample
    if peak.clock_mhz is None:
        return []
    for clock, word in ((sample.sm_clock_mhz, "runs"), (sample.sm_clock_max_mhz, "may run")) if sample is not None else ():
        if clock is not None and peak.clock_mhz < clock and share <= clock / peak.clock_mhz * (1 + NOISE):
            return [f"the device {word} at {clock:,.0f} MHz, and the peak is stated at {peak.clock_mhz:,.0f} MHz"]
    if sample is None:
        return [f"the peak is stated at {peak.clock_mhz:,.0f} MHz; the device may run faster than that"]
    return []


def _calibration(share: float, roofs: Roofs, peak: Peak) -> list[str]:
    if peak.how == "declared":
        return ["the peak is declared, not measured"]
    if peak.how != "calibrated":
        return []
    found = []
    if peak.threads is not None and roofs.threads is not None and roofs.threads > peak.threads:
        found.append(f"the peak was calibrated with {peak.threads} threads, and the job has {roofs.threads}")
    spread = max(peak.spread or 0.0, NOISE)
    if share <= 1 + spread:
        found.append(f"within the spread of the calibration ({spread:.0%})")
    else:
        when = f" ({peak.at})" if peak.at else ""
        found.append(
            f"the machine was busier or slower when it was calibrated{when}, or another order of the operands is faster than "
            "those that were tried: tuimon calibrate measures it again"
        )
    return found


def _bytes(facts: Facts, roofs: Roofs, share: float, ceiling: Ceiling) -> list[str]:
    found = []
    if facts.bytes_how != "measured":
        nearer = "the core's own cache" if ceiling.boundary in ("LLC", "L2") else "a cache"
        found.append(f"a part of its data may have stayed in {nearer} and never crossed to {ceiling.boundary}")
    if ceiling.how == "calibrated":
        spread = max(ceiling.spread or 0.0, NOISE)
        if share <= 1 + spread:
            found.append(f"within the spread of the calibration ({spread:.0%})")
        found.append(f"the bandwidth of {ceiling.boundary} may have been calibrated while something else used it")
    elif ceiling.how == "declared":
        found.append("the bandwidth is declared, not measured")
    return found
