"""The page of a point: every number with its source, the formulas behind it, what is not known; and the ceilings."""

from __future__ import annotations

from tuimon.app.details.page import fact, heading, prose
from tuimon.app.details.paged import linked
from tuimon.app.panels.roofline import ceiling_text, known_words, unknown_words
from tuimon.app.scene import Scene
from tuimon.draw import format as fmt
from tuimon.draw.roofline_table import intensity_text, of_roof_text, traffic
from tuimon.draw.roofline_words import legend, point_glyph
from tuimon.draw.text import Line, clean, pad
from tuimon.model.about import About
from tuimon.model.parts import Region
from tuimon.roofline.ceilings import Ceiling
from tuimon.roofline.counts.operations import known_operators, plain_name
from tuimon.roofline.points import RULE, Point

GONE = "it is not among the points of the last seconds"

_OPERATIONS = {
    "formula": "by formula, from the operators and shapes of its graph or of a profiler window",
    "counter": "counted by the hardware",
    "pipe use": "from the use of the pipes and the peak at the clock of now: an upper bound",
}

_BYTES = {
    "measured": "measured: what the memory itself counted",
    "inductor model": "Inductor's model of what its kernels read and write: also what passes between them",
    "operands": "the size of the operands: which way it is wrong is not known",
    "compulsory": "each input read once, each output written once: a lower bound of the traffic",
}

_OF = {"region": "of the compiled time", "kernel": "of the profiler window", "device": "of the driver's last period"}
"""What a share of the time is of."""

_BOUNDS = {
    "exact": "",
    "upper": "an upper bound, as the bytes are a lower one",
    "lower": "a lower bound, as the bytes are an upper one",
    "unknown": "which way it is wrong is not known",
}


def find(scene: Scene, key: str) -> Point | None:
    """The point of this key, as things are now."""
    known = scene.plane.roofline(scene.model)
    if known is None:
        return None
    everything = [*known.points, *([known.process] if known.process is not None else [])]
    return next((point for point in everything if key in (point.key, point.name)), None)


def lines(scene: Scene, key: str, width: int) -> list[Line]:
    """The page of the point of this key."""
    point = find(scene, key)
    if point is None:
        return [*prose(GONE, width, "note"), *ceilings(scene, width)]
    glyph = point_glyph(point.how, point.bound, scene.glyphs)
    meaning = dict(legend(scene.glyphs)).get(glyph, "")
    placed = point.intensity is not None and point.rate is not None
    out = fact("shape", f"{glyph} {meaning}" if placed else "none", width, "point-1")
    if point.why_not:
        out += fact("no place", point.why_not, width, "warn")
    out += heading("what it did")
    out += fact("operations", _operations(point), width)
    at = f", at {point.boundary}" if point.boundary else ""
    whose = ", of the whole device" if point.kind == "device" else ""
    moved = f"{fmt.si(point.bytes, 'B')}{at}; {_BYTES[point.bytes_how]}" if point.bytes is not None else "not known"
    if point.kind == "device":
        moved = f"not summed, their rate is used{at}; {_BYTES[point.bytes_how]}"
    out += fact("bytes", f"{moved}{whose}", width)
    calls = f" in {fmt.count(point.calls)} calls" if point.calls else ""
    out += fact("time", f"{fmt.duration(point.seconds)}{calls}, {fmt.percent(point.time_share)} {_OF[point.kind]}", width)
    out += heading("what that comes to")
    piped = point.operations_how == "pipe use"
    bound = "an upper bound, as the operations are one" if piped else _BOUNDS[point.bound]
    out += fact("rate", fmt.si(point.rate, "FLOP/s"), width, "strong")
    if point.slowest is not None and point.fastest is not None:
        spread = f"{fmt.si(point.slowest, 'FLOP/s')} to {fmt.si(point.fastest, 'FLOP/s')}"
        of = "slowest to fastest" if point.kind == "kernel" else "p90 to p10 of their times"
        out += fact("single calls", f"{spread} ({of})", width)
    intensity = f"{intensity_text(point, scene.glyphs)} FLOP/byte" if point.intensity is not None else "not known"
    out += fact("intensity", f"{intensity}{f': {bound}' if bound and point.intensity is not None else ''}", width)
    out += fact("traffic", fmt.si(traffic(point), "B/s"), width)
    out += fact("of the roof", _of_roof(scene, point), width)
    least = ", or less: its operations are an upper bound" if piped else ", whatever the bytes are"
    out += fact("of the peak", f"{point.of_peak * 100:.1f}%{least}" if point.of_peak is not None else "-", width)
    for number, cause in enumerate(point.over):
        out += fact("OVER" if number == 0 else "", f"{'perhaps ' if number else ''}{cause}", width, "warn")
    out += prose(RULE, width, "note")
    out += _formulas(scene, point, width)
    region = _region(scene, point)
    if region is not None:
        out += heading("more")
        out += linked(prose("all that is known of the region", width, "label"), About("region", region.key))
    known = scene.plane.roofline(scene.model)
    if known is not None:
        out += heading("what is not known")
        for text in (known_words(known), unknown_words(known, 20), *known.notes):
            out += prose(text, width, "note") if text else []
    return out + ceilings(scene, width)


def _operations(point: Point) -> str:
    how = _OPERATIONS[point.operations_how]
    if point.operations_how == "pipe use" and point.rate is not None:
        return f"not summed, their rate is used; {how}"
    return "not known" if point.operations is None else f"{fmt.si(point.operations, 'FLOP')}, {how}"


def _of_roof(scene: Scene, point: Point) -> str:
    of = f" of {point.ceiling}" if point.ceiling else ""
    if point.of_roof is not None:
        least = ", or more: at its true intensity the roof may be lower" if point.bound == "upper" else ""
        least = ", or less: its operations are an upper bound" if point.operations_how == "pipe use" else least
        return f"{of_roof_text(point, scene.glyphs)}{of}{least}"
    if point.intensity is None or point.rate is None:
        return "-"
    return f"cannot be told: its bytes at {point.boundary or 'this boundary'} may be more or fewer"


def _region(scene: Scene, point: Point) -> Region | None:
    return scene.model.regions.get(point.key.removeprefix("region "))


def _formulas(scene: Scene, point: Point, width: int) -> list[Line]:
    """The operators of a region's graph with the formula that counts each."""
    region = _region(scene, point)
    if region is None or not region.graphs:
        return []
    out = heading("its operators, and how each is counted")
    words = known_operators()
    counted: dict[str, int] = {}
    for graph in region.graphs:
        for operator, _, _, _, often in graph.rows:
            counted[operator] = counted.get(operator, 0) + often
    for operator, often in sorted(counted.items(), key=lambda item: -item[1]):
        out += fact(
            f"{clean(operator)[:15]} x {often}",
            words.get(plain_name(operator), "no formula: its operations are not known"),
            width,
            "note",
        )
    for graph in region.graphs:
        if graph.cut or graph.why:
            out += prose(f"rows are missing: {graph.why or 'the graph was cut'}", width, "warn")
    return out


def ceilings(scene: Scene, width: int) -> list[Line]:
    """All ceilings, the selected one marked."""
    shown, selected = scene.plane.ceilings(scene.model, scene.ceilings)
    out = heading("ceilings (c selects the next)")
    for at, ceiling in enumerate(shown):
        chosen = at == selected
        role = "roof-selected" if chosen else "text"
        out.append([(f"  {scene.glyphs.right if chosen else ' '} ", role), (pad(clean(ceiling.name), 30), role)])
        out += _ceiling(ceiling, width)
    if not shown:
        out += prose("none", width, "note")
    return out


def _ceiling(ceiling: Ceiling, width: int) -> list[Line]:
    out = fact("  peak", fmt.si(ceiling.peak_flops, "FLOP/s"), width)
    out += fact("  bandwidth", f"{fmt.si(ceiling.bandwidth_bytes_s, 'B/s')} at {ceiling.boundary}", width)
    out += fact("  ridge", f"{ceiling.ridge:.4g} FLOP/byte", width)
    what = [f"{ceiling.dtype} {ceiling.unit or ''}".strip(), "" if ceiling.dense else "2:4 sparse"]
    if ceiling.clock_mhz is not None:
        what.append(f"at {ceiling.clock_mhz:,.0f} MHz")
    if ceiling.spread is not None:
        what.append(f"repeats spread by {fmt.percent(ceiling.spread)}")
    if any(what):
        out += fact("  of", ", ".join(part for part in what if part), width)
    source = f"{ceiling.how}: {ceiling.source}" if ceiling.source else str(ceiling.how)
    return out + fact("  how", source, width, "note")


def all_ceilings(scene: Scene, width: int) -> list[Line]:
    """The page where there is no point to show: the rule and the ceilings."""
    shown, selected = scene.plane.ceilings(scene.model, scene.ceilings)
    out = prose(ceiling_text(shown[selected]), width, "roof-selected") if shown else []
    return [*out, *prose(RULE, width, "note"), *ceilings(scene, width)]
