"""All that is known of one boundary."""

from __future__ import annotations

from tuimon.app.details import source_page
from tuimon.app.details.page import fact, heading, populations, prose
from tuimon.app.details.paged import Source, linked
from tuimon.app.details.source import Excerpt, excerpt_lines
from tuimon.app.panels.boundaries import kind, tag, which_of
from tuimon.app.panels.frame import untold
from tuimon.app.panels.frames import calls_words
from tuimon.app.scene import Scene
from tuimon.draw import format as fmt
from tuimon.draw.text import Line, clean
from tuimon.model.about import About
from tuimon.model.findings import per_step, share_of_step
from tuimon.model.hosts import reads_host
from tuimon.model.parts import Boundary


def title(boundary: Boundary) -> str:
    """The page's name."""
    return f"boundary at {boundary.user_file or boundary.file}:{boundary.user_line or boundary.line}"


def lines(scene: Scene, boundary: Boundary, excerpt: Excerpt, width: int) -> list[Line]:
    """The page: why, where, what it costs, and what Dynamo suggests."""
    out: list[Line] = [*prose(kind(boundary), width, "break")]
    label = tag(boundary)
    if label:
        out += prose(f"({label})", width, "note")
    which = which_of(scene, boundary)
    if which:
        out += prose(f"({which} of several boundaries at this line, in the order in which Dynamo met them)", width, "note")
    user_line = boundary.user_line or boundary.line
    to = source_page.of_boundary(boundary)
    out += linked(fact("line", f"{boundary.user_file or boundary.file}:{user_line}", width, "place"), to)
    if (boundary.file, boundary.line) != (boundary.user_file, boundary.user_line):
        text = f"{boundary.file}:{boundary.line} (a library's; the line above called it)"
        out += linked(fact("code", text, width), source_page.of_boundary(boundary, library=True))
    out += fact("function", boundary.function, width, "frame")
    out += excerpt_lines(scene, excerpt, user_line, width)
    out += _cost(scene, boundary, width)
    out += heading("why")
    out += fact("reason", boundary.reason or "not known: Dynamo keeps none for it", width)
    if boundary.headline:
        out += fact("what Dynamo did", boundary.headline, width)
    if boundary.also:
        out += fact("and then", boundary.also, width)
    if boundary.gb_id:
        out += fact("graph break id", boundary.gb_id, width)
    if boundary.explanation:
        out += [[("  explanation", "label")], *prose(boundary.explanation, width, indent=4)]
    for hint in dict.fromkeys(boundary.hints):  # Dynamo repeats some
        out += prose(f"{scene.glyphs.bullet} {hint}", width, indent=4)
    if boundary.stack:
        out += heading("the program's stack at the break, outermost first")
        for file, line, function in boundary.stack:
            out += linked(prose(f"{clean(function)}  {file}:{line}", width, "source"), Source(file, line, clean(function)))
    frame = scene.model.frames.get(boundary.frame) if boundary.frame else None
    if frame is not None:
        out += heading("more")
        out += linked(prose(f"the frame {clean(frame.name)}: its entries and calls", width, "label"), About("frame", frame.key))
    return out


def sentence(scene: Scene, boundary: Boundary) -> str:
    """The boundary as a text for a ticket."""
    share = share_of_step(scene.model, boundary)
    cost = f"takes {fmt.percent(share)} of a step" if share is not None else "share of a step not known"
    each = f", median {fmt.duration(boundary.host.summary.median)}" if boundary.host.n else ""
    where = f"{boundary.user_file or boundary.file}:{boundary.user_line or boundary.line}"
    crossed = "crossings not counted" if boundary.crossings is None else f"{fmt.count(boundary.crossings)} crossings"
    hint = f"; hint: {boundary.hints[0]}" if boundary.hints else ""
    return clean(f"boundary at {where} in {boundary.function}: {kind(boundary)}; {cost}, {crossed}{each}{hint}")


def _cost(scene: Scene, boundary: Boundary, width: int) -> list[Line]:
    out = heading("what it costs")
    missing = untold(scene, "crossings")
    if missing:
        out += fact("crossings, time", missing, width)
    elif boundary.skipped_frame:
        out += _eager_whole(scene, boundary, width)
    else:
        out += fact("crossings", fmt.count(boundary.crossings), width)
        out += fact("in a steady step", fmt.per_step(per_step(scene.model, boundary)), width)
        out += fact("share of its time", fmt.percent(share_of_step(scene.model, boundary)), width)
        if boundary.crossings is not None and boundary.host.n < boundary.crossings:
            out += prose(
                f"{boundary.host.n} of {boundary.crossings} crossings timed: no graph runs before the break, so it is not "
                "known when the stretch begins",
                width,
                "note",
            )
        out += populations(scene, [("host, a crossing", "", boundary.host)], width)
        out += fact("device sync", _sync(boundary), width, "warn" if boundary.sync_waited else "number")
    out += fact("reads a value", _reads(boundary), width)
    out += fact(
        "decisions", f"{boundary.breaks} at compile time{', before the attach' if boundary.before_attach else ''}", width
    )
    if boundary.accepted is not None:
        out += fact("accepted", f"{boundary.accepted or 'without a note'} (m in the table: no longer)", width)
    else:
        out += fact("accepted", "no (m in the table accepts it)", width)
    return out


def _eager_whole(scene: Scene, boundary: Boundary, width: int) -> list[Line]:
    out = prose(
        "No graph could go on after this break: the frame runs in eager at every call, so there is no time to tell.", width
    )
    for key in boundary.frames:
        frame = scene.model.frames.get(key)
        if frame is not None:
            out += fact(f"{frame.name}, calls", calls_words(scene.model, frame), width)
    counted = f" ({boundary.counted})" if boundary.counted else ""
    out += fact("crossings", f"{fmt.count(boundary.crossings)}{counted}", width)
    return out + fact("in a steady step", fmt.per_step(per_step(scene.model, boundary)), width)


def _sync(boundary: Boundary) -> str:
    if not boundary.sync_looked:
        return "not looked at"
    looked = fmt.count(boundary.sync_looked)
    return (
        f"seen in {fmt.count(boundary.sync_waited)} of {looked}" if boundary.sync_waited else f"none seen in {looked} crossings"
    )


def _reads(boundary: Boundary) -> str:
    reads = reads_host(boundary.kind, boundary.explanation)
    if reads is None:
        return "not known for this kind of break"
    return "yes, by the nature of the operation: a device is waited for" if reads else "no, by the nature of the operation"
