"""The roofline: what is known of the job's operations as a whole, in words; the chart and its table are `roofline_chart`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from tuimon.app.panels.frame import PanelLines, filter_note, plural, sentence, title_line, why_missing
from tuimon.app.panels.pace import compiling_words
from tuimon.app.panels.points import SORTS, arranged, keys
from tuimon.app.panels.standing import answered, told
from tuimon.app.plane import HYPOTHETICAL
from tuimon.app.scene import Panel, PanelView, Scene
from tuimon.draw import format as fmt
from tuimon.draw.text import Line, clean, cut, wrap
from tuimon.roofline.points import RULE

if TYPE_CHECKING:
    from tuimon.roofline.ceilings import Ceiling
    from tuimon.roofline.points import Roofline

BELOW_HEIGHT = 18
"""From so many lines on there is room for a table, or for a few rows of it."""


def ceiling_text(ceiling: Ceiling) -> str:
    """A ceiling in words: its numbers, the boundary they hold at and how they were had."""
    return (
        f"{ceiling.name}: {fmt.si(ceiling.peak_flops, 'FLOP/s')}, {fmt.si(ceiling.bandwidth_bytes_s, 'B/s')} "
        f"at {ceiling.boundary}, {ceiling.how}"
    )


def window_words(scene: Scene) -> str:
    """What the latest profiler window does, in a few words; "" where there was none."""
    windows = scene.model.windows
    if not windows:
        return ""
    window = windows[-1]
    if window.state == "waiting":
        return f"window waits: {clean(window.why)}" if window.why else "window waits for a step to begin"
    if window.state == "open":
        return f"window open, {plural(window.steps, 'step')}" if window.steps else "window open"
    if window.state == "closed":
        cost = f", cost {fmt.duration(window.job_s)}" if window.job_s is not None else ""
        return f"window closed{cost}"
    return f"window {window.state}: {clean(window.why)}" if window.why else f"window {window.state}"


def spans_words(scene: Scene) -> str:
    """What the latest window or the file tells of waits, lookups and gaps, in a sentence; "" for nothing."""
    seen = next(reversed(scene.model.recorded.spans.values()), None)
    if seen is None:
        return ""
    parts = []
    waits = [one for one in seen.spans if not one[1].startswith("aten::")]
    values = sum(one[3] for one in seen.spans if one[1].startswith("aten::"))
    if waits:
        took = fmt.duration(sum(one[4] for one in waits) / 1e9)
        parts.append(f"{plural(sum(one[3] for one in waits), 'wait')} for the device ({took} in all)")
    if values:
        parts.append(f"{plural(values, 'value')} taken from tensors (item())")
    if seen.lookups:
        n, ns = sum(one[1] for one in seen.lookups), sum(one[2] for one in seen.lookups)
        parts.append(f"{plural(n, 'cache lookup')} of {fmt.duration(ns / n / 1e9 if n else None)}")
    if seen.gaps:
        n, ns = sum(one[2] for one in seen.gaps), sum(one[3] for one in seen.gaps)
        parts.append(f"{plural(n, 'gap')} between regions (host {fmt.duration(ns / 1e9)} in all)")
    of = f"window {seen.window}" if seen.window else "the file"
    return f"in {of}: {', '.join(parts)}; p lists them" if parts else ""


def known_words(known: Roofline) -> str:
    """For how much of the time the operations are known. Not all that is unknown rounds to all."""
    if known.flop_known_for is None:
        return ""
    share = known.flop_known_for * 100
    compiled = any(point.kind == "region" for point in known.points)
    of = "of the compiled time" if compiled else "of the kernels' time"
    return f"operations known for {math.floor(share) if share < 100 else 100}% {of}"


def unknown_words(known: Roofline, most: int = 4) -> str:
    """The operators that have no formula, with their share of the time."""
    named = [f"{clean(name)} ({fmt.percent(share)})" for name, share in known.unknown[:most]]
    rest = len(known.unknown) - len(named)
    return f"no formula: {', '.join(named)}{f' and {rest} more' if rest > 0 else ''}" if named else ""


def nothing_yet(scene: Scene) -> str:
    """Why there are no points, and what would bring them."""
    model = scene.model
    target = model.target
    if target.attached_ns is None and target.ended is None:
        return "not attached yet"
    for what in ("roofline", "graphs"):
        missing = why_missing(scene, what)
        if missing:
            return f"not available: {clean(missing)}"
    regions = list(model.regions.values())
    if scene.plane.reading and (regions or model.kernels):
        return "the figures of machines are being read"
    if target.ended is not None and not regions:
        return "no compiled region was called: there are no operations to count"
    busy = compiling_words(model)
    if busy:
        return f"no operations known yet: {busy}; points come with the calls that follow"
    if not regions:
        return (
            "no operations known yet: a function that torch.compile has compiled becomes a point with its first call after "
            "the compilation; of eager code a profiler window (p) tells the operators"
        )
    if not any(region.graphs for region in regions):
        return (
            f"no operations known yet: torch has told no graph of the {plural(len(regions), 'region')} here; a profiler window "
            "(p) tells the shapes of its operators"
        )
    return "no operations known yet: points come with calls that have no compilation in them, about a second later"


def summary(scene: Scene, known: Roofline) -> list[tuple[str, str]]:
    """What must be said with the points: (sentence, role)."""
    out = [(known_words(known), "strong"), (unknown_words(known), "note")]
    if known.now_roof is not None:
        peak = fmt.si(known.now_roof.peak_flops, "FLOP/s")
        out.append((f"at the clock of now {peak}{f': {clean(known.now_why)}' if known.now_why else ''}", "note"))
    words = window_words(scene)
    if words:
        waits = scene.model.windows[-1].state in ("waiting", "open", "refused")
        out.append((words, "warn" if waits else "note"))
    out += [(clean(note), "note") for note in known.notes]
    out.append((spans_words(scene), "note"))
    return [(text, role) for text, role in out if text]


def _title(scene: Scene, view: PanelView, known: Roofline | None, ceilings: Sequence[Ceiling], selected: int) -> str:
    points = scene.plane.points(scene.model)
    parts = [filter_note(len(arranged(scene, view)), len(points), view.filter)] if view.filter else []
    if points and (view.sort or view.reverse):
        parts.append(f"by {SORTS[view.sort % len(SORTS)][0]}{', reversed' if view.reverse else ''}")
    parts += [f"ceiling {selected + 1} of {len(ceilings)}" if selected >= 0 else "no ceiling"]
    if scene.plane.boundary:
        parts.append(f"all at {scene.plane.boundary}")
    if scene.plane.whole:
        parts.append("whole process")
    if known is not None and known.flop_known_for is not None:
        parts.append(known_words(known).partition(" of the")[0])
    windows = scene.model.windows
    if windows and windows[-1].state in ("waiting", "open"):
        parts.append(window_words(scene))
    return "; ".join(parts)


def _draw(scene: Scene, view: PanelView, width: int, height: int, focused: bool) -> PanelLines:
    scene.plane.rows = {}
    if height <= 0 or width <= 0:
        return []
    model, glyphs = scene.model, scene.glyphs
    ceilings, selected = scene.plane.ceilings(model, scene.ceilings)
    # what was measured must not stand below a roof that is of no machine, unless a person has put it there
    hypothetical = bool(ceilings) and scene.plane.ceiling is None and ceilings[selected].boundary == HYPOTHETICAL
    if hypothetical and scene.plane.points(model):
        selected = -1
    if not ceilings and not scene.plane.reading:
        return [
            title_line(6, "roofline", "", width, focused, glyphs),
            *sentence("no ceiling declared", width, height - 1),
        ]
    known = scene.plane.roofline(model)
    nothing = (hypothetical or scene.plane.reading) and not scene.plane.points(model)
    title = "no points yet" if nothing else _title(scene, view, known, ceilings, selected)
    lines = [title_line(6, "roofline", title, width, focused, glyphs)]
    room = height - 1
    if room <= 0:
        return lines
    if nothing:  # a roof of no machine over nothing that was measured would be a picture of nothing; c shows it
        return lines + paragraphs(
            [(nothing_yet(scene), "note"), ("", "note"), (WHAT_FILLS, "note")], width, room, glyphs.ellipsis
        )
    from tuimon.app.panels.roofline_chart import Shown, drawn

    return lines + drawn(Shown(scene, view, known, ceilings, selected), width, room, height >= BELOW_HEIGHT)


WHAT_FILLS = (
    "p opens the page of a profiler window, which tells the operators and kernels of a few steps; tuimon calibrate "
    "measures the roof of this machine, once; c shows a declared roof; L is the lab, where roofs are a question"
)


def paragraphs(parts: Sequence[tuple[str, str]], width: int, height: int, ellipsis: str) -> PanelLines:
    """Sentences, broken between words; what has no room is visibly cut."""
    out: PanelLines = []
    for text, role in parts:
        out += [[(" ", "text"), (piece, role)] for piece in wrap(text, max(1, width - 2))]
    if len(out) > height > 0:
        last = out[height - 1]
        out = [*out[: height - 1], [last[0], (cut(f"{last[1][0]} {ellipsis}", max(1, width - 2), ellipsis), last[1][1])]]
    return out[: max(0, height)]


def _answer(scene: Scene) -> Line:
    """That of the points; else what is not known, and what would tell it."""
    points = scene.plane.points(scene.model)
    if not points:
        return told(nothing_yet(scene))
    from tuimon.app.panels.roofline_chart import answer

    return answer(scene, points)


def _copied(scene: Scene, key: str) -> str:
    from tuimon.app.panels.roofline_chart import copied

    return copied(scene, key)


PANEL = Panel(
    number=6,
    id="roofline",
    title="roofline",
    sections=("roofline", "gpu", "target"),
    draw=_draw,
    keys=keys,
    copied=_copied,
    sorts=tuple(name for name, _ in SORTS),
    filterable=True,
    rows=lambda scene: scene.plane.count(),
    help=(
        "The roof is min(peak, intensity x bandwidth) at a stated memory boundary. A ceiling is the most a machine could do: "
        "calibrated on it, derived from its driver, from a data sheet, or declared (it says which), never an achieved rate. "
        f"A point is a region, a kernel or the device: {RULE}, over the last seconds. Its shape tells what its numbers are "
        "worth (enter shows it with every number's source): with compulsory bytes the intensity is an upper bound, and the "
        "share of the roof is that or more. OVER: above its roof, with the likely causes; nothing is clipped. A bar goes from "
        "slow calls to fast ones (p90 to p10, of kernels the extremes); dashed roofs are of other data types, or the roof at "
        "the clock of now. While this panel has the keys, left and right select a point, and i, u, b and p are its own (see "
        "below); c, which is everywhere, selects another ceiling."
    ),
    answer=answered(_answer),
)
