"""All that is known of one region."""

from __future__ import annotations

from tuimon.app.details.page import fact, heading, populations, prose
from tuimon.app.details.paged import Source, linked
from tuimon.app.details.recompile import costs
from tuimon.app.details.source import Excerpt, excerpt_lines
from tuimon.app.panels.frame import untold
from tuimon.app.panels.regions import share_of_step
from tuimon.app.scene import Scene
from tuimon.draw import format as fmt
from tuimon.draw.names import function_name
from tuimon.draw.text import Line
from tuimon.model.about import About
from tuimon.model.parts import Region


def title(region: Region) -> str:
    """The page's name."""
    return f"region [{region.compile_id}] {region.direction} of {function_name(region.function)}"


def _calls(scene: Scene, region: Region, width: int) -> list[Line]:
    out = heading("its calls")
    return out + populations(
        scene,
        [
            ("initial", "with compilation in it", region.initial),
            ("steady", "of the frame's first entry", region.steady),
            ("after guard change", "of an entry that a recompile made", region.after_guard_change),
            *([("on the device", "a sampled share", region.device)] if region.device.n else []),
        ],
        width,
    )


def lines(scene: Scene, region: Region, excerpt: Excerpt, width: int) -> list[Line]:
    """The page: its three populations, its frame, the compilation that made it."""
    to = Source(region.file, region.line, function_name(region.function)) if region.file and region.line else None
    out = linked(fact("frame", f"{function_name(region.function)} {region.file}:{region.line}", width, "frame"), to)
    out += fact("compile id", f"{region.compile_id} {region.direction}", width)
    if region.generation:
        out += fact(
            "generation", f"r{region.generation} (Dynamo was reset so often before, and gave the same ids out again)", width
        )
    out += fact("backend", region.backend or "not known", width)
    out += fact("operations in graph", fmt.count(region.ops), width)
    missing = untold(scene, "calls")
    calls = fmt.count(region.calls) + (", since the attach" if region.before_attach else "")
    out += fact("calls", missing or calls, width)
    out += fact("share of steady steps", fmt.percent(share_of_step(scene, region)), width)
    if region.raised:
        out += fact("raised", f"{region.raised} calls ended in an exception", width, "bad")
    if not missing:
        out += _calls(scene, region, width)
    frame = scene.model.frames.get(region.frame) if region.frame else None
    if frame is not None:
        out += heading("its frame")
        of = f" of {frame.limit}" if frame.limit is not None else ""
        entries = fact("cache entries", f"{len(frame.entries)}{of}: {', '.join(frame.entries) or 'none known'}", width)
        out += linked(entries, About("frame", frame.key))
        if frame.refused_compile_id is not None:
            out += fact("refused", f"[{frame.refused_compile_id}]: the recompile limit is reached", width, "bad")
    if excerpt.lines or excerpt.why_not:
        out += excerpt_lines(scene, excerpt, region.line, width)
    made = [
        one
        for one in scene.model.compilations
        if (one.generation, one.compile_id, one.direction) == (region.generation, region.compile_id, region.direction)
    ]
    if made:
        out += costs(made[-1], width)
    elif region.before_attach:
        out += prose("compiled before the attach; torch keeps the metrics of its last 64 compilations only", width, "note")
    return out
