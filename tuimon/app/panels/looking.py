"""What to look at first, in a line."""

from __future__ import annotations

from weakref import WeakKeyDictionary

from tuimon.app.scene import Scene
from tuimon.draw.text import Line, clean, cut_line, line_cells
from tuimon.model import Model
from tuimon.model.findings import Finding, findings

_SECTIONS = ("target", "recompiles", "compiles", "frames")
_known: WeakKeyDictionary[Model, tuple[tuple[int, ...], list[Finding]]] = WeakKeyDictionary()


def latest_findings(scene: Scene) -> list[Finding]:
    """The findings as of this second: shares of steps move with every step, and nobody reads them as fast as that."""
    model = scene.model
    stamp = (*(model.versions[section] for section in _SECTIONS), model.now_ns // 1_000_000_000)
    known = _known.get(model)
    if known is None or known[0] != stamp:
        compared = [scene.lateness] if scene.lateness is not None else ()
        known = _known[model] = (stamp, findings(model, compared, [(rank.label, rank.model) for rank in scene.ranks]))
    return known[1]


def look_line(scene: Scene, room: int) -> Line:
    """The finding that comes first in at most `room` cells, and how many others there are; empty for a healthy job."""
    found = latest_findings(scene)
    if not found:
        return []
    more: Line = [("  w", "key"), (f" {len(found) - 1} more" if len(found) > 1 else " why", "note")]
    words: Line = [("! ", "warn"), (clean(found[0].title), "warn")]
    return [*cut_line(words, max(1, room - line_cells(more)), scene.glyphs.ellipsis), *more]
