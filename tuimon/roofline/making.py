"""A point from sums: where it stands, under which ceiling, and how far that can be trusted."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from tuimon.roofline.counts.counted import Class
from tuimon.roofline.over import Facts, causes
from tuimon.roofline.points import BytesHow, Kind, OperationsHow, Point, Provenance, of_roof_at
from tuimon.roofline.roofs import Roofs, primary


@dataclass(slots=True)
class Sums:
    """What one thing did in the window: operations, bytes and time, summed over its calls."""

    key: str
    name: str
    kind: Kind
    seconds: float = 0.0
    calls: int = 0
    by_class: Counter[Class] | None = None
    """None: not known."""
    bytes: float | None = None
    footprint: float | None = None
    """What one call reads and writes at least: whether that can have stayed in a cache."""
    bytes_how: BytesHow = "compulsory"
    model_bytes: float | None = None
    """What Inductor says its kernels read and write, where that is more: what is between them goes through the cache."""
    operations_how: OperationsHow = "formula"
    share: float = 0.0
    masked: bool = False
    why_not: str = ""
    slowest: float | None = None
    fastest: float | None = None
    trail: tuple[tuple[float, float], ...] = ()


def made(sums: Sums, roofs: Roofs, wanted: str | None) -> Point:
    """The point of these sums; `wanted`: the boundary that is looked at, None: that at which its bytes say most."""
    by_class = sums.by_class
    operations = None if by_class is None else sum(by_class.values())
    of = None if by_class is None else primary(by_class)
    rate = operations / sums.seconds if operations and sums.seconds > 0 else None
    boundary, bound = roofs.boundary(sums.footprint, sums.bytes_how, wanted)
    moved, bytes_how, trail = sums.bytes, sums.bytes_how, sums.trail
    if sums.model_bytes and moved and bound == "upper" and boundary in ("LLC", "L2"):
        trail = tuple((at * moved / sums.model_bytes, before) for at, before in trail)
        moved, bytes_how = sums.model_bytes, "inductor model"
    intensity = operations / moved if operations and moved else None
    ceiling = None if of is None else roofs.ceiling(of, boundary)
    mixed = roofs.mixed(by_class) if by_class else None
    of_peak = rate / mixed if rate is not None and mixed is not None else None
    share = None
    if ceiling is not None and mixed is not None:
        share = of_roof_at(intensity, rate, bound, mixed, ceiling.bandwidth_bytes_s)
    facts = Facts(of, of_peak, share, rate or 0.0, bytes_how, sums.masked)
    return Point(
        name=sums.name,
        kind=sums.kind,
        intensity=intensity,
        rate=rate,
        time_share=sums.share,
        how=_provenance(sums),
        bound=bound,
        of_roof=share,
        key=sums.key,
        operations=operations,
        bytes=moved,
        seconds=sums.seconds,
        calls=sums.calls,
        operations_how=sums.operations_how,
        bytes_how=bytes_how,
        boundary=boundary,
        ceiling="" if ceiling is None else ceiling.name,
        of_peak=of_peak,
        over=causes(facts, roofs, ceiling),
        slowest=sums.slowest,
        fastest=sums.fastest,
        trail=trail,
        why_not=sums.why_not or _why_no_place(sums, operations),
    )


def _provenance(sums: Sums) -> Provenance:
    if sums.bytes_how != "measured":
        return "modelled"
    return "measured" if sums.operations_how == "counter" else "counted"


def _why_no_place(sums: Sums, operations: int | None) -> str:
    if operations is None:
        return "its operations are not known"
    if operations == 0:
        return "it does no arithmetic: its place would be at no operations for each byte"
    if sums.seconds <= 0:
        return "it took no time that was measured"
    return "" if sums.bytes else "its bytes are not known"
