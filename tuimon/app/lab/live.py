"""Between the running job and the lab: a point's numbers as a hypothesis, and what is measured of it beside that."""

from __future__ import annotations

from tuimon.draw import format as fmt
from tuimon.lab.state import Taken
from tuimon.model import Model
from tuimon.model.parts import Region
from tuimon.model.statistics import Durations
from tuimon.roofline.ceilings import Ceiling
from tuimon.roofline.points import Point

_SIGNS = {"exact": "=", "upper": "<=", "lower": ">=", "unknown": "~"}
_BYTES = {"inductor model": "bytes by Inductor's model", "measured": "bytes measured"}
_REGION = "region "
HYPOTHETICAL = "hypothetical"
"""The boundary of a ceiling that is of no machine."""


def take(point: Point, ceiling: Ceiling) -> Taken | str:
    """A live point's intensity and the selected ceiling as the start of a hypothesis; or a sentence on why that cannot be."""
    if point.intensity is None:
        return f"the intensity of {point.name} is not known{f': {point.why_not}' if point.why_not else ''}"
    if point.boundary and point.boundary != ceiling.boundary:
        return (
            f"the bytes of {point.name} are counted at {point.boundary}, the selected ceiling is one of {ceiling.boundary}: "
            "c or b on the roofline selects another"
        )
    roof = "no machine's roof" if ceiling.boundary == HYPOTHETICAL else f"{ceiling.boundary} {ceiling.how}"
    words = f"{_BYTES.get(point.bytes_how, f'{point.bytes_how} bytes')}; {roof}"
    return Taken(
        key=point.key or point.name,
        name=f"{point.kind} {point.name}" if not point.name.startswith(point.kind) else point.name,
        intensity=point.intensity,
        bandwidth=ceiling.bandwidth_bytes_s,
        peak=ceiling.peak_flops,
        sign=_SIGNS[point.bound],
        words=words,
    )


def region_key(key: str) -> str | None:
    """The key of the region that a point is of; None: it is of something else."""
    return key.removeprefix(_REGION) if key.startswith(_REGION) else None


def measured(model: Model, taken: Taken, point: Point | None) -> tuple[str, ...]:
    """What is measured of what a hypothesis was taken from, in short sentences, its name first, as things are now."""
    key = region_key(taken.key)
    region = model.regions.get(key) if key is not None else None
    said = [taken.name]
    if region is not None:
        said += _region(model, region)
    elif point is not None and point.seconds > 0:
        said.append(f"{fmt.duration(point.seconds)} in {fmt.count(point.calls)} calls when taken")
    else:
        said.append("it is no longer known")
    if point is not None and point.rate is not None:
        said.append(f"achieved {fmt.si(point.rate, 'FLOP/s')} when taken")
    return (*said, "nothing typed here changes it (m)")


def _region(model: Model, region: Region) -> list[str]:
    devices = set(model.target.devices)
    if region.device.n:
        return [_median(region.device), f"the device's clock, n {fmt.count(region.device.n)} sampled"]
    steady, which = (region.steady, "steady") if region.steady.n else (region.after_guard_change, "after guard change")
    if not steady.n:
        return ["no call but initial ones yet"]
    of = f"{which}, n {fmt.count(steady.n)}"
    if devices and devices <= {"cpu"}:
        return [_median(steady), f"{of}; host, to completion"]
    return [_median(steady), f"{of}; host time", "NOT synchronised: the time to launch"]


def _median(durations: Durations) -> str:
    summary = durations.summary
    return f"median {fmt.duration(summary.median)} {fmt.spread(summary.p10, summary.p90)}"
