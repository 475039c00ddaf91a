"""What to look at first: the findings, and the frames with their entries and calls."""

from __future__ import annotations

from tuimon.app.details.page import fact, heading, prose
from tuimon.app.panels.frames import calls_words, entries_words, state_words
from tuimon.app.panels.looking import latest_findings
from tuimon.app.scene import Scene
from tuimon.draw import format as fmt
from tuimon.draw.names import frame_name
from tuimon.draw.text import Line, clean, cut, pad
from tuimon.model.findings import Finding
from tuimon.model.parts import Frame

TITLE = "what to look at first"
MOST_FRAMES = 200
STATE_CELLS = 14


def lines(scene: Scene, width: int) -> list[Line]:
    """The page: each finding with its evidence and the next step, then every frame."""
    found = latest_findings(scene)
    out: list[Line] = []
    if not found:
        known = "nothing stands out in what was seen so far" if scene.model.frames else "nothing compiled was seen so far"
        out += prose(known, width, "note")
    for number, finding in enumerate(found, 1):
        out += _finding(number, finding, width)
    return out + _frames(scene, width)


def _finding(number: int, finding: Finding, width: int) -> list[Line]:
    cost = f"  ({fmt.duration(finding.cost_s)} so far)" if finding.cost_s is not None else ""
    out: list[Line] = [[]]
    out += prose(f"{number}. {finding.title}{cost}", width, "warn", indent=1)
    if finding.where:
        out += prose(finding.where, width, "place", indent=4)
    for line in finding.evidence:
        out += prose(line, width, "text", indent=4)
    return out + fact("  next step", finding.next_step, width, "strong")


def _frames(scene: Scene, width: int) -> list[Line]:
    frames = sorted(scene.model.frames.values(), key=_urgency)
    out = heading(f"frames ({len(frames)}): entries of the limit, calls since the attach")
    for frame in frames[:MOST_FRAMES]:
        state, role = state_words(frame)
        name = frame_name(frame.name, frame.file, frame.line, 30, scene.glyphs.ellipsis)
        calls = cut(clean(calls_words(scene.model, frame)), max(8, width - 60), scene.glyphs.ellipsis)
        out.append(
            [
                (f"  {entries_words(frame):>6}  ", "number"),
                (pad(state, STATE_CELLS) + "  ", role),
                (pad(name, 30) + "  ", "frame"),
                (calls, "text"),
            ]
        )
    if len(frames) > MOST_FRAMES:
        out += prose(f"and {len(frames) - MOST_FRAMES} more", width, "note")
    if not frames:
        out += prose("none so far", width, "note")
    return out


def _urgency(frame: Frame) -> tuple[bool, bool, float]:
    return frame.refused_compile_id is None, not frame.skipped, -len(frame.entries)
