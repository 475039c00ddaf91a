"""Regions: compiled graphs as they are called, with their three populations kept apart."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from tuimon.app.panels import tabular
from tuimon.app.panels.frame import NOT_IN_FILE, plural, untold, watched, why_missing
from tuimon.app.panels.looking import latest_findings
from tuimon.app.panels.pace import compiling_words
from tuimon.app.panels.standing import answered, told
from tuimon.app.panels.tabular import Sort, Table
from tuimon.app.scene import Panel, Scene
from tuimon.draw import format as fmt
from tuimon.draw.names import frame_name, marked_id
from tuimon.draw.table import Cells, Column
from tuimon.draw.text import Line, clean, cut
from tuimon.model.parts import Region
from tuimon.model.statistics import RULE

_DIRECTIONS = {"forward": "fwd", "backward": "bwd"}


def share_of_step(scene: Scene, region: Region) -> float | None:
    """Part of the steady steps' time (0 to 1) that its calls take; None where no steady step has ended."""
    steps = scene.model.steps
    return region.share.ns / steps.steady_ns if steps.steady_ns > 0 else None


def _cells(scene: Scene, region: Region) -> Cells:
    steady = region.steady.summary
    after = region.after_guard_change.summary
    ellipsis = scene.glyphs.ellipsis
    return {
        "share": (fmt.percent(share_of_step(scene, region)), "number"),
        "calls": (fmt.count(region.calls), "number"),
        "initial": (fmt.duration(region.initial.summary.median), "number"),
        "steady": (fmt.duration(steady.median), "number"),
        "spread": (fmt.spread(steady.p10, steady.p90), "number"),
        "device": (fmt.duration(region.device.summary.median), "number"),
        "after": (fmt.duration(after.median), "number"),
        "after_spread": (fmt.spread(after.p10, after.p90), "number"),
        "untold": (NOT_IN_FILE, "dim"),
        "ops": (fmt.count(region.ops), "number"),
        "id": (cut(marked_id(region.compile_id, region.generation), 10, ellipsis), "dim"),
        "way": (_DIRECTIONS.get(region.direction, region.direction), "dim"),
        "frame": lambda width: (frame_name(region.function, region.file, region.line, width, ellipsis), "region"),
    }


_TIMED = frozenset({"share", "calls", "initial", "steady", "spread", "device", "after", "after_spread"})


def _hidden(scene: Scene) -> frozenset[str]:
    """Of a file that tells no calls, one column says so in the place of those that need them. Without a call that compiled, one
    after a guard has changed, and times of a device, their columns tell nothing."""
    if untold(scene, "calls"):
        return _TIMED
    regions = scene.model.regions.values()
    changed = frozenset() if any(one.after_guard_change.n for one in regions) else frozenset({"after", "after_spread"})
    device = frozenset() if any(one.device.n for one in regions) else frozenset({"device"})
    initial = frozenset() if any(one.initial.n for one in regions) else frozenset({"initial"})
    return frozenset({"untold", "ops"}) | initial | changed | device


def _note(scene: Scene, rows: Sequence[Region], width: int) -> str:
    if untold(scene, "calls"):
        return untold(scene, "calls").removeprefix(f"{NOT_IN_FILE}: ")
    return f"host time of a call: {RULE}" if width >= 100 else f"host time, {RULE.split(';')[0]}"


def _empty(scene: Scene) -> str:
    model = scene.model
    missing = why_missing(scene, "regions")
    if missing:
        return f"not available: {clean(missing)}"
    known = f"{plural(len(model.frames), 'frame')} known, none timed"
    nothing = next((one for one in latest_findings(scene) if one.kind in ("compiled nothing", "disabled")), None)
    if nothing is not None:
        return f"{clean(nothing.title)} (w says more)"
    if untold(scene, "calls"):
        return f"no compiled graph in this file{f': {known}' if model.frames else ''}"
    if model.target.ended is not None:
        return f"no region was called{watched(scene)}{f': {known}' if model.frames else ''}"
    busy = compiling_words(model)
    if busy:
        return f"no region has been called yet: {busy}"
    if model.frames:
        return f"no region has been called yet: {known}"
    return "no region yet: a function that torch.compile has compiled appears here when it is called"


def _answer(scene: Scene) -> Line:
    regions = list(scene.model.regions.values())
    if not regions:
        return told(_empty(scene))
    if untold(scene, "calls"):
        return told(f"{plural(len(regions), 'compiled graph')}; calls: {untold(scene, 'calls')}")
    most = max(regions, key=lambda region: (region.share.ns, region.total_ns))
    if not most.calls:
        return told(f"{plural(len(regions), 'compiled graph')}, none called since the attach")
    share = share_of_step(scene, most)
    took = f"{fmt.percent(share)} of the steps" if share else f"most: {fmt.duration(most.total_ns / 1e9)} in all"
    number = plural(most.calls, "call")
    typical = f", median {fmt.duration(most.steady.summary.median)}" if most.steady.n else ""
    return [
        (frame_name(most.function, most.file, most.line, 36, scene.glyphs.ellipsis), "region"),
        (f" [{clean(most.compile_id)}] {_DIRECTIONS.get(most.direction, most.direction)}", "dim"),
        (f" takes {took}, {number}{typical}", "text"),
    ]


TABLE: Table[Region] = Table(
    number=4,
    title="regions",
    rows=lambda scene: list(scene.model.regions.values()),
    key=lambda region: region.key,
    where=lambda region: f"{region.file}:{region.line}" if region.file else "",
    text=lambda region: f"{region.function} {region.file}:{region.line} [{region.compile_id}] {region.direction}",
    sorts=(
        Sort("time", "share", lambda scene, region: (region.share.ns, region.total_ns)),
        Sort("calls", "calls", lambda scene, region: region.calls),
        Sort("steady", "steady", lambda scene, region: region.steady.summary.median or 0.0),
        Sort("initial", "initial", lambda scene, region: region.initial.total_ns),
        Sort("frame", "frame", lambda scene, region: (region.function, region.key), descending=False),
    ),
    columns=(
        Column("share", "share", 6, right=True, rank=3),
        Column("calls", "calls", 6, right=True),
        Column("initial", "initial", 8, right=True, rank=4),
        Column("steady", "steady", 7, right=True),
        Column("spread", "[p10-p90]", 14, right=True, rank=7, spare=True),
        Column("device", "device", 7, right=True, rank=9),
        Column("after", "changed", 7, right=True, rank=6),
        Column("after_spread", "[p10-p90]", 14, right=True, rank=8, spare=True),
        Column("untold", "calls, time", 16),
        Column("ops", "ops", 5, right=True, rank=3),
        Column("id", "id", 4, rank=2),
        Column("way", "", 3, rank=1),
        Column("frame", "frame", 22, flex=1, wish=32),
    ),
    cells=_cells,
    note=_note,
    empty=_empty,
    hidden=_hidden,
    quiet=lambda region: not region.calls and not region.before_attach,
)


PANEL = Panel(
    number=4,
    id="regions",
    title="regions",
    sections=("regions", "frames", "steps", "target", "coverage"),
    draw=partial(tabular.draw, TABLE),
    keys=partial(tabular.keys, TABLE),
    copied=partial(tabular.copied, TABLE),
    sorts=tuple(sort.name for sort in TABLE.sorts),
    filterable=True,
    rows=lambda scene: len(scene.model.regions),
    help=(
        "A region is one compiled graph as it is called, forward (fwd) or backward (bwd). Three populations are never mixed: "
        "initial (a call with compilation in it), steady (later calls of a frame's first entry) and changed (calls of an entry "
        f"that a recompile made). Host time of a call: {RULE}. On a GPU this is the time to launch it, not to run it: "
        "device is that, of a sampled share of the calls. "
        'An id with "r1" is from after the first reset of Dynamo, which numbers anew from there.'
    ),
    answer=answered(_answer),
)
