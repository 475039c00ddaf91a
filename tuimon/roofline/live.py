"""The roofline of a job as it is now: a pure function of the model and of what is known of machines.

The screen's panel and page and the report read this and nothing else. A point's numbers are sums over its calls; what is not
known stays unknown, with its reason.
"""

from __future__ import annotations

from collections import Counter, defaultdict

from tuimon.model import Model
from tuimon.model.parts import Region
from tuimon.roofline.ceilings import Ceiling, now
from tuimon.roofline.counts.counted import Class, Memo
from tuimon.roofline.device import WHOLE, device_point
from tuimon.roofline.inforce import Known, thread_note
from tuimon.roofline.kernels import KernelSums, counter_sums, kernel_sums
from tuimon.roofline.machines import Machine
from tuimon.roofline.making import Sums, made
from tuimon.roofline.points import Point, Roofline
from tuimon.roofline.regions import BEFORE, DISPATCH, NOT_TOLD, RegionSums, of_call, region_sums, usual_sizes
from tuimon.roofline.roofs import TWICE, Roofs, roofs_of

WINDOW_S = 10.0

_memo = Memo()  # of graphs, which do not change; one for all models

NO_MACHINE = "no figures for this machine"
CALIBRATE = "`tuimon calibrate` measures them; --ceilings FILE declares them"


def roofline(
    model: Model,
    known: Known | None,
    *,
    window_s: float | None = WINDOW_S,
    ceiling: str | None = None,
    boundary: str | None = None,
    here: bool = True,
) -> Roofline:
    """All that a roofline shows of `model`.

    `known`: the figures of machines, and the ceilings that a person declared. `window_s`: over how many seconds of calls, those
    that ended last; None: all since the attach. `ceiling`: the name of the one that is selected; `boundary`: the memory
    boundary that is looked at; None of either: those that say most of the points. `here`: the job runs on this host.
    """
    roofs = roofs_of(model, known, here=here)
    regions = region_sums(model, roofs, _memo, None if window_s is None else int(window_s * 1e9))
    kernels = kernel_sums(model, roofs, _memo)
    sums = [one.sums for one in regions] + [one.sums for one in kernels]
    if model.counters is not None:
        sums += counter_sums(model.counters)
    points = [made(one, roofs, boundary) for one in sums]
    points += _devices(model, known, roofs, regions)
    points.sort(key=lambda point: (-point.time_share, point.key))
    process = _process(regions, roofs, boundary)
    ceilings = _ceilings(roofs, known)
    selected = _selected(ceilings, points, ceiling, boundary)
    roof, why = _now(ceilings[selected] if ceilings else None, roofs)
    share, unknown = _known_share(regions, kernels)
    return Roofline(
        points=tuple(points),
        process=process,
        ceilings=ceilings,
        selected=selected,
        now_roof=roof,
        now_why=why,
        flop_known_for=share,
        unknown=unknown,
        notes=_notes(model, known, roofs, regions, kernels, points, here=here),
    )


def _devices(model: Model, known: Known | None, roofs: Roofs, regions: list[RegionSums]) -> list[Point]:
    classes: Counter[Class] = Counter()
    for one in regions:
        classes.update(one.sums.by_class or {})
    products = {dtype: number for (unit, dtype), number in classes.items() if unit == "matrix"}
    dtype = max(products, key=lambda one: products[one], default="bf16")
    found = []
    for sample in model.surroundings.gpus.values():
        machine = known.of_gpu(sample) if known is not None else None
        point = device_point(sample, machine, roofs if sample is roofs.sample else _of_machine(roofs, machine), dtype)
        if point is not None:
            found.append(point)
    return found


def _of_machine(roofs: Roofs, machine: object) -> Roofs:
    return Roofs(machine=machine, name="", on_gpu=True, used=roofs.used)  # type: ignore[arg-type]


def _process(regions: list[RegionSums], roofs: Roofs, wanted: str | None) -> Point | None:
    """All regions together, those of which the operations are known."""
    counted = [one.sums for one in regions if one.sums.by_class]
    if not counted:
        return None
    total = Sums("process", "all regions", "region", by_class=Counter(), bytes=0.0)
    left_out = len(regions) - len(counted)
    footprints: list[float] = []
    for one in counted:
        assert one.by_class is not None and total.by_class is not None
        total.by_class.update(one.by_class)
        total.seconds += one.seconds
        total.calls += one.calls
        total.share += one.share
        total.masked = total.masked or one.masked
        if total.bytes is not None:
            total.bytes = None if one.bytes is None else total.bytes + one.bytes
        if one.footprint is not None:
            footprints.append(one.footprint)
    if total.bytes is not None and footprints:
        total.footprint = min(footprints)  # what the smallest of them keeps in the cache is enough to spoil the sum
    if left_out:
        total.why_not = f"without {left_out} of {len(regions)} regions, whose operations are not known"
    return made(total, roofs, wanted)


def _ceilings(roofs: Roofs, known: Known | None) -> tuple[Ceiling, ...]:
    """Those that points belong to, at each boundary, and those that a person declared; where there is none, the packaged."""
    for one in list(roofs.used.values()):
        for name in roofs.boundaries():
            if one.unit is not None and one.dtype:
                roofs.ceiling((one.unit, one.dtype), name)
    found = {one.name: one for one in (*roofs.used.values(), *roofs.own)}
    if not found and known is not None:
        return tuple(known.ceilings)
    return tuple(found.values())


def _selected(ceilings: tuple[Ceiling, ...], points: list[Point], name: str | None, boundary: str | None) -> int:
    names = [one.name for one in ceilings]
    if name in names:
        return names.index(name)
    placed = [point.ceiling for point in points if point.ceiling in names and point.intensity is not None]
    for one in (*placed, *(point.ceiling for point in points if point.ceiling in names)):
        if boundary is None or ceilings[names.index(one)].boundary == boundary:
            return names.index(one)
    return next((at for at, one in enumerate(ceilings) if one.boundary == boundary), 0)


def _now(ceiling: Ceiling | None, roofs: Roofs) -> tuple[Ceiling | None, str]:
    sample = roofs.sample
    if ceiling is None or sample is None or sample.sm_clock_mhz is None:
        return None, ""
    roof = now(ceiling, sample.sm_clock_mhz, sample.throttle)
    return roof, "" if roof is None else ", ".join(sample.throttle)


def _known_share(regions: list[RegionSums], kernels: list[KernelSums]) -> tuple[float | None, tuple[tuple[str, float], ...]]:
    """Of the compiled time, or where no region is timed of that of the kernels, the share whose operations are all known."""
    lacking: dict[str, float] = defaultdict(float)
    if regions:
        total = float(sum(one.ns for one in regions))
        known = sum(one.known_ns for one in regions)
        for region in regions:
            for name in region.unknown:
                lacking[name] += region.ns
    else:
        total = float(sum(one.ns for one in kernels))
        known = float(sum(one.ns for one in kernels if one.known))
        for kernel in kernels:
            if kernel.unknown:
                lacking[kernel.unknown] += kernel.ns
    if total <= 0:
        return None, ()
    ordered = sorted(lacking.items(), key=lambda item: (-item[1], item[0]))
    return known / total, tuple((name, ns / total) for name, ns in ordered)


def _notes(
    model: Model,
    known: Known | None,
    roofs: Roofs,
    regions: list[RegionSums],
    kernels: list[KernelSums],
    points: list[Point],
    *,
    here: bool,
) -> tuple[str, ...]:
    found = []
    if known is not None:
        found += list(known.problems)
    if roofs.machine is None and not roofs.own and (regions or kernels):
        name = f" ({roofs.name})" if roofs.name else ""
        where = CALIBRATE if here or roofs.on_gpu else "`tuimon calibrate` on the job's own host measures them"
        found.append(f"{NO_MACHINE}{name}: {where}")
    if roofs.machine is not None and not roofs.on_gpu:
        note = thread_note(roofs.machine, roofs.threads)
        if note:
            found.append(note)
    if roofs.machine is not None:
        found += _in_caches(roofs.machine, roofs, points)
    if regions and kernels:
        found.append("a region's time is of the compiled time, a kernel's of the profiler window: they are not to be added up")
    if model.counters is not None:
        found.append(f"counted by {model.counters.source}")
    masked = sum(one.masked and bool(one.by_class) for one in (*(r.sums for r in regions), *(k.sums for k in kernels)))
    if masked:
        found.append(
            f"{masked} of the points have attention with a mask tensor: what it hides is counted as if it were computed, so "
            "their rates may be too high (twice for a causal mask)"
        )
    if any(point.kind == "device" for point in points):
        found.append(WHOLE)
        if any(len(sample.held) > 1 for sample in model.surroundings.gpus.values()):
            found.append("other processes hold memory on the device: its point is not this job's alone")
    dispatch = sum(one.sums.why_not == DISPATCH for one in regions)
    if dispatch:
        found.append(f"{dispatch} of {len(regions)} regions: {DISPATCH}; such a one's share of the time is by its host time")
    untold = sum(one.region.before_attach and not one.region.graphs for one in regions)
    if untold and not kernels:
        found.append(
            f"{untold} regions were compiled before the attach and their graphs were not found: a profiler window may tell"
        )
    seen = next(reversed(model.kernels.values()), None)
    if seen is not None and seen.device and seen.linked < 1:
        found.append(f"{1 - seen.linked:.0%} of the kernels' time has no operator in the window: its operations are not known")
    return tuple(found)


def _in_caches(machine: Machine, roofs: Roofs, points: list[Point]) -> list[str]:
    """Why points whose bytes are a true lower bound at the cores have no share of a roof further out."""
    where = {point.boundary for point in points if point.bound == "unknown" and point.bytes_how == "compulsory"}
    found = []
    if machine.memory in where and machine.cache_bytes:
        size = f"2 x {machine.cache_bytes / (1 << 20):.0f} MiB"
        found.append(f"data of less than {size} may stay in the cache: such points have no share of the roof at memory")
    elif machine.memory in where:
        found.append("the size of the device's cache is not known: data may stay in it, so there is no share of the roof")
    if machine.cache in where and machine.core_cache_bytes:
        told = TWICE * machine.core_cache_bytes * max(1, roofs.threads or 1) / (1 << 20)
        found.append(
            f"data of less than {told:.3g} MiB may stay in the cores' own caches: no share of the roof at {machine.cache}"
        )
    return found


def edge_of(region: Region) -> tuple[int | None, float | None, str]:
    """(operations, bytes that must cross its edge, why not) of a call of a region, at the sizes that most of its calls had."""
    if not region.graphs:
        return None, None, BEFORE if region.before_attach else NOT_TOLD
    found = of_call(region, usual_sizes(region), _memo)
    return found.total, found.bytes, found.why_not or "its edge has sizes that are not known"
