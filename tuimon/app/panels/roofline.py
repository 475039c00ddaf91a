"""The small roofline: the selected ceiling, and what is known of the job's operations (nothing, until a source tells)."""

from __future__ import annotations

from tuimon.app.panels.frame import PanelLines, sentence, title_line
from tuimon.app.scene import Panel, PanelView, Scene
from tuimon.draw import format as fmt
from tuimon.draw.roofline import roofline_lines


def ceiling_text(scene: Scene) -> str:
    """The selected ceiling in words: its numbers, the boundary they hold at and how they were had."""
    ceiling = scene.ceilings[scene.ceiling % len(scene.ceilings)]
    return (
        f"{ceiling.name}: {fmt.si(ceiling.peak_flops, 'FLOP/s')}, {fmt.si(ceiling.bandwidth_bytes_s, 'B/s')} "
        f"at {ceiling.boundary}, {ceiling.how}"
    )


def _which(scene: Scene) -> str:
    return f"ceiling {scene.ceiling % len(scene.ceilings) + 1} of {len(scene.ceilings)}"


def _draw(scene: Scene, view: PanelView, width: int, height: int, focused: bool) -> PanelLines:
    if height <= 0 or width <= 0:
        return []
    if not scene.ceilings:
        return [
            title_line(6, "roofline", "", width, focused, scene.glyphs),
            *sentence("no ceiling declared", width, height - 1),
        ]
    lines = [title_line(6, "roofline", _which(scene), width, focused, scene.glyphs)]
    room = height - 1
    if room > 0:
        selected = scene.ceiling % len(scene.ceilings)
        lines += roofline_lines(width, room, scene.ceilings, selected, (), None, scene.glyphs)
    return lines


PANEL = Panel(
    number=6,
    id="roofline",
    title="roofline",
    sections=("roofline",),
    draw=_draw,
    keys=lambda scene, view: [],
    help=(
        "The roof is min(peak, intensity x bandwidth) at a stated memory boundary. A ceiling is the most a machine could do, "
        "declared or taken from a data sheet (it says which), never an achieved rate. c selects another one. Points appear "
        "when operations and bytes of the job are known; this version has no source for them yet."
    ),
)
