"""Which page `enter` shows. Pure text; only source is read from a file, when a page opens."""

from __future__ import annotations

from collections.abc import Callable

from tuimon.app.details import boundary, finding, frames, gpu, host, overview, recompile, region, roofline, source_page
from tuimon.app.details.paged import Build, Paged, Source, paged
from tuimon.app.details.source import Excerpt, read_here
from tuimon.app.panels import findings, gpus, log
from tuimon.app.scene import Scene
from tuimon.draw.text import Line
from tuimon.model.about import About, Kind

Page = tuple[str, Build]
"""(title, from a scene and a width to the page)."""

GONE: list[Line] = [[("  it is no longer known", "note")]]


def open_page(panel_id: str, scene: Scene, key: str | None) -> Page | None:
    """The details of the panel's row of that key, or of a panel without rows; None where there is nothing."""
    if panel_id == "now":
        return open_about(scene, About("step", ""))
    if panel_id == "surroundings":
        return _machine(scene, key)
    if panel_id == "roofline":
        return _point(scene, key)
    if key is None:
        return None
    if panel_id == "findings" and key != findings.FRAMES:
        return _finding(scene, key)
    found = _ABOUT_OF.get(panel_id)
    return open_about(scene, About(found, key if panel_id != "findings" else "")) if found is not None else None


_ABOUT_OF: dict[str, Kind] = {
    "boundaries": "boundary",
    "recompiles": "recompile",
    "regions": "region",
    "log": "log",
    "findings": "frame",
}
"""Panel -> what its rows are."""


def open_about(scene: Scene, about: About) -> Page | None:
    """The page of one thing of the model; None where it is no longer known. One step, and the ranks, have screens of their
    own."""
    kind, key = about
    if kind == "boundary":
        return _boundary(scene, key)
    if kind == "recompile":
        return _recompile(scene, key)
    if kind == "compilation":
        return _compilation(scene, key)
    if kind == "region":
        return _region(scene, key)
    if kind == "frame":
        return _frame(scene, key)
    if kind == "log":
        return _log(scene, key)
    if kind == "point":
        return _point(scene, key)
    if kind in ("gpu", "host"):
        return _machine(scene, key if kind == "gpu" else None)
    if kind == "settings" or (kind == "step" and not key):
        return "steps, target and compilations", _plain(overview.now)
    return None


def open_source(scene: Scene, source: Source) -> Page:
    """The page of a line of source."""
    return source_page.title(source), source_page.build(scene, source)


def _plain(lines: Callable[[Scene, int], list[Line]]) -> Build:
    return lambda scene, width: paged(lines(scene, width))


def _machine(scene: Scene, key: str | None) -> Page:
    index = gpus.index_of(key) if key is not None else None
    known = scene.model.surroundings.gpus.get(index) if index is not None else None
    if index is None or known is None:
        return host.TITLE, _plain(host.lines)
    return gpu.title(known), _plain(lambda scene, width: gpu.lines(scene, index, width))


def _finding(scene: Scene, key: str) -> Page | None:
    known = findings.find(scene, key)
    return (finding.title(known), finding.build(key, known)) if known is not None else None


def _boundary(scene: Scene, key: str) -> Page | None:
    known = scene.model.boundaries.get(key)
    if known is None:
        return None
    excerpt = read_here(scene, known.user_file or known.file, known.user_line or known.line)

    def page(scene: Scene, width: int) -> Paged:
        found = scene.model.boundaries.get(key)
        if found is None:
            return paged(GONE)
        return paged(boundary.lines(scene, found, excerpt, width), boundary.sentence(scene, found))

    return boundary.title(known), page


def _recompile(scene: Scene, key: str) -> Page | None:
    known = next((one for one in scene.model.recompiles if one.key == key), None)
    if known is None:
        return None
    return recompile.title(known), lambda scene, width: paged(
        recompile.lines(scene, known, width), recompile.sentence(scene, known)
    )


def _compilation(scene: Scene, key: str) -> Page | None:
    known = next((one for one in reversed(scene.model.compilations) if one.key == key), None)
    if known is None:
        return None
    return frames.compilation_title(known), _plain(lambda scene, width: frames.compilation_lines(scene, known, width))


def _frame(scene: Scene, key: str) -> Page | None:
    if not key:
        return frames.ALL, _plain(frames.all_lines)
    known = scene.model.frames.get(key)
    if known is None:
        return None

    def lines(scene: Scene, width: int) -> list[Line]:
        return frames.frame_lines(scene, scene.model.frames.get(key, known), width)

    return frames.frame_title(known), _plain(lines)


def _region(scene: Scene, key: str) -> Page | None:
    known = scene.model.regions.get(key)
    if known is None:
        return None
    excerpt = read_here(scene, known.file, known.line) if known.file else Excerpt()

    def lines(scene: Scene, width: int) -> list[Line]:
        found = scene.model.regions.get(key)
        return region.lines(scene, found, excerpt, width) if found else GONE

    return region.title(known), _plain(lines)


def _point(scene: Scene, key: str | None) -> Page:
    point = roofline.find(scene, key) if key is not None else None
    if key is None or point is None:
        return "ceilings", _plain(roofline.all_ceilings)
    return f"{point.kind} {point.name}", _plain(lambda scene, width: roofline.lines(scene, key, width))


def _log(scene: Scene, key: str) -> Page | None:
    known = log.line_of(scene, key)
    if known is None:
        return None
    return "event", lambda scene, width: paged(
        overview.log_line(scene, known, log.time_of(scene, known), width), f"{log.time_of(scene, known)} {known.text}"
    )
