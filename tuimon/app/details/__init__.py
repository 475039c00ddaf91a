"""Pages of details: what `enter` shows. Pure text as well; only the source excerpt is read from a file, when a page opens."""

from __future__ import annotations

from collections.abc import Callable

from tuimon.app.details import boundary, gpu, host, overview, recompile, region, roofline
from tuimon.app.details.source import Excerpt, read_excerpt
from tuimon.app.panels import gpus, log, recompiles
from tuimon.app.scene import PanelView, Scene
from tuimon.draw.text import Line

Page = tuple[str, Callable[[Scene, int], list[Line]]]
"""(title, from a scene and a width to lines)."""

GONE: list[Line] = [[("  it is no longer known", "note")]]


def open_page(panel_id: str, scene: Scene, key: str | None) -> Page | None:
    """The details of the panel's row of that key, or of a panel without rows; None where there is nothing."""
    if panel_id == "now":
        return "steps, target and compilations", overview.now
    if panel_id == "surroundings":
        return _machine(scene, key)
    if panel_id == "roofline":
        return _point(scene, key)
    if key is None:
        return None
    if panel_id == "boundaries":
        return _boundary(scene, key)
    if panel_id == "recompiles":
        return _recompile(scene, key)
    if panel_id == "regions":
        return _region(scene, key)
    if panel_id == "log":
        return _log(scene, key)
    return None


def _machine(scene: Scene, key: str | None) -> Page:
    index = gpus.index_of(key) if key is not None else None
    known = scene.model.surroundings.gpus.get(index) if index is not None else None
    if index is None or known is None:
        return host.TITLE, host.lines
    return gpu.title(known), lambda scene, width: gpu.lines(scene, index, width)


def _boundary(scene: Scene, key: str) -> Page | None:
    known = scene.model.boundaries.get(key)
    if known is None:
        return None
    excerpt = read_excerpt(known.user_file or known.file, known.user_line or known.line)

    def lines(scene: Scene, width: int) -> list[Line]:
        found = scene.model.boundaries.get(key)
        return boundary.lines(scene, found, excerpt, width) if found else GONE

    return boundary.title(known), lines


def _recompile(scene: Scene, key: str) -> Page | None:
    known = next((one for one in scene.model.recompiles if recompiles.key(one) == key), None)
    if known is None:
        return None
    return recompile.title(known), lambda scene, width: recompile.lines(scene, known, width)


def _region(scene: Scene, key: str) -> Page | None:
    known = scene.model.regions.get(key)
    if known is None:
        return None
    excerpt = read_excerpt(known.file, known.line) if known.file else Excerpt()

    def lines(scene: Scene, width: int) -> list[Line]:
        found = scene.model.regions.get(key)
        return region.lines(scene, found, excerpt, width) if found else GONE

    return region.title(known), lines


def _point(scene: Scene, key: str | None) -> Page:
    point = roofline.find(scene, key) if key is not None else None
    if key is None or point is None:
        return "ceilings", roofline.all_ceilings
    return f"{point.kind} {point.name}", lambda scene, width: roofline.lines(scene, key, width)


def _log(scene: Scene, key: str) -> Page | None:
    known = next((line for at, line in log.lines_of(scene, PanelView()) if str(at) == key), None)
    if known is None:
        return None
    return "event", lambda scene, width: overview.log_line(scene, known, log.time_of(scene, known), width)
