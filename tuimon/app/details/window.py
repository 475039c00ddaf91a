"""The page of profiler windows: what one is, what it costs the job, which there were, and what came of them."""

from __future__ import annotations

from tuimon.app.details.page import fact, heading, prose
from tuimon.app.panels.frame import plural
from tuimon.app.scene import Scene
from tuimon.draw import format as fmt
from tuimon.draw import spans
from tuimon.draw.text import Line
from tuimon.model.windows import Window

TITLE = "profiler windows"

WHAT = (
    "A profiler window has torch's own profiler record some steps of the job: which operators and kernels ran, with which "
    "shapes, for how long. tuimon opens one only when you ask for it."
)

COSTS = (
    "The job stands still while the profiler stops and writes: some tenths of a second, up to 2 s where there are many "
    "operators (50,000 events are the most). Its steps take longer meanwhile, up to 2.5 times. torch prints two USDT lines, "
    "a warning on toggling CPU activity, and once an ERROR line on registerClient, on the job's stderr. Results do not change."
)

FILE = "This is a file: what is told here is what it holds, and no window can be opened."

REFUSED = "It is refused, and nothing happens, where the job profiles itself or another profiler is at it."


MOST_SPANS = 12
"""Waits, lookups and gaps that are listed of one window, each."""


def lines(scene: Scene, steps: int, width: int) -> list[Line]:
    """The page; `steps` is how many the next window would take."""
    if scene.model.target.how == "file":
        return [*prose(FILE, width), *_spans(scene, 0, width)]
    out = [*prose(WHAT, width), []]
    out += prose(COSTS, width, "warn")
    out += [*prose(REFUSED, width, "note"), []]
    going = next((one for one in reversed(scene.model.windows) if not one.over), None)
    if scene.model.target.ended is not None:
        out += prose("the job is over, or no longer attached to: no window can be opened", width, "note")
    elif going is not None:
        out += prose(f"{words(going)}; x cancels it", width, "strong")
    else:
        out += prose(f"p opens a window of {plural(steps, 'step')} (+ and - change that)", width, "strong")
    out += heading("windows so far")
    for one in reversed(scene.model.windows):
        out += fact(f"window {one.number}", words(one), width, "warn" if one.state == "refused" else "number")
        seen = scene.model.kernels.get(one.number)
        if seen is not None:
            linked = f"{seen.linked * 100:.0f}% of their time has an operator"
            cut = f", cut to {plural(seen.steps, 'whole step')}" if seen.steps else ""
            what = f"{plural(len(seen.rows), 'row')} of operators and kernels{cut}, {linked}"
            out += fact("", what, width, "note")
    if not scene.model.windows:
        out += prose("none yet", width, "note")
    latest = next(reversed(scene.model.recorded.spans), None)
    return out if latest is None else [*out, *_spans(scene, latest, width)]


def _spans(scene: Scene, window: int, width: int) -> list[Line]:
    """Waits, lookups and gaps of a window, or of the file."""
    seen = scene.model.recorded.spans.get(window)
    if seen is None:
        return prose("no waits, cache lookups or gaps are told of it", width, "note")
    name = "of the file" if window == 0 else f"of window {window}"
    out = heading(f"waits and gaps {name}")
    told = [spans.sync_line(what, region, n, ns / 1e9) for _, what, region, n, ns, *_ in seen.spans[:MOST_SPANS]]
    told += [spans.lookup_line(region or None, n, ns / 1e9) for region, n, ns in seen.lookups[:MOST_SPANS]]
    told += [
        spans.gap_line(one, other, n, host / 1e9, None if device is None else device / 1e9, syncs)
        for one, other, n, host, device, syncs in seen.gaps[:MOST_SPANS]
    ]
    for line in told or ["none was seen"]:
        out += prose(line, width)
    return [*out, *prose(spans.RULE, width, "note")] if seen.gaps else out


def words(window: Window) -> str:
    """A window's state in a sentence."""
    if window.state == "waiting":
        return f"waits: {window.why}" if window.why else "waits for a step to begin"
    if window.state == "open":
        return f"open for {plural(window.steps, 'step')}" if window.steps else "open"
    if window.state == "closed":
        parts = [f"closed after {plural(window.steps, 'step')}"]
        if window.job_s is not None:
            parts.append(f"the job stood still for {fmt.duration(window.job_s)}")
        if window.slower is not None:
            parts.append(f"its steps took {window.slower:.2f} times as long")
        if window.why:
            parts.append(window.why)
        return ", ".join(parts)
    return f"{window.state}: {window.why}" if window.why else window.state
